// Package ngram cuts strings into ordered n-grams, of which two strings that are near each other share many.
package ngram

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SentinelBase is the first of the symbols that pad a string for its n-grams. All lie above unicode.MaxRune, so
// that no text can contain one: the string S with n-grams is
//
//	L(1) .. L(n-1)  S  R(1) .. R(n-1),   L(i) = SentinelBase + i - 1,   R(i) = SentinelBase + n - 1 + i - 1
//
// which has |S| + n - 1 grams, so that strings shorter than n are findable too. With n = 1 there is no padding.
const SentinelBase rune = unicode.MaxRune + 1

// Scanner enumerates the ordered n-grams of a string: pairs (gram, i) where i counts the earlier occurrences
// of the same gram in the string (section IV.B.1 of the paper), so that the match count of two strings is
// the size of the multiset intersection of their grams (Lemma 5.1). The zero value is ready; Reset reuses the
// memory, so that a scanner allocates nothing once it has seen the longest string. Not safe for concurrent use.
//
//	for s.Reset(runes, 3); s.Next(); {
//		use(s.Key())
//	}
type Scanner struct {
	n      int
	padded []rune
	next   int // position of the next gram
	// seen is an open-addressing table: 1 + the latest position of a gram, 0 = empty. occurrence[p] is the
	// number of earlier occurrences of the gram at p.
	seen       []uint32
	occurrence []uint32
	key        []byte
}

// Reset begins the string text with grams of n symbols, 1 <= n.
func (s *Scanner) Reset(text []rune, n int) {
	s.n, s.next = n, 0
	s.padded = appendPadded(s.padded[:0], text, n)
	grams := len(s.padded) - n + 1
	s.occurrence = slices.Grow(s.occurrence[:0], grams)[:grams]
	size := 1
	for size < 2*grams {
		size *= 2
	}
	s.seen = slices.Grow(s.seen[:0], size)[:size]
	clear(s.seen)
}

// Next moves to the next gram, in the order of the string; it is false after the last.
func (s *Scanner) Next() bool {
	if s.next >= len(s.occurrence) {
		return false
	}
	at := s.next
	s.next++
	gram := s.padded[at : at+s.n]
	mask := uint64(len(s.seen) - 1)
	slot := hashGram(gram) & mask
	for ; s.seen[slot] != 0; slot = (slot + 1) & mask {
		earlier := int(s.seen[slot] - 1)
		if slices.Equal(s.padded[earlier:earlier+s.n], gram) {
			s.occurrence[at] = s.occurrence[earlier] + 1
			s.seen[slot] = uint32(at + 1)
			return true
		}
	}
	s.occurrence[at] = 0
	s.seen[slot] = uint32(at + 1)
	return true
}

// Gram returns the n symbols of the current gram and the number of its earlier occurrences. The slice is
// valid until Reset.
func (s *Scanner) Gram() ([]rune, uint32) {
	at := s.next - 1
	return s.padded[at : at+s.n], s.occurrence[at]
}

// Key returns AppendKey of the current gram, valid until the next call.
func (s *Scanner) Key() []byte {
	gram, occurrence := s.Gram()
	s.key = AppendKey(s.key[:0], gram, occurrence)
	return s.key
}

// AppendKey appends the keyword of an ordered n-gram to dst: its symbols in UTF-8, with the sentinels as the
// 4-byte sequences that UTF-8 would have there, then the occurrence as an unsigned varint unless it is 0. Because
// n is fixed within an attribute no two (gram, occurrence) share a key, and a plain ASCII gram is n bytes.
func AppendKey(dst []byte, gram []rune, occurrence uint32) []byte {
	for _, r := range gram {
		if r < SentinelBase {
			dst = utf8.AppendRune(dst, r)
		} else {
			dst = append(dst, 0xF0|byte(r>>18)&0x07, 0x80|byte(r>>12)&0x3F, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
		}
	}
	if occurrence > 0 {
		dst = binary.AppendUvarint(dst, uint64(occurrence))
	}
	return dst
}

// Name returns a key for people: sentinels are ‹ and ›, and the second occurrence of ana is ana #2. A key
// that AppendKey did not make comes out as it is.
func Name(key string, n int) string {
	var name strings.Builder
	rest := key
	for range n {
		r, size := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && size <= 1 {
			if len(rest) < 4 || rest[0] != 0xF4 {
				return strings.Clone(key)
			}
			sentinel := rune(rest[1]&0x3F)<<12 | rune(rest[2]&0x3F)<<6 | rune(rest[3]&0x3F)
			sentinel |= rune(rest[0]&0x07) << 18
			r, size = '‹', 4
			if sentinel >= SentinelBase+rune(n-1) {
				r = '›'
			}
		}
		name.WriteRune(r)
		rest = rest[size:]
	}
	if occurrence, size := binary.Uvarint([]byte(rest)); size > 0 {
		fmt.Fprintf(&name, " #%d", occurrence+1)
	}
	return name.String()
}

func appendPadded(dst, text []rune, n int) []rune {
	for i := range n - 1 {
		dst = append(dst, SentinelBase+rune(i))
	}
	dst = append(dst, text...)
	for i := range n - 1 {
		dst = append(dst, SentinelBase+rune(n-1+i))
	}
	return dst
}

func hashGram(gram []rune) uint64 {
	h := uint64(len(gram))
	for _, r := range gram {
		h = (h ^ uint64(uint32(r))) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

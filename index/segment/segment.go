// Package segment cuts texts into words.
package segment

import (
	"unicode"
	"unicode/utf8"

	uax29 "github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// Words cuts texts into what the schema's words: uax29-lower names. The steps may not change as long as they bear that name, since indexes
// hold what they produced:
//
//  1. The text is segmented by the word boundaries of Unicode (UAX #29).
//  2. A segment without a letter or a number is dropped: blanks, punctuation, symbols, emoji.
//  3. The rest is normalised to NFKC, lower-cased by the full rules of Unicode (the final sigma included, those of
//     single languages not), and normalised again.
//
// NFKC and not NFC, because a search should not see how a character was typed: full-width letters, ligatures and
// superscripts are their plain forms. It comes after segmentation, because before it would glue together what was
// apart: "Sony™" would become "sonytm".
//
// # Plain words
//
// Most segments of most texts are ASCII letters and digits between blanks and punctuation. The rules say of them what one look at what follows says too (see
// ended), at a fifth of the time. All others are the library's: the rules have one home. FuzzPlain holds both against each other.
//
// Words is scratch memory for one goroutine.
type Words struct {
	normal, lower []byte // a word on its way
	caser         cases.Caser
}

// NewWords makes one.
func NewWords() *Words { return &Words{caser: cases.Lower(language.Und)} }

// A kind is what the rules see in a byte.
type kind uint8

const (
	apart  kind = 0 // ASCII that no word continues with: blanks, controls, most punctuation and symbols
	plain  kind = 1 // a letter or digit of ASCII
	upper  kind = 3 // an upper-case one, which is plain too
	within kind = 4 // punctuation that a word continues with if the right letters or digits are on both sides
	other  kind = 8 // what only the library knows about: the underscore, and all that is not ASCII
)

var kinds = func() (k [256]kind) {
	for c := range k {
		switch {
		case c >= utf8.RuneSelf || c == '_':
			k[c] = other
		case 'A' <= c && c <= 'Z':
			k[c] = upper
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			k[c] = plain
		}
	}
	for _, c := range []byte(`.,:;'`) {
		k[c] = within
	}
	return k
}()

// Append appends the words of a text to dst, end to end, and where each of them ends to ends.
func (w *Words) Append(dst []byte, ends []int, text string) ([]byte, []int) {
	segments := uax29.FromString("")
	for at := 0; at < len(text); {
		start, seen := at, apart
		for at < len(text) && kinds[text[at]]&plain != 0 {
			seen |= kinds[text[at]]
			at++
		}
		if at == start {
			at = skip(text, at)
			if at == len(text) || kinds[text[at]]&plain != 0 {
				continue
			}
		} else if ended(text[at:]) {
			first := len(dst)
			dst = append(dst, text[start:at]...)
			if seen == upper {
				lowerASCII(dst[first:])
			}
			ends = append(ends, len(dst))
			continue
		} else {
			at = start
		}
		segments.SetText(text[at:])
		segments.Next()
		segment := segments.Value()
		at += len(segment)
		if isWord(segment) {
			dst = w.fold(dst, segment)
			ends = append(ends, len(dst))
		}
	}
	return dst, ends
}

// ended says whether a plain word ends where rest begins.
func ended(rest string) bool {
	if rest == "" {
		return true
	}
	switch kinds[rest[0]] {
	case apart:
		return true
	case within:
		return len(rest) == 1 || kinds[rest[1]]&(plain|other) == 0
	}
	return false
}

// skip returns where a segment begins that may be a word, at or after the i-th byte, where one begins. What is not ASCII may continue a
// segment of blanks, and any other character.
func skip(text string, i int) int {
	start := i
	for i < len(text) && kinds[text[i]]&(plain|other) == 0 {
		i++
	}
	if i == len(text) || i == start || text[i] < utf8.RuneSelf {
		return i
	}
	for i--; i > start && text[i] == ' ' && text[i-1] == ' '; i-- {
	}
	return i
}

func isWord(segment string) bool {
	for _, c := range segment {
		if unicode.IsLetter(c) || unicode.IsNumber(c) {
			return true
		}
	}
	return false
}

// fold appends a word in normal form and lower case.
func (w *Words) fold(dst []byte, word string) []byte {
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			return w.foldUnicode(dst, word)
		}
	}
	first := len(dst)
	dst = append(dst, word...)
	lowerASCII(dst[first:])
	return dst
}

func lowerASCII(word []byte) {
	for i, c := range word {
		if 'A' <= c && c <= 'Z' {
			word[i] = c + 'a' - 'A'
		}
	}
}

// foldUnicode appends a word that is not all ASCII. Normalising into an empty buffer and not straight behind the words before keeps words from
// combining with each other, and spares an allocation.
func (w *Words) foldUnicode(dst []byte, word string) []byte {
	w.normal = norm.NFKC.AppendString(w.normal[:0], word)
	w.lower = w.lower[:0]
	for _, c := range string(w.normal) {
		if c == 'Σ' || c == 'İ' {
			// The letters whose lower case depends on their place or is more than one letter. Caser knows all
			// the rules but allocates, so that only these words pay for it. Lower case is at most half as long
			// again (two bytes may become three), so the result always fits.
			w.lower = append(w.lower[:0], make([]byte, 2*len(w.normal))...)
			n, _, _ := w.caser.Transform(w.lower, w.normal, true)
			w.lower = w.lower[:n]
			break
		}
		w.lower = utf8.AppendRune(w.lower, unicode.ToLower(c))
	}
	w.normal = norm.NFKC.Append(w.normal[:0], w.lower...)
	return append(dst, w.normal...)
}

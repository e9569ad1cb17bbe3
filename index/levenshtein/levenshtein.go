// Package levenshtein is the edit distance of texts, in code points: the fewest insertions, deletions and substitutions.
package levenshtein

import (
	"unicode/utf8"
	"unsafe"
)

// Distance returns the Levenshtein distance of a and b: the fewest insertions, deletions and substitutions of
// one symbol each that turn a into b. To compare one sequence with many, keep a [Pattern].
func Distance(a, b []rune) int {
	var p Pattern
	p.Reset(a)
	d, _ := p.Distance(b, max(len(a), len(b)))
	return d
}

// Pattern is one sequence made ready for being compared with many others by Myers' bit-vector algorithm (J. ACM
// 1999) in Hyyrö's block form (2003). The dynamic programming matrix D has the pattern down its side and the text
// along its top; 64 rows of a column are kept as two words, the vertical differences D[i,j]-D[i-1,j] that are +1
// and those that are -1. A column costs about 15 instructions for 64 rows.
//
// Patterns of any length work. With a bound t, only blocks that a path of cost <= t can touch are computed
// (Ukkonen's band), so that a long pattern costs what the bound costs, not what its length costs. Memory is
// linear in the pattern, whatever its alphabet.
//
// The zero value is the empty pattern. A Pattern is reusable through Reset and keeps its memory; Distance writes
// to it, so only one goroutine at a time may use it.
type Pattern struct {
	length int // symbols
	blocks int // words of 64 rows

	// In which rows a symbol stands. Symbols below 256 are numbered from 1 (0: not in the pattern) and have a
	// row of words each, masks[number*blocks+block]; the others are looked up block by block.
	number [256]uint16
	low    []uint8 // the symbols that have a number
	masks  []uint64
	high   map[highKey]uint64

	plus, minus []uint64 // the current column's vertical differences, one word per block

	// Meter is told of the work that long patterns are, and may stop a comparison. Nil: nobody is told, nothing stops.
	Meter  Meter
	paused column // where a comparison stopped that is to go on
}

// A Meter counts work. The unit is a step of a block of 64 rows, some 5 ns.
type Meter interface {
	// Most is the work that may be done before the meter is told of it.
	Most() int
	// Did adds work.
	Did(work int)
	// Stop reports whether to stop here.
	Stop() bool
}

// A column is how far a comparison has come: its next column, and what is known of those before it.
type column struct {
	next               int // 0: none is paused
	length, bound      int // of the comparison
	first, last, score int
}

// highKey names a symbol of 256 or more within a block of rows.
type highKey struct {
	block  int32
	symbol rune
}

// Reset makes text the pattern. The slice is not kept.
func (p *Pattern) Reset(text []rune) {
	for _, s := range p.low {
		p.number[s] = 0
	}
	p.low = p.low[:0]
	clear(p.high)
	p.paused = column{}
	p.length = len(text)
	p.blocks = (len(text) + 63) / 64
	p.masks = appendZeros(p.masks[:0], p.blocks)
	p.plus = appendZeros(p.plus[:0], p.blocks)
	p.minus = appendZeros(p.minus[:0], p.blocks)

	for i, r := range text {
		block, bit := i/64, uint64(1)<<(i%64)
		if uint32(r) >= 256 {
			if p.high == nil {
				p.high = make(map[highKey]uint64)
			}
			p.high[highKey{int32(block), r}] |= bit
			continue
		}
		if p.number[r] == 0 {
			p.low = append(p.low, uint8(r))
			p.number[r] = uint16(len(p.low))
			p.masks = appendZeros(p.masks, p.blocks)
		}
		p.masks[int(p.number[r])*p.blocks+block] |= bit
	}
}

// appendZeros appends n zeros to words.
func appendZeros(words []uint64, n int) []uint64 {
	start := len(words)
	if cap(words)-start < n {
		words = append(words, make([]uint64, n)...)
	}
	words = words[:start+n]
	clear(words[start:])
	return words
}

// Len returns the number of symbols of the pattern.
func (p *Pattern) Len() int { return p.length }

// Paused says that the last comparison was stopped, and that the same call goes on with it.
func (p *Pattern) Paused() bool { return p.paused.next > 0 }

// Forget gives up a comparison that was stopped.
func (p *Pattern) Forget() { p.paused = column{} }

// Distance returns the edit distance of the pattern and text and true when it is at most bound. Otherwise it
// returns false, as soon as that is certain, and a number that means nothing. With a Meter that stopped it, it returns
// false as well, and the same call goes on later.
func (p *Pattern) Distance(text []rune, bound int) (int, bool) {
	return distance(p, text, bound)
}

// DistanceString is Distance for UTF-8 text; runes is memory for decoding that is not ASCII, which the caller
// keeps between calls, or nil. Bytes that are not UTF-8 count as U+FFFD, one each.
func (p *Pattern) DistanceString(text string, bound int, runes *[]rune) (int, bool) {
	if isASCII(text) {
		return distance(p, unsafe.Slice(unsafe.StringData(text), len(text)), bound)
	}
	if runes == nil {
		runes = new([]rune)
	}
	*runes = AppendRunes((*runes)[:0], text)
	return distance(p, *runes, bound)
}

// AppendRunes appends the code points of text to dst.
func AppendRunes(dst []rune, text string) []rune {
	for _, r := range text {
		dst = append(dst, r)
	}
	return dst
}

func isASCII(text string) bool {
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// distance is Distance for texts of ASCII bytes or of code points.
func distance[S uint8 | rune](p *Pattern, text []S, bound int) (int, bool) {
	bound = min(bound, max(p.length, len(text)))
	delta := p.length - len(text)
	switch {
	case bound < max(delta, -delta): // at least |delta| insertions or deletions
		return 0, false
	case p.length == 0 || len(text) == 0:
		return max(p.length, len(text)), true
	case p.blocks == 1:
		return distanceShort(p, text, bound)
	default:
		return distanceBlocks(p, text, bound)
	}
}

// mask returns the rows of block in which symbol stands.
func mask[S uint8 | rune](p *Pattern, symbol S, block int) uint64 {
	if uint32(symbol) < 256 {
		return p.masks[int(p.number[uint8(symbol)])*p.blocks+block]
	}
	return p.high[highKey{int32(block), rune(symbol)}]
}

// distanceShort is for patterns of at most 64 symbols: one block, no band, the column in registers.
func distanceShort[S uint8 | rune](p *Pattern, text []S, bound int) (int, bool) {
	bottom := uint64(1) << (p.length - 1)
	plus, minus := ^uint64(0), uint64(0)
	// score is D[m,j]. It can fall by at most one per column, so it must not exceed the bound by more than the
	// columns left.
	score, limit := p.length, bound+len(text)
	for _, symbol := range text {
		eq := mask(p, symbol, 0)
		xv := eq | minus
		xh := (((eq & plus) + plus) ^ plus) | eq
		ph := minus | ^(xh | plus)
		mh := plus & xh
		if ph&bottom != 0 {
			score++
		} else if mh&bottom != 0 {
			score--
		}
		if limit--; score > limit {
			return 0, false
		}
		ph = ph<<1 | 1 // D[0,j] = j
		mh <<= 1
		plus = mh | ^(xv | ph)
		minus = ph & xv
	}
	return score, score <= bound
}

// distanceBlocks is for longer patterns. A path from D[0,0] to D[m,n] that leaves the diagonals i-j = 0 to
// delta = m-n by x on either side costs |delta| + 2x at least, so a path of cost <= t stays on the diagonals
//
//	min(0,delta) - s  to  max(0,delta) + s,  s = (t - |delta|) / 2,
//
// and only the blocks these touch are computed, first to last; both only grow from column to column. Cells
// outside are replaced by upper bounds: a block that joins at the bottom continues the column before with +1 a
// row, and above the first block the matrix goes on with +1 per column. Every value computed is thus at least the
// true one, and along a path of cost <= t it is the true one: the result is exact when it is at most t, and
// otherwise above t, as it should be.
func distanceBlocks[S uint8 | rune](p *Pattern, text []S, bound int) (int, bool) {
	delta := p.length - len(text)
	slack := (bound - max(delta, -delta)) / 2
	lowest, highest := min(0, delta)-slack, max(0, delta)+slack

	at := column{length: len(text), bound: bound, last: -1}
	if p.paused.next > 0 && p.paused.length == at.length && p.paused.bound == bound {
		at = p.paused
	}
	p.paused = column{}
	final := p.blocks - 1
	stretch := len(text) // columns between two looks at the meter
	if p.Meter != nil {
		stretch = max(1, p.Meter.Most()/p.blocks)
	}
	first, last := at.first, at.last
	score := at.score // D at the bottom row of block last
	for from := at.next; from < len(text); {
		to := min(len(text), from+stretch)
		for j := from; j < to; j++ {
			top, bottom := j+1+lowest, min(j+1+highest, p.length) // rows of column j+1 in the band, 1-based
			if top > 1 {
				first = (top - 1) / 64
			}
			for last < (bottom-1)/64 {
				last++
				p.plus[last], p.minus[last] = ^uint64(0), 0
				score += min(64, p.length-64*last)
			}
			in := 1
			for b := first; b < last; b++ {
				in = p.step(b, mask(p, text[j], b), in, 63)
			}
			bottomBit := 63
			if last == final {
				bottomBit = (p.length - 1) % 64
			}
			score += p.step(last, mask(p, text[j], last), in, bottomBit)
			if last == final && score-(len(text)-1-j) > bound {
				return 0, false
			}
		}
		if p.Meter != nil {
			p.Meter.Did((to - from) * (last - first + 1))
			if to < len(text) && p.Meter.Stop() {
				p.paused = column{next: to, length: len(text), bound: bound, first: first, last: last, score: score}
				return 0, false
			}
		}
		from = to
	}
	return score, score <= bound
}

// step computes one column of one block. in and the result are the horizontal differences, -1, 0 or +1, above
// the block's first row and at the row of its bit bottom.
func (p *Pattern) step(block int, eq uint64, in, bottom int) (out int) {
	plus, minus := p.plus[block], p.minus[block]
	xv := eq | minus
	if in < 0 {
		eq |= 1
	}
	xh := (((eq & plus) + plus) ^ plus) | eq
	ph := minus | ^(xh | plus)
	mh := plus & xh
	out = int(ph>>bottom&1) - int(mh>>bottom&1)
	ph <<= 1
	mh <<= 1
	switch {
	case in > 0:
		ph |= 1
	case in < 0:
		mh |= 1
	}
	p.plus[block] = mh | ^(xv | ph)
	p.minus[block] = ph & xv
	return out
}

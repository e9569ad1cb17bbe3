// Package texts lays texts out for the kernels of a CUDA device: their symbols, their bytes, and the order in which a search by edit distance goes through
// them. It needs no device.
package texts

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A text on the device is its length and its symbols, filled up with zeros to whole units (kernels/edit.cuh). A symbol is the number of a code
// point among those that occur: one byte each where there are at most 256, which covers most alphabets, else two. So nothing is decoded on the
// device, a text lies in few aligned pieces, and a pattern's masks are a small table.

// MaxUnits: starts of texts are 32 bits, and so are the numbers of objects, which kernels count to the end of a block's share. A text has a unit at
// least.
const MaxUnits = math.MaxUint32 - 1024

// Symbols number the code points of texts, page by page.
type Symbols struct {
	Count int
	pages [(utf8.MaxRune + 1) / symbolPage]*[symbolPage]uint16
}

const symbolPage = 256

// Of is a code point's number, or abi.NoSymbol.
func (s *Symbols) Of(r rune) uint16 {
	if r < 0 || r > utf8.MaxRune || s.pages[r/symbolPage] == nil {
		return abi.NoSymbol
	}
	return s.pages[r/symbolPage][r%symbolPage]
}

// Sign is the bit of a code point in the signs of a text, which say what symbols it has, by their numbers mod 64; of one that no text has there is none.
func (s *Symbols) Sign(r rune) uint64 {
	if symbol := s.Of(r); symbol != abi.NoSymbol {
		return 1 << (symbol % 64)
	}
	return 0
}

// add numbers a code point.
func (s *Symbols) add(r rune) {
	page := s.pages[r/symbolPage]
	if page == nil {
		page = new([symbolPage]uint16)
		for i := range page {
			page[i] = abi.NoSymbol
		}
		s.pages[r/symbolPage] = page
	}
	if page[r%symbolPage] == abi.NoSymbol && s.Count < abi.NoSymbol {
		page[r%symbolPage] = uint16(s.Count)
		s.Count++
	}
}

// Bytes is the size of a symbol.
func (s *Symbols) Bytes() int {
	if s.Count <= abi.MaxNarrow {
		return 1
	}
	return 2
}

// Append encodes a text behind what is there already, which is whole units.
func (s *Symbols) Append(data []byte, text string) []byte {
	start, wide := len(data), s.Bytes() == 2
	data = append(data, 0, 0, 0, 0)
	length := uint32(0)
	for _, r := range text {
		symbol := s.Of(r)
		data = append(data, byte(symbol))
		if wide {
			data = append(data, byte(symbol>>8))
		}
		length++
	}
	binary.LittleEndian.PutUint32(data[start:], length)
	for len(data)%abi.UnitBytes != 0 {
		data = append(data, 0)
	}
	return data
}

// Survey is what is found out about texts before it is known how many symbols they have.
type Survey struct {
	Longest      int // in symbols
	seen         [(utf8.MaxRune + 1) / 64]uint64
	narrow, wide int64 // units with symbols of one and of two bytes
}

// Add surveys a text, and returns its length in symbols.
func (s *Survey) Add(text string) (length int) {
	for _, r := range text {
		s.seen[r/64] |= 1 << (r % 64)
		length++
	}
	s.narrow += abi.Units(abi.TextHead + length)
	s.wide += abi.Units(abi.TextHead + 2*length)
	s.Longest = max(s.Longest, length)
	return length
}

// Join adds what was found out about other texts.
func (s *Survey) Join(other *Survey) {
	for word, seen := range &other.seen {
		s.seen[word] |= seen
	}
	s.narrow, s.wide, s.Longest = s.narrow+other.narrow, s.wide+other.wide, max(s.Longest, other.Longest)
}

// Symbols numbers the code points that occur, in their order, and says how many units the texts take. It is not ok where there are too many of either.
func (s *Survey) Symbols() (symbols *Symbols, units int64, ok bool) {
	symbols = new(Symbols)
	for word, seen := range &s.seen {
		for ; seen != 0; seen &= seen - 1 {
			symbols.add(rune(word*64 + bits.TrailingZeros64(seen)))
		}
	}
	if units = s.narrow; symbols.Bytes() == 2 {
		units = s.wide
	}
	return symbols, units, symbols.Count < abi.NoSymbol && units <= MaxUnits
}

// PairClasses are the numbers of a warp's lanes that compare a pair: 1 << class of them.
const PairClasses = 6

// PairClass is the class of a pattern of so many symbols: a lane has 64 rows.
func PairClass(symbols int) int {
	return bits.Len(uint((max(symbols, 1) - 1) / 64))
}

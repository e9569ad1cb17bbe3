package plan

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/verify"
)

// Texts say how large the texts of a range of an index's tiles are on the device, and how they are encoded there, so that
// candidates are compared where they are found (kernels/verify.cu). A text is its length and its symbols, a symbol the number of
// a code point among those that occur: one byte each where there are at most 256, which covers most alphabets, else two. So
// nothing is decoded on the device, a text lies in few aligned pieces, and a pattern's masks are a small table.
//
// Texts stay on the host, where the CPU compares them, when the memory does not suffice, when the index is streamed, and
// when more than 65,535 different code points occur.
type Texts struct {
	Tiles   run.Tiles
	Objects int
	Symbols Symbols
	Units   int64 // of all texts

	source  verify.Texts
	longest int // symbols
}

// Symbols number the code points of the texts, page by page.
type Symbols struct {
	Count int
	pages [(utf8.MaxRune + 1) / symbolPage]*[symbolPage]uint16
}

const (
	symbolPage = 256
	// maxTextUnits: starts of texts are 32 bits, and so are the numbers of objects, which kernels/scan.cu counts to the end of
	// a block's share. A text has a unit at least.
	maxTextUnits = math.MaxUint32 - 1024
)

// of is a code point's number, or abi.NoSymbol.
func (s *Symbols) of(r rune) uint16 {
	if r < 0 || r > utf8.MaxRune || s.pages[r/symbolPage] == nil {
		return abi.NoSymbol
	}
	return s.pages[r/symbolPage][r%symbolPage]
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

// SymbolBytes is the size of a symbol.
func (t *Texts) SymbolBytes() int {
	if t.Symbols.Count <= abi.MaxNarrow {
		return 1
	}
	return 2
}

// A textSurvey is what is found out about texts before it is known how many symbols they have.
type textSurvey struct {
	seen         [(utf8.MaxRune + 1) / 64]uint64
	narrow, wide int64 // units with symbols of one and of two bytes
	longest      int
}

// add surveys a text.
func (s *textSurvey) add(text string) {
	length := 0
	for _, r := range text {
		s.seen[r/64] |= 1 << (r % 64)
		length++
	}
	s.narrow += abi.Units(abi.TextHead + length)
	s.wide += abi.Units(abi.TextHead + 2*length)
	s.longest = max(s.longest, length)
}

// SurveyTexts lays out the texts of a range of tiles. It is nil when they cannot be on the device.
func SurveyTexts(ctx context.Context, x verify.Texts, tiles run.Tiles, c *run.Crew) (*Texts, error) {
	t := &Texts{Tiles: tiles, Objects: int(tiles.Objects(x.Objects())), source: x}
	var all textSurvey
	var mu sync.Mutex // of all
	err := c.Run(ctx, tiles.Len(), func(_ *run.Shift, i int) {
		s := &textSurvey{}
		tile := tiles.First + i
		for id, end := idsOf(x, tile); id < end; id++ {
			s.add(x.Text(id))
		}
		mu.Lock()
		defer mu.Unlock()
		for word, seen := range &s.seen {
			all.seen[word] |= seen
		}
		all.narrow, all.wide, all.longest = all.narrow+s.narrow, all.wide+s.wide, max(all.longest, s.longest)
	})
	if err != nil {
		return nil, err
	}
	t.longest = all.longest
	for word, seen := range &all.seen {
		for ; seen != 0; seen &= seen - 1 {
			t.Symbols.add(rune(word*64 + bits.TrailingZeros64(seen)))
		}
	}
	if t.Units = all.narrow; t.SymbolBytes() == 2 {
		t.Units = all.wide
	}
	if t.Symbols.Count == abi.NoSymbol || t.Units > maxTextUnits {
		return nil, nil
	}
	return t, nil
}

// idsOf are the objects of a tile.
func idsOf(x verify.Texts, tile int) (first, end uint32) {
	return uint32(tile) * run.TileObjects, uint32(min(uint64(tile+1)*run.TileObjects, uint64(x.Objects())))
}

// DeviceBytes is the memory of the texts on the device: texts, then where each starts.
func (t *Texts) DeviceBytes() int64 {
	if t == nil {
		return 0
	}
	return (t.Units+abi.Units(4*t.Objects))*abi.UnitBytes + abi.UnitBytes
}

// EncodedTexts are the texts of a tile as the device wants them. The memory is used again.
type EncodedTexts struct {
	Data  []byte
	Units []uint32 // of each text
}

// Encode encodes the texts of a tile of the index.
func (t *Texts) Encode(e *EncodedTexts, tile int) {
	e.Data, e.Units = e.Data[:0], e.Units[:0]
	wide := t.SymbolBytes() == 2
	for id, end := idsOf(t.source, tile); id < end; id++ {
		start := len(e.Data)
		e.Data = append(e.Data, 0, 0, 0, 0)
		length := uint32(0)
		for _, r := range t.source.Text(id) {
			symbol := t.Symbols.of(r)
			e.Data = append(e.Data, byte(symbol))
			if wide {
				e.Data = append(e.Data, byte(symbol>>8))
			}
			length++
		}
		e.Data[start], e.Data[start+1], e.Data[start+2], e.Data[start+3] = byte(length), byte(length>>8), byte(length>>16), byte(length>>24)
		for len(e.Data)%abi.UnitBytes != 0 {
			e.Data = append(e.Data, 0)
		}
		e.Units = append(e.Units, uint32((len(e.Data)-start)/abi.UnitBytes))
	}
}

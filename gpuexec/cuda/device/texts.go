//go:build cuda

package device

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// residentTexts are the texts of a range of an index's tiles on the device, so that candidates are compared where they
// are found (kernels/verify.cu). A text is its length and its symbols, a symbol the number of a code point among those
// that occur: one byte each where there are at most 256, which covers most alphabets, else two. So nothing is decoded on
// the device, a text lies in few aligned pieces, and a pattern's masks are a small table.
//
// Texts stay on the host, where the CPU compares them, when the memory does not suffice, when the index is streamed, and
// when more than 65,535 different code points occur.
type residentTexts struct {
	textsLayout
	memory abi.Pointer // texts | starts
}

// textsLayout says how large the texts are on the device.
type textsLayout struct {
	tiles   run.Tiles
	objects int
	symbols symbolTable
	units   int64 // of all texts
	longest int   // symbols
}

// symbolTable numbers the code points of the texts, page by page.
type symbolTable struct {
	pages [(utf8.MaxRune + 1) / symbolPage]*[symbolPage]uint16
	count int
}

const (
	symbolPage = 256
	// maxTextUnits: starts of texts are 32 bits, and so are the numbers of objects, which kernels/scan.cu counts to the end of
	// a block's share. A text has a unit at least.
	maxTextUnits = math.MaxUint32 - 1024
	// maxNarrow is how many symbols one byte tells apart.
	maxNarrow = 256
)

// of is a code point's number, or noSymbol.
func (s *symbolTable) of(r rune) uint16 {
	if r < 0 || r > utf8.MaxRune || s.pages[r/symbolPage] == nil {
		return abi.NoSymbol
	}
	return s.pages[r/symbolPage][r%symbolPage]
}

// add numbers a code point.
func (s *symbolTable) add(r rune) {
	page := s.pages[r/symbolPage]
	if page == nil {
		page = new([symbolPage]uint16)
		for i := range page {
			page[i] = abi.NoSymbol
		}
		s.pages[r/symbolPage] = page
	}
	if page[r%symbolPage] == abi.NoSymbol && s.count < abi.NoSymbol {
		page[r%symbolPage] = uint16(s.count)
		s.count++
	}
}

// symbolBytes is the size of a symbol.
func (l *textsLayout) symbolBytes() int {
	if l.symbols.count <= maxNarrow {
		return 1
	}
	return 2
}

// surveyTexts lays out the texts of a range of tiles. It is nil when they cannot be on the device.
func surveyTexts(ctx context.Context, x *index.Index, tiles run.Tiles, c *run.Crew) (*textsLayout, error) {
	type survey struct {
		seen         [(utf8.MaxRune + 1) / 64]uint64
		narrow, wide int64 // units with symbols of one and of two bytes
		longest      int
	}
	l := &textsLayout{tiles: tiles, objects: int(tiles.Objects(x.Objects()))}
	var all survey
	var mu sync.Mutex // of all
	err := c.Run(ctx, tiles.Len(), func(_ *run.Shift, i int) {
		s := &survey{}
		tile := tiles.First + i
		for id, end := firstOf(tile), firstOf(tile)+uint32(x.TileLen(tile)); id < end; id++ {
			length := 0
			for _, r := range x.Text(id) {
				s.seen[r/64] |= 1 << (r % 64)
				length++
			}
			s.narrow += units(abi.TextHead + length)
			s.wide += units(abi.TextHead + 2*length)
			s.longest = max(s.longest, length)
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
	l.longest = all.longest
	for word, seen := range &all.seen {
		for ; seen != 0; seen &= seen - 1 {
			l.symbols.add(rune(word*64 + bits.TrailingZeros64(seen)))
		}
	}
	if l.units = all.narrow; l.symbolBytes() == 2 {
		l.units = all.wide
	}
	if l.symbols.count == abi.NoSymbol || l.units > maxTextUnits {
		return nil, nil
	}
	return l, nil
}

func firstOf(tile int) uint32 { return uint32(tile) * index.TileObjects }

// deviceBytes is the memory of the texts on the device.
func (l *textsLayout) deviceBytes() int64 {
	if l == nil {
		return 0
	}
	return (l.units+units(4*l.objects))*abi.UnitBytes + abi.UnitBytes
}

// loadTexts copies the texts onto the device.
func (r *resident) loadTexts(ctx context.Context, u *uploader, l *textsLayout, c *run.Crew) (err error) {
	t := &residentTexts{textsLayout: *l}
	r.texts = t // freed with the resident
	if t.memory, err = allocDevice(l.deviceBytes()); err != nil {
		return deviceError("allocating the texts", err)
	}
	starts := make([]uint32, 0, l.objects)
	u.begin(t.memory)
	// As many tiles at a time as there are cores.
	encoded := make([]encodedTexts, min(c.Size(), max(1, l.tiles.Len())))
	var at uint32
	for first := l.tiles.First; first < l.tiles.End; first += len(encoded) {
		n := min(len(encoded), l.tiles.End-first)
		if err := c.Run(ctx, n, func(_ *run.Shift, i int) { encoded[i].encode(r.index, first+i, l) }); err != nil {
			return err
		}
		for i := range encoded[:n] {
			for _, length := range encoded[i].units {
				starts = append(starts, at)
				at += length
			}
			if err := u.write(encoded[i].data); err != nil {
				return err
			}
		}
	}
	if err := u.write(arrayBytes(starts)); err != nil {
		return err
	}
	return u.flush()
}

// encodedTexts are the texts of a tile as the device wants them.
type encodedTexts struct {
	data  []byte
	units []uint32 // of each text
}

func (e *encodedTexts) encode(x *index.Index, tile int, l *textsLayout) {
	e.data, e.units = e.data[:0], e.units[:0]
	wide := l.symbolBytes() == 2
	for id, end := firstOf(tile), firstOf(tile)+uint32(x.TileLen(tile)); id < end; id++ {
		start := len(e.data)
		e.data = append(e.data, 0, 0, 0, 0)
		length := uint32(0)
		for _, r := range x.Text(id) {
			symbol := l.symbols.of(r)
			e.data = append(e.data, byte(symbol))
			if wide {
				e.data = append(e.data, byte(symbol>>8))
			}
			length++
		}
		e.data[start], e.data[start+1], e.data[start+2], e.data[start+3] = byte(length), byte(length>>8), byte(length>>16), byte(length>>24)
		for len(e.data)%abi.UnitBytes != 0 {
			e.data = append(e.data, 0)
		}
		e.units = append(e.units, uint32((len(e.data)-start)/abi.UnitBytes))
	}
}

func (t *residentTexts) starts() abi.Pointer { return t.memory + abi.Pointer(t.units*abi.UnitBytes) }

func (t *residentTexts) free() error {
	if t == nil || t.memory == 0 {
		return nil
	}
	memory := t.memory
	t.memory = 0
	return deviceError("freeing the texts", freeDevice(memory))
}

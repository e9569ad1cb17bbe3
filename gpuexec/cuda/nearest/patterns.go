package nearest

import (
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
)

// patterns are what queries ask of a column of texts: masks, by which kernels compare (kernels/descent_texts.cu). A query's are words of 64 bits: the pattern's length,
// and for each symbol in which of 64 rows it stands; where there are more symbols than a byte tells apart, a hash table for each 64 rows, and its keys.
type patterns struct {
	symbols *texts.Symbols
	lanes   int // of a pair, each with 64 rows
}

// longestPattern is the longest text of a column whose tree is on a device.
const longestPattern = 256

// NewTexts is a column of texts in some tiles of an index, for its tree: x is how it lies on the device. It is nil where not all of its texts are there, or where some
// are too long.
func NewTexts(c *distance.Column, tiles run.Tiles, x *texts.ByLength) *Column {
	if x == nil || x.Beyond > 0 || x.Longest() > longestPattern {
		return nil
	}
	class := texts.PairClass(x.Longest())
	p := &patterns{symbols: x.Symbols, lanes: 1 << class}
	return &Column{Of: c, Terms: TextTerms()[class], Dims: p.words(), Tiles: tiles, Objects: tiles.Objects(c.Objects), texts: p}
}

// Symbols is how many occur in a column of texts.
func (c *Column) Symbols() int {
	if c.texts == nil {
		return 0
	}
	return c.texts.symbols.Count
}

// wide says that masks are hashed.
func (p *patterns) wide() bool { return p.symbols.Bytes() > 1 }

// words is how many a query has.
func (p *patterns) words() int {
	if p.wide() {
		return 1 + p.lanes*abi.HashedMaskBytes/8
	}
	return 1 + p.lanes*p.symbols.Count
}

// takes says whether the lanes of a pair have rows for a pattern.
func (p *patterns) takes(pattern string) bool { return utf8.RuneCountInString(pattern) <= 64*p.lanes }

// write writes a query's words.
func (p *patterns) write(pattern string, dst []uint64) {
	clear(dst)
	masks := dst[1:]
	var keys []uint32
	if p.wide() {
		at := p.lanes * abi.HashSlots
		keys = abi.Array[uint32](abi.Bytes(masks[at:]), 0, at)
		for i := range keys {
			keys[i] = emptyKey
		}
	}
	n := 0
	for _, r := range pattern {
		symbol, block := p.symbols.Of(r), n/64
		switch {
		case symbol == abi.NoSymbol:
		case p.wide():
			masks[p.slot(keys, block, symbol)] |= 1 << (n % 64)
		default:
			masks[int(symbol)*p.lanes+block] |= 1 << (n % 64)
		}
		n++
	}
	dst[0] = uint64(n)
}

// emptyKey is the key of a slot that has none. Symbols are found by their hash, its first slotBits bits.
const (
	emptyKey = ^uint32(0)
	slotBits = 7
	_        = uint(1<<slotBits-abi.HashSlots) | uint(abi.HashSlots-1<<slotBits)
)

// slot is that of a symbol in the table of a block of rows, which is given to it if it has none: a block has fewer symbols than slots.
func (p *patterns) slot(keys []uint32, block int, symbol uint16) int {
	const golden = 0x9e3779b1
	table := keys[block*abi.HashSlots:][:abi.HashSlots]
	at := uint32(symbol) * golden >> (32 - slotBits)
	for table[at] != emptyKey && table[at] != uint32(symbol) {
		at = (at + 1) % abi.HashSlots
	}
	table[at] = uint32(symbol)
	return block*abi.HashSlots + int(at)
}

package cpu

import (
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec/topk"
)

// Counters of one query in one tile, packed. Tile-local ids are 16 bits, and so every array has 65,536 counters although
// a tile has fewer objects: an index of type uint16 needs no bounds check. Between uses all counters are zero.
//
// The width follows from the query's count bound, so that no counter can overflow. Which width is fastest was measured
// on Zen 4 (32 KiB L1, 1 MiB L2, ns per posting, lists of two thirds, a twelfth and a thousandth of a tile):
//
//	 8 bits   0.37  0.41  0.44
//	16 bits   0.38  0.43  0.46
//	 4 bits   0.66  0.67  0.67   the half by table, 0.78 by shift, 0.89 with neighbours in one byte
//
// 8 and 16 bits are near one posting per clock, what the core can store. They outgrow the L1, but ids ascend within a
// list, so the counters stream through it. 4 bits need an extra load and two more instructions per posting, and what they
// save in cache does not come back: there are none.
type counters struct {
	bytes *array[uint8]
	words *array[uint16]
	longs *array[uint32]
}

// array is counters of one width.
type array[C uint8 | uint16 | uint32] [1 << 16]C

// counted is an array of any width.
type counted interface {
	// add counts runs, and addRare postings that carry their own weight, see resolved.
	add(runs []listRun)
	addRare(postings []uint32)
	// look offers the objects that pass, and revisit those of postings, whose counters it clears. Both go by the gate's threshold.
	look(g *topk.Gate, p tilePass, base uint32)
	revisit(g *topk.Gate, p tilePass, runs []listRun, rare []uint32, base uint32)
	// lanes returns the counters as words, which hold several of them each, the first one lowest.
	lanes() []uint64
}

const maxCounterBytes = 1<<16 + 2<<16 + 4<<16

// counterWidth returns the bits of a counter that goes up to bound.
func counterWidth(bound uint32) int {
	switch {
	case bound <= 255:
		return 8
	case bound <= 65535:
		return 16
	}
	return 32
}

// run is a contiguous run of postings of one query item in one tile, and what each adds to its object's counter.
type listRun struct {
	ids     []uint16
	weight  uint32
	ascends bool // the ids, being those of one keyword
	passes  bool // all of them pass the filter
}

// of provides the counters of a width.
func (c *counters) of(width int) counted {
	switch width {
	case 8:
		return made(&c.bytes)
	case 16:
		return made(&c.words)
	}
	return made(&c.longs)
}

func made[C uint8 | uint16 | uint32](a **array[C]) *array[C] {
	if *a == nil {
		*a = new(array[C])
	}
	return *a
}

func (c *array[C]) add(runs []listRun) {
	for _, r := range runs {
		add(c, r.ids, C(r.weight))
	}
}

func (c *array[C]) addRare(postings []uint32) {
	for _, p := range postings {
		c[p>>16] += C(p & 0xffff)
	}
}

// add is the innermost loop of the engine. Eight at a time, because the loop's own instructions would take a third of
// the time; the array pointers leave no bounds check.
func add[C uint8 | uint16 | uint32](c *array[C], ids []uint16, weight C) {
	for len(ids) >= 8 {
		s := (*[8]uint16)(ids)
		c[s[0]] += weight
		c[s[1]] += weight
		c[s[2]] += weight
		c[s[3]] += weight
		c[s[4]] += weight
		c[s[5]] += weight
		c[s[6]] += weight
		c[s[7]] += weight
		ids = ids[8:]
	}
	for _, id := range ids {
		c[id] += weight
	}
}

func (c *array[C]) lanes() []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(c)), unsafe.Sizeof(*c)/8)
}

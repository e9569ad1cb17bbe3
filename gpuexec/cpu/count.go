package cpu

import "unsafe"

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
	bytes *[1 << 16]uint8
	words *[1 << 16]uint16
	longs *[1 << 16]uint32
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
	ids    []uint16
	weight uint32
}

// allocate provides the counters of a width.
func (c *counters) allocate(width int) {
	switch {
	case width == 8 && c.bytes == nil:
		c.bytes = new([1 << 16]uint8)
	case width == 16 && c.words == nil:
		c.words = new([1 << 16]uint16)
	case width == 32 && c.longs == nil:
		c.longs = new([1 << 16]uint32)
	}
}

// add counts all runs.
func (c *counters) add(width int, runs []listRun) {
	for _, r := range runs {
		switch width {
		case 8:
			add(c.bytes, r.ids, uint8(r.weight))
		case 16:
			add(c.words, r.ids, uint16(r.weight))
		case 32:
			add(c.longs, r.ids, r.weight)
		}
	}
}

// addRare counts postings that carry their own weight, see resolved.
func (c *counters) addRare(width int, postings []uint32) {
	for _, p := range postings {
		id, weight := p>>16, p&0xffff
		switch width {
		case 8:
			c.bytes[id] += uint8(weight)
		case 16:
			c.words[id] += uint16(weight)
		case 32:
			c.longs[id] += weight
		}
	}
}

// add is the innermost loop of the engine. Eight at a time, because the loop's own instructions would take a third of
// the time; the array pointers leave no bounds check.
func add[C uint8 | uint16 | uint32](c *[1 << 16]C, ids []uint16, weight C) {
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

// lanes returns the counters of a width as words, which hold 64/width of them each, the first one lowest.
func (c *counters) lanes(width int) []uint64 {
	switch width {
	case 8:
		return unsafe.Slice((*uint64)(unsafe.Pointer(c.bytes)), len(c.bytes)/8)
	case 16:
		return unsafe.Slice((*uint64)(unsafe.Pointer(c.words)), len(c.words)/4)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(c.longs)), len(c.longs)/2)
}

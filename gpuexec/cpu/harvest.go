package cpu

import (
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/topk"
)

// harvest offers the objects that pass and reach the gate's threshold in a tile whose first object is base, and clears the
// counters. There are three ways with the same result, and it takes the cheapest one.
func harvest(c counted, g *topk.Gate, p tilePass, width int, runs []listRun, rare []uint32, postings int, base uint32, objects int) {
	switch {
	case postings <= revisitLimit(width, objects):
		c.revisit(g, p, runs, rare, base)
	case p.looks(width, objects):
		lookAndClear(c, g, p, width, base, objects)
	default:
		sweep(c, g, p, width, base, objects)
	}
}

// revisitLimit is the number of postings up to which revisiting them costs less than sweeping all counters: measured
// on Zen 4, 0.5 ns per posting against 0.5 ns per word of counters.
func revisitLimit(width, objects int) int {
	return objects * width / 64
}

// looks tells whether looking at the counters of the objects that pass alone, and clearing all, costs less than sweeping them: measured on Ice
// Lake (BenchmarkHarvest). What is dear is a word of the filter with an object in it, since where the word ends is guessed wrong: as much as
// eight postings, where a word of counters is swept in the time of one and cleared in a quarter.
func (p tilePass) looks(width, objects int) bool {
	return p.words != nil && 8*min(p.count, len(p.words))+p.count+len(p.words)/2 < objects*width/64*3/4
}

// lookAndClear looks at the counters of the objects that pass, and clears all.
func lookAndClear(c counted, g *topk.Gate, p tilePass, width int, base uint32, objects int) {
	c.look(g, p, base)
	perWord := 64 / width
	clear(c.lanes()[:(objects+perWord-1)/perWord])
}

func (c *array[C]) look(g *topk.Gate, p tilePass, base uint32) {
	t := g.Threshold()
	for w, word := range p.words {
		for ; word != 0; word &= word - 1 {
			id := uint16(w*64 + bits.TrailingZeros64(word))
			if count := c[id]; uint64(count) >= t {
				g.Offer(topk.NewEntry(uint32(count), base+uint32(id)))
				t = g.Threshold()
			}
		}
	}
}

// sweep looks at all counters of the tile, a word of them at a time.
func sweep(c counted, g *topk.Gate, p tilePass, width int, base uint32, objects int) {
	perWord := 64 / width
	words := c.lanes()
	words = words[:(objects+perWord-1)/perWord]
	test := newLaneTest(width, g.Threshold())
	for at := test.next(words, 0); at < len(words); at = test.next(words, at+1) {
		x := words[at]
		rose := false
		pass := test.pass(x)
		if p.words != nil {
			pass &= test.lanesOf(p.words[at*perWord/64] >> (at * perWord % 64))
		}
		for ; pass != 0; pass &= pass - 1 {
			l := bits.TrailingZeros64(pass) / width
			id := at*perWord + l
			count := uint32(x >> (l * width) & test.lane)
			rose = g.Offer(topk.NewEntry(count, base+uint32(id))) || rose
		}
		if rose {
			test = newLaneTest(width, g.Threshold())
		}
	}
	clear(words)
}

// A laneTest finds counters that are at least t, 1 <= t, in words that hold several (SWAR). Let h be the top bit of a lane.
// Lanes are added without their top bits, so that no lane carries into its neighbour, and
//
//	t <= h: x >= t when x has its top bit, or when its low bits plus h - t carry into the top bit
//	t >  h: x >= t when x has its top bit, and its low bits plus h - (t - h) carry into the top bit
type laneTest struct {
	lane uint64 // mask of the lowest lane
	top  uint64 // the top bits of all lanes
	add  uint64 // h - t or 2h - t in all lanes
	high bool   // t > h
	none bool   // t is more than a counter holds
}

func newLaneTest(width int, t uint64) laneTest {
	lane := uint64(1)<<width - 1
	ones := ^uint64(0) / lane // 1 in every lane
	h := uint64(1) << (width - 1)
	switch {
	case t > lane:
		return laneTest{lane: lane, none: true}
	case t > h:
		return laneTest{lane: lane, top: ones * h, add: ones * (2*h - t), high: true}
	}
	return laneTest{lane: lane, top: ones * h, add: ones * (h - t)}
}

// pass returns the top bits of the lanes that pass.
func (l *laneTest) pass(x uint64) uint64 {
	sum := x&^l.top + l.add
	if l.high {
		return sum & x & l.top
	}
	return (sum | x) & l.top
}

// lanesOf are the top bits of the lanes whose bits are set among the lowest of x: of x in every lane, lane l is left bit l, and that carries
// into the top bit.
func (l *laneTest) lanesOf(x uint64) uint64 {
	ones, own := uint64(0x0101010101010101), uint64(0x8040201008040201) // in every lane of 8 bits the first bit; in lane l bit l
	switch l.lane {
	case 1<<16 - 1:
		ones, own = 0x0001000100010001, 0x0008000400020001
	case 1<<32 - 1:
		ones, own = 0x0000000100000001, 0x0000000200000001
	}
	return ((x&255)*ones&own + (l.top - ones)) & l.top
}

// next returns the first word at or after from with a lane that passes, len(words) when there is none. Four words at a
// time: in most of them nothing passes.
func (l *laneTest) next(words []uint64, from int) int {
	if l.none {
		return len(words)
	}
	top, add := l.top, l.add
	rest := words[from:]
	if l.high {
		for len(rest) >= 4 {
			a, b, c, d := rest[0], rest[1], rest[2], rest[3]
			any := (a&^top+add)&a | (b&^top+add)&b | (c&^top+add)&c | (d&^top+add)&d
			if any&top != 0 {
				break
			}
			rest = rest[4:]
		}
	} else {
		for len(rest) >= 4 {
			a, b, c, d := rest[0], rest[1], rest[2], rest[3]
			any := (a&^top + add) | a | (b&^top + add) | b | (c&^top + add) | c | (d&^top + add) | d
			if any&top != 0 {
				break
			}
			rest = rest[4:]
		}
	}
	for i, x := range rest {
		if l.pass(x) != 0 {
			return len(words) - len(rest) + i
		}
	}
	return len(words)
}

// revisit looks at the counters of the postings again and clears them as it goes; an object that comes again
// counts 0 then and is not offered twice.
func (c *array[C]) revisit(g *topk.Gate, p tilePass, runs []listRun, rare []uint32, base uint32) {
	t := g.Threshold()
	for _, r := range runs {
		t = revisit(g, p, c, r.ids, t, base)
	}
	var one [1]uint16
	for _, posting := range rare {
		one[0] = uint16(posting >> 16)
		t = revisit(g, p, c, one[:], t, base)
	}
}

// revisit offers those of the ids that have counts of at least t, and returns the t for those that follow. It is one less than the gate's threshold where that has
// risen here: ids do not ascend within a tile, so an object that comes later may precede one of the same count that was kept.
func revisit[C uint8 | uint16 | uint32](g *topk.Gate, p tilePass, c *array[C], ids []uint16, t uint64, base uint32) uint64 {
	for _, id := range ids {
		count := c[id]
		c[id] = 0
		if uint64(count) >= t && p.has(id) && g.Offer(topk.NewEntry(uint32(count), base+uint32(id))) {
			t = g.Threshold() - 1
		}
	}
	return t
}

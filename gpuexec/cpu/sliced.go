package cpu

import (
	"context"
	"math/bits"
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	matrix "github.com/geniemq/geniemq/internal/bits"
)

// slicedAttribute is what the CPU engine keeps of an attribute in LayoutSliced: the planes, where they lie in the file, and
// lists of the codes that Load has made of them, in tiles where lists can be cheaper. Which of the two a span is counted
// by is decided in each tile, see ways.
type slicedAttribute struct {
	tiles []slicedTile // from the matcher's first tile on
}

type slicedTile struct {
	planes []uint64 // [group][plane][16]: bit b of word w is object 1024 group + 64 w + b; nil where no object has a keyword
	depth  int      // number of planes

	// starts[c] is the number of objects with a code below c. A tile's objects fit 16 bits.
	starts []uint16
	// The objects with code c are ids[at[c]:at[c+1]], ascending. Codes that are always cheaper on the planes have none.
	at  []uint16
	ids []uint16
}

// postings is the number of objects with a code in [lo, hi).
func (t *slicedTile) postings(lo, hi uint32) int { return int(t.starts[hi]) - int(t.starts[lo]) }

// run returns the objects with a code in [lo, hi); false when they are not kept as lists.
func (t *slicedTile) run(lo, hi uint32) ([]uint16, bool) {
	first, end := t.at[lo], t.at[hi]
	return t.ids[first:end], int(end-first) == t.postings(lo, hi)
}

// loadSliced makes the lists of all sliced attributes in a range of tiles, a tile and attribute on a core at a time. It
// returns the bytes they take. Attributes in other layouts have a zero element.
func loadSliced(ctx context.Context, c *run.Crew, x *postings.Lists, tiles run.Tiles) ([]slicedAttribute, int64, error) {
	attributes := make([]slicedAttribute, len(x.Attributes()))
	var sliced []int
	for a := range attributes {
		if x.Attributes()[a].Layout == schema.LayoutSliced {
			attributes[a] = slicedAttribute{tiles: make([]slicedTile, tiles.Len())}
			sliced = append(sliced, a)
		}
	}
	// A unit is an attribute in some tiles, so that a decoder's memory is used more than once.
	const stretch = 8
	stretches := (tiles.Len() + stretch - 1) / stretch
	err := c.Run(ctx, len(sliced)*stretches, func(s *run.Shift, unit int) {
		attr, first := sliced[unit/stretches], unit%stretches*stretch
		var d postings.Decoder
		for tile := first; tile < min(first+stretch, tiles.Len()); tile++ {
			attributes[attr].tiles[tile] = loadSlicedTile(&d, x, tiles.First+tile, attr)
			s.Spend(4 * x.TileLen(tiles.First+tile))
		}
	})
	size := int64(0)
	for _, a := range attributes {
		for i := range a.tiles {
			t := &a.tiles[i]
			size += 2 * int64(len(t.starts)+len(t.at)+len(t.ids))
		}
	}
	return attributes, size, err
}

func loadSlicedTile(d *postings.Decoder, x *postings.Lists, tile, attr int) slicedTile {
	planes, codes := x.Planes(tile, attr), x.Codes(attr)
	objects := x.TileLen(tile)
	t := slicedTile{depth: planes.Planes()}
	if words := planes.Words(); len(words) > 0 {
		t.planes = unsafe.Slice((*uint64)(unsafe.Pointer(&words[0])), len(words)/2) // sections are aligned to more
	}
	t.starts, t.at = make([]uint16, codes.Len()+1), make([]uint16, codes.Len()+1)

	postings := d.Postings(x, tile, attr)
	kept := 0
	limit := listLimit(t.depth, objects)
	known, _ := codes.Arrays()
	each := func(visit func(code int, ids []uint16)) {
		words, starts, ids := postings.Arrays()
		list, code := 0, 0
		for w, occur := range known {
			for present := uint32(occur); present != 0; present &= present - 1 {
				var own []uint16
				if uint32(words[w])&(present&-present) != 0 {
					own = ids[starts[list]:starts[list+1]]
					list++
				}
				visit(code, own)
				code++
			}
		}
	}
	each(func(code int, ids []uint16) {
		t.starts[code+1] = t.starts[code] + uint16(len(ids))
		if len(ids) <= limit {
			kept += len(ids)
		}
		t.at[code+1] = uint16(kept)
	})
	t.ids = make([]uint16, kept)
	each(func(code int, ids []uint16) {
		if len(ids) <= limit {
			copy(t.ids[t.at[code]:], ids)
		}
	})
	return t
}

// # Counting on planes
//
// 256 objects are counted at a time: the planes are compared with the ends of a span (package passing), which gives a mask of the objects
// in it, and the mask is added to vertical counters (sums). That costs the same whatever the span selects. When all items
// are counted so, the Gate compares the sums in the same way, and only objects that pass are ever looked at singly. Else
// the sums are turned into packed counters, to which the runs of other items are added.

const (
	groupObjects = postings.GroupObjects
	groupWords   = passing.GroupWords
	quadWords    = passing.QuadWords
	quadObjects  = passing.QuadObjects
)

// sums are counters of a group of objects, vertically: bit b of word w of plane p is bit p of the counter of object 64 w +
// b. Items are added one after the other for the whole group, so that all planes of an item are read in a row.
type sums [32][groupWords]uint64

// planeRun is a span of one query item in one tile, counted on planes: the objects with codes first to last.
type planeRun struct {
	planes      []uint64
	depth       int
	first, last uint32
	weight      uint32
}

// sum counts all runs in a group, in those of its quads that have a bit: others would cost a branch each where there are all. planes
// bounds the bits of the counts.
func (s *sums) sum(runs []planeRun, group, planes int, quads uint) {
	clear(s[:planes])
	if quads != allQuads {
		for ; quads != 0; quads &= quads - 1 {
			s.sumQuad(runs, group, bits.TrailingZeros(quads)*quadWords)
		}
		return
	}
	for i := range runs {
		r := &runs[i]
		words := r.planes[group*r.depth*groupWords:][:r.depth*groupWords]
		for quad := 0; quad < groupWords; quad += quadWords {
			var a, b, c, d uint64
			if r.first == r.last {
				a, b, c, d = passing.Equal(words[quad:], r.first)
			} else {
				a, b, c, d = passing.Between(words[quad:], r.first, r.last)
			}
			for weight := r.weight; weight != 0; weight &= weight - 1 {
				s.add(bits.TrailingZeros32(weight), quad, a, b, c, d)
			}
		}
	}
}

// sumQuad is sum for a quad.
func (s *sums) sumQuad(runs []planeRun, group, quad int) {
	for i := range runs {
		r := &runs[i]
		a, b, c, d := passing.Between(r.planes[group*r.depth*groupWords:][quad:r.depth*groupWords], r.first, r.last)
		for weight := r.weight; weight != 0; weight &= weight - 1 {
			s.add(bits.TrailingZeros32(weight), quad, a, b, c, d)
		}
	}
}

// add adds 1 << plane to the counters of a quad in a mask.
func (s *sums) add(plane, quad int, a, b, c, d uint64) {
	for ; a|b|c|d != 0 && plane < len(s); plane++ {
		t := (*[quadWords]uint64)(s[plane][quad:])
		t[0], a = t[0]^a, t[0]&a
		t[1], b = t[1]^b, t[1]&b
		t[2], c = t[2]^c, t[2]&c
		t[3], d = t[3]^d, t[3]&d
	}
}

// atLeast is the mask of the counters of a quad that are t or more, t < 1 << planes; see passing.Between.
func (s *sums) atLeast(t uint64, quad, planes int) [quadWords]uint64 {
	a, b, c, d := ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)
	for p := range s[:planes] {
		x := (*[quadWords]uint64)(s[p][quad:])
		if t>>p&1 != 0 {
			a, b, c, d = a&x[0], b&x[1], c&x[2], d&x[3]
		} else {
			a, b, c, d = a|x[0], b|x[1], c|x[2], d|x[3]
		}
	}
	return [quadWords]uint64{a, b, c, d}
}

// countBits is the number of planes that the counts of runs need.
func countBits(runs []planeRun) int {
	bound := uint64(0)
	for i := range runs {
		bound += uint64(runs[i].weight)
	}
	return min(bits.Len64(bound), len(sums{}))
}

// gatePlanes counts all runs in a tile whose first object is base, and offers the objects that pass and reach the gate's
// threshold. Places of the last group without an object are not looked at.
func (s *sums) gatePlanes(g *topk.Gate, runs []planeRun, p tilePass, base uint32, objects int) {
	planes := countBits(runs)
	for group := 0; group*groupObjects < objects; group++ {
		if g.Threshold()>>planes != 0 {
			return
		}
		own, quads := p.group(group)
		if quads == 0 {
			continue
		}
		s.sum(runs, group, planes, quads)
		for quad := 0; quad < groupWords; quad += quadWords {
			t := g.Threshold()
			if t>>planes != 0 {
				return
			}
			for i, pass := range s.atLeast(t, quad, planes) {
				w := quad + i
				pass &= own[w]
				first := group*groupObjects + 64*w
				if left := objects - first; left < 64 {
					pass &= 1<<max(0, left) - 1
				}
				for ; pass != 0; pass &= pass - 1 {
					bit := bits.TrailingZeros64(pass)
					count := uint32(0)
					for p := range s[:planes] {
						count |= uint32(s[p][w]>>bit&1) << p
					}
					if uint64(count) >= g.Threshold() {
						g.Offer(topk.NewEntry(count, base+uint32(first+bit)))
					}
				}
			}
		}
	}
}

// addPlanes counts all runs in a tile into counters that are zero, for the groups with an object that passes.
func (s *sums) addPlanes(c *counters, width int, runs []planeRun, p tilePass, objects int) {
	planes := countBits(runs)
	for first := 0; first < objects; first += groupObjects {
		_, quads := p.group(first / groupObjects)
		if quads == 0 {
			continue
		}
		s.sum(runs, first/groupObjects, planes, quads)
		for eight := range groupObjects / 8 {
			w, shift := eight/8, eight%8*8
			for low := 0; low < planes; low += 8 { // a byte of the counters
				x := uint64(0)
				for i := range min(8, planes-low) {
					x |= s[low+i][w] >> shift & 0xff << (8 * i)
				}
				if x == 0 {
					continue
				}
				x = matrix.Transpose8(x)
				at := first + 8*eight
				switch width {
				case 8:
					c.bytes.lanes()[at/8] = x
				case 16:
					for i := range 8 {
						c.words[uint16(at+i)] |= uint16(x>>(8*i)&0xff) << low
					}
				case 32:
					for i := range 8 {
						c.longs[uint16(at+i)] |= uint32(x>>(8*i)&0xff) << low
					}
				}
			}
		}
	}
}

package passing

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Resolved is a filter in a range of tiles. What is not looked for tile by tile is found once: the postings of rare keywords lie by object over
// all tiles, and are dealt out to those of the range in linear time, however many lists are asked for. It may be resolved again and keeps its
// memory.
type Resolved struct {
	filter *filter.Filter
	tiles  run.Tiles
	of     []int32  // by clause, its spans and its edges: which of the dealt they have, none; empty where no clause has any
	ids    []uint16 // in their tiles, of one clause after the other, tile by tile
	ends   []uint32 // of each dealt, tiles.Len()+1 positions in ids
}

// keptIDs is how much memory for dealt postings is worth keeping for the next filter.
const keptIDs = 1 << 16

// Release forgets the filter, and memory that is not worth keeping.
func (r *Resolved) Release() {
	if r.filter = nil; cap(r.ids) > keptIDs {
		r.ids = nil
	}
}

// RareBytes is the memory of one rare posting that Resolve deals out.
const RareBytes = 2

// Rare is how many rare postings a filter asks for, also one that no engine would execute.
func Rare(x Index, f *filter.Filter) (n int64) {
	if f == nil {
		return 0
	}
	for _, c := range f.Clauses {
		if uint64(c.Attr) >= uint64(len(x.Lists.Attributes())) || uint64(c.Spans.First)+uint64(c.Spans.Count) > uint64(len(f.Spans)) {
			continue
		}
		a := x.Lists.Attribute(int(c.Attr))
		if a.Layout != schema.LayoutRare {
			continue
		}
		lists := x.Lists.Rare(int(c.Attr))
		for _, s := range f.ClauseSpans(c) { // numbers, which have edges, are not rare as a rule
			if s.Lo < s.Hi && s.Hi <= a.Keywords {
				n += int64(len(lists.Run(s.Lo, s.Hi)))
			}
		}
	}
	return n
}

// Resolve makes r a filter, which was checked, in a range of tiles.
func (e *Evaluator) Resolve(r *Resolved, f *filter.Filter, tiles run.Tiles) error {
	r.filter, r.tiles = f, tiles
	r.of, r.ids, r.ends = r.of[:0], r.ids[:0], r.ends[:0]
	isRare := func(c filter.Clause) bool {
		return e.index.Lists.Attribute(int(c.Attr)).Layout == schema.LayoutRare
	}
	if !slices.ContainsFunc(f.Clauses, isRare) {
		return e.err
	}
	dealt := int32(0)
	for _, c := range f.Clauses {
		for _, spans := range [][]filter.Span{f.ClauseSpans(c), f.ClauseEdges(c)} {
			if !isRare(c) || !e.deal(r, int(c.Attr), spans) {
				r.of = append(r.of, none)
				continue
			}
			r.of = append(r.of, dealt)
			dealt++
		}
	}
	return e.err
}

// deal deals out the rare postings of spans: a counting sort by tile. It is false where there are none.
func (e *Evaluator) deal(r *Resolved, attr int, spans []filter.Span) bool {
	rare := e.index.Lists.Rare(attr)
	base, objects := r.tiles.Base(), uint32(r.tiles.Len())*store.TileObjects
	const chunk = 1 << 18
	each := func(visit func(ids []uint32)) {
		for _, s := range spans {
			for ids := range slices.Chunk(rare.Run(s.Lo, s.Hi), chunk) {
				visit(ids)
				if !e.work(2 * len(ids)) {
					return
				}
			}
			if !e.work(4) {
				return
			}
		}
	}
	first := len(r.ends)
	r.ends = append(r.ends, make([]uint32, r.tiles.Len()+1)...)
	ends := r.ends[first:]
	total := uint32(0)
	each(func(ids []uint32) {
		for _, id := range ids {
			if at := id - base; at < objects {
				ends[at/store.TileObjects]++
				total++
			}
		}
	})
	if total == 0 {
		r.ends = r.ends[:first]
		return false
	}
	at := uint32(len(r.ids))
	for t, n := range ends {
		ends[t] = at
		at += n
	}
	r.ids = slices.Grow(r.ids, int(total))[:len(r.ids)+int(total)]
	each(func(ids []uint32) {
		for _, id := range ids {
			if at := id - base; at < objects {
				tile := at / store.TileObjects
				r.ids[ends[tile]] = uint16(at % store.TileObjects)
				ends[tile]++
			}
		}
	})
	// Each position is now the end of its tile: what the next one was.
	copy(ends[1:], ends)
	ends[0] = at - total
	return true
}

// rare are the rare postings of a clause's spans and edges in a tile.
func (r *Resolved) rare(clause, tile int) (spans, edges []uint16) {
	if len(r.of) == 0 {
		return nil, nil
	}
	return r.dealt(r.of[2*clause], tile), r.dealt(r.of[2*clause+1], tile)
}

func (r *Resolved) dealt(number int32, tile int) []uint16 {
	if number == none {
		return nil
	}
	ends := r.ends[int(number)*(r.tiles.Len()+1):][tile-r.tiles.First:]
	return r.ids[ends[0]:ends[1]]
}

package run

import (
	"sort"

	"github.com/geniemq/geniemq/index"
)

// A tileRange is a run of an index's tiles, [first, end): what one device of several holds. Whoever holds a range counts
// tiles, groups and objects from its beginning, and adds base to the ids.
type Tiles struct{ First, End int }

// An extent is a range of an index's tiles.
type Extent struct {
	Index *index.Index
	Tiles Tiles
}

func AllTiles(x *index.Index) Tiles { return Tiles{End: x.Tiles()} }

// len is the number of tiles.
func (r Tiles) Len() int { return r.End - r.First }

// base is the id of the first object.
func (r Tiles) Base() uint32 { return uint32(r.First) * index.TileObjects }

// objects is the number of objects of x in the range.
func (r Tiles) Objects(x *index.Index) uint32 {
	before := func(tile int) uint64 { return min(uint64(tile)*index.TileObjects, uint64(x.Objects())) }
	return uint32(before(r.End) - before(r.First))
}

// spreadTiles cuts an index into at most so many ranges of about the same work: fewer only where there are fewer tiles,
// and one, empty, where there are none.
func SpreadTiles(x *index.Index, members int) []Tiles {
	work := make([]uint64, x.Tiles())
	for tile := range work {
		work[tile] = tileWork(x, tile)
	}
	return cutTiles(work, members)
}

// tileWork estimates what queries cost in a tile: its postings, and clearing and harvesting its counters.
func tileWork(x *index.Index, tile int) uint64 {
	work := uint64(x.TileLen(tile))
	for a, attribute := range x.Attributes() {
		if attribute.Layout == index.LayoutSliced {
			work += uint64(x.TileLen(tile))
			continue
		}
		_, _, ids := x.Postings(tile, a).Arrays() // of LayoutRare, the frequent keywords: most of all postings
		work += uint64(len(ids))
	}
	return work
}

// cutTiles cuts tiles so that each border lies where the work before it is nearest to its share, and no range is empty. So
// none has more than its share and one tile.
func cutTiles(work []uint64, members int) []Tiles {
	before := make([]uint64, len(work)+1)
	for i, w := range work {
		before[i+1] = before[i] + w
	}
	members = max(1, min(members, len(work)))
	ranges := make([]Tiles, members)
	for i := 1; i < members; i++ {
		share := float64(before[len(work)]) / float64(members) * float64(i)
		border := sort.Search(len(work), func(t int) bool { return float64(before[t]) >= share })
		if border > 0 && share-float64(before[border-1]) < float64(before[border])-share {
			border--
		}
		border = min(max(border, ranges[i-1].First+1), len(work)-(members-i))
		ranges[i-1].End, ranges[i].First = border, border
	}
	ranges[members-1].End = len(work)
	return ranges
}

package run

import (
	"sort"

	"github.com/geniemq/geniemq/gpuexec"
)

// TileObjects is the number of objects of a tile: the unit in which sources are cut, in the file and among devices.
const TileObjects = 64512

// Tiles is a run of a source's tiles, [First, End): what one device of several holds. Whoever holds a range counts
// tiles, groups and objects from its beginning, and adds Base to the ids.
type Tiles struct{ First, End int }

// An Extent is a range of a source's tiles.
type Extent struct {
	Source gpuexec.Source
	Tiles  Tiles
}

// AllTiles are those of a source.
func AllTiles(x gpuexec.Source) Tiles {
	return Tiles{End: int((uint64(x.Objects()) + TileObjects - 1) / TileObjects)}
}

// Whole is all of a source.
func Whole(x gpuexec.Source) Extent { return Extent{Source: x, Tiles: AllTiles(x)} }

// Len is the number of tiles.
func (r Tiles) Len() int { return r.End - r.First }

// Base is the id of the first object.
func (r Tiles) Base() uint32 { return uint32(r.First) * TileObjects }

// Objects is the number of objects of the range, of so many of the whole source.
func (r Tiles) Objects(objects uint32) uint32 {
	before := func(tile int) uint64 { return min(uint64(tile)*TileObjects, uint64(objects)) }
	return uint32(before(r.End) - before(r.First))
}

// CutTiles cuts tiles, given the work of each, into at most so many ranges of about the same work: each border lies where the work
// before it is nearest to its share, and no range is empty. So none has more than its share and one tile. There are fewer ranges
// only where there are fewer tiles, and one, empty, where there are none.
func CutTiles(work []uint64, members int) []Tiles {
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

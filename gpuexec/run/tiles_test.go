package run

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestCutTiles: ranges are contiguous and not empty, and none has more than its share and a tile.
func TestCutTiles(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		work := make([]uint64, rng.IntN(40))
		var total, largest uint64
		for i := range work {
			work[i] = rng.Uint64N([]uint64{1, 2, 100, 1e6}[rng.IntN(4)] + 1)
			total += work[i]
			largest = max(largest, work[i])
		}
		members := 1 + rng.IntN(8)
		ranges := CutTiles(work, members)
		if len(ranges) != max(1, min(members, len(work))) || ranges[0].First != 0 || ranges[len(ranges)-1].End != len(work) {
			t.Fatalf("%v for %d: %v", work, members, ranges)
		}
		for i, r := range ranges {
			var sum uint64
			for _, w := range work[r.First:r.End] {
				sum += w
			}
			if i > 0 && r.First != ranges[i-1].End || r.Len() < 1 && len(work) > 0 || float64(sum) > float64(total)/float64(len(ranges))+float64(largest)+1e-6 {
				t.Fatalf("%v for %d: %v, range %d has %d of %d", work, members, ranges, i, sum, total)
			}
		}
	}
}

func TestTileRange(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, 2*store.TileObjects+5)
	for _, c := range []struct {
		r             Tiles
		base, objects uint32
	}{
		{AllTiles(w.Index), 0, 2*store.TileObjects + 5}, {Tiles{First: 0, End: 1}, 0, store.TileObjects},
		{Tiles{First: 1, End: 3}, store.TileObjects, store.TileObjects + 5}, {Tiles{First: 2, End: 3}, 2 * store.TileObjects, 5},
	} {
		if c.r.Base() != c.base || c.r.Objects(w.Index.Objects()) != c.objects {
			t.Errorf("%v: base %d, %d objects; want %d, %d", c.r, c.r.Base(), c.r.Objects(w.Index.Objects()), c.base, c.objects)
		}
	}
}

package gpuexec

import (
	"testing"

	"github.com/geniemq/geniemq/index"
)

// TestCutTiles: ranges are contiguous and not empty, and none has more than its share and a tile.
func TestCutTiles(t *testing.T) {
	rng := newRand(t)
	for range 2000 {
		work := make([]uint64, rng.IntN(40))
		var total, largest uint64
		for i := range work {
			work[i] = rng.Uint64N([]uint64{1, 2, 100, 1e6}[rng.IntN(4)] + 1)
			total += work[i]
			largest = max(largest, work[i])
		}
		members := 1 + rng.IntN(8)
		ranges := cutTiles(work, members)
		if len(ranges) != max(1, min(members, len(work))) || ranges[0].first != 0 || ranges[len(ranges)-1].end != len(work) {
			t.Fatalf("%v for %d: %v", work, members, ranges)
		}
		for i, r := range ranges {
			var sum uint64
			for _, w := range work[r.first:r.end] {
				sum += w
			}
			if i > 0 && r.first != ranges[i-1].end || r.len() < 1 && len(work) > 0 || float64(sum) > float64(total)/float64(len(ranges))+float64(largest)+1e-6 {
				t.Fatalf("%v for %d: %v, range %d has %d of %d", work, members, ranges, i, sum, total)
			}
		}
	}
}

func TestTileRange(t *testing.T) {
	rng := newRand(t)
	w := randomWorld(t, rng, 2*index.TileObjects+5)
	for _, c := range []struct {
		r             tileRange
		base, objects uint32
	}{
		{allTiles(w.index), 0, 2*index.TileObjects + 5}, {tileRange{0, 1}, 0, index.TileObjects},
		{tileRange{1, 3}, index.TileObjects, index.TileObjects + 5}, {tileRange{2, 3}, 2 * index.TileObjects, 5},
	} {
		if c.r.base() != c.base || c.r.objects(w.index) != c.objects {
			t.Errorf("%v: base %d, %d objects; want %d, %d", c.r, c.r.base(), c.r.objects(w.index), c.base, c.objects)
		}
	}
}

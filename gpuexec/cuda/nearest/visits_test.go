package nearest

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestMarks: a query whose cells are marked has a set of its own, behind all else and within the memory of a lane; who was given up, and who visits little, has none.
func TestMarks(t *testing.T) {
	rng := seeded.Rand(t)
	w := &enginetest.DistanceWorld{Metric: "l2", Storage: "f32", Dims: 3, Paths: true}
	for range 900 {
		w.Places = append(w.Places, w.Random(rng))
	}
	w.Build(t)
	of := NewColumn(w.Index.Distances().Column("vector"), run.Tiles{End: 1})
	of.Sieve = &Sieve{Product: Halves, Steps: 2}
	cells := NewCells(of)
	if cells == nil {
		t.Fatal("there are no cells")
	}
	waves := profile.Of("").Near
	waves.First, cells.Scans = 128, &waves
	marked, others := 0, 0
	for world := 0; world < 300 || world < 5000 && (marked == 0 || others == 0); world++ {
		waves.CellsElement = []float64{0, 0.29, 1e9}[rng.IntN(3)]
		room := plan.Room{Arena: int64(512<<10) << rng.IntN(8), In: 1 << 20, Out: 1 << 20}
		asks := make([]Ask, 1+rng.IntN(40))
		for i := range asks {
			q := &distance.Query{Column: of.Of, K: 1 + rng.IntN(40), Recall: rng.Float64(), Most: math.Inf(1), Vector: make([]float32, 3)}
			asks[i] = Ask{Job: i, Query: q, Set: -1, Exact: rng.IntN(8) == 0}
		}
		for next := 0; len(asks) > 0; {
			asked := cells.Asked(asks)
			n, scans := cells.marked(asks, asked)
			p := cells.Plan(asks, asked, room, &waves)
			if len(p.Asks) == 0 { // it has no room
				break
			}
			if p.Asks[0].Job != next || len(p.Asks) > n || p.Marks != nil && !scans || p.End() > room.Arena {
				t.Fatalf("%d of the first %d asks, that a scan takes less is %v, marks %+v, %d bytes of %d", len(p.Asks), n, scans, p.Marks, p.End(), room.Arena)
			}
			in := make([]byte, p.InBytes())
			p.Encode(in, nil)
			for i, q := range abi.Array[abi.NearQuery](in, p.Queries, len(p.Asks)) {
				switch {
				case p.Marks == nil && q.Passing != abi.NoFilter, p.Marks != nil && (q.Passing != uint32(i) || p.Asks[i].Exact):
					t.Fatalf("query %d is sent as %+v, exact %v", i, q, p.Asks[i].Exact)
				}
			}
			if p.Marks == nil {
				others++
			} else if marked++; p.Marks.Sets < p.First.End() || p.Marks.End != p.Marks.Sets+int64(abi.WordBytes*p.Marks.Words*len(p.Asks)) || 32*p.Marks.Words < cells.Cells() {
				t.Fatalf("%+v of %d cells and %d queries, behind %d", p.Marks, cells.Cells(), len(p.Asks), p.First.End())
			}
			next += len(p.Asks)
			asks = asks[len(p.Asks):]
		}
	}
	if marked == 0 || others == 0 {
		t.Errorf("cells of %d pieces are marked, of %d they are not", marked, others)
	}
}

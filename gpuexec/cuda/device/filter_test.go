//go:build cuda

package device

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// codedFilter is a filter of up to three groups on the attributes of a coded world: selective, wide, negated, of many spans or of none.
func codedFilter(rng *rand.Rand, w *enginetest.CodedWorld) *filter.Filter {
	f := &filter.Filter{}
	for range rng.IntN(4) {
		f.StartGroup(rng.IntN(3) == 0)
		for range 1 + rng.IntN(2) {
			a := rng.IntN(len(w.Vocabulary))
			v := w.Vocabulary[a]
			f.StartClause(uint32(a))
			switch lo := rng.Uint32N(v); rng.IntN(5) {
			case 0:
				f.AddSpan(0, v)
			case 1:
				f.AddSpan(lo, lo+1)
			case 2:
				for kw := lo; kw < v; kw += 2 + rng.Uint32N(3) {
					f.AddSpan(kw, kw+1)
				}
			default:
				f.AddSpan(lo, lo+1+rng.Uint32N(v-lo))
			}
		}
	}
	return f
}

// filteredPlans are plans of a coded world, most of them with one of some filters, and some of nothing else.
func filteredPlans(rng *rand.Rand, w *enginetest.CodedWorld, count int) []gpuexec.Plan {
	filters := make([]*filter.Filter, 1+rng.IntN(12))
	for i := range filters {
		filters[i] = codedFilter(rng, w)
	}
	plans := make([]gpuexec.Plan, count)
	for i := range plans {
		plans[i] = w.Plan(rng)
		q := enginetest.Query(&plans[i])
		q.Total = rng.IntN(2) == 0
		if rng.IntN(5) > 0 {
			q.Filter = filters[rng.IntN(len(filters))]
			if len(q.Items) == 0 || rng.IntN(12) == 0 {
				q.Items, q.Spans, plans[i].MinCount = nil, nil, 0
			}
		}
	}
	return plans
}

// TestCUDAFilters: each kernel that is forced meets filters as the CPU engine does, on indexes that stay and that are streamed, around the
// borders of tiles, groups and waves.
func TestCUDAFilters(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	e.kernels.Profile.Bound.Columns = 1
	rng := seeded.Rand(t)
	paths := comparedBy{}
	const tile = store.TileObjects
	names := []string{"tile", "sliced"}
	if e.kernels.BoundColumns > 0 {
		names = append(names, "bound")
	}
	for round, n := range []int{1, 33, 1023, 1025, 5000, 20_000, tile - 1, tile + 1, 3*tile + 5, 6*tile + 700} {
		if scaled(100) < 100 && n > 6000 {
			continue
		}
		for range scaled(2) {
			attributes := min([]int{1, 9, 17, 64, 65, 130, 237}[rng.IntN(7)], max(1, 12_000_000/n))
			w := enginetest.NewCodedWorld(t, rng, n, attributes)
			plans := filteredPlans(rng, w, min(max(40, scaled([]int{40, 300, 700}[rng.IntN(3)])), 1+2_000_000_000/n/attributes))
			want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: runtime.GOMAXPROCS(0)}), w.Index), plans)
			for _, streamed := range []bool{false, true} {
				e.limits.PlanesOnly, e.limits.PartBytes, e.kernels.Profile.Filters.Lists = rng.IntN(2) == 0, 0, rng.IntN(2) == 0
				if streamed {
					e.limits.PartBytes = partBytesOf(t, w.Index)
				}
				s := enginetest.LoadOn(t, e, w.Index)
				for _, path := range names {
					force(t, e, path)
					randomBoundWaves(rng, e.all)
					c := compared{indexes: 1}
					got := c.search(t, s, plans)
					for i := range got {
						if !enginetest.SameHits(&got[i], &want[i]) {
							m := &plans[i]
							t.Fatalf("path %q, streamed %v, round %d: %d objects, %d attributes, plan %d of %d (k %d, min_count %d, %d items, filter %+v), totals %d and %d:\n%s",
								path, streamed, round, n, attributes, i, len(plans), m.K, m.MinCount, len(enginetest.Query(m).Items),
								enginetest.Query(m).Filter, got[i].Total, want[i].Total, difference(&got[i], &want[i]))
						}
					}
					paths.add(path, c)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	paths.report(t, names...)
}

// filterOnly tells whether a plan asks for nothing but a filter.
func filterOnly(p *gpuexec.Plan) bool {
	_, only, _ := enginetest.Query(p).Filtering()
	return only
}

// TestCUDAFiltersOnLists does the same for lists of every kind with stored numbers, by the (query, tile) kernel and by cost.
func TestCUDAFiltersOnLists(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	rng := seeded.Rand(t)
	paths := comparedBy{}
	for range scaled(40) {
		w := enginetest.RandomWorld(t, rng, []int{1, 65, 2000, 1 + rng.IntN(20_000), store.TileObjects + 1, 2*store.TileObjects + 9}[rng.IntN(6)])
		var earlier []*filter.Filter
		lists := rng.IntN(2) == 0 // which a batch has without plans of nothing but a filter
		plans := make([]gpuexec.Plan, 60)
		for i := range plans {
			for plans[i] = w.RandomFilteredPlan(rng, &earlier); lists && filterOnly(&plans[i]); {
				plans[i] = w.RandomFilteredPlan(rng, &earlier)
			}
			plans[i].K = min(plans[i].K, 5000)
		}
		want := enginetest.Search(t, enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: runtime.GOMAXPROCS(0)}), w.Source()), plans)
		for _, streamed := range []bool{false, true} {
			e.limits.PlanesOnly, e.limits.PartBytes, e.kernels.Profile.Filters.Lists = rng.IntN(2) == 0, 0, lists
			if streamed {
				e.limits.PartBytes = partBytesOf(t, w.Index)
			}
			s := enginetest.LoadOn(t, e, w.Source())
			for _, path := range []string{"tile", "sliced", "cost"} {
				force(t, e, path)
				c := compared{indexes: 1}
				got := c.search(t, s, plans)
				for i := range got {
					if !enginetest.SameHits(&got[i], &want[i]) {
						q := enginetest.Query(&plans[i])
						t.Fatalf("path %q, streamed %v: %d objects, layouts %v, plan %d (k %d, min_count %d, %d items, filter %+v), totals %d and %d:\n%s", path, streamed,
							len(w.Objects), w.Layouts, i, plans[i].K, plans[i].MinCount, len(q.Items), q.Filter, got[i].Total, want[i].Total, difference(&got[i], &want[i]))
					}
				}
				paths.add(path, c)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	paths.report(t, "tile")
}

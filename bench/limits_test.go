package bench

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

// Each kernel is held against its own limits, by what it did and not by what the queries touch.
func TestAchieved(t *testing.T) {
	l := &Limits{SharedAtomics: 1000, SharedRows: 100, Logic: 200, L2Bytes: 4000, Matrix: 50, HBMBytes: 500, Source: "a test"}
	for _, x := range []struct {
		name  string
		work  gpuexec.Work
		binds string
		want  map[string]float64
	}{
		{"(query, tile)", gpuexec.Work{TileQueries: 3, TilePostings: 100}, "hbm_bytes",
			map[string]float64{"shared_atomics": 0.2, "l2_bytes": 0.1, "hbm_bytes": 0.4}},
		{"shared decode", gpuexec.Work{SlicedQueries: 3, SlicedRows: 40}, "logic",
			map[string]float64{"shared_rows": 0.9, "logic": 0.92, "hbm_bytes": 0.4}},
		{"filter", gpuexec.Work{FilterQueries: 3, FilterSteps: 20}, "matrix", map[string]float64{"matrix": 0.8, "hbm_bytes": 0.4}},
		{"both", gpuexec.Work{TileQueries: 1, TilePostings: 250, SlicedQueries: 2, SlicedRows: 4}, "shared_atomics",
			map[string]float64{"shared_atomics": 0.5, "l2_bytes": 0.25, "shared_rows": 0.09, "logic": 0.092, "hbm_bytes": 0.4}},
	} {
		a := l.achieved(x.work, 100, 500)
		if a == nil || a.Binds != x.binds || len(a.Shares) != len(x.want) || a.Share != a.Shares[a.Binds] ||
			a.TileQueries != x.work.TileQueries || a.SlicedQueries != x.work.SlicedQueries ||
			a.FilterQueries != x.work.FilterQueries {
			t.Errorf("%s: %+v", x.name, a)
			continue
		}
		for unit, share := range x.want {
			if math.Abs(a.Shares[unit]-share) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", x.name, unit, a.Shares[unit], share)
			}
		}
	}
	if a := l.achieved(gpuexec.Work{}, 100, 500); a != nil {
		t.Errorf("of an engine that does not say what it did: %+v", a)
	}
}

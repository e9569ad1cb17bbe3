package bench

import (
	"context"
	"math"
	"testing"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
)

// Each kernel is held against its own limits, by what it did and not by what the queries touch.
func TestAchieved(t *testing.T) {
	l := &Limits{SharedAtomics: 1000, SharedRows: 100, Logic: 200, L2Bytes: 4000, Matrix: 50, HBMBytes: 500, Source: "a test"}
	for _, x := range []struct {
		name   string
		work   gpuexec.Work
		octets uint64
		binds  string
		share  float64
		want   map[string]float64
	}{
		{"(query, tile)", gpuexec.Work{TileQueries: 3, TilePostings: 100}, 0, "none", 0.4,
			map[string]float64{"shared_atomics": 0.2, "l2_bytes": 0.1, "hbm_bytes": 0.4}},
		{"shared decode", gpuexec.Work{SlicedQueries: 3, SlicedRows: 20}, 2, "logic", 0.7,
			map[string]float64{"shared_rows": 0.69, "logic": 0.7, "hbm_bytes": 0.4}},
		{"filter", gpuexec.Work{BoundQueries: 3, BoundSteps: 20}, 0, "matrix", 0.8,
			map[string]float64{"matrix": 0.8, "hbm_bytes": 0.4}},
		{"both", gpuexec.Work{TileQueries: 1, TilePostings: 250, SlicedQueries: 2, SlicedRows: 4}, 0, "shared_atomics", 0.5,
			map[string]float64{"shared_atomics": 0.5, "l2_bytes": 0.25, "shared_rows": 0.09, "logic": 0.092, "hbm_bytes": 0.4}},
	} {
		a := l.achieved(x.work, demand{x.octets, 100}, 500)
		if a == nil || a.Binds != x.binds || len(a.Shares) != len(x.want) || math.Abs(a.Share-x.share) > 1e-9 ||
			a.TileQueries != x.work.TileQueries || a.SlicedQueries != x.work.SlicedQueries || a.BoundQueries != x.work.BoundQueries {
			t.Errorf("%s: %+v", x.name, a)
			continue
		}
		for unit, share := range x.want {
			if math.Abs(a.Shares[unit]-share) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", x.name, unit, a.Shares[unit], share)
			}
		}
	}
	if a := l.achieved(gpuexec.Work{}, demand{}, 500); a != nil {
		t.Errorf("of an engine that does not say what it did: %+v", a)
	}
}

// Queries of one value per attribute need an octet per attribute, however many of a block ask for it.
func TestOctets(t *testing.T) {
	w, err := workload.New(context.Background(), "w1", workload.Options{Objects: 1500, Queries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var items uint64
	for _, item := range queryOf(&w.Plans[0]).Items {
		if item.Count > 0 {
			items++
		}
	}
	const groups = 2
	plans := w.Plans
	for _, n := range []int{1, blockQueries, blockQueries + 1} {
		for len(plans) < n {
			plans = append(plans, w.Plans[0])
		}
		blocks := uint64(n+blockQueries-1) / blockQueries
		got := demandOf(w.Index, w.Postings, plans[:n], gpuexec.Work{SlicedQueries: n})
		if items == 0 || got.octets != blocks*groups*items || got.bytes != groups*128*planes(w.Index, plans[:1]) {
			t.Errorf("%d queries: %+v, want %d octets", n, got, blocks*groups*items)
		}
	}
}

// What is read of device memory is bounded by what there is, and by what is asked for.
func TestBytesRead(t *testing.T) {
	for _, x := range []struct {
		work gpuexec.Work
		want uint64
	}{
		{gpuexec.Work{TileQueries: 1, TilePostings: 30}, 60},
		{gpuexec.Work{TileQueries: 9, TilePostings: 900}, 200},
		{gpuexec.Work{BoundQueries: 129, BoundSteps: 12}, 12 * 512 / 2},
	} {
		if got := demandOf(nil, 100, make([]gpuexec.Plan, 200), x.work); got != (demand{bytes: x.want}) {
			t.Errorf("%+v: %+v, want %d bytes", x.work, got, x.want)
		}
	}
}

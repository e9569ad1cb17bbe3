package plan

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// TestPolicyOnRows: the same choice as on a device.
func TestPolicyOnRows(t *testing.T) {
	raced.Skip(t, raced.One)
	wl := enginetest.DenseRows(300_000)
	x := hostIndex(t, wl.Build(t), Limits{Memory: 1 << 40})
	plans := wl.Plans()
	for _, count := range []int{1, 16, len(plans)} {
		queries := make([]Query, count)
		for i := range queries {
			m := &plans[i]
			queries[i] = x.Plan(&run.Job{Query: enginetest.Query(m), K: m.K, MinCount: 1, Bound: uint32(x.Lists.CountBound(enginetest.Query(m)))})
		}
		hostPolicy().choose(x, queries, false)
		for i := range queries {
			if q := &queries[i]; (q.kernel == kernelSliced) != (count == len(plans)) {
				t.Fatalf("query %d of %d goes to kernel %d", i, count, q.kernel)
			}
		}
	}
}

// signatures is an index of 4.5 M objects with 237 sliced attributes of 67 keywords, to a policy; it has codes if wanted.
func signatures(codes bool) load {
	const objects = 4_500_000 / postings.GroupObjects * postings.GroupObjects
	x := &Index{device: hostDevice(), Placement: Placement{Resident: &Resident{}}}
	x.device.Sliced = x.device.Sliced[:1]
	x.Planes = &Planes{octets: 237 * 9}
	if codes {
		x.Codes = &Codes{Columns: make([]uint32, 237), Objects: objects}
	}
	return load{Index: x, tiles: 70, groups: objects / postings.GroupObjects}
}

// signature is a query on them.
func signature(k int, lists uint64) Query {
	return Query{spans: 237, rows: 237, weightedRows: 237, weights: 1, postings: lists, K: k, Job: &run.Job{K: k}}
}

// TestSlicedPolicy: large batches on skewed attributes share decoding, single queries and short lists do not.
func TestSlicedPolicy(t *testing.T) {
	at := signatures(false)
	chosen := func(path Path, count, k int, lists uint64, at load) (sliced int) {
		queries := make([]Query, count)
		for i := range queries {
			queries[i] = signature(k, lists)
		}
		policy := hostPolicy()
		policy.Path = path
		policy.chooseSliced(queries, &at)
		for _, q := range queries {
			if q.kernel == kernelSliced {
				sliced++
			}
		}
		return sliced
	}
	for _, c := range []struct {
		path     Path
		count, k int
		postings uint64
		want     int
	}{
		{ByCost, 1024, 100, 33_000_000, 1024},
		{ByCost, 256, 100, 33_000_000, 256},
		{ByCost, 64, 100, 33_000_000, 0},
		{ByCost, 1, 100, 33_000_000, 0},
		{ByCost, 1024, 100, 9_000_000, 0},
		{ByCost, 1024, 100, 600_000, 0},
		{ByCost, 1024, 3000, 33_000_000, 0},
		{PathSliced, 1, 100, 100, 1},
		{PathTile, 1024, 100, 33_000_000, 0},
	} {
		if got := chosen(c.path, c.count, c.k, c.postings, at); got != c.want {
			t.Errorf("%d queries of %d postings, k %d, %v: %d go to the shared-decode kernel, want %d", c.count, c.postings, c.k, c.path, got, c.want)
		}
	}
	// Each part of a streamed index is a launch, and a piece that need not be one is a copy.
	for _, c := range []struct {
		parts  int
		copied int64
		want   int
	}{{1, 0, 1024}, {4, 0, 1024}, {40, 0, 0}, {1, 1 << 20, 1024}, {1, 1 << 30, 0}} {
		at := at
		at.parts, at.copied = c.parts, c.copied
		if got := chosen(ByCost, 1024, 100, 33_000_000, at); got != c.want {
			t.Errorf("%d parts, %d bytes copied: %d queries go to the shared-decode kernel, want %d", c.parts, c.copied, got, c.want)
		}
	}
}

// TestSlicedPolicyOfVariants: one copy serves all variants, so it pays for two of 512 queries where it does not for one; and a
// variant that does not pay stays where it is, whatever another one saves.
func TestSlicedPolicyOfVariants(t *testing.T) {
	at := signatures(false)
	at.device.Sliced = []SlicedVariant{at.device.Sliced[0], at.device.Sliced[0]}
	policy := hostPolicy()
	queries := make([]Query, 1024)
	var half slicedLoad
	var tiles float64
	for i := range queries {
		queries[i] = signature(100, 33_000_000)
		queries[i].counters = int8(i / 512)
		if i < 512 {
			half.add(&queries[i])
			tiles += policy.tile(&queries[i], &at)
		}
	}
	saving := tiles - policy.sliced(&half, 0, &at)
	at.copied = int64(1.5 * saving / policy.Profile.Tile.Copying / float64(at.device.Processors))
	for _, count := range []int{512, 1024} {
		policy.chooseSliced(queries[:count], &at)
		for i := range queries {
			if want := count == 1024; (queries[i].kernel == kernelSliced) != want {
				t.Fatalf("%d queries of two variants, a copy for %.0f ns: query %d to the shared-decode kernel: %v", count, 1.5*saving, i, !want)
			}
		}
	}
	at.copied = 0
	for i := range queries {
		queries[i].kernel, queries[i].postings = kernelTile, []uint64{33_000_000, 100}[queries[i].counters]
	}
	policy.chooseSliced(queries, &at)
	for i := range queries {
		if want := queries[i].counters == 0; (queries[i].kernel == kernelSliced) != want {
			t.Fatalf("query %d, of variant %d, to the shared-decode kernel: %v", i, queries[i].counters, !want)
		}
	}
}

// TestBoundPolicy: large batches of many attributes are the bound's, but for an index on which it does not pay.
func TestBoundPolicy(t *testing.T) {
	at := signatures(true)
	chosen := func(policy *Policy, count, k, dense int) (bounded int, rested bool) {
		queries := make([]Query, count)
		for i := range queries {
			queries[i] = signature(k, 33_000_000)
			queries[i].boundable, queries[i].dense = true, uint32(dense)
		}
		policy.chooseSliced(queries, &at)
		rested = policy.chooseBound(queries, &at)
		for _, q := range queries {
			if q.kernel == kernelBound {
				bounded++
			}
		}
		return bounded, rested
	}
	for _, test := range []struct {
		path            Path
		count, k, dense int
		want            int
	}{
		{ByCost, 1024, 100, 237, 1024},
		{ByCost, 256, 100, 237, 256},
		{ByCost, 1, 100, 237, 0},
		{ByCost, 1024, 100, 237 * 25, 0},
		{ByCost, 1024, gpuexec.MaxK, 237, 0},
		{PathBound, 1, gpuexec.MaxK, 237 * 25, 1},
		{PathSliced, 1024, 100, 237, 0},
		{PathTile, 1024, 100, 237, 0},
	} {
		policy := hostPolicy()
		policy.Path = test.path
		if got, rested := chosen(policy, test.count, test.k, test.dense); got != test.want || rested {
			t.Errorf("%v, %d queries, k %d, %d bits: %d by the bound, want %d (rests: %v)", test.path, test.count, test.k, test.dense, got, test.want, rested)
		}
	}
	resting := hostPolicy()
	resting.Resting = true
	if got, rested := chosen(resting, 1024, 100, 237); got != 0 || !rested {
		t.Errorf("%d queries by the bound while it rests (%v)", got, rested)
	}
	if got, rested := chosen(resting, 1, 100, 237); got != 0 || rested {
		t.Errorf("a query that is not the bound's takes its rest")
	}
}

// TestBoundRests: an index on which more than an eighth of the queries are abandoned is left to the other kernels for some
// batches.
func TestBoundRests(t *testing.T) {
	for _, c := range []struct {
		abandoned int
		rest      int32
	}{{10, 0}, {11, 64}} {
		x := &Index{device: hostDevice()}
		b := &Batch{index: x, policy: *hostPolicy()}
		b.piece.Bound = BoundLaunch{Count: 80}
		states := make([]abi.State, 80)
		for i := range states {
			b.piece.Queries = append(b.piece.Queries, Query{kernel: kernelBound})
			if i < c.abandoned {
				states[i].Threshold = abi.GivenUp
			}
		}
		b.takeAbandoned(states)
		if got := x.rest.Load(); got != c.rest || len(b.again) != c.abandoned {
			t.Errorf("%d of 80 are abandoned: a rest of %d, want %d; %d again", c.abandoned, got, c.rest, len(b.again))
		}
	}
}

// TestProfile: every device has a profile, which says whose it is.
func TestProfile(t *testing.T) {
	for _, device := range []string{"NVIDIA H200", "", "NVIDIA T4"} {
		if p := profile.Of(device); p.Device != "NVIDIA H200" || p.Tile.Posting == 0 {
			t.Errorf("%q: %+v", device, p)
		}
	}
}

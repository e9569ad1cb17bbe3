//go:build cuda

package device

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// termsPlan asks a column for some of its words, or for the first objects that have any, and wants them by a measure of terms; ordered: by one whose
// hits the device puts in order.
func termsPlan(t testing.TB, rng *rand.Rand, x *index.Index, ordered bool) gpuexec.Plan {
	t.Helper()
	column := &x.Forward().Columns()[rng.IntN(3)]
	attribute := slices.IndexFunc(x.Attributes(), func(a postings.Attribute) bool { return a.Name == column.Name })
	query := new(postings.MatchQuery)
	for range 1 + rng.IntN(6) {
		if column.Keywords == 0 {
			break
		}
		first := rng.Uint32N(column.Keywords)
		query.StartItem(uint32(attribute), uint32(1+rng.IntN(3)))
		query.AddSpan(first, min(column.Keywords, first+1+rng.Uint32N(4)))
	}
	rescore := enginetest.AskTerms(t, rng, column)
	for ordered && !orders(rescore) {
		rescore = enginetest.AskTerms(t, rng, column)
	}
	return gpuexec.Plan{Family: postings.FamilyName, Query: query, K: 1 + rng.IntN(700), MinCount: 1, Rescore: rescore}
}

// orders is true where the device can put hits in order.
func orders(s *verify.Scores) bool {
	by, _ := s.Terms()
	return len(by.Terms) <= abi.MaxAskedTerms && by.BM25 != nil && s.Wanted() <= abi.MostOrdered
}

// TestCUDATerms: what the device computes of candidates, by a lane or by a warp each, gives the hits that the host's comparison does; also of a
// range of tiles that is not the first.
func TestCUDATerms(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20})
	known := 0
	least := 100 * scaled(30)
	for round := 0; round < max(2, scaled(30)) || known < least && round < 1000; round++ {
		n := 1 + rng.IntN(900)
		if round == 3 {
			n = store.TileObjects + 500
		}
		x := enginetest.TermsIndex(t, rng, n)
		plans := make([]gpuexec.Plan, 1+rng.IntN(40))
		for i := range plans {
			plans[i] = termsPlan(t, rng, x, round%2 == 1) // candidates of batches that are all in order are selected in any
		}
		want := enginetest.Search(t, loadHost(t, x, gpuexec.CPUOptions{Workers: 2}), plans)
		s := enginetest.LoadOn(t, e, x)
		known += knownTerms(t, matcherOf(s), x, plans)
		for i, got := range enginetest.Search(t, s, plans) {
			if !enginetest.SameHits(&got, &want[i]) {
				t.Fatalf("round %d, plan %d of %d objects: %s", round, i, n, difference(&got, &want[i]))
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d candidates were compared on the device", known)
	if known < least {
		t.Error("hardly any candidate was compared")
	}
}

// knownTerms matches the plans and counts what is known of candidates.
func knownTerms(t *testing.T, m *matcher, x *index.Index, plans []gpuexec.Plan) (known int) {
	t.Helper()
	var jobs []*run.Job
	for i := range plans {
		p := &plans[i]
		if bound, err := m.lists.CheckQuery(p.Query, nil); err == nil && bound > 0 {
			jobs = append(jobs, &run.Job{Orderable: i%2 == 0, Query: p.Query, K: min(p.K, int(x.Objects())), MinCount: 1, Bound: bound, Rescore: p.Rescore})
		}
	}
	if err := m.Match(context.Background(), jobs, nil); err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		by, _ := job.Rescore.(*verify.Scores).Terms()
		compared := len(by.Terms) <= abi.MaxAskedTerms
		wanted := job.Rescore.Wanted()
		if want := job.Orderable && orders(job.Rescore.(*verify.Scores)); job.Ordered != want {
			t.Fatalf("in order: %v, not %v, of a query of %d terms", job.Ordered, want, len(by.Terms))
		} else if want {
			if len(job.Entries) != 0 || len(job.Best) != min(job.Found, wanted) {
				t.Fatalf("%d of %d hits, and %d entries", len(job.Best), job.Found, len(job.Entries))
			}
			known += job.Found
			continue
		}
		if compared && len(job.Known) != len(job.Entries) || !compared && len(job.Known) != 0 {
			t.Fatalf("%d of %d candidates are known of a query of %d terms", len(job.Known), len(job.Entries), len(by.Terms))
		}
		known += len(job.Known)
	}
	return known
}

// TestCUDATermsTooLong: where a candidate has more terms than the device compares, nothing can be said of the order of the others, and the query is executed
// again, for the host to make it. Others of the batch come back in order.
func TestCUDATermsTooLong(t *testing.T) {
	rng := seeded.Rand(t)
	x := enginetest.LongTermsIndex(t, rng, 200, abi.MaxObjectTerms+1)
	column := &x.Forward().Columns()[0]
	var plans []gpuexec.Plan
	for i := range 20 {
		query := new(postings.MatchQuery)
		query.StartItem(0, 1)
		// Keywords are numbered as the words are sorted: of the last ones the long object has all, of the first ones, which begin with "a", none.
		first := rng.Uint32N(3)
		if i%2 == 0 {
			first = column.Keywords - 1 - rng.Uint32N(100)
		}
		query.AddSpan(first, first+1)
		query.StartItem(0, 1)
		query.AddSpan(0, 3)
		m, err := verify.FindMeasure("bm25").New(&verify.Asked{Column: column, K: 1 + rng.IntN(20), Terms: slices.Compact(slices.Sorted(slices.Values([]uint32{0, 1, 2, first})))})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, gpuexec.Plan{Family: postings.FamilyName, Query: query, K: 250, MinCount: 1, Rescore: m})
	}
	want := enginetest.Search(t, loadHost(t, x, gpuexec.CPUOptions{Workers: 2}), plans)
	s := enginetest.LoadOn(t, openDevice(t, gpuexec.CUDAOptions{BatchMemory: 64 << 20}), x)
	var jobs []*run.Job
	for i, got := range enginetest.Search(t, s, plans) {
		if !enginetest.SameHits(&got, &want[i]) {
			t.Fatalf("plan %d: %s", i, difference(&got, &want[i]))
		}
		jobs = append(jobs, &run.Job{Query: plans[i].Query, K: 200, MinCount: 1, Bound: 2, Rescore: plans[i].Rescore, Orderable: true})
	}
	if err := matcherOf(s).Match(context.Background(), jobs, nil); err != nil {
		t.Fatal(err)
	}
	for i, job := range jobs {
		long := i%2 == 0
		if job.Ordered == long || long && (len(job.Known) != len(job.Entries) || !slices.Contains(job.Known, verify.Unknown)) {
			t.Fatalf("plan %d: in order: %v, %d of %d candidates known", i, job.Ordered, len(job.Known), len(job.Entries))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

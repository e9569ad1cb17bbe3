package enginetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRelations checks what must hold between answers, on collections of several tiles.
func TestRelations(t *testing.T) {
	rng := seeded.Rand(t)
	for _, e := range engines(t) {
		w := RandomWorld(t, rng, rng.IntN(raced.Of(3*store.TileObjects, 5000)))
		s := LoadOn(t, e, w.Source())
		var plans []gpuexec.Plan
		var filters []*filter.Filter
		for range raced.Of(50, 10) {
			plans = append(plans, w.RandomFilteredPlan(rng, &filters))
		}
		answers := Search(t, s, plans)

		// Searching again with the same memory gives the same.
		again := make([]gpuexec.Answer, len(plans))
		for range 2 {
			if err := s.Search(context.Background(), plans, again, nil); err != nil {
				t.Fatal(err)
			}
			for i := range plans {
				if !SameHits(&answers[i], &again[i]) {
					t.Fatalf("plan %d is answered differently the second time", i)
				}
			}
		}
		// One by one as in the batch.
		for i := range plans {
			alone := Search(t, s, plans[i:i+1])
			if !SameHits(&answers[i], &alone[0]) {
				t.Fatalf("plan %d alone is answered differently", i)
			}
			if e.countsAll && alone[0].Units != answers[i].Units {
				t.Fatalf("plan %d alone scans %d postings, in the batch %d", i, alone[0].Units, answers[i].Units)
			}
		}
		// In any order.
		order := rng.Perm(len(plans))
		shuffled := make([]gpuexec.Plan, len(plans))
		for i, j := range order {
			shuffled[i] = plans[j]
		}
		for i, a := range Search(t, s, shuffled) {
			if !SameHits(&answers[order[i]], &a) {
				t.Fatalf("plan %d is answered differently in another order", order[i])
			}
		}
		// With any number of workers.
		for _, workers := range []int{1, 7} {
			for i, a := range Search(t, LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: workers}), w.Source()), plans) {
				if !SameHits(&answers[i], &a) {
					t.Fatalf("plan %d is answered differently by %d workers", i, workers)
				}
			}
		}
		// A smaller k gives a prefix; items in another order give the same.
		fewer := slices.Clone(plans)
		for i := range fewer {
			m := &fewer[i]
			m.K = 1 + rng.IntN(m.K)
			items := OwnQuery(m).Items
			rng.Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
		}
		for i, a := range Search(t, s, fewer) {
			if all := answers[i].Hits; !slices.Equal(a.Hits, all[:min(len(all), fewer[i].K)]) {
				t.Fatalf("plan %d with k = %d is no prefix of k = %d", i, fewer[i].K, plans[i].K)
			}
		}
	}
}

// TestConcurrentSearches runs many calls on searchers of two indexes that share one engine.
func TestConcurrentSearches(t *testing.T) {
	rng := seeded.Rand(t)
	var calls sync.WaitGroup
	var searchers []gpuexec.Searcher
	for _, e := range engines(t) {
		w := RandomWorld(t, rng, store.TileObjects+1000)
		s := LoadOn(t, e, w.Source())
		searchers = append(searchers, s)
		for range 6 {
			var filters []*filter.Filter
			plans := w.RandomPlans(rng, func() gpuexec.Plan { return w.RandomFilteredPlan(rng, &filters) })
			calls.Go(func() {
				answers := make([]gpuexec.Answer, len(plans))
				for range raced.Of(5, 2) {
					if err := s.Search(context.Background(), plans, answers, nil); err != nil {
						t.Error(err)
						return
					}
				}
				for i := range plans[:min(len(plans), raced.Of(len(plans), 10))] { // the definition takes longer than the engine
					if answers[i].Err != nil {
						continue
					}
					if want, _ := w.Search(&plans[i]); !slices.Equal(answers[i].Hits, want) {
						t.Errorf("plan %d of a concurrent call is answered wrong", i)
					}
				}
			})
		}
	}
	calls.Wait()
	for _, s := range searchers {
		closeSearcher(t, s)
	}
}

func TestCancellation(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 2*store.TileObjects)
	for w.Index.Attributes()[0].Postings == 0 { // nothing is searched where nothing can match
		w = RandomWorld(t, rng, 2*store.TileObjects)
	}
	s := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 2})
	plans := make([]gpuexec.Plan, 200)
	for i := range plans {
		plans[i] = w.RandomPlan(rng)
	}
	answers := make([]gpuexec.Answer, len(plans))
	reason := errors.New("the client has gone")
	for delay := range 20 {
		ctx, cancel := context.WithCancelCause(context.Background())
		if delay == 0 {
			cancel(reason)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range delay * 1000 {
				_ = ctx.Err()
			}
			cancel(reason)
		}()
		// The batch may have been done before.
		if err := s.Search(ctx, plans, answers, nil); err == nil && delay == 0 || err != nil && !errors.Is(err, reason) {
			t.Errorf("searching with an ended context: %v", err)
		}
		<-done
	}
	// Nothing is left over: counters are clean.
	CheckAnswers(t, w, plans[:20], Search(t, s, plans[:20]))
}

func TestBadPlans(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 100)
	for w.Index.Attributes()[0].MaxPerObject == 0 { // then no count of it is too high
		w = RandomWorld(t, rng, 100)
	}
	item := func(attr, weight, lo, hi uint32) gpuexec.Plan {
		return gpuexec.Plan{Family: postings.FamilyName, K: 1, Query: &postings.MatchQuery{
			Items: []postings.Item{{Attr: attr, Weight: weight, Count: 1}}, Spans: []postings.Span{{Lo: lo, Hi: hi}},
		}}
	}
	good := item(0, 1, 0, 1)
	noSpans := item(0, 1, 0, 1)
	Query(&noSpans).Items[0].First = 1
	overlap := item(0, 1, 0, 1)
	Query(&overlap).Items[0].Count = 2
	Query(&overlap).Spans = append(Query(&overlap).Spans, postings.Span{Lo: 0, Hi: 1})
	heavy := item(0, postings.MaxWeight, 0, w.Vocabulary[0])
	for range 1<<16 + 100 {
		Query(&heavy).Items = append(Query(&heavy).Items, Query(&heavy).Items[0])
	}
	with := func(change func(*gpuexec.Plan)) gpuexec.Plan {
		p := good
		change(&p)
		return p
	}
	bad := []gpuexec.Plan{
		with(func(p *gpuexec.Plan) { p.Family = "trees" }),
		with(func(p *gpuexec.Plan) { p.Query = nil }),
		with(func(p *gpuexec.Plan) { p.Query = (*postings.MatchQuery)(nil) }),
		with(func(p *gpuexec.Plan) { p.Query = 7 }),
		with(func(p *gpuexec.Plan) { p.Rescore = &verify.Nearest{Texts: w.Index, NGram: 3} }), // k is 0
		with(func(p *gpuexec.Plan) { p.K = 0 }),
		with(func(p *gpuexec.Plan) { p.K = -1 }),
		with(func(p *gpuexec.Plan) { p.K = gpuexec.MaxK + 1 }),
		item(uint32(len(w.Vocabulary)), 1, 0, 1), item(1<<31, 1, 0, 1),
		item(0, 0, 0, 1), item(0, postings.MaxWeight+1, 0, 1),
		item(0, 1, 1, 1), item(0, 1, 2, 1), item(0, 1, 0, w.Vocabulary[0]+1),
		noSpans, overlap, heavy,
	}
	plans := []gpuexec.Plan{good}
	for _, p := range bad {
		plans = append(plans, p, good)
	}
	for name, s := range loadOnAll(t, engines(t), w.Index) {
		t.Log(name)
		answers := Search(t, s, plans)
		for i := range plans {
			var refused *refusal.Error
			if i%2 == 1 {
				if !errors.As(answers[i].Err, &refused) || len(answers[i].Hits) > 0 {
					t.Errorf("bad plan %d: %v, want a refusal", i/2, answers[i].Err)
				}
			} else if !SameHits(&answers[i], &answers[0]) || answers[i].Err != nil {
				t.Errorf("good plan %d beside bad ones is answered differently", i)
			}
		}
		if err := s.Search(context.Background(), plans, answers[1:], nil); err == nil {
			t.Error("a number of answers that is not that of the plans is not refused")
		}
		if err := s.Search(context.Background(), nil, nil, nil); err != nil {
			t.Errorf("an empty batch: %v", err)
		}
		closeSearcher(t, s)
	}
}

// TestAllocations: memory is taken by the query, not by the posting, and much less with answers that are used again.
func TestAllocations(t *testing.T) {
	if raced.Detector {
		t.Skip("the race detector allocates")
	}
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 3*store.TileObjects)
	plans := make([]gpuexec.Plan, 256)
	for i := range plans {
		plans[i] = w.RandomPlan(rng)
		plans[i].K = min(plans[i].K, 100)
	}
	s := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 2})
	answers := make([]gpuexec.Answer, len(plans))
	reused := testing.AllocsPerRun(5, func() { _ = s.Search(context.Background(), plans, answers, nil) })
	fresh := testing.AllocsPerRun(5, func() { _ = s.Search(context.Background(), plans, make([]gpuexec.Answer, len(plans)), nil) })
	t.Logf("%v allocations for 256 plans, %v with fresh answers", reused, fresh)
	if reused > 64 || fresh > 64+256 {
		t.Errorf("%v allocations for 256 plans, %v with fresh answers: want at most 64, and 1 more a plan", reused, fresh)
	}
}

// TestCapacity checks that the memory of a batch within the capacity is what Cost says, for plans with the largest k.
func TestCapacity(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomWorld(t, rng, 1000)
	s := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 2})
	c := s.Capacity()
	if c.BatchPlans != 1024 || c.BatchBytes != 256<<20 || c.InFlight != 2 || c.IndexBytes != w.Index.Size() || c.SharedBytes <= 0 || c.DeviceBytes < c.SharedBytes || c.Parts != 1 || c.Form == "" {
		t.Errorf("capacity %+v", c)
	}
	small, large := gpuexec.Plan{Family: postings.FamilyName, K: 10}, gpuexec.Plan{Family: postings.FamilyName, K: gpuexec.MaxK}
	if a, b := s.Cost(&small), s.Cost(&large); a <= 0 || b <= a || b > 64*1000 {
		t.Errorf("costs %d and %d: an index of 1,000 objects bounds the entries", a, b)
	}
	if cost := s.Cost(&gpuexec.Plan{Family: postings.FamilyName, K: -5, Rescore: &verify.Nearest{K: 1 << 60}}); cost < 0 {
		t.Errorf("cost %d of a bad plan", cost)
	}
}

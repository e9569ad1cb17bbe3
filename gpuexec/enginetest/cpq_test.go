package enginetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// cpq is the paper's count priority queue as it is written, for one thread: Bitmap Counter, Gate (ZipperArray and
// AuditThreshold) and Hash Table, updated by Algorithm 1. It is the model that the engines are compared with.
type cpq struct {
	k  int
	bc map[uint32]uint32 // Bitmap Counter: object -> count
	ht map[uint32]uint32 // Hash Table: object -> count
	za map[uint32]int    // ZipperArray, 1-based; the paper caps it at k when reading
	at uint32            // AuditThreshold
}

func newCPQ(k int) *cpq {
	return &cpq{k: k, bc: map[uint32]uint32{}, ht: map[uint32]uint32{}, za: map[uint32]int{}, at: 1}
}

// update is Algorithm 1: a thread accesses object o in a postings list.
func (q *cpq) update(o uint32) {
	val := q.bc[o] + 1
	q.bc[o] = val
	if val >= q.at {
		q.ht[o] = val
		q.za[val]++
		for q.za[q.at] >= q.k {
			q.at++
		}
	}
}

// top selects the top k from the Hash Table as Theorem 3.1 allows: all objects with a count above AT - 1, and as
// many of those with AT - 1 as are needed. Ties are broken by id, as everywhere in geniemq; the paper breaks them
// randomly. Which objects with count AT - 1 entered the table depends on the order of updates, so the ids of ties are
// compared with the engine's only by count.
func (q *cpq) top() []topk.Entry {
	var all []topk.Entry
	for o, count := range q.ht {
		if count >= max(1, q.at-1) {
			all = append(all, topk.NewEntry(count, o))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	return all[:min(len(all), q.k)]
}

// TestExample31 follows Example 3.1 of the paper step by step: objects O1, O2, O3 of Figure 1, k = 1, lists scanned in
// the order (A,[1,2]), (B,[1,1]), (C,[2,3]).
func TestExample31(t *testing.T) {
	q := newCPQ(1)
	type state struct {
		at uint32
		za [3]int
		bc map[uint32]uint32
		ht map[uint32]uint32
	}
	steps := []struct {
		object uint32
		want   state
	}{
		// (A,[1,2]): O1, then O2 and O3, which stay below AT.
		{1, state{2, [3]int{1, 0, 0}, map[uint32]uint32{1: 1}, map[uint32]uint32{1: 1}}},
		{2, state{2, [3]int{1, 0, 0}, map[uint32]uint32{1: 1, 2: 1}, map[uint32]uint32{1: 1}}},
		{3, state{2, [3]int{1, 0, 0}, map[uint32]uint32{1: 1, 2: 1, 3: 1}, map[uint32]uint32{1: 1}}},
		// (B,[1,1]): O2.
		{2, state{3, [3]int{1, 1, 0}, map[uint32]uint32{1: 1, 2: 2, 3: 1}, map[uint32]uint32{1: 1, 2: 2}}},
		// (C,[2,3]): O2, then O3.
		{2, state{4, [3]int{1, 1, 1}, map[uint32]uint32{1: 1, 2: 3, 3: 1}, map[uint32]uint32{1: 1, 2: 3}}},
		{3, state{4, [3]int{1, 1, 1}, map[uint32]uint32{1: 1, 2: 3, 3: 2}, map[uint32]uint32{1: 1, 2: 3}}},
	}
	for i, step := range steps {
		q.update(step.object)
		got := state{q.at, [3]int{q.za[1], q.za[2], q.za[3]}, q.bc, q.ht}
		if got.at != step.want.at || got.za != step.want.za || !maps.Equal(got.bc, step.want.bc) || !maps.Equal(got.ht, step.want.ht) {
			t.Fatalf("step %d, O%d: got %+v, want %+v", i+1, step.object, got, step.want)
		}
	}
	if top := q.top(); len(top) != 1 || top[0] != topk.NewEntry(3, 2) {
		t.Errorf("top 1 is %v, want O2 with count 3", top)
	}
}

// TestEngineAgreesWithCPQ runs random queries of weight 1 through the model, postings in random order, and through
// the engine: the counts of the top k are the same, MC_k = AT - 1 (Theorem 3.1), the Hash Table holds the engine's
// hits above MC_k, and before the engine's answer is full the model's AT has not moved past what exists.
func TestEngineAgreesWithCPQ(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range Rounds(make([]struct{}, 300)) {
		w := RandomWorld(t, rng, rng.IntN(400))
		s := loadCPU(t, w.Index, gpuexec.CPUOptions{Workers: 1})
		for range 5 {
			plan := w.RandomPlan(rng)
			for i := range Query(&plan).Items {
				Query(&plan).Items[i].Weight = 1
			}
			plan.MinCount = 0
			var postings []uint32
			for id, count := range w.Counts(Query(&plan)) {
				for range count {
					postings = append(postings, uint32(id))
				}
			}
			rng.Shuffle(len(postings), func(i, j int) { postings[i], postings[j] = postings[j], postings[i] })
			model := newCPQ(plan.K)
			for _, o := range postings {
				model.update(o)
			}

			answers := make([]gpuexec.Answer, 1)
			if err := s.Search(context.Background(), []gpuexec.Plan{plan}, answers, nil); err != nil || answers[0].Err != nil {
				t.Fatal(err, answers[0].Err)
			}
			got := answers[0]
			if got.MCK != model.at-1 {
				t.Fatalf("round %d: MC_k is %d, AT - 1 is %d", round, got.MCK, model.at-1)
			}
			top := model.top()
			if len(top) != len(got.Hits) {
				t.Fatalf("round %d: %d hits, the model has %d", round, len(got.Hits), len(top))
			}
			for i, h := range got.Hits {
				if top[i].Count() != h.Count {
					t.Fatalf("round %d: hit %d has count %d, the model's %d", round, i, h.Count, top[i].Count())
				}
				if h.Count > got.MCK && model.ht[h.ID] != h.Count {
					t.Fatalf("round %d: hit %d (object %d, count %d) is in the Hash Table with count %d", round, i, h.ID, h.Count, model.ht[h.ID])
				}
			}
			if int(got.Units) != len(postings) {
				t.Fatalf("round %d: %d postings scanned, there are %d", round, got.Units, len(postings))
			}
		}
	}
}

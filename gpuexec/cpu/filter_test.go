package cpu

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// watched are stored values that tell when a filter looks at them first, and how often it asks for them from then on.
type watched struct {
	filter.Stored
	first   func()
	looked  atomic.Bool
	further atomic.Int64
}

func (w *watched) StoredNumbers(attribute string) (filter.Numbers, bool) {
	numbers, ok := w.Stored.StoredNumbers(attribute)
	if w.looked.Load() {
		w.further.Add(1)
	}
	return watchedNumbers{numbers, w}, ok
}

type watchedNumbers struct {
	of      filter.Numbers
	watched *watched
}

func (n watchedNumbers) look() {
	if !n.watched.looked.Swap(true) {
		n.watched.first()
	}
}

func (n watchedNumbers) Numbers(object uint32) []float64 {
	n.look()
	return n.of.Numbers(object)
}

func (n watchedNumbers) NumbersTile(tile int) (starts []uint32, values []float64) {
	n.look()
	return n.of.NumbersTile(tile)
}

type watchedSource struct {
	gpuexec.Source
	*watched
}

func (s watchedSource) Structure(family string) any {
	if family == filter.StoredFamily {
		return s.watched
	}
	return s.Source.Structure(family)
}

// manyConditions is an index of one tile, and a plan whose filter is as many conditions as a query may have, each of which all values meet.
func manyConditions(t *testing.T) (*enginetest.World, gpuexec.Plan) {
	const conditions = 65_536
	rng := seeded.Rand(t)
	for {
		w := enginetest.RandomWorld(t, rng, 500)
		a := slices.IndexFunc(w.Numbers, func(n [][]float64) bool { return n != nil })
		if a < 0 || w.Index.Attribute(a).Exact || w.Index.Attribute(a).Keywords == 0 {
			continue
		}
		plan := gpuexec.Plan{K: 5}
		f := &filter.Filter{}
		f.StartGroup(false)
		for range conditions {
			f.StartClause(uint32(a))
			f.AddEdge(0, w.Index.Attribute(a).Keywords)
			f.AddRange(math.Inf(-1), math.Inf(1))
		}
		enginetest.Query(&plan).Filter = f
		return w, plan
	}
}

// TestFilterStops: a filter of many conditions is given up soon after nobody waits for it any more: when the call is cancelled, and when the
// deadlines of all that ask with it are over.
func TestFilterStops(t *testing.T) {
	const soon = 1000 // conditions: one of a tile is a microsecond at least
	w, plan := manyConditions(t)
	engine := New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	search := func(first func(), plans ...gpuexec.Plan) ([]gpuexec.Answer, func(ctx context.Context) error) {
		stored := &watched{Stored: w.Stored(), first: first}
		s := enginetest.LoadOn(t, engine, watchedSource{w.Source(), stored})
		t.Cleanup(func() { s.Close() })
		answers := make([]gpuexec.Answer, len(plans))
		return answers, func(ctx context.Context) error {
			err := s.Search(ctx, plans, answers, nil)
			if n := stored.further.Load(); stored.looked.Load() && n > soon {
				t.Errorf("%d conditions were looked at when nobody waited any more", n)
			}
			return err
		}
	}

	ctx, cancel := context.WithCancel(context.Background())
	_, run := search(cancel, plan)
	if err := run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that is cancelled: %v", err)
	}

	short, shorter := plan, plan
	short.Deadline = time.Now().Add(time.Second)
	shorter.Deadline = short.Deadline.Add(-time.Millisecond)
	answers, run := search(func() { time.Sleep(time.Until(short.Deadline)) }, shorter, short)
	if err := run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		if !errors.Is(answers[i].Err, gpuexec.ErrDeadline) {
			t.Errorf("plan %d, whose time is over: %v", i, answers[i].Err)
		}
	}
}

// TestFilterOfSeveral: where some of those that ask with a filter have no time left, the others get their answers.
func TestFilterOfSeveral(t *testing.T) {
	raced.Skip(t, raced.One)
	w, plan := manyConditions(t)
	engine := New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	short := plan
	short.Deadline = time.Now().Add(time.Second)
	stored := &watched{Stored: w.Stored(), first: func() { time.Sleep(time.Until(short.Deadline)) }}
	s := enginetest.LoadOn(t, engine, watchedSource{w.Source(), stored})
	defer s.Close()
	answers := enginetest.Search(t, s, []gpuexec.Plan{short, plan, short})
	var want []uint32
	for id := range w.Objects {
		if w.Passes(&filter.Filter{Groups: []filter.Group{{Count: 1}}, Clauses: enginetest.Query(&plan).Filter.Clauses[:1],
			Edges: enginetest.Query(&plan).Filter.Edges[:1], Ranges: enginetest.Query(&plan).Filter.Ranges[:1]}, id) && len(want) < plan.K {
			want = append(want, uint32(id))
		}
	}
	if got := answers[1]; got.Err != nil || !slices.EqualFunc(got.Hits, want, func(h gpuexec.Hit, id uint32) bool { return h.ID == id }) {
		t.Errorf("the one that has time: %v, hits %v, want %v", got.Err, got.Hits, want)
	}
}

// TestPick: what is picked out of lists, in each way, is what passes.
func TestPick(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	for range 2000 {
		objects := []int{1, 64, 65, 1000, store.TileObjects}[rng.IntN(5)]
		pass := randomPass(rng, objects)
		if pass.words == nil {
			pass = tilePass{words: new(passing.Words)}
		}
		runs, _, _ := randomRuns(rng, objects, 1, rng.IntN(300), 1)
		ids := runs[0].ids
		if rng.IntN(2) == 0 {
			ids = slices.Compact(ids)
		}
		var want []uint16
		for _, id := range ids {
			if pass.has(id) {
				want = append(want, id)
			}
		}
		dst := make([]uint16, len(ids))
		for way, n := range map[string]func() int{
			"with branches":    func() int { return pick(dst, ids, pass.words, true) },
			"without branches": func() int { return pick(dst, ids, pass.words, false) },
			"by search":        func() int { return seek(dst, ids, pass.list(nil)) },
		} {
			clear(dst)
			if got := dst[:n()]; !slices.Equal(got, want) {
				t.Fatalf("%s: %d of %d ids, want %d: %v of %v, want %v", way, len(got), len(ids), len(want), got, ids, want)
			}
		}
		// Runs and rare postings are picked from in the same way, whatever each costs.
		var p picked
		if pass.count == 0 {
			continue
		}
		runs = []listRun{{ids: ids, weight: 3, ascends: true}, {ids: slices.Repeat(ids, 2), weight: 2}}
		var rare []uint32
		for _, id := range ids {
			rare = append(rare, uint32(id)<<16|7)
		}
		p.pick(pass, runs, rare)
		var all []uint16
		for _, r := range p.runs {
			all = append(all, r.ids...)
		}
		for _, posting := range p.rare {
			all = append(all, uint16(posting>>16))
		}
		if !slices.Equal(all, slices.Repeat(want, 4)) {
			t.Fatalf("of runs: %v, want four times %v", all, want)
		}
	}
}

// TestClip: items on the attributes that filters ask for count what they count, whether a keyword is asked for in a span, as an edge, or as both.
func TestClip(t *testing.T) {
	rng := seeded.Rand(t)
	engine := New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	sliced, both := 0, 0
	for range 60 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(400))
		s := enginetest.LoadOn(t, engine, w.Source())
		for range 20 {
			a := rng.IntN(len(w.Vocabulary))
			v := w.Vocabulary[a]
			plan := gpuexec.Plan{K: len(w.Objects)}
			q := enginetest.Query(&plan)
			for range 1 + rng.IntN(2) {
				q.StartItem(uint32(a), 1+rng.Uint32N(3))
				for lo := rng.Uint32N(v); lo < v; {
					hi := lo + 1 + rng.Uint32N(v-lo)
					q.AddSpan(lo, hi)
					lo = hi + rng.Uint32N(v)
				}
			}
			w.AddRandomItem(rng, q, 1)
			f := &filter.Filter{}
			isNumber := w.Numbers[a] != nil && !w.Index.Attribute(a).Exact
			for range 1 + rng.IntN(2) {
				f.StartGroup(rng.IntN(4) == 0)
				f.StartClause(uint32(a))
				for lo := rng.Uint32N(v); lo < v; {
					hi := lo + 1 + rng.Uint32N(v-lo)
					if rng.IntN(3) > 0 {
						f.AddSpan(lo, hi)
					}
					if isNumber && rng.IntN(2) == 0 {
						f.AddEdge(lo, lo+1)
					}
					lo = hi + rng.Uint32N(v)
				}
				f.AddRange(math.Inf(-1), 40*rng.Float64())
			}
			all := plan
			want, _ := w.Search(&all)
			want = slices.DeleteFunc(want, func(h gpuexec.Hit) bool { return !w.Passes(f, int(h.ID)) })
			q.Filter = f
			got := enginetest.Search(t, s, []gpuexec.Plan{plan})[0]
			if got.Err != nil || !slices.Equal(got.Hits, want) {
				t.Fatalf("layout %v: %v, got %v, want %v\n%+v\n%+v", w.Index.Attribute(a).Layout, got.Err, got.Hits, want, q, f)
			}
			if w.Index.Attribute(a).Layout == schema.LayoutSliced {
				if sliced++; overlap(f.Spans, f.Edges) {
					both++
				}
			}
		}
		s.Close()
	}
	if sliced < 20 || both == 0 {
		t.Errorf("%d filters on a sliced attribute, %d with keywords that are both", sliced, both)
	}
}

package enginetest

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// distanceQuery is a random query of a world: of one column, near to an object or to something else, with a k around the number of objects, a radius
// that may be the distance of an object exactly, and a filter.
type distanceQuery struct {
	column string
	near   Place
	filter int // class that hits are of; -1: any
	barred int // class that no hit is of; -1: none
	plan   gpuexec.Plan
	query  *distance.Query
}

func randomDistance(t *testing.T, rng *rand.Rand, w *DistanceWorld, queries *index.Queries) *distanceQuery {
	t.Helper()
	d := &distanceQuery{column: []string{"vector", "point", "text"}[rng.IntN(3)], near: w.Random(rng), filter: -1, barred: -1}
	if len(w.Places) > 0 && rng.IntN(2) == 0 {
		if p := w.Places[rng.IntN(len(w.Places))]; p.Vector != nil && p.Point != nil && p.Text != "" {
			d.near = p
		}
	}
	r := index.Request{Total: rng.IntN(2) == 0, Near: nearest.Near{K: []int{1, 2, 10, len(w.Places), len(w.Places) + 1, 65536}[rng.IntN(6)]}}
	r.Near.K = max(1, r.Near.K)
	if rng.IntN(2) == 0 {
		r.Near.Column = d.column
	}
	if rng.IntN(3) == 0 {
		r.Near.Method = []string{"auto", "scan"}[rng.IntN(2)]
		if w.Paths {
			r.Near.Method = []string{"auto", "tree", "permutation", "cells"}[rng.IntN(4)]
		}
		if r.Near.Method == "cells" && (d.column != "vector" || w.Metric == "hamming") {
			r.Near.Method = "tree"
		}
		if m := r.Near.Method; m == "permutation" || m == "cells" && rng.IntN(2) == 0 {
			r.Near.Recall = 0.9
			if m == "permutation" && rng.IntN(2) == 0 {
				r.Near.Recall, r.Near.Fraction = 0, 1-rng.Float64()
			}
		}
	}
	switch d.column {
	case "vector":
		r.Vector = d.near.Vector
	case "point":
		r.Point = &nearest.Point{Lat: d.near.Point[0], Lon: d.near.Point[1]}
	case "text":
		r.Text = &d.near.Text
		if r.Near.Method == "" {
			r.Near.Method = "scan" // else the n-grams of a string count
		}
	}
	if rng.IntN(3) == 0 {
		d.filter = rng.IntN(classes)
		value := column.StringValue(ClassName(d.filter))
		r.Filter = []column.Condition{{Attr: "class", Value: &value}}
	}
	if rng.IntN(4) == 0 {
		d.barred = rng.IntN(classes)
		value := column.StringValue(ClassName(d.barred))
		r.Exclude = []column.Condition{{Attr: "class", Value: &value}}
	}
	if rng.IntN(2) == 0 {
		d.radius(rng, w, &r)
		if d.column == "text" && rng.IntN(2) == 0 {
			r.Near.Method, r.Near.Recall, r.Near.Fraction = "ngram", 0, 0
		}
	}
	made, err := queries.Plan(new(postings.MatchQuery), &r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	d.query = made.Query.(*distance.Query)
	d.plan = gpuexec.Plan{Family: made.Family, Query: made.Query, K: max(1, d.query.K)}
	return d
}

// passes says whether objects of a class may be hits.
func (d *distanceQuery) passes(class int) bool {
	return (d.filter < 0 || class == d.filter) && class != d.barred
}

// radius gives a request one: 0, that of some object to the bit, or any; sometimes only a count is wanted.
func (d *distanceQuery) radius(rng *rand.Rand, w *DistanceWorld, r *index.Request) {
	radius := rng.Float64() * 5
	c := w.Index.Distances().Column(d.column)
	if d.column == "point" {
		radius = rng.Float64() * 2e7
	}
	switch space, _ := c.Space(); {
	case rng.IntN(6) == 0:
		radius = 0
	case space != nil && len(w.Places) > 0 && rng.IntN(2) == 0:
		if id := rng.Uint32N(uint32(len(w.Places))); c.Has(id) {
			radius = c.Metric.Report(space.Of(id).Value(rng.Uint32N(uint32(len(w.Places)))))
		}
	}
	r.Near.Radius = &radius
	r.Near.CountOnly = rng.IntN(6) == 0 && r.Near.Recall == 0 && r.Near.Fraction == 0 && r.Near.Method != "cells"
	if r.Near.CountOnly {
		r.Near.K = 0
	}
}

// TestDistances: hits, values and counts of random searches by distance are those of the flat definition, to the bit, on every engine, in batches of any
// size.
func TestDistances(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	sizes := []int{0, 1, 2, 63, 64, 65, 300, 1000}
	worlds := 60
	if testing.Short() {
		worlds = 12
	}
	if percent, err := strconv.Atoi(os.Getenv("GENIEMQ_ROUNDS")); err == nil {
		worlds = max(1, worlds*percent/100)
	}
	asked := 0
	for round := range worlds {
		n := sizes[round%len(sizes)]
		if round == 1 && !testing.Short() {
			n = 65_000 // two tiles
		}
		w := RandomDistanceWorld(t, rng, n, round%2 == 0)
		if round == 10 && !testing.Short() { // the most dimensions that the design names
			w = &DistanceWorld{Paths: true, Metric: w.Metric, Storage: w.Storage, Dims: 4096}
			for range 40 {
				w.Places = append(w.Places, w.Random(rng))
			}
			w.Build(t)
		}
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		searchers := loadOnAll(t, all, w.Index)
		batch := make([]*distanceQuery, 1+rng.IntN(80))
		plans := make([]gpuexec.Plan, len(batch))
		for i := range batch {
			batch[i] = randomDistance(t, rng, w, queries)
			plans[i] = batch[i].plan
		}
		asked += len(batch)
		want := make([][]gpuexec.Hit, len(batch))
		within := make([]uint64, len(batch))
		for i, d := range batch {
			want[i], within[i] = w.flat(t, d)
		}
		for _, e := range all {
			answers := make([]gpuexec.Answer, len(plans))
			if err := searchers[e.name].Search(t.Context(), plans, answers, nil); err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				w.compare(t, e.name, batch[i], &answers[i], want[i], within[i])
			}
			closeSearcher(t, searchers[e.name])
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d queries of %d worlds", asked, worlds)
}

// flat is the answer by definition.
func (w *DistanceWorld) flat(t *testing.T, d *distanceQuery) (hits []gpuexec.Hit, within uint64) {
	t.Helper()
	c := d.query.Column
	space, err := c.Space()
	if err != nil {
		t.Fatal(err)
	}
	asker, err := d.query.Asker(space)
	if err != nil {
		t.Fatal(err)
	}
	has := func(id uint32) bool {
		p := &w.Places[id]
		return map[string]bool{"vector": p.Vector != nil, "point": p.Point != nil, "text": p.Text != ""}[d.column]
	}
	found, within := flatscan.Nearest(asker, uint32(len(w.Places)), metric.Want{K: d.query.K, Most: d.query.Most}, func(id uint32) bool {
		return has(id) && d.passes(w.Places[id].Class)
	})
	for _, h := range found {
		if v := w.Value(d.column, &d.near, &w.Places[h.ID]); v == v && math.Float64bits(v) != math.Float64bits(h.Value) {
			t.Fatalf("%s %s: object %d has value %v, and by definition %v", w.Metric, w.Storage, h.ID, h.Value, v)
		}
		if d.query.Bounded && c.Metric.Report(h.Value) > d.query.Radius {
			t.Fatalf("object %d at %v is beyond %v", h.ID, c.Metric.Report(h.Value), d.query.Radius)
		}
		hits = append(hits, gpuexec.Hit{ID: h.ID, Score: h.Value})
	}
	return hits, within
}

// compare holds an answer against the flat one. Of a method that may miss hits, every hit has its value and its place, and what says that it is exact, is.
func (w *DistanceWorld) compare(t *testing.T, engine string, d *distanceQuery, a *gpuexec.Answer, want []gpuexec.Hit, within uint64) {
	t.Helper()
	if len(w.Places) == 0 {
		if a.Err != nil || len(a.Hits) > 0 {
			t.Errorf("%s: %d hits of nothing, %v", engine, len(a.Hits), a.Err)
		}
		return
	}
	value, ok := a.Value.(*distance.Answer)
	if a.Err != nil || !ok || value.Exact != a.Exact {
		t.Errorf("%s: %v, exact %v, %+v: %+v", engine, a.Err, a.Exact, a.Value, d.query)
		return
	}
	byGrams := d.query.Method == distance.Ngram && value.Method == distance.Scan && d.query.Column.Theta(d.query) < 1
	if method := d.query.Method; method != distance.Auto && value.Method != method && engine != "capacity" && !byGrams {
		t.Errorf("%s: method %s for %s", engine, value.Method, method)
	}
	if approximate := value.Method == "permutation" || value.Method == "cells"; !a.Exact && !approximate {
		t.Errorf("%s: %s is not exact", engine, value.Method)
	}
	if !a.Exact {
		w.compareSome(t, engine, d, a)
	} else if !slices.EqualFunc(a.Hits, want, func(a, b gpuexec.Hit) bool {
		return a.ID == b.ID && math.Float64bits(a.Score) == math.Float64bits(b.Score) && a.Count == 0
	}) {
		t.Errorf("%s: hits are %v, want %v: %+v by %s", engine, a.Hits, want, d.query, value.Method)
		return
	}
	total := uint64(0)
	for i := range w.Places {
		if d.passes(w.Places[i].Class) {
			total++
		}
	}
	if value.Counted != (d.query.Total && a.Exact && value.Method != "cells" && value.Method != "permutation") ||
		value.Counted && value.Within != within || d.query.Total && a.Total != total {
		t.Errorf("%s: %d within and %d pass, want %d and %d: %+v by %+v", engine, value.Within, a.Total, within, total, d.query, value)
	}
}

// compareSome checks hits that need not be all: each has its value, and they are in order.
func (w *DistanceWorld) compareSome(t *testing.T, engine string, d *distanceQuery, a *gpuexec.Answer) {
	t.Helper()
	all, plan := *d, *d.query
	plan.K = 65536
	all.query = &plan
	found, _ := w.flat(t, &all)
	at := 0
	for _, h := range a.Hits {
		for at < len(found) && found[at] != h {
			at++
		}
	}
	if at == len(found) && len(a.Hits) > 0 || len(a.Hits) > d.query.K {
		t.Errorf("%s: %v are not some of %v in their order: %+v", engine, a.Hits, found, d.query)
	}
}

// sameAnswer says that two answers to a query are alike in what is promised. Exact ways are chosen by what they took lately.
func sameAnswer(a, b *distance.Answer) bool {
	same := a.Exact && b.Exact || a.Method == b.Method && a.Fraction == b.Fraction && a.Recall == b.Recall
	return same && a.Exact == b.Exact && (a.Counted == b.Counted && a.Within == b.Within)
}

// TestDistancesInTurns: a call ends when its allowance is spent, with some queries done; the others, asked again, get the same answers in the end.
func TestDistancesInTurns(t *testing.T) {
	rng := seeded.Rand(t)
	w := RandomDistanceWorld(t, rng, raced.Of(6_000, 1_000), false)
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]*distanceQuery, raced.Of(120, 30))
	plans := make([]gpuexec.Plan, len(batch))
	for i := range batch {
		batch[i] = randomDistance(t, rng, w, queries)
		plans[i] = batch[i].plan
	}
	for _, e := range engines(t)[:2] {
		s := LoadOn(t, e, w.Index)
		whole := make([]gpuexec.Answer, len(plans))
		if err := s.Search(t.Context(), plans, whole, nil); err != nil {
			t.Fatal(err)
		}
		left, calls, most := slices.Clone(plans), 0, 0
		places := make([]int, len(left))
		for i := range places {
			places[i] = i
		}
		for len(left) > 0 {
			answers := make([]gpuexec.Answer, len(left))
			if err := s.Search(gpuexec.WithPace(t.Context(), gpuexec.Pace{Call: time.Microsecond}), left, answers, nil); err != nil {
				t.Fatal(err)
			}
			calls++
			most = max(most, len(left))
			var later []gpuexec.Plan
			var where []int
			for i, a := range answers {
				if a.Unfinished != nil {
					left[i].Unfinished = a.Unfinished
					later, where = append(later, left[i]), append(where, places[i])
					continue
				}
				if want := &whole[places[i]]; a.Err != nil || !slices.Equal(a.Hits, want.Hits) || !sameAnswer(a.Value.(*distance.Answer), want.Value.(*distance.Answer)) {
					t.Fatalf("%s: query %d in turns: %d hits, %+v, %v; want %d, %+v", e.name, places[i], len(a.Hits), a.Value, a.Err, len(want.Hits), want.Value)
				}
				if a.Rescoring <= 0 {
					t.Errorf("%s: distances took no time", e.name)
				}
			}
			if calls > 100_000 {
				t.Fatalf("%s: calls get nowhere: %d plans are left", e.name, len(left))
			}
			left, places = later, where
		}
		if calls < 3 {
			t.Errorf("%s: %d calls, so that nothing was put off", e.name, calls)
		}
	}
}

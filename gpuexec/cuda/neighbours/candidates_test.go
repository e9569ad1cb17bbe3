//go:build cuda

package neighbours

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	columns "github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// rankQuery is a random search of a world by rank vectors, or of vectors by cells.
func rankQuery(t *testing.T, rng *rand.Rand, w *enginetest.DistanceWorld, queries *index.Queries) *distance.Query {
	t.Helper()
	near, n := w.Random(rng), len(w.Places)
	if p := w.Places[rng.IntN(n)]; rng.IntN(2) == 0 && p.Vector != nil && p.Point != nil && p.Text != "" {
		near = p
	}
	r := index.Request{Near: nearest.Near{K: []int{1, 1, 3, 10, 40, n, n + 1}[rng.IntN(7)], Method: "permutation"}}
	switch rng.IntN(3) {
	case 0:
		r.Near.Fraction = 1 - rng.Float64()
	case 1:
		r.Near.Recall = 0.5 + rng.Float64()/2
	}
	switch rng.IntN(3) {
	case 0:
		r.Point, r.Near.Column = &nearest.Point{Lat: near.Point[0], Lon: near.Point[1]}, "point"
	case 1:
		r.Text, r.Near.Column = &near.Text, "text"
	case 2:
		r.Vector, r.Near.Column = near.Vector, "vector"
		if w.Metric != "hamming" && rng.IntN(2) == 0 {
			r.Near.Method, r.Near.Fraction, r.Near.Recall = "cells", 0, rng.Float64()
		}
	}
	if rng.IntN(2) == 0 {
		r.Near.Radius = new([]float64{rng.Float64() * 5, float64(rng.IntN(6))}[rng.IntN(2)])
	}
	if rng.IntN(3) == 0 {
		value := columns.StringValue(enginetest.ClassName(rng.IntN(5)))
		r.Filter = []columns.Condition{{Attr: "class", Value: &value}}
	}
	made, err := queries.Plan(new(postings.MatchQuery), &r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return made.Query.(*distance.Query)
}

// TestCUDACandidates: searches by rank vectors and by cells on a device are those of one core, with all that is said of them: the same candidates, of all metrics, of points and texts,
// under both similarities, in whatever memory a batch has, alone and together.
func TestCUDACandidates(t *testing.T) {
	rng := seeded.Rand(t)
	onDevice := 0
	for round, n := range enginetest.Rounds([]int{300, 1400, 60, 5, 700, 1, 900, 150, 2200, 400}) {
		w := enginetest.RandomDistanceWorld(t, rng, n, true)
		w.Similarity, w.Permutants = []string{"rho", "footrule"}[rng.IntN(2)], []int{7, 8, 64, 65, 100, 128, 200, 255}[rng.IntN(8)]
		for i := range w.Places { // rank vectors of columns in which values are missing are the host's
			if p := &w.Places[i]; round%5 != 4 && (p.Vector == nil || p.Point == nil || p.Text == "") {
				*p = w.Random(rng)
			}
		}
		w.Build(t)
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		plans := make([]gpuexec.Plan, 8+rng.IntN(40))
		for i := range plans {
			q := rankQuery(t, rng, w, queries)
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: q, K: q.K}
		}
		want := byOneCore(t, w.Index, plans)
		for _, memory := range []int64{256 << 10, 1 << 20, 64 << 20}[round%2:] {
			e := openEngine(t, gpuexec.CUDAOptions{Untried: true, BatchMemory: memory, Workers: 2})
			if rng.IntN(2) == 0 {
				e.Device().Profile.Near.Guessed = 200
			}
			there, _ := compared(t, rng, e, w.Index, plans, want)
			t.Logf("%d objects, %s %s of %d, %s of %d, %d KiB: %d of %d queries on the device", n, w.Metric, w.Storage, w.Dims, w.Similarity, w.Permutants, memory>>10, there, len(plans))
			onDevice += there
		}
	}
	if onDevice == 0 {
		t.Error("no query went by ranks on the device")
	}
}

// TestCUDARankGuesses: limits of rank vectors that are guessed wrong, since what is looked at is unlike the rest, are not believed.
func TestCUDARankGuesses(t *testing.T) {
	rng, texts := seeded.Rand(t), make([]string, 3000)
	for i := range texts {
		letters := "abc"
		if i%4 == 0 { // of so many objects one is looked at
			letters = "xyz"
		}
		texts[i] = enginetest.RandomString(rng, letters, 12)
	}
	x := textsOf(t, texts, "index: [scan, permutation], permutation: {permutants: 40}")
	queries, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}
	plans := make([]gpuexec.Plan, 60)
	for i := range plans {
		text := enginetest.RandomString(rng, []string{"abc", "xyz"}[i%2], 12)
		r := index.Request{Text: &text, Near: nearest.Near{K: 500, Method: "permutation", Fraction: 0.2}}
		made, err := queries.Plan(new(postings.MatchQuery), &r)
		if err != nil {
			t.Fatal(err)
		}
		plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: made.Query, K: r.Near.K}
	}
	e := openEngine(t, gpuexec.CUDAOptions{Untried: true, Workers: 2})
	e.Device().Profile.Near.Guessed = 200
	compared(t, rng, e, x, plans, byOneCore(t, x, plans))
}

// compared holds searches on a device against what one core answers, together and one of them alone, and says how many were the device's, and what lay there.
func compared(t testing.TB, rng *rand.Rand, e *device.Engine, x *index.Index, plans []gpuexec.Plan, want []gpuexec.Answer) (onDevice int, form string) {
	t.Helper()
	s := enginetest.LoadOn(t, e, x)
	got, trace := make([]gpuexec.Answer, len(plans)), &gpuexec.Trace{}
	if err := s.Search(t.Context(), plans, got, trace); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		sameNearest(t, plans[i].Query.(*distance.Query), &got[i], &want[i])
	}
	at := rng.IntN(len(plans))
	if err := s.Search(t.Context(), plans[at:at+1], got[at:at+1], nil); err != nil {
		t.Fatal(err)
	}
	sameNearest(t, plans[at].Query.(*distance.Query), &got[at], &want[at])
	form = s.Capacity().Form
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return trace.Work.BytesQueries, form
}

// byOneCore is what one core answers.
func byOneCore(t testing.TB, x *index.Index, plans []gpuexec.Plan) []gpuexec.Answer {
	t.Helper()
	answers := make([]gpuexec.Answer, len(plans))
	if err := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: 1}), x).Search(t.Context(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	return answers
}

// sameNearest holds an answer by distance against one core's, with all that is said but what was expected of it.
func sameNearest(t testing.TB, q *distance.Query, got, want *gpuexec.Answer) {
	t.Helper()
	if got.Err != nil || want.Err != nil {
		t.Fatalf("%v, %v: %+v", got.Err, want.Err, q)
	}
	own, other := *got.Value.(*distance.Answer), *want.Value.(*distance.Answer)
	own.Predicted, other.Predicted, own.Why, other.Why = 0, 0, "", ""
	if !slices.Equal(got.Hits, want.Hits) || got.Exact != want.Exact || got.Total != want.Total || !reflect.DeepEqual(own, other) {
		t.Fatalf("k %d within %v, fraction %v, recall %v, %q of %v %s:\n%+v\n%v, want\n%+v\n%v", q.K, q.Most, q.Fraction, q.Recall, q.Text, q.Column.Metric, q.Column.Name, own, got.Hits, other, want.Hits)
	}
}

// TestCUDADeadlines: of queries that are asked together those whose time is over are told so, wherever they stand, and the others are answered.
func TestCUDADeadlines(t *testing.T) {
	e, rng := open(t, gpuexec.CUDAOptions{BatchMemory: 4 << 20, InFlight: 1}), seeded.Rand(t)
	w := &enginetest.DistanceWorld{Metric: "l2", Storage: "f32", Dims: 3, Paths: true}
	for range 600 {
		w.Places = append(w.Places, w.Random(rng))
	}
	w.Build(t)
	m, err := e.Loaders[distance.FamilyName].Load(t.Context(), e.Host, run.Whole(w.Index), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, near := range []nearest.Near{{K: 3, Method: "scan"}, {K: 3, Method: "cells", Recall: 0.5}, {K: 3, Method: "permutation", Fraction: 0.1}} {
		requests := make([]*index.Request, 40)
		for i := range requests {
			near.Column = "vector"
			requests[i] = &index.Request{Vector: w.Random(rng).Vector, Near: near}
		}
		jobs := make([]*run.Job, len(requests))
		for i, p := range plansOf(t, w.Index, requests) {
			jobs[i] = &run.Job{Query: p.Query, K: p.K}
			if i%3 == 1 {
				jobs[i].Deadline = time.Now().Add(-time.Second)
			}
		}
		if err := m.Match(t.Context(), jobs, nil); err != nil {
			t.Fatal(err)
		}
		for i, job := range jobs {
			if late := i%3 == 1; late != errors.Is(job.Err, gpuexec.ErrDeadline) || !late && (job.Err != nil || len(job.Hits) != 3) {
				t.Fatalf("%s: query %d, late %v, ends with %v and %d hits", near.Method, i, late, job.Err, len(job.Hits))
			}
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

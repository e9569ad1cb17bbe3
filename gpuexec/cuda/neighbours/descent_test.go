//go:build cuda

package neighbours_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// treeQuery is a random search of a world by a tree: of vectors or points, with k around the number of objects and a radius that is a distance that occurs.
func treeQuery(t *testing.T, rng *rand.Rand, w *enginetest.DistanceWorld, queries *index.Queries) (*distance.Query, int) {
	t.Helper()
	near, n := w.Random(rng), len(w.Places)
	if p := w.Places[rng.IntN(n)]; rng.IntN(2) == 0 && p.Vector != nil && p.Point != nil {
		near = p
	}
	r := index.Request{Total: rng.IntN(3) == 0, Near: nearest.Near{K: []int{1, 1, 3, 10, n, n + 1, 65_536}[rng.IntN(7)], Method: "tree"}}
	name := "vector"
	if rng.IntN(3) == 0 {
		name, r.Point = "point", &nearest.Point{Lat: near.Point[0], Lon: near.Point[1]}
	} else {
		r.Vector = near.Vector
	}
	if c := w.Index.Distances().Column(name); rng.IntN(2) == 0 {
		radius := rng.Float64() * 4
		space, err := c.Space()
		if err != nil {
			t.Fatal(err)
		}
		if id := rng.Uint32N(uint32(n)); rng.IntN(4) > 0 && c.Has(id) {
			radius = c.Metric.Report(space.Of(id).Value(rng.Uint32N(uint32(n))))
		}
		r.Near.Radius = &radius
		if r.Near.CountOnly = rng.IntN(5) == 0; r.Near.CountOnly {
			r.Near.K = 0
		}
	}
	class := -1
	if rng.IntN(3) == 0 {
		class = rng.IntN(5)
		value := column.StringValue(enginetest.ClassName(class))
		r.Filter = []column.Condition{{Attr: "class", Value: &value}}
	}
	made, err := queries.Plan(new(postings.MatchQuery), &r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return made.Query.(*distance.Query), class
}

// TestCUDADescents: searches by trees on a device are the flat definition's, to the bit: of all metrics, with boxes and pivots, with buffers of any size, alone and together.
func TestCUDADescents(t *testing.T) {
	rng := seeded.Rand(t)
	onDevice := 0
	for round, n := range enginetest.Rounds([]int{1, 400, 60, 1500, 300, 5, 700, 90, 200, 1000}) {
		w := enginetest.RandomDistanceWorld(t, rng, n, true)
		if round%4 == 1 { // nodes and leaves of objects that are all alike
			for i := range w.Places {
				w.Places[i] = w.Places[i%2]
			}
			w.Build(t)
		}
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]*distance.Query, 1+rng.IntN(40))
		classes := make([]int, len(batch))
		plans := make([]gpuexec.Plan, len(batch))
		for i := range batch {
			batch[i], classes[i] = treeQuery(t, rng, w, queries)
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: batch[i], K: max(1, batch[i].K)}
		}
		for _, memory := range []int64{256 << 10, 1 << 20, 64 << 20}[round%2:] {
			e := openDevice(t, gpuexec.CUDAOptions{Untried: true, BatchMemory: memory, Workers: 2})
			s := enginetest.LoadOn(t, e, w.Index)
			answers, trace := make([]gpuexec.Answer, len(plans)), &gpuexec.Trace{}
			if err := s.Search(t.Context(), plans, answers, trace); err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				compareFlat(t, w, batch[i], classes[i], &answers[i])
			}
			alone, at := make([]gpuexec.Answer, 1), rng.IntN(len(plans))
			if err := s.Search(t.Context(), plans[at:at+1], alone, nil); err != nil {
				t.Fatal(err)
			}
			compareFlat(t, w, batch[at], classes[at], &alone[0])
			form := s.Capacity().Form
			t.Logf("%d objects, %s %s of %d, %d KiB: %d of %d queries on the device (%v)", n, w.Metric, w.Storage, w.Dims, memory>>10, trace.Work.BytesQueries, len(plans), strings.Contains(form, "tree of"))
			onDevice += trace.Work.BytesQueries
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if onDevice == 0 {
		t.Error("no query went down a tree on the device")
	}
}

// TestCUDADescentsOfTexts: searches by trees of texts on a device are the flat definition's, to the bit: of narrow and wide symbols, of texts for one lane, two and four, with
// buffers of any size, alone and together. Texts that are longer, and patterns that are, are the host's.
func TestCUDADescentsOfTexts(t *testing.T) {
	rng, wide := seeded.Rand(t), wideAlphabet()
	onDevice := make(map[int]int)
	longests := []int{9, 64, 65, 128, 129, 256, 257}
	for round, n := range enginetest.Rounds([]int{300, 60, 900, 400, 90, 1300, 200, 1, 700, 2}) {
		longest, alphabet := longests[round%len(longests)], []string{"ab", "abä", wide, "abcdefghijklmnopqrstuvwxyz"}[rng.IntN(4)]
		w := textWorld(t, rng, n, alphabet, longest)
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]*distance.Query, 8+rng.IntN(33)) // so many that some are the device's
		classes := make([]int, len(batch))
		plans := make([]gpuexec.Plan, len(batch))
		for i := range batch {
			batch[i], classes[i] = textQuery(t, rng, w, queries, alphabet, "tree")
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: batch[i], K: max(1, batch[i].K)}
		}
		for _, memory := range []int64{256 << 10, 1 << 20, 64 << 20}[round%2:] {
			e := openDevice(t, gpuexec.CUDAOptions{Untried: true, BatchMemory: memory, Workers: 2})
			s := enginetest.LoadOn(t, e, w.Index)
			answers, trace := make([]gpuexec.Answer, len(plans)), &gpuexec.Trace{}
			if err := s.Search(t.Context(), plans, answers, trace); err != nil {
				t.Fatal(err)
			}
			for i := range answers {
				compareFlat(t, w, batch[i], classes[i], &answers[i])
			}
			alone, at := make([]gpuexec.Answer, 1), rng.IntN(len(plans))
			if err := s.Search(t.Context(), plans[at:at+1], alone, nil); err != nil {
				t.Fatal(err)
			}
			compareFlat(t, w, batch[at], classes[at], &alone[0])
			form := s.Capacity().Form
			t.Logf("%d texts of up to %d of %d letters, %d KiB: %d of %d queries on the device", n, longest, len([]rune(alphabet)), memory>>10, trace.Work.BytesQueries, len(plans))
			if here := strings.Contains(form, "tree of text"); here && longest > 256 || !here && longest <= 256 && n > 5 && memory > 1<<20 {
				t.Errorf("texts of up to %d letters lie there as %q", longest, form)
			}
			onDevice[longest] += trace.Work.BytesQueries
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, longest := range longests[:min(len(longests)-1, len(enginetest.Rounds(longests)))] {
		if onDevice[longest] == 0 {
			t.Errorf("round %d: no query went down a tree of texts of up to %d letters on the device", i, longest)
		}
	}
}

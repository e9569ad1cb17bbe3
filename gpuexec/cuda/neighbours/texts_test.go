//go:build cuda

package neighbours_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// textLengths are those at which kernels change what they do: blocks of 64 rows, words of four symbols, and what is left to the host.
func textLength(rng *rand.Rand) int {
	switch rng.IntN(40) {
	case 0:
		return 2045 + rng.IntN(8)
	case 1:
		return 4092 + rng.IntN(8)
	case 2, 3:
		return []int{127, 128, 129, 257, 300, 513}[rng.IntN(6)]
	}
	return []int{0, 1, 2 + rng.IntN(9), 2 + rng.IntN(9), 2 + rng.IntN(9), 31 + rng.IntN(3), 63 + rng.IntN(3)}[rng.IntN(7)]
}

// textWorld is a world of n texts of an alphabet, with many that are near to each other, repetitions, and objects without one. longest: of a text, 0: any. Where there
// is one, the columns have all access paths.
func textWorld(t *testing.T, rng *rand.Rand, n int, alphabet string, longest int) *enginetest.DistanceWorld {
	t.Helper()
	w := &enginetest.DistanceWorld{Metric: "l2", Storage: "f32", Dims: 1, Paths: longest > 0}
	for i := range n {
		p := enginetest.Place{Vector: []float32{1}, Point: []float64{0, 0}, Text: enginetest.RandomString(rng, alphabet, textLength(rng)), Class: rng.IntN(5)}
		if i > 0 && rng.IntN(2) == 0 {
			p.Text = edited(rng, w.Places[rng.IntN(i)].Text, alphabet)
		}
		if runes := []rune(p.Text); longest > 0 && len(runes) > longest {
			p.Text = string(runes[:longest])
		}
		w.Places = append(w.Places, p)
	}
	w.Build(t)
	return w
}

// edited is a text with a few edits.
func edited(rng *rand.Rand, text, alphabet string) string {
	runes, letters := []rune(text), []rune(alphabet)
	for range rng.IntN(4) {
		at := rng.IntN(len(runes) + 1)
		switch {
		case rng.IntN(3) == 0:
			runes = slices.Insert(runes, at, letters[rng.IntN(len(letters))])
		case at < len(runes) && rng.IntN(2) == 0:
			runes = slices.Delete(runes, at, at+1)
		case at < len(runes):
			runes[at] = letters[rng.IntN(len(letters))]
		}
	}
	return string(runes)
}

// textQuery is a random search of a world: near to a text of it or to none, with k around the number of objects, and a radius that is a distance that occurs.
func textQuery(t *testing.T, rng *rand.Rand, w *enginetest.DistanceWorld, queries *index.Queries, alphabet, method string) (*distance.Query, int) {
	t.Helper()
	text := enginetest.RandomString(rng, alphabet+"#", textLength(rng))
	if rng.IntN(3) > 0 {
		text = edited(rng, w.Places[rng.IntN(len(w.Places))].Text, alphabet)
	}
	n := len(w.Places)
	r := index.Request{Text: &text, Total: rng.IntN(3) == 0, Near: nearest.Near{K: []int{1, 2, 10, n, n + 1, 65_536}[rng.IntN(6)], Method: method, Column: "text"}}
	if rng.IntN(2) == 0 {
		radius := []float64{0, float64(rng.IntN(6)), float64(rng.IntN(70)), 5000, 1.5}[rng.IntN(5)]
		r.Near.Radius = &radius
		if r.Near.CountOnly = rng.IntN(4) == 0; r.Near.CountOnly {
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

// compareFlat holds an answer against the flat definition.
func compareFlat(t *testing.T, w *enginetest.DistanceWorld, q *distance.Query, class int, a *gpuexec.Answer) {
	t.Helper()
	space, err := q.Column.Space()
	if err != nil {
		t.Fatal(err)
	}
	asker, err := q.Asker(space)
	if err != nil {
		t.Fatal(err)
	}
	want, within := flatscan.Nearest(asker, uint32(len(w.Places)), q.Want(), func(id uint32) bool {
		return q.Column.Has(id) && (class < 0 || w.Places[id].Class == class)
	})
	value, ok := a.Value.(*distance.Answer)
	if a.Err != nil || !ok || !a.Exact || !value.Exact {
		t.Fatalf("%v, %+v: %+v", a.Err, a.Value, q)
	}
	if !slices.EqualFunc(a.Hits, want, func(a gpuexec.Hit, b metric.Hit) bool {
		return a.ID == b.ID && math.Float64bits(a.Score) == math.Float64bits(b.Value)
	}) {
		t.Fatalf("k %d within %v (%q, class %d, %s): hits are %v, want %v", q.K, q.Most, q.Text, class, value.Method, a.Hits, want)
	}
	if value.Counted != q.Total || value.Counted && value.Within != within {
		t.Fatalf("k %d within %v (%q, class %d): %d within (%v), want %d (%v): %+v", q.K, q.Most, q.Text, class, value.Within, value.Counted, within, q.Total, value)
	}
}

// wideAlphabet has more letters than one byte tells apart.
func wideAlphabet() string {
	wide := make([]rune, 600)
	for i := range wide {
		wide[i] = rune(0x4e00 + i)
	}
	return string(wide)
}

// TestCUDATexts: searches by edit distance on a device are the flat definition's, to the bit: of narrow and wide symbols, in whatever memory a batch has, alone and together.
func TestCUDATexts(t *testing.T) {
	rng, wide := seeded.Rand(t), wideAlphabet()
	onDevice := 0 // in all: in a world with a text that is too long for a device nearly all may be the host's
	for round, n := range enginetest.Rounds([]int{1, 2500, 60, 300, 1100, 5, 400, 900}) {
		alphabet := []string{"ab", "abä", wide, "abcdefghijklmnopqrstuvwxyz"}[rng.IntN(4)]
		if round == 0 {
			alphabet = wide
		}
		memory := []int64{1 << 20, 4 << 20, 64 << 20}[round%3]
		e := openDevice(t, gpuexec.CUDAOptions{Untried: true, BatchMemory: memory, Workers: 2})
		w := textWorld(t, rng, n, alphabet, 0)
		queries, err := index.NewQueries(w.Index)
		if err != nil {
			t.Fatal(err)
		}
		s := enginetest.LoadOn(t, e, w.Index)
		batch := make([]*distance.Query, 1+rng.IntN(30))
		classes := make([]int, len(batch))
		plans := make([]gpuexec.Plan, len(batch))
		for i := range batch {
			batch[i], classes[i] = textQuery(t, rng, w, queries, alphabet, "scan")
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: batch[i], K: max(1, batch[i].K)}
		}
		answers, trace := make([]gpuexec.Answer, len(plans)), &gpuexec.Trace{}
		if err := s.Search(t.Context(), plans, answers, trace); err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			compareFlat(t, w, batch[i], classes[i], &answers[i])
		}
		alone := make([]gpuexec.Answer, 1)
		at := rng.IntN(len(plans))
		if err := s.Search(t.Context(), plans[at:at+1], alone, nil); err != nil {
			t.Fatal(err)
		}
		compareFlat(t, w, batch[at], classes[at], &alone[0])
		form := s.Capacity().Form
		t.Logf("%d texts of %d letters, %d MiB: %d of %d queries on the device (%s)", n, len([]rune(alphabet)), memory>>20, trace.Work.BytesQueries, len(plans), form)
		here := strings.Contains(form, "texts by length") // not where the only object has none
		if !here && n > 5 {
			t.Errorf("no text is on the device: %s", form)
		}
		onDevice += trace.Work.BytesQueries
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if onDevice == 0 {
		t.Error("the device has answered no query")
	}
}

// TestCUDATextsByThemselves: scans of texts, and their trees, pay on a device, so nobody has to ask for them.
func TestCUDATextsByThemselves(t *testing.T) {
	rng := seeded.Rand(t)
	w := textWorld(t, rng, 50, "ab", 64)
	s := enginetest.LoadOn(t, openDevice(t, gpuexec.CUDAOptions{BatchMemory: 1 << 20, Workers: 2}), w.Index)
	if form := s.Capacity().Form; !strings.Contains(form, "texts by length") || !strings.Contains(form, "tree of text") {
		t.Errorf("on the device lie: %s", form)
	}
	if form := enginetest.LoadOn(t, cpu.New(gpuexec.CPUOptions{Workers: 1}), w.Index).Capacity().Form; form == "" {
		t.Error("no form")
	}
}

// TestCUDAManyWithin: of those who want all within a radius some have more hits than there is room for at first, by a scan and by a tree, and these get all of them too.
func TestCUDAManyWithin(t *testing.T) {
	rng, places := seeded.Rand(t), profile.Of("").Near.Places
	w := textWorld(t, rng, places*5/4, "ab", 8) // not all have one
	queries, err := index.NewQueries(w.Index)
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.LoadOn(t, openDevice(t, gpuexec.CUDAOptions{Untried: true, Workers: 2}), w.Index)
	for _, method := range []string{"scan", "tree"} {
		var batch []*distance.Query
		var plans []gpuexec.Plan
		for i := range 16 {
			text, radius := enginetest.RandomString(rng, "ab", 4+rng.IntN(4)), float64([]int{2, 8}[i%2])
			r := index.Request{Text: &text, Near: nearest.Near{K: 65_536, Method: method, Column: "text", Radius: &radius}}
			made, err := queries.Plan(new(postings.MatchQuery), &r)
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, made.Query.(*distance.Query))
			plans = append(plans, gpuexec.Plan{Family: distance.FamilyName, Query: made.Query, K: batch[i].K})
		}
		answers, trace, more := make([]gpuexec.Answer, len(plans)), &gpuexec.Trace{}, 0
		if err := s.Search(t.Context(), plans, answers, trace); err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			compareFlat(t, w, batch[i], -1, &answers[i])
			if len(answers[i].Hits) > places {
				more++
			}
		}
		if more == 0 || more == len(answers) || trace.Work.BytesQueries < len(plans) {
			t.Errorf("%s: of %d answers %d have more than %d hits, and %d were the device's", method, len(answers), more, places, trace.Work.BytesQueries)
		}
	}
}

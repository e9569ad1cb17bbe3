//go:build cuda

package neighbours

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	columns "github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// textsIn is an index of texts that differ little from each other, in groups, with a class each, whose n-grams lie in a layout. Every other one is of rare symbols, and one of another tile
// is like it: so that their n-grams are rare.
func textsIn(t *testing.T, rng *rand.Rand, n int, layout string) (*index.Index, []string) {
	t.Helper()
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "{name: texts, columns: [{name: text, type: string, layout: %s}, {name: class, type: category}]}", layout))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var like string
	if err := objects.AddAll(t.Context(), index.Source{Next: func(r *schema.Record) error {
		if len(texts) == n {
			return io.EOF
		}
		if len(texts)%10 == 0 {
			like = enginetest.RandomString(rng, "abcä", 1+rng.IntN(60))
		}
		if i := len(texts); i%2 == 0 {
			texts = append(texts, spoilt(rng, like))
		} else {
			rare, own := make([]rune, 12), rand.New(rand.NewPCG(uint64(i)%60_000, 9))
			for j := range rare {
				rare[j] = rune(0x4e00 + own.IntN(20_000))
			}
			texts = append(texts, string(rare))
		}
		r.Cells = []schema.Cell{{Values: texts[len(texts)-1:]}, {Values: []string{enginetest.ClassName(rng.IntN(5))}}}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	return enginetest.OpenBuilt(t, objects.Builder), texts
}

// spoilt changes up to three symbols of a text.
func spoilt(rng *rand.Rand, text string) string {
	runes := []rune(text)
	for range rng.IntN(4) {
		at := rng.IntN(len(runes))
		switch rng.IntN(3) {
		case 0:
			runes[at] = rune("abcdäx"[rng.IntN(4)])
		case 1:
			if len(runes) > 1 {
				runes = append(runes[:at:at], runes[at+1:]...)
			}
		case 2:
			runes = append(runes[:at:at], append([]rune{'b'}, runes[at:]...)...)
		}
	}
	return string(runes)
}

// TestCUDAGrams: queries within a radius whose n-grams are counted on a device are those of one core, with all that is said of them: in any memory, with filters and without, alone and
// together, those that find more than a list has room for, too.
func TestCUDAGrams(t *testing.T) {
	rng := seeded.Rand(t)
	onDevice := 0
	sizes := []int{66_000, 300, 2000, 60, 1, 900, 4000} // the first is of two tiles
	if !testing.Short() {
		sizes = append(sizes, 140_000)
	}
	for _, n := range enginetest.Rounds(sizes) {
		layout := []string{"postings", "rare"}[rng.IntN(2)]
		x, texts := textsIn(t, rng, n, layout)
		queries, err := index.NewQueries(x)
		if err != nil {
			t.Fatal(err)
		}
		plans := make([]gpuexec.Plan, 30+rng.IntN(30))
		for i := range plans {
			near := spoilt(rng, texts[max(rng.IntN(n), rng.IntN(2)*(n-1-rng.IntN(min(n, 1000))))])
			r := index.Request{Text: &near, Near: nearest.Near{K: []int{1, 3, 10, min(n, 5000), 0}[rng.IntN(5)], Column: "text", Radius: new(float64(rng.IntN(4)))}}
			if r.Near.K == 0 {
				r.Near.CountOnly = true
			}
			r.Total = rng.IntN(3) == 0
			if rng.IntN(3) == 0 {
				value := columns.StringValue(enginetest.ClassName(rng.IntN(5)))
				r.Filter = []columns.Condition{{Attr: "class", Value: &value}}
			}
			var q *distance.Query
			for { // counts prove nothing of a large radius
				made, err := queries.Plan(new(postings.MatchQuery), &r)
				if err != nil {
					t.Fatalf("%+v: %v", r, err)
				}
				if q = made.Query.(*distance.Query); q.Column.Theta(q) >= 1 {
					break
				}
				*r.Near.Radius--
			}
			q.Method = distance.Ngram
			plans[i] = gpuexec.Plan{Family: distance.FamilyName, Query: q, K: max(1, q.K)}
		}
		want := byOneCore(t, x, plans)
		for _, memory := range []int64{1 << 20, 64 << 20} {
			e := openEngine(t, gpuexec.CUDAOptions{Untried: true, BatchMemory: memory, Workers: 2})
			if memory > 1<<20 {
				e.Device().Profile.Near.List = []int{4, 4096}[rng.IntN(2)]
			}
			there, form := compared(t, rng, e, x, plans, want)
			t.Logf("%d objects, %s, %d KiB: %d of %d queries on the device; %s", n, layout, memory>>10, there, len(plans), form)
			onDevice += there
		}
	}
	if onDevice == 0 {
		t.Error("no n-grams were counted on the device")
	}
}

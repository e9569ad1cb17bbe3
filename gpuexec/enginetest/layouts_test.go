package enginetest

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestLayoutsAgree builds the same collection in postings, in the other layouts wherever they can hold it, and mixed: the
// answers are the same, and so are the postings they say they scanned.
func TestLayoutsAgree(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	const tile = store.TileObjects
	for _, n := range Rounds([]int{1, 255, 256, 257, 1023, 1024, 1025, 3000, tile - 1, tile, tile + 1, 2*tile + 1500}) {
		w := RandomWorld(t, rng, n)
		usable := make([]bool, len(w.Vocabulary)) // as texts
		for a := range usable {
			usable[a] = w.numbers(a) == nil && w.renumber(a)
		}
		var plans []gpuexec.Plan
		for range 30 {
			plans = append(plans, w.RandomPlan(rng))
		}
		var want []gpuexec.Answer
		for round := range 5 {
			for a := range w.Layouts {
				possible := w.possible(a)
				layout := possible[rng.IntN(len(possible))]
				switch {
				case round == 0:
					layout = schema.LayoutPostings
				case round == 1:
					layout = schema.LayoutRare
				case round == 2 && slices.Contains(possible, schema.LayoutSliced):
					layout = schema.LayoutSliced
				}
				if layout == schema.LayoutRare && !usable[a] {
					layout = schema.LayoutPostings
				}
				w.Layouts[a] = layout
			}
			w.Build(t)
			for a := range w.Layouts {
				if got := w.Index.Attributes()[a].Layout; got != w.Layouts[a] {
					t.Fatalf("attribute %d is in layout %v, want %v", a, got, w.Layouts[a])
				}
			}
			e := all[rng.IntN(len(all))]
			if round == 0 {
				e = all[0] // which counts all
			}
			s := LoadOn(t, e, w.Index)
			got := Search(t, s, plans)
			closeSearcher(t, s)
			if round == 0 {
				want = got
				CheckAnswers(t, w, plans, want)
			}
			for i := range got {
				if !SameHits(&got[i], &want[i]) || e.countsAll && got[i].Units != want[i].Units {
					t.Fatalf("%d objects, plan %d in layouts %v:\ngot  %d hits of %d postings\nwant %d of %d",
						n, i, w.Layouts, len(got[i].Hits), got[i].Units, len(want[i].Hits), want[i].Units)
				}
			}
		}
	}
}

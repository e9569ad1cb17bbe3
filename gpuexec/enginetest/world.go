// Package enginetest is what the tests of engines are made of: random collections with their answers by definition, collections
// of data sets, and comparisons. It knows engines by their contract only. Its own tests are those that every engine must pass.
package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// Rounds is how much of a long test runs: all of it, or the first few where the race detector makes it ten times slower.
func Rounds[T any](all []T) []T {
	return raced.Of(all, all[:(len(all)+9)/10])
}

// World is a random collection: the plain objects, from which match counts are computed naively, and the index that
// was built of them.
type World struct {
	Vocabulary []uint32        // keywords of each attribute
	Objects    [][][]uint32    // by object, by attribute: keywords, with repeats
	Layouts    []schema.Layout // by attribute; nil: the builder chooses
	Numbers    [][][]float64   // by attribute, by object: the values whose buckets are the keywords; nil unless the attribute is one of numbers
	Index      *index.Index

	stored storedNumbers // of Stored
}

var RowsSchema = []byte("name: test\nkind: rows\ncolumns:\n- {name: a, type: category}\n")

// RandomWorld makes a collection of n objects whose counts collide often: few attributes, skewed keywords, objects
// without any, objects that are equal, repeats.
func RandomWorld(t testing.TB, rng *rand.Rand, n int) *World {
	w := &World{}
	attrs := 1 + rng.IntN(5)
	for range attrs {
		w.Vocabulary = append(w.Vocabulary, uint32(1+rng.IntN([]int{1, 3, 40, 400}[rng.IntN(4)])))
	}
	shape := rng.IntN(4) // 0: at most one keyword per attribute, 1: some repeats, 2: all objects equal, 3: mostly empty
	for id := range n {
		object := make([][]uint32, attrs)
		for a, v := range w.Vocabulary {
			keywords := 1
			switch {
			case shape == 2 && id > 0:
				object[a] = w.Objects[0][a]
				continue
			case shape == 1:
				keywords = rng.IntN(4)
			case shape == 3 && rng.IntN(10) > 0 || rng.IntN(8) == 0:
				keywords = 0
			}
			for range keywords {
				object[a] = append(object[a], min(uint32(rng.IntN(int(v))), uint32(rng.IntN(int(v)))))
			}
		}
		w.Objects = append(w.Objects, object)
	}
	w.chooseNumbers(rng)
	w.chooseLayouts(rng)
	w.Build(t)
	return w
}

// chooseLayouts chooses a layout for each attribute, of those that can hold it.
func (w *World) chooseLayouts(rng *rand.Rand) {
	w.Layouts = make([]schema.Layout, len(w.Vocabulary))
	for a := range w.Layouts {
		possible := w.possible(a)
		layout := possible[rng.IntN(len(possible))]
		if layout == schema.LayoutRare && !w.renumber(a) {
			layout = schema.LayoutPostings
		}
		w.Layouts[a] = layout
	}
}

// layout is the name of an attribute's layout; the builder chooses where the world does not say.
func (w *World) layout(a int) string {
	if w.Layouts == nil {
		return "auto"
	}
	return w.Layouts[a].String()
}

// possible are the layouts that can hold an attribute.
func (w *World) possible(a int) []schema.Layout {
	layouts := []schema.Layout{schema.LayoutPostings}
	if w.numbers(a) == nil {
		layouts = append(layouts, schema.LayoutRare)
	}
	for _, object := range w.Objects {
		if len(object[a]) > 1 {
			return layouts
		}
	}
	return append(layouts, schema.LayoutSliced)
}

// renumber numbers the keywords of an attribute that occur, and drops the others, as an attribute of texts does. It
// reports whether any occurs.
func (w *World) renumber(a int) bool {
	number := make([]uint32, w.Vocabulary[a])
	for _, object := range w.Objects {
		for _, kw := range object[a] {
			number[kw] = 1
		}
	}
	next := uint32(0)
	for kw, occurs := range number {
		number[kw] = next
		next += occurs
	}
	if next == 0 {
		return false
	}
	w.Vocabulary[a] = next
	for _, object := range w.Objects {
		own := slices.Clone(object[a]) // objects may share theirs
		for i, kw := range own {
			own[i] = number[kw]
		}
		object[a] = own
	}
	return true
}

// Build makes the index. Attributes in LayoutRare are texts, the others ordinals, some of whose keywords may not occur.
func (w *World) Build(t testing.TB) {
	t.Helper()
	spec, err := index.Builtin().ParseSchema(RowsSchema)
	if err != nil {
		t.Fatal(err)
	}
	var specs []schema.AttributeSpec
	for a, v := range w.Vocabulary {
		spec := schema.AttributeSpec{Name: "a" + strconv.Itoa(a), Type: schema.Ordinal, Keywords: v, Layout: w.layout(a)}
		if spec.Layout == "rare" {
			spec.Type, spec.Keywords = schema.Text, 0
		}
		if w.numbers(a) != nil {
			spec.Type, spec.Keywords, spec.Buckets = schema.Number, 0, int(v)
		}
		specs = append(specs, spec)
	}
	b, err := onebyone.NewBuilder(spec, specs, index.BuilderOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	for id, object := range w.Objects {
		for a, keywords := range object {
			if w.numbers(a) != nil {
				for _, v := range w.Numbers[a][id] {
					if err := b.AddNumber(a, v); err != nil {
						t.Fatal(err)
					}
				}
				continue
			}
			for _, kw := range keywords {
				if w.layout(a) == "rare" {
					b.AddString(a, fmt.Sprintf("%06d", kw))
				} else if err := b.AddOrdinal(a, kw); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	w.Index = OpenBuilt(t, b.Builder)
	w.takeBuckets()
}

// OpenBuilt opens the index of a builder, in memory.
func OpenBuilt(t testing.TB, b *index.Builder) *index.Index {
	t.Helper()
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// LoadOn makes an index resident on an engine.
func LoadOn(t testing.TB, e gpuexec.Engine, x gpuexec.Source) gpuexec.Searcher {
	t.Helper()
	s, err := e.Load(context.Background(), x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// AddRandomItem adds an item: a value, a range, a set, the whole attribute or nothing.
func (w *World) AddRandomItem(rng *rand.Rand, q *postings.MatchQuery, weight uint32) {
	a := rng.IntN(len(w.Vocabulary))
	v := w.Vocabulary[a]
	q.StartItem(uint32(a), weight)
	switch rng.IntN(6) {
	case 0: // nothing
	case 1:
		q.AddSpan(0, v)
	case 2:
		lo := uint32(rng.IntN(int(v)))
		q.AddSpan(lo, lo+uint32(rng.IntN(int(v-lo)))+1)
	case 3: // a set
		for kw := range v {
			if rng.IntN(3) == 0 {
				q.AddSpan(kw, kw+1)
			}
		}
	default:
		kw := min(uint32(rng.IntN(int(v))), uint32(rng.IntN(int(v))))
		q.AddSpan(kw, kw+1)
	}
}

// RandomPlan makes a plan of up to a dozen items, some of them repeated, with weights that call for counters of
// every width.
func (w *World) RandomPlan(rng *rand.Rand) gpuexec.Plan {
	var plan gpuexec.Plan
	m := &plan
	Query(m) // also of no item
	heaviest := []int{1, 2, 30, 4000, postings.MaxWeight}[rng.IntN(5)]
	for range rng.IntN(12) {
		w.AddRandomItem(rng, Query(m), uint32(1+rng.IntN(heaviest)))
		if rng.IntN(5) == 0 {
			Query(m).Items = append(Query(m).Items, Query(m).Items[rng.IntN(len(Query(m).Items))])
		}
	}
	n := len(w.Objects)
	m.K = min(gpuexec.MaxK, []int{1, 2, 1 + rng.IntN(10), 1 + rng.IntN(200), max(1, n-1), max(1, n), n + 1, 3*n + 7}[rng.IntN(8)])
	if rng.IntN(3) == 0 {
		m.MinCount = uint32(rng.IntN(3 * heaviest))
	}
	return plan
}

// Counts computes the match counts of all objects by the definition.
func (w *World) Counts(q *postings.MatchQuery) []uint64 {
	counts := make([]uint64, len(w.Objects))
	for _, item := range q.Items {
		contained := make([]bool, w.Vocabulary[item.Attr])
		for _, span := range q.ItemSpans(item) {
			for kw := span.Lo; kw < span.Hi; kw++ {
				contained[kw] = true
			}
		}
		for id, object := range w.Objects {
			for _, kw := range object[item.Attr] {
				if contained[kw] {
					counts[id] += uint64(item.Weight)
				}
			}
		}
	}
	return counts
}

// Search is the answer by the definition: all objects sorted.
func (w *World) Search(m *gpuexec.Plan) (hits []gpuexec.Hit, mck uint32) {
	_, only, _ := Query(m).Filtering()
	for id, count := range w.Counts(Query(m)) {
		if (count > 0 && count >= uint64(m.MinCount) || only) && w.Passes(Query(m).Filter, id) {
			hits = append(hits, gpuexec.Hit{ID: uint32(id), Count: uint32(count)})
		}
	}
	slices.SortFunc(hits, func(a, b gpuexec.Hit) int {
		if a.Count != b.Count {
			if a.Count > b.Count {
				return -1
			}
			return 1
		}
		return int(a.ID) - int(b.ID)
	})
	hits = hits[:min(len(hits), m.K)]
	if len(hits) == m.K {
		mck = hits[m.K-1].Count
	}
	return hits, mck
}

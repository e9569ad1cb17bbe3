package enginetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/naive"
)

// numbers are the values of an attribute of numbers.
func (w *World) numbers(a int) [][]float64 {
	if w.Numbers == nil {
		return nil
	}
	return w.Numbers[a]
}

// chooseNumbers makes some attributes ones of numbers, with about as many values as they had keywords or with many more.
func (w *World) chooseNumbers(rng *rand.Rand) {
	w.Numbers = make([][][]float64, len(w.Vocabulary))
	for a := range w.Vocabulary {
		some := slices.ContainsFunc(w.Objects, func(object [][]uint32) bool { return len(object[a]) > 0 })
		if rng.IntN(3) > 0 || !some {
			continue
		}
		spread := float64(rng.IntN(2))
		numbers := make([][]float64, len(w.Objects))
		for id, object := range w.Objects {
			for _, kw := range object[a] {
				numbers[id] = append(numbers[id], float64(kw)/4+spread*math.Round(8*rng.NormFloat64())/16)
			}
		}
		w.Numbers[a] = numbers
	}
}

// takeBuckets sets the keywords of numbers, which the index knows.
func (w *World) takeBuckets() {
	for a := range w.Vocabulary {
		numbers := w.numbers(a)
		if numbers == nil {
			continue
		}
		attribute := w.Index.Attribute(a)
		w.Vocabulary[a] = attribute.Keywords
		for id, object := range w.Objects {
			own := make([]uint32, len(numbers[id]))
			for i, v := range numbers[id] {
				own[i], _ = attribute.Bucket(v)
			}
			object[a] = own
		}
	}
}

// storedNumbers is a filter.Stored.
type storedNumbers map[string]*numbersOf

func (s storedNumbers) StoredNumbers(attribute string) (filter.Numbers, bool) {
	n, ok := s[attribute]
	return n, ok
}

// numbersOf are the values of an attribute by object, as a filter.Numbers. Where no object has several, a tile says so.
type numbersOf struct {
	objects [][]float64
	one     bool
}

func (n *numbersOf) Numbers(object uint32) []float64 { return n.objects[object] }

func (n *numbersOf) NumbersTile(tile int) (starts []uint32, values []float64) {
	starts = []uint32{0}
	for _, own := range n.objects[tile*store.TileObjects : min((tile+1)*store.TileObjects, len(n.objects))] {
		if n.one && len(own) == 0 {
			own = []float64{math.NaN()}
		}
		values = append(values, own...)
		starts = append(starts, uint32(len(values)))
	}
	if n.one {
		return nil, values
	}
	return starts, values
}

// A storing index is one with stored values.
type storing struct {
	*index.Index
	stored filter.Stored
}

func (s storing) Structure(family string) any {
	if family == filter.StoredFamily {
		return s.stored
	}
	return s.Index.Structure(family)
}

// Source is the index with the values of its numbers.
func (w *World) Source() gpuexec.Source { return storing{w.Index, w.Stored()} }

// Stored are the values of the world's numbers, in both of their forms.
func (w *World) Stored() filter.Stored {
	if w.stored != nil {
		return w.stored
	}
	w.stored = make(storedNumbers)
	for a := range w.Vocabulary {
		if w.numbers(a) == nil {
			continue
		}
		several := slices.ContainsFunc(w.Numbers[a], func(values []float64) bool { return len(values) > 1 })
		w.stored["a"+strconv.Itoa(a)] = &numbersOf{w.Numbers[a], !several}
	}
	return w.stored
}

// Passes is the definition: whether an object passes a filter.
func (w *World) Passes(f *filter.Filter, id int) bool {
	return f == nil || naive.Passes(f, func(attr uint32) []uint32 { return w.Objects[id][attr] }, func(attr uint32) []float64 { return w.Numbers[attr][id] })
}

// Total is the definition of a query's total.
func (w *World) Total(q *postings.MatchQuery) (total uint64) {
	if !q.Total {
		return 0
	}
	for id := range w.Objects {
		if w.Passes(q.Filter, id) {
			total++
		}
	}
	return total
}

// RandomFilter makes a filter of up to three groups: keywords, sets, ranges, exact ranges of numbers, what everybody or nobody has, and
// what many spans ask for.
func (w *World) RandomFilter(rng *rand.Rand) *filter.Filter {
	f := &filter.Filter{}
	for range rng.IntN(4) {
		f.StartGroup(rng.IntN(3) == 0)
		for range 1 + rng.IntN(2)*rng.IntN(3) {
			w.addClause(rng, f)
		}
	}
	return f
}

func (w *World) addClause(rng *rand.Rand, f *filter.Filter) {
	a := rng.IntN(len(w.Vocabulary))
	v := w.Vocabulary[a]
	f.StartClause(uint32(a))
	attribute := w.Index.Attribute(a)
	if w.numbers(a) != nil && !attribute.Exact && rng.IntN(3) > 0 {
		w.addRange(rng, f, attribute)
		return
	}
	switch rng.IntN(7) {
	case 0: // nothing
	case 1:
		f.AddSpan(0, v)
	case 2, 3:
		lo := uint32(rng.IntN(int(v)))
		f.AddSpan(lo, lo+uint32(rng.IntN(int(v-lo)))+1)
	case 4:
		for kw := range v {
			if rng.IntN(3) == 0 {
				f.AddSpan(kw, kw+1)
			}
		}
	default:
		kw := min(uint32(rng.IntN(int(v))), uint32(rng.IntN(int(v))))
		f.AddSpan(kw, kw+1)
	}
}

// addRange asks for numbers exactly: the buckets between those of the ends by keyword, these against the values. Now and then all
// buckets are edges, or there are two ranges.
func (w *World) addRange(rng *rand.Rand, f *filter.Filter, a *postings.Attribute) {
	step := func() float64 { return math.Round(16*(a.Min+(a.Max-a.Min)*rng.Float64())) / 16 }
	ends := []float64{step(), step(), step(), step()}
	slices.Sort(ends)
	if rng.IntN(4) == 0 {
		ends[0] = math.Inf(-1)
	}
	if rng.IntN(4) == 0 {
		ends[3] = math.Inf(1)
	}
	bucket := func(v float64) uint32 {
		kw, _ := a.Bucket(v)
		return kw
	}
	first, last := bucket(ends[0]), bucket(ends[3])
	switch {
	case rng.IntN(3) == 0 && ends[1] < ends[2]:
		f.AddEdge(0, a.Keywords)
		f.AddRange(ends[0], ends[1])
		f.AddRange(ends[2], ends[3])
		return
	case first == last:
		f.AddEdge(first, last+1)
	default:
		f.AddSpan(first+1, last)
		f.AddEdge(first, first+1)
		f.AddEdge(last, last+1)
	}
	f.AddRange(ends[0], ends[3])
}

// RandomFilteredPlan is a random plan, most often with a filter: in some plans it is one of those of earlier calls, or a copy of it,
// or all that is asked.
func (w *World) RandomFilteredPlan(rng *rand.Rand, earlier *[]*filter.Filter) gpuexec.Plan {
	plan := w.RandomPlan(rng)
	q := Query(&plan)
	q.Total = rng.IntN(2) == 0
	switch {
	case rng.IntN(4) == 0:
		return plan
	case rng.IntN(4) == 0 && len(*earlier) > 0:
		q.Filter = (*earlier)[rng.IntN(len(*earlier))]
		if rng.IntN(2) == 0 {
			f := *q.Filter
			q.Filter = &f
		}
	default:
		q.Filter = w.RandomFilter(rng)
		*earlier = append(*earlier, q.Filter)
	}
	if rng.IntN(4) == 0 {
		q.Items, q.Spans = nil, nil
	}
	if _, only, _ := q.Filtering(); only {
		plan.MinCount = 0
	}
	return plan
}

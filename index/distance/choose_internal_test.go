package distance

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// path is a path that takes so many microseconds.
type path struct {
	takes  float64
	exact  bool
	counts bool
}

func (p path) Bind(metric.Space) (Searcher, error)        { return nil, nil }
func (p path) Price(On) Price                             { return func(*Asked) float64 { return 1000 * p.takes } }
func (p path) Recall() (*recall.Table, string)            { return nil, "" }
func (p path) Exact() bool                                { return p.exact }
func (p path) Counts() bool                               { return p.counts }
func (p path) Verify(context.Context, metric.Space) error { return nil }
func (p path) String() string                             { return "" }

// What decides between ways that find the same is what they take lately; what decides whether hits may be missed is the query and the index alone.
func TestChoose(t *testing.T) {
	c := &Column{Name: "v", Of: Vectors, Metric: metric.Metric{Kind: metric.L1}, Dims: 32, Storage: StorageF32, Objects: 10_000}
	c.paths = []opened{{"tree", path{50, true, true}}, {"some", path{20, false, false}}, {"permutation", path{10, false, false}}}
	c.reference = c.Planner(cost.Reference(), c.Objects, nil) // a scan of one query takes 470 us, of many 376
	slow := func(method string, by float64) func(string) float64 {
		return func(m string) float64 {
			if m == method {
				return by
			}
			return 1
		}
	}
	elsewhere := func(scan time.Duration) func(string) time.Duration {
		return func(m string) time.Duration {
			if m == Scan {
				return scan
			}
			return 0
		}
	}
	for _, x := range []struct {
		name string
		q    Query
		s    Situation
		want string
	}{
		{"the cheapest that is exact", Query{K: 10}, Situation{}, "tree"},
		{"unless somebody else scans in less", Query{K: 10}, Situation{Elsewhere: elsewhere(1)}, Scan},
		{"whatever scans took here", Query{K: 10}, Situation{Elsewhere: elsewhere(1), Factor: slow(Scan, 1e9)}, Scan},
		{"but not in more", Query{K: 10}, Situation{Elsewhere: elsewhere(time.Hour)}, "tree"},
		{"unless it took longer", Query{K: 10}, Situation{Factor: slow("tree", 10)}, Scan},
		{"by less than the difference", Query{K: 10}, Situation{Factor: slow("tree", 3)}, "tree"},
		{"for a recall the cheapest", Query{K: 10, Recall: 0.9}, Situation{}, "permutation"},
		{"whatever it took", Query{K: 10, Recall: 0.9}, Situation{Factor: slow("permutation", 100)}, "permutation"},
		{"but not where all are counted", Query{K: 10, Recall: 0.9, Total: true, Bounded: true, Most: 1}, Situation{}, "tree"},
		{"what is named", Query{K: 10, Method: Scan}, Situation{}, Scan},
		{"though a part has no paths", Query{K: 10, Method: "tree"}, Situation{Part: true}, Scan},
		{"nor of a recall", Query{K: 10, Recall: 0.9}, Situation{Part: true}, Scan},
		{"by n-grams", Query{K: 10}, Situation{Grams: 10_000}, Ngram},
		{"in a part, too", Query{K: 10, Method: Ngram}, Situation{Grams: 10_000, Part: true}, Ngram},
		{"which prove nothing", Query{K: 10, Method: Ngram}, Situation{}, Scan},
		{"of nothing that passes", Query{K: 10}, Situation{Passing: math.MaxUint32}, Scan},
	} {
		q, s := x.q, x.s
		q.Column, q.Explain = c, true
		if q.Method == "" {
			q.Method = Auto
		}
		if q.Most == 0 {
			q.Most = math.Inf(1)
		}
		if s.Passing++; s.Passing == 1 {
			s.Passing = c.Objects
		}
		got := c.reference.Choose(&q, s)
		if got.Method != x.want || got.Why == "" || len(got.Considered) == 0 || got.Predicted <= 0 {
			t.Errorf("%s: %+v, want %s", x.name, got, x.want)
		}
		q.Explain = false
		if plain := c.reference.Choose(&q, s); plain.Method != got.Method || plain.Why != "" || plain.Considered != nil {
			t.Errorf("%s: unexplained %+v", x.name, plain)
		}
	}
	hardly := &Column{Name: "v", Of: Vectors, Metric: c.Metric, Dims: 32, Storage: StorageF32, Objects: 10_000}
	hardly.paths = []opened{{"permutation", path{465, false, false}}}
	hardly.reference = hardly.Planner(cost.Reference(), hardly.Objects, nil)
	if got := hardly.reference.Choose(&Query{Column: hardly, K: 10, Method: Auto, Most: math.Inf(1), Recall: 0.9}, Situation{Passing: 10_000}); got.Method != Scan {
		t.Errorf("what takes as long as a scan, as where all are compared, is no way to miss hits: %+v", got)
	}
	gpu := &Column{Name: "v", Of: Vectors, Metric: c.Metric, Dims: 32, Storage: StorageF32, Objects: 10_000, ForGPU: true}
	for takes, want := range map[float64]string{9: "cells", 10: Scan} { // of 470 us
		gpu.paths = []opened{{"cells", path{takes, false, false}}}
		gpu.reference = gpu.Planner(cost.Reference(), gpu.Objects, nil)
		if got := gpu.reference.Choose(&Query{Column: gpu, K: 10, Method: Auto, Most: math.Inf(1), Recall: 0.9, Explain: true}, Situation{Passing: 10_000}); got.Method != want || strings.Contains(got.Why, "auto_for") != (want == Scan) {
			t.Errorf("for a GPU, which scans in less than it visits one object in 50, %s is chosen of cells of %v us: %+v", got.Method, takes, got)
		}
	}
	few := Query{Column: c, K: 10, Method: Auto, Most: math.Inf(1)}
	if all, some := c.reference.Choose(&few, Situation{Passing: 10_000}).Predicted, c.reference.asked(&few, 100); some.Want.K != 1000 || all <= 0 {
		t.Errorf("of 1 %% that pass the nearest 10 are of %d", some.Want.K)
	}
	if n := testing.AllocsPerRun(100, func() { c.reference.Choose(&few, Situation{Passing: 10_000}) }); n > 3 {
		t.Errorf("%v allocations per choice", n)
	}
}

// Queries are alike if they differ in what is not looked at alone. A field that is new is looked at, or is added here.
func TestAlike(t *testing.T) {
	q := Query{Column: &Column{Of: Vectors}, K: 3, Most: math.Inf(1), Method: Auto}
	for i := range reflect.TypeFor[Query]().NumField() {
		other := q
		field, want := reflect.ValueOf(&other).Elem().Field(i), false
		switch name := reflect.TypeFor[Query]().Field(i).Name; name {
		case "Vector", "Point", "Text", "Radius", "Filter": // numbers, and of a filter the planner is told how many pass
			want = true
		case "Column":
			other.Column = &Column{Of: Vectors}
		default:
			switch field.Kind() {
			case reflect.Bool:
				field.SetBool(!field.Bool())
			case reflect.Int:
				field.SetInt(field.Int() + 1)
			case reflect.Float64:
				field.SetFloat(0.5)
			case reflect.String:
				field.SetString("other")
			default:
				t.Errorf("field %s: nothing is known of a %v", name, field.Kind())
			}
		}
		if q.Alike(&other) != want || other.Alike(&q) != want {
			t.Errorf("with another %s queries are alike: %v", reflect.TypeFor[Query]().Field(i).Name, !want)
		}
	}
	texts := &Column{Name: "t", Of: Texts, Metric: metric.Metric{Kind: metric.Edit}, Objects: 10_000, texts: reads{}}
	p := texts.Planner(cost.Reference(), texts.Objects, nil)
	q.Column = texts
	for _, x := range []struct {
		a, b  string
		alike bool
	}{
		{"a", "b", true}, {"a", strings.Repeat("ü", 64), true}, {strings.Repeat("x", 64), strings.Repeat("x", 65), false},
		{strings.Repeat("x", 65), strings.Repeat("ü", 128), true}, {"", "a", false},
	} {
		q.Text = x.a
		other := q
		other.Text = x.b
		if q.Alike(&other) != x.alike {
			t.Errorf("texts of %d and %d bytes are alike: %v", len(x.a), len(x.b), !x.alike)
		}
		one, two := p.Choose(&q, Situation{Passing: texts.Objects}), p.Choose(&other, Situation{Passing: texts.Objects})
		if x.alike && (one.Method != two.Method || one.Predicted != two.Predicted) {
			t.Errorf("texts of %d and %d bytes are alike, and %+v is chosen for one, %+v for the other", len(x.a), len(x.b), one, two)
		}
	}
}

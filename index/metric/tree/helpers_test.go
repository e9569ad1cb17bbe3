package tree

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
)

// world is a space by its plain definition: points under a metric of vectors, or texts.
type world struct {
	m      metric.Metric
	dims   int
	points [][]float64
	texts  []string
}

func (w *world) Len() uint32           { return uint32(max(len(w.points), len(w.texts))) }
func (w *world) Metric() metric.Metric { return w.m }
func (w *world) Dims() int             { return w.dims }
func (w *world) Coordinates(i uint32, dst []float64) {
	copy(dst, w.points[i])
}

func (w *world) Of(i uint32) metric.Asker {
	if w.texts != nil {
		return &question{w: w, text: w.texts[i]}
	}
	return &question{w: w, point: w.points[i]}
}

// question is a point or a text that is asked for. It counts what it is asked.
type question struct {
	w      *world
	point  []float64
	text   string
	values int
}

func (q *question) Coordinates() []float64 { return q.point }

func (q *question) Values(lo, hi uint32, dst []float64) {
	for i := lo; i < hi; i++ {
		dst[i-lo] = q.Value(i)
	}
}

func (q *question) Value(i uint32) float64 {
	q.values++
	if q.w.texts != nil {
		return float64(edits(q.text, q.w.texts[i]))
	}
	return value(q.w.m, q.point, q.w.points[i])
}

// value is that of two points, as the metrics are defined.
func value(m metric.Metric, x, y []float64) float64 {
	var s [8]float64
	term := func(i int, v float64) { s[i%8] += v }
	total := func() float64 { return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])) }
	most := 0.0
	for i := range x {
		d := math.Abs(x[i] - y[i])
		switch m.Kind {
		case metric.L1:
			term(i, d)
		case metric.Linf:
			most = max(most, d)
		case metric.Lp:
			p := d
			for range m.P - 1 {
				p = float64(p * d)
			}
			term(i, p)
		case metric.Hamming:
			if d != 0 {
				term(i, 1)
			}
		case metric.Cosine, metric.Angular:
			term(i, float64(x[i]*y[i]))
		default:
			term(i, float64(d*d))
		}
	}
	switch m.Kind {
	case metric.Linf:
		return most
	case metric.Cosine, metric.Angular:
		norm := func(z []float64) float64 {
			n := 0.0
			for _, v := range z {
				n += float64(v * v)
			}
			return math.Sqrt(n)
		}
		return min(max(-total()/float64(norm(x)*norm(y)), -1), 1) + 0
	}
	return total() + 0
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := i
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			left, row[j+1] = row[j+1], min(left+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// metrics are all that there are.
func metrics() []metric.Metric {
	return []metric.Metric{{Kind: metric.L1}, {Kind: metric.L2}, {Kind: metric.Linf}, {Kind: metric.Lp, P: 3}, {Kind: metric.Lp, P: 8},
		{Kind: metric.Cosine}, {Kind: metric.Angular}, {Kind: metric.Hamming}, {Kind: metric.Edit}, {Kind: metric.Geo}}
}

// worldOf draws n objects, in a way in which ties, and values that are nearly alike, are common.
func worldOf(rng *rand.Rand, m metric.Metric, n int) *world {
	w := &world{m: m}
	if m.Kind == metric.Edit {
		w.texts = make([]string, n)
		letters, length := 1+rng.IntN(3), 1+rng.IntN(12)
		for i := range w.texts {
			b := make([]byte, rng.IntN(length+1))
			for j := range b {
				b[j] = 'a' + byte(rng.IntN(letters))
			}
			w.texts[i] = string(b)
		}
		return w
	}
	w.dims = []int{1, 2, 3, 7, 8, 9, 33}[rng.IntN(7)]
	if m.Kind == metric.Geo {
		w.dims = 3
	}
	way := rng.IntN(7)
	base := draw(rng, m, w.dims, 0, nil)
	w.points = make([][]float64, n)
	for i := range w.points {
		w.points[i] = draw(rng, m, w.dims, way, base)
	}
	return w
}

// draw draws a point. The elements of vectors are float32.
func draw(rng *rand.Rand, m metric.Metric, dims, way int, base []float64) []float64 {
	x := make([]float64, dims)
	for i := range x {
		switch way {
		case 0: // a grid
			x[i] = float64(rng.IntN(4))
		case 1: // all alike
			x[i] = base[i]
		case 2:
			x[i] = float64(float32(rng.NormFloat64()))
		case 3: // any size
			x[i] = float64(float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(61)-30))))
		case 4: // as near as can be
			f := float32(base[i] + 1)
			for range rng.IntN(3) {
				f = math.Nextafter32(f, 8)
			}
			x[i] = float64(f)
		case 5: // a large mean
			x[i] = float64(float32(1e6 + rng.Float64()))
		case 6: // denormal
			x[i] = float64(math.Float32frombits(uint32(rng.IntN(5))))
		}
	}
	if m.Kind == metric.Geo {
		return unit(rng, way)
	}
	if m.Kind == metric.Cosine || m.Kind == metric.Angular {
		if !slices.ContainsFunc(x, func(v float64) bool { return v != 0 }) {
			x[rng.IntN(dims)] = 1
		}
	}
	return x
}

// unit is a point on the earth.
func unit(rng *rand.Rand, way int) []float64 {
	lat, lon := float64(rng.IntN(7)-3)*30, float64(rng.IntN(12))*30
	switch {
	case way > 4:
		lat, lon = rng.Float64()*180-90, rng.Float64()*360
	case way > 2:
		lat, lon = 48+rng.Float64()*1e-9, 11+rng.Float64()*1e-9
	case way == 1:
		lat, lon = 10, 20
	}
	a, b := lat*math.Pi/180, lon*math.Pi/180
	return []float64{math.Cos(a) * math.Cos(b), math.Cos(a) * math.Sin(b), math.Sin(a)}
}

// ask is an object of a world, or something like it.
func (w *world) ask(rng *rand.Rand) *question {
	n := int(w.Len())
	if w.texts != nil {
		if n > 0 && rng.IntN(2) == 0 {
			return &question{w: w, text: w.texts[rng.IntN(n)]}
		}
		return &question{w: w, text: worldOf(rng, w.m, 1).texts[0]}
	}
	if n > 0 && rng.IntN(2) == 0 {
		return &question{w: w, point: w.points[rng.IntN(n)]}
	}
	base := draw(rng, w.m, w.dims, 0, nil)
	if n > 0 {
		base = w.points[rng.IntN(n)]
	}
	return &question{w: w, point: draw(rng, w.m, w.dims, rng.IntN(7), base)}
}

// everything answers by comparing with everything.
func everything(n uint32, ask Ask) Answer {
	var hits []metric.Hit
	for i := range n {
		if v := ask.Value(i); v <= ask.Most && (ask.Pass == nil || ask.Pass(i)) {
			hits = append(hits, metric.Hit{Value: v, ID: i})
		}
	}
	slices.SortFunc(hits, func(a, b metric.Hit) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.ID, b.ID))
	})
	a := Answer{Hits: hits[:min(len(hits), ask.K)]}
	if ask.Total {
		a.Within = uint64(len(hits))
	}
	return a
}

func (a Answer) same(b Answer) bool {
	return slices.EqualFunc(a.Hits, b.Hits, func(x, y metric.Hit) bool {
		return math.Float64bits(x.Value) == math.Float64bits(y.Value) && x.ID == y.ID
	}) && a.Within == b.Within
}

// wants draws what is wanted: k around 1 and n and above, radii of nothing and at exact values.
func wants(rng *rand.Rand, w *world, q *question) Ask {
	n := int(w.Len())
	a := Ask{Asker: q, Want: metric.Want{K: 1 + rng.IntN(5), Most: math.Inf(1)}}
	switch rng.IntN(5) {
	case 0:
		a.K = n + rng.IntN(3)
	case 1:
		a.K = math.MaxInt
	}
	switch rng.IntN(4) {
	case 0:
		a.Most = 0
	case 1:
		if n > 0 {
			a.Most = q.Value(uint32(rng.IntN(n)))
		}
	}
	if rng.IntN(3) == 0 {
		share := 1 + rng.IntN(4)
		a.Pass = func(id uint32) bool { return int(id)%share == 0 }
	}
	if rng.IntN(4) == 0 {
		a.Total = true
		a.K = rng.IntN(a.K%4 + 1)
	}
	return a
}

func mustBuild(t testing.TB, space metric.Space, o Options) *Tree {
	t.Helper()
	tree, err := Build(context.Background(), space, o)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

package enginetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// Place is an object of a world of distances: what it holds in each column, nil or false where that is missing.
type Place struct {
	Vector []float32
	Point  []float64 // latitude, longitude
	Text   string    // "": none
	Class  int       // filters ask for it
}

// DistanceWorld is an index whose columns are searched by distance: vector, point, text, and a category class to filter by.
type DistanceWorld struct {
	Metric, Storage string
	Dims            int
	Paths           bool   // the columns have all access paths that they can have
	Similarity      string // of ranks; empty: rho
	Permutants      int    // 0: 7
	Places          []Place
	Index           *index.Index
}

// vectorMetrics are the metrics of vectors; those of columns that have access paths are distances, which products are not.
func vectorMetrics(paths bool) []string {
	metrics := []string{"l1", "l2", "linf", "l3", "l4", "l5", "l6", "l7", "l8", "cosine", "angular", "hamming", "ip"}
	if paths {
		return metrics[:len(metrics)-1]
	}
	return metrics
}

// classes is how many classes of objects there are.
const classes = 5

// RandomDistanceWorld makes an index of n objects with many equal distances: vectors of a coarse grid, points of whole degrees, short texts of
// few letters, and repetitions.
func RandomDistanceWorld(t testing.TB, rng *rand.Rand, n int, paths bool) *DistanceWorld {
	t.Helper()
	metrics := vectorMetrics(paths)
	w := &DistanceWorld{
		Paths:  paths,
		Metric: metrics[rng.IntN(len(metrics))], Storage: []string{"f32", "f16", "u8"}[rng.IntN(3)],
		Dims: []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33}[rng.IntN(12)],
	}
	for range n {
		p := w.Random(rng)
		if len(w.Places) > 0 && rng.IntN(4) == 0 {
			p = w.Places[rng.IntN(len(w.Places))]
		}
		switch rng.IntN(12) {
		case 0:
			p.Vector = nil
		case 1:
			p.Point = nil
		case 2:
			p.Text = ""
		}
		w.Places = append(w.Places, p)
	}
	w.Build(t)
	return w
}

// Random is an object that has everything.
func (w *DistanceWorld) Random(rng *rand.Rand) Place {
	p := Place{Vector: make([]float32, w.Dims), Class: rng.IntN(classes)}
	for i := range p.Vector {
		p.Vector[i] = float32(rng.IntN(4))
		if w.Storage != "u8" {
			p.Vector[i] = (p.Vector[i] - 1.5) / 2
		}
	}
	p.Vector[rng.IntN(w.Dims)]++ // some direction, as angles want
	p.Point = []float64{float64(rng.IntN(19)-9) * 10, float64(rng.IntN(36)) * 10}
	if rng.IntN(2) == 0 {
		p.Point = []float64{rng.Float64()*180 - 90, rng.Float64()*720 - 360}
	}
	p.Text = RandomString(rng, "abä", 1+rng.IntN(9))
	return p
}

// Schema is that of the world.
func (w *DistanceWorld) Schema() string {
	vector, others := "scan]", ""
	if w.Paths {
		ranks := fmt.Sprintf("permutation: {permutants: %d, similarity: %s}", cmp.Or(w.Permutants, 7), cmp.Or(w.Similarity, "rho"))
		vector, others = "tree, permutation, cells], "+ranks, ", index: [tree, permutation], "+ranks
		if w.Metric == "hamming" {
			vector = "tree, permutation], " + ranks
		}
	}
	return fmt.Sprintf(`{name: world, missing: [""], columns: [{name: vector, type: vector, metric: %s, storage: %s, dims: %d, index: [%s},
		{name: point, type: point%s}, {name: text, type: string%s}, {name: class, type: category}]}`, w.Metric, w.Storage, w.Dims, vector, others, others)
}

// Build makes the index.
func (w *DistanceWorld) Build(t testing.TB) {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(w.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Places {
		if err := objects.Add(w.record(i)); err != nil {
			t.Fatal(err)
		}
	}
	w.Index = OpenBuilt(t, objects.Builder)
}

func (w *DistanceWorld) record(i int) *schema.Record {
	p := &w.Places[i]
	rec := &schema.Record{Cells: make([]schema.Cell, 4)}
	rec.Cells[0].Vector = slices.Clone(p.Vector)
	if p.Point != nil {
		lat, lon := strconv.FormatFloat(p.Point[0], 'g', -1, 64), strconv.FormatFloat(p.Point[1], 'g', -1, 64)
		switch i % 3 {
		case 0:
			rec.Cells[1].Values = []string{lat, lon}
		case 1:
			rec.Cells[1].Values = []string{lat + ", " + lon}
		case 2:
			rec.Cells[1].JSON = []byte(`{"lat":` + lat + `,"lon":` + lon + `}`)
		}
	}
	if p.Text != "" {
		rec.Cells[2].Values = []string{p.Text}
	}
	rec.Cells[3].Values = []string{ClassName(p.Class)}
	return rec
}

// ClassName is the category of a class.
func ClassName(class int) string { return "class" + strconv.Itoa(class) }

// Value is what the metric of a column orders by, of two values, written down plainly: the definition of design, section 2, for one pair.
func (w *DistanceWorld) Value(column string, a, b *Place) float64 {
	switch column {
	case "text":
		return float64(editDistance([]rune(a.Text), []rune(b.Text)))
	case "point":
		return math.NaN() // sines and cosines are a matter of package metric alone
	}
	return vectorValue(w.Metric, a.Vector, b.Vector)
}

// eightSums adds terms up as every engine does.
func eightSums(n int, term func(i int) float64) float64 {
	var s [8]float64
	for i := range n {
		s[i%8] += term(i)
	}
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])) + 0
}

func vectorValue(metric string, x, y []float32) float64 {
	d := func(i int) float64 { return math.Abs(float64(x[i]) - float64(y[i])) }
	dot := func(x, y []float32) float64 {
		return eightSums(len(x), func(i int) float64 { return float64(float64(x[i]) * float64(y[i])) })
	}
	switch metric {
	case "l1":
		return eightSums(len(x), d)
	case "l2":
		return eightSums(len(x), func(i int) float64 { return float64(d(i) * d(i)) })
	case "linf":
		v := 0.0
		for i := range x {
			v = max(v, d(i))
		}
		return v
	case "hamming":
		n := 0
		for i := range x {
			if x[i] != y[i] {
				n++
			}
		}
		return float64(n)
	case "cosine", "angular":
		norms := float64(math.Sqrt(dot(x, x)) * math.Sqrt(dot(y, y)))
		return max(-1, min(1, -dot(x, y)/norms)) + 0
	case "ip":
		return 0 - dot(x, y)
	}
	return math.NaN() // the order of the products of lp is a matter of package metric alone
}

func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before := row[0]
		row[0] = i + 1
		for j := range b {
			at := before
			if a[i] != b[j] {
				at++
			}
			before, row[j+1] = row[j+1], min(at, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// JSONLines is the world as a file.
func (w *DistanceWorld) JSONLines() string {
	var b strings.Builder
	for i := range w.Places {
		p := &w.Places[i]
		line := map[string]any{"class": ClassName(p.Class)}
		if p.Vector != nil {
			line["vector"] = p.Vector
		}
		if p.Point != nil {
			line["point"] = p.Point
		}
		if p.Text != "" {
			line["text"] = p.Text
		}
		text, err := json.Marshal(line)
		if err != nil {
			panic(err) // of numbers and strings
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

package vector_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/index/column/vector"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// Functions that were chosen by a part of the vectors: what is told of them, with all vectors, is what queries get that nobody held out, and it is the recall that was asked for.
func TestRecallOfAPart(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes thousands of vectors")
	}
	raced.Skip(t, "nothing runs beside it but what index/lsh tests")
	const dims, clusters, n, part, asked = 32, 16, 8000, 1000, 200
	rng := rand.New(rand.NewPCG(1, 2)) // the same each time
	var centres [clusters * dims]float64
	for i := range centres {
		centres[i] = 3 * rng.NormFloat64()
	}
	draw := func(n int) []float32 {
		x := make([]float32, 0, n*dims)
		for range n {
			at := rng.IntN(clusters) * dims
			for d := range dims {
				x = append(x, float32(centres[at+d]+rng.NormFloat64()))
			}
		}
		return x
	}
	objects, queries := draw(n), draw(asked)
	cells := make([]schema.Cell, part)
	for i := range cells {
		cells[i].Vector = objects[i*dims : (i+1)*dims]
	}
	const wanted = .99
	c := schema.Column{Name: "v", Type: schema.VectorColumn, Similarity: "l1", Recall: wanted}
	if err := (vector.Column{}).Learn(&c, cells, false, 2); err != nil {
		t.Fatal(err)
	}
	m, err := (vector.Column{}).Measure(&c, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m.Add(&schema.Values{Vector: objects[i*dims : (i+1)*dims]})
	}
	chosen := *c.Reach
	if err := m.Finish(&c); err != nil {
		t.Fatal(err)
	}
	p, err := lsh.Decode(c.Learned)
	if err != nil {
		t.Fatal(err)
	}
	told, ok := p.Recall.Lookup(vector.Neighbours, vector.Candidates, uint32(p.Reach))
	if !ok {
		t.Fatalf("%v is wanted: nothing is told of it", wanted)
	}
	is, off := recallOf(t, p, objects, queries)
	t.Logf("%v is wanted: %d functions of width %.4g, reach %d, then %d: told %.4f (%.3f to %.3f), is %.4f (standard error %.4f)", wanted, p.Functions, p.Width, chosen, p.Reach, told.Share,
		told.Low, told.High, is, off)
	if told.Share < wanted || is+1.645*off < wanted {
		t.Errorf("%v is wanted, %.4f told, and the recall is %.4f (standard error %.4f)", wanted, told.Share, is, off)
	}
	if is < told.Low || is > told.High {
		t.Errorf("the recall is %.4f, and told is %.3f to %.3f", is, told.Low, told.High)
	}
}

// recallOf is the share of the nearest that are among the candidates, and its standard error, by queries that are no objects.
func recallOf(t *testing.T, p lsh.Parameters, objects, queries []float32) (mean, deviation float64) {
	f, err := lsh.New(p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := lsh.NewMeasurement(f, queries, lsh.Measures{Neighbours: []int{vector.Neighbours}, Candidates: []int{vector.Candidates}, Reaches: []int{p.Reach}})
	if err != nil {
		t.Fatal(err)
	}
	keywords := make([]uint32, len(objects)/p.Dim*p.Functions)
	if err := f.Hash(keywords, objects, 2); err != nil {
		t.Fatal(err)
	}
	x.Add(keywords, objects, 2)
	table, err := x.Table()
	if err != nil {
		t.Fatal(err)
	}
	r, _ := table.Lookup(vector.Neighbours, vector.Candidates, uint32(p.Reach))
	return r.Share, math.Sqrt(r.Share * (1 - r.Share) / float64(len(queries)/p.Dim))
}

// A schema that wants no recall is told none, whether or not functions were found that have what is aimed at: what was found was found with a sample.
func TestNoRecallOfASample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cells := make([]schema.Cell, 400)
	for i := range cells {
		for range 8 {
			cells[i].Vector = append(cells[i].Vector, float32(rng.NormFloat64()))
		}
	}
	for _, functions := range []int{8, 1024} {
		c := schema.Column{Name: "v", Type: schema.VectorColumn, Similarity: "cosine", Functions: functions}
		if err := (vector.Column{}).Learn(&c, cells, false, 2); err != nil {
			t.Fatal(err)
		}
		p, err := lsh.Decode(c.Learned)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Recall.Rows) > 0 {
			t.Errorf("%d functions: %d rows of a table, of %d objects", functions, len(p.Recall.Rows), p.Recall.Objects)
		}
	}
}

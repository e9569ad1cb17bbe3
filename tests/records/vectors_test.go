package records

import (
	"math"
	"math/rand/v2"

	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/similarity"
)

// vector is one whose sums are exact in any order: of quarters, or of small integers.
type vector [4]float32

func (c *column) vector(r *rand.Rand) (v vector) {
	for i := range v {
		if v[i] = float32(r.IntN(12)); !c.bytes {
			v[i] = (v[i] - 6) / 4
		}
	}
	return v
}

// hashes are a column's hash functions. The model takes them as they are: what they promise is tested beside them.
type hashes struct {
	functions *lsh.Functions
	keywords  []uint32 // of objects with a vector, one after the other; of others 0
}

func (w *world) hash(c *column, learned []byte) {
	p, err := lsh.Decode(learned)
	if err != nil {
		w.t.Fatal(err)
	}
	h := &hashes{}
	if h.functions, err = lsh.New(p); err != nil {
		w.t.Fatal(err)
	}
	var all []float32
	for _, values := range c.values {
		var v vector
		if len(values) > 0 {
			v = values[0].(vector)
		}
		all = append(all, v[:]...)
	}
	h.keywords = make([]uint32, len(c.values)*p.Functions)
	if err := h.functions.Hash(h.keywords, all, 1); err != nil {
		w.t.Fatal(err)
	}
	c.hashes = h
}

// askVector asks for a vector: the functions that agree count.
func (w *world) askVector(c *column) *condition {
	v := c.vector(w.r)
	if id := w.r.IntN(2 * len(c.values)); id < len(c.values) && len(c.values[id]) > 0 {
		v = c.values[id][0].(vector)
	}
	p := c.hashes.functions.Parameters()
	asked := make([]uint32, p.Functions*p.Asked())
	if err := c.hashes.functions.HashQueries(asked, v[:], 1); err != nil {
		w.t.Fatal(err)
	}
	q := &condition{c: c, vector: &v, json: []any{v[0], v[1], v[2], v[3]}, items: []uint64{1}}
	q.count = func(id int) (n uint64) {
		if len(c.values[id]) == 0 {
			return 0
		}
		for i, own := range c.hashes.keywords[id*p.Functions : (id+1)*p.Functions] {
			for _, keyword := range asked[i*p.Asked() : (i+1)*p.Asked()] {
				if lo, hi := p.Span(keyword); lo <= own && own < hi {
					n++
					break
				}
			}
		}
		return n
	}
	return q
}

// metrics are the orders of vectors.
var metrics = []string{"l2", "l1", "ip", "angular"}

// distance compares two vectors. Those without one come last.
func (r *rescore) distance(id int) score {
	values := r.is.c.values[id]
	if len(values) == 0 {
		return score{key: math.Inf(1), value: math.Inf(1)}
	}
	a, b := *r.is.vector, values[0].(vector)
	var squares, differences, product, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		squares += (x - y) * (x - y)
		differences += math.Abs(x - y)
		product += x * y
		aa += x * x
		bb += y * y
	}
	switch r.by {
	case "l2":
		return score{key: squares, value: math.Sqrt(squares)}
	case "l1":
		return score{key: differences, value: differences}
	case "ip":
		return score{key: -product, value: product}
	}
	key := 0.0 // the cosine squared, with its sign; a right angle to what is 0
	if product != 0 && aa*bb != 0 {
		key = -product * math.Abs(product) / (aa * bb)
	}
	return score{key: key, value: similarity.Angular.Report(key)} // the one arc cosine
}

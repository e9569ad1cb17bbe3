package vector

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
)

// Queries implements column.Type.
func (Column) Queries(_ *schema.Schema, c *schema.Column, first int, v column.Vocabulary) (column.QueryEncoder, error) {
	if !distance.Hashed(c) {
		return nil, nil // there is nothing to count
	}
	f, err := functions(c)
	if err != nil {
		return nil, err
	}
	for i := range c.Functions {
		if n := v.Attribute(first + i).Keywords; n != uint32(c.Buckets) {
			return nil, fmt.Errorf("function %d has %d keywords in the file, and %d by its schema", i, n, c.Buckets)
		}
	}
	q := &queries{name: c.Name, first: first, functions: f, parameters: f.Parameters()}
	return q, nil
}

// queries finds vectors by their hashes.
type queries struct {
	name       string
	first      int // its first attribute
	functions  *lsh.Functions
	parameters lsh.Parameters
}

// read returns the vector of a condition. The error is a *refusal.Error of package index/refusal.
func (q *queries) read(c *column.Condition) (x []float32, err error) {
	switch {
	case c.Vector != nil:
		x = c.Vector
	case c.Value != nil && c.Value.Kind == column.StringKind:
		x, err = appendText(nil, c.Value.String)
	case !c.Other.IsZero():
		x, err = appendTree(make([]float32, 0, min(c.Other.Len(), q.parameters.Dim)), c.Other)
	default:
		err = fmt.Errorf("takes a vector, such as [0.5,1,2]")
	}
	if err == nil {
		err = check(x, q.parameters.Dim)
	}
	if err == nil {
		err = explain(q.functions.Check(x))
	}
	if err != nil {
		return nil, column.Refuse("column %q: the vector %v", q.name, err)
	}
	return x, nil
}

// Prepare implements column.BatchEncoder: vectors are hashed together. Conditions that are at fault are left to Items.
func (q *queries) Prepare(conditions []*column.Condition, workers int) {
	vectors := make([]float32, 0, len(conditions)*q.parameters.Dim)
	sound := make([]*column.Condition, 0, len(conditions))
	for _, c := range conditions {
		if x, err := q.read(c); err == nil {
			vectors, sound = append(vectors, x...), append(sound, c)
		}
	}
	width := q.parameters.Functions * q.parameters.Asked()
	hashes := make([]uint32, len(sound)*width)
	if q.functions.HashQueries(hashes, vectors, workers) != nil {
		return // which no vector is that was read
	}
	for i, c := range sound {
		c.Prepared = hashes[i*width : (i+1)*width : (i+1)*width]
	}
}

// Items implements column.QueryEncoder: an item for each function.
func (q *queries) Items(dst *column.Draft, c *column.Condition) error {
	hashes := c.Prepared
	asks := dst.Asked != nil && dst.Asked.Column == q.name
	var x []float32
	if hashes == nil || asks {
		var err error
		if x, err = q.read(c); err != nil {
			return err
		}
	}
	if asks {
		dst.Asked.Vector = x
	}
	if hashes == nil {
		hashes = make([]uint32, q.parameters.Functions*q.parameters.Asked())
		if err := q.functions.HashQueries(hashes, x, 1); err != nil {
			return column.Refuse("column %q: the vector: %v", q.name, explain(err))
		}
	}
	asked := q.parameters.Asked()
	for i := range q.parameters.Functions {
		dst.StartItem(q.first + i)
		own := hashes[i*asked : (i+1)*asked]
		if asked > 1 {
			own = slices.Clone(own) // what is prepared may be looked at again
			slices.Sort(own)
			own = slices.Compact(own)
		}
		for _, keyword := range own {
			dst.Match.AddSpan(q.parameters.Span(keyword))
		}
	}
	return nil
}

// Dims implements column.VectorEncoder.
func (q *queries) Dims() int { return q.parameters.Dim }

// Delta is how likely a bound of Estimate is exceeded by any object of an index.
const Delta = .06

// Estimate implements column.Estimator: s by the functions that agree, and the bound for objects that were selected by it, epsilon =
// sqrt(ln(2N/delta) / (2m)) by Hoeffding's inequality and a union over all N objects, since any of them could have been a hit by luck. Where
// hashes are re-hashed both are larger by what agrees by chance.
func (q *queries) Estimate(count, objects uint32) (similarity, bound float64) {
	m := float64(q.parameters.Functions)
	epsilon := math.Sqrt(math.Log(2*float64(max(1, objects))/Delta) / (2 * m))
	return q.parameters.Similarity(count), min(1, epsilon/(1-q.parameters.Chance()))
}

// ExpectedRecall implements column.Estimator: what was measured with all objects of the index but the queries that were held out.
func (q *queries) ExpectedRecall(by string, k, candidates int, _ uint32) (share float64, ok bool) {
	own := map[lsh.Family]string{lsh.L2: "l2", lsh.L1: "l1", lsh.Laplacian: "l1", lsh.Cosine: "angular"}[q.parameters.Family]
	t := &q.parameters.Recall
	if by == "" {
		candidates = k
	} else if by != own {
		return 0, false
	}
	if t.Objects == 0 || k > math.MaxInt32 || candidates > math.MaxInt32 {
		return 0, false
	}
	r, ok := t.Lookup(uint32(k), uint32(candidates), uint32(q.parameters.Reach))
	return r.Share, ok
}

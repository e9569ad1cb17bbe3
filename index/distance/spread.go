package distance

import "fmt"

// Spread is how the distances between the objects of a column are spread: what ways to search it other than a scan can save. Distances are the
// metric's (Metric.Distance).
type Spread struct {
	Pairs    int // that were compared
	Mean     float64
	Variance float64
}

// Dimension is the intrinsic dimension, mean^2 / (2 variance): with a high one all objects are about equally far from each other, and bounds tell little. 0 where
// nothing was compared, or all is equally far.
func (s Spread) Dimension() float64 {
	if s.Variance <= 0 {
		return 0
	}
	return s.Mean * s.Mean / (2 * s.Variance)
}

const (
	// spreadQueries are compared with spreadObjects each, both spread evenly over the objects.
	spreadQueries = 64
	spreadObjects = 256
	// spreadWork bounds the words of work for texts.
	spreadWork = 1 << 30
)

// Spread compares some pairs of objects, the same each time.
func (c *Column) Spread() (s Spread, err error) {
	space, err := c.Space()
	if err != nil {
		return s, fmt.Errorf("column %q: %w", c.Name, err)
	}
	most := uint64(spreadQueries)
	if c.Of == Texts { // which may be long, and the work is the product of two
		each := max(1, int64(c.textBytes()))
		most = uint64(max(1, min(spreadQueries, spreadWork/(each*each/64+1)/spreadObjects)))
	}
	queries, objects := c.some(most), c.some(spreadObjects)
	sum, squares := 0.0, 0.0
	for _, q := range queries {
		a := space.Of(q)
		for _, o := range objects {
			if o == q {
				continue
			}
			d := space.Metric().Distance(a.Value(o))
			sum, squares = sum+d, squares+d*d
			s.Pairs++
		}
	}
	if n := float64(s.Pairs); n > 0 {
		s.Mean = sum / n
		s.Variance = max(0, squares/n-s.Mean*s.Mean)
	}
	return s, nil
}

// some are so many objects with a value, spread evenly; fewer where there are fewer.
func (c *Column) some(most uint64) (ids []uint32) {
	n := min(most, uint64(c.Objects))
	for i := range n {
		if id := uint32(i * uint64(c.Objects) / n); c.Has(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

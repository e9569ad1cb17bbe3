package postings

import (
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/values"
)

// Attribute describes one indexed attribute of an open index. Its keywords have local ids 0 to Keywords-1;
// the global keyword id is First + local id, so keywords sort by (schema order, value).
type Attribute struct {
	Name     string
	Type     schema.AttributeType
	Layout   schema.Layout // how its postings are stored
	First    uint32        // global id of local keyword 0
	Keywords uint32        // number of keywords V
	// MaxPerObject is the most keywords, with repeats, that one object has in this attribute.
	MaxPerObject uint32
	Postings     uint64 // total postings
	Objects      uint64 // objects with at least one keyword here

	// Of Number attributes. Edges are the V-1 interior bucket edges, ascending: bucket(v) = number of edges <= v.
	// Exact attributes have one bucket a distinct value instead: Values lists the V values, ascending, and a
	// number that is not among them is unknown. Min and Max are the smallest and largest value in the data.
	// Without any value in the data V is 0 and there are no edges. Edges and Values point into the index.
	Edges    []float64
	Exact    bool
	Values   []float64
	Min, Max float64
}

// Bucket returns the keyword of the number v in a Number attribute: the number of edges <= v, or, in an exact
// attribute, the position of v among Values. It is false for a value that no keyword stands for: any value
// where the data have none, NaN, and in an exact attribute a value that is not in the data. A value outside
// the data falls into the first or last bucket.
func (a *Attribute) Bucket(v float64) (uint32, bool) {
	if a.Keywords == 0 || v != v {
		return 0, false
	}
	if a.Exact {
		i, found := slices.BinarySearch(a.Values, v)
		return uint32(i), found
	}
	return values.CountLE(a.Edges, v), true
}

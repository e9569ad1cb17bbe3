package index

// AttributeType says how the keywords of an attribute are named and looked up.
type AttributeType uint8

const (
	// Number: keywords are buckets of float64 values; see Attribute.Edges.
	Number AttributeType = iota + 1
	// Text: keywords are strings in UTF-8 order: categories, words, ordered n-grams (GramKey).
	Text
	// Ordinal: keywords are the integers 0 to Keywords-1 themselves: hash values of vectors.
	Ordinal
)

// Attribute describes one indexed attribute of an open index. Its keywords have local ids 0 to Keywords-1;
// the global keyword id is First + local id, so keywords sort by (schema order, value).
type Attribute struct {
	Name     string
	Type     AttributeType
	First    uint32 // global id of local keyword 0
	Keywords uint32 // number of keywords V
	// MaxPerObject is the most keywords, with repeats, that one object has in this attribute.
	MaxPerObject uint32
	Postings     uint64 // total postings
	Objects      uint64 // objects with at least one keyword here

	// Of Number attributes. Edges are the V-1 interior bucket edges, ascending: bucket(v) = number of edges <= v.
	// Exact attributes have one bucket a distinct value instead: Values lists the V values, ascending, and a
	// number that is not among them is unknown. Min and Max are the smallest and largest value in the data.
	Edges    []float64
	Exact    bool
	Values   []float64
	Min, Max float64
}

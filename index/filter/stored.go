package filter

// StoredFamily is the family whose structure in an index is a Stored, where the index has one.
const StoredFamily = "forward"

// Stored gives the numbers that an index keeps of its attributes beside their buckets.
type Stored interface {
	// StoredNumbers returns what is kept of an attribute, by its name; false where nothing is.
	StoredNumbers(attribute string) (Numbers, bool)
}

// Numbers are the values of one attribute, by object.
type Numbers interface {
	// Numbers returns the values of an object, in any order; of no value none, or NaN.
	Numbers(object uint32) []float64
	// NumbersTile returns those of a tile: its i-th object has values[starts[i]:starts[i+1]], or where starts is nil, values[i] alone, NaN
	// where it has none.
	NumbersTile(tile int) (starts []uint32, values []float64)
}

// StoredBy is the Stored of a structure of an index, which may be none.
func StoredBy(structure any) Stored {
	s, _ := structure.(Stored)
	return s
}

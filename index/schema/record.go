package schema

import "encoding/json"

// Record is one input record before encoding: the cells of the schema's columns, in schema order. Loaders
// produce records, encoders turn them into keywords; neither knows the other.
type Record struct {
	// Line is the 1-based line of the source at which the record starts, for error messages.
	Line int64
	// Key is the user's own identity of the object; empty means the decimal object id.
	Key string
	// Cells holds one cell per schema column (Schema.Columns), in that order.
	Cells []Cell
}

// Cell is the content of one column in one record. A cell without values is missing.
type Cell struct {
	// Values are the raw texts: one for a scalar, several for a list, none for a missing or null cell.
	Values []string
	// JSON is the value's own JSON literal where the source was JSON, so that payload keeps its type; nil
	// otherwise, and then a payload is stored as a JSON string.
	JSON json.RawMessage
}

// Values are what a column type makes of one cell. The memory is used again for the next object.
//
// A column with one attribute, as most have, gives it all values that there are of its type. A column with several gives each of
// them one, in their order.
type Values struct {
	Numbers  []float64 // of attributes of type Number; finite
	Strings  []string  // of type Text
	Ordinals []uint32  // of type Ordinal
	Stored   []byte    // for a structure that stores the column in a form of its own
	Text     string    // kept as it is for comparing it with queries: sequences
}

// Reset empties v and keeps its memory.
func (v *Values) Reset() {
	v.Numbers, v.Strings, v.Ordinals, v.Stored, v.Text = v.Numbers[:0], v.Strings[:0], v.Ordinals[:0], v.Stored[:0], ""
}

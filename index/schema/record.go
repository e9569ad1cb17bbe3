package schema

import "encoding/json"

// Record is one input record before encoding: the cells of the schema's columns, in schema order. Loaders
// produce records, encoders turn them into keywords; neither knows the other.
type Record struct {
	// Line is the 1-based line of the source at which the record starts, for error messages.
	Line int64
	// Key is the user's own identity of the object; empty means the decimal object id.
	Key string
	// Cells holds one cell a schema column (Schema.Columns), in that order.
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

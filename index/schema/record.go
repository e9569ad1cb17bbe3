package schema

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

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

// Cell is the content of one column in one record.
type Cell struct {
	// Values are the raw texts: one for a scalar, several for a list, none for a missing or null cell.
	Values []string
	// JSON is the value's own JSON literal where the source was JSON, so that payload keeps its type; nil
	// otherwise, and then a payload is stored as a JSON string.
	JSON json.RawMessage
	// Vector is the value of a vector column where the source has it in binary; else its numbers are among Values.
	Vector []float32
	// Fault is why the source has something in its place that the column cannot take, whatever else the cell has; "" nothing.
	Fault string
}

// Empty says that a cell has no value: it is missing.
func (c *Cell) Empty() bool {
	return len(c.Values) == 0 && c.JSON == nil && len(c.Vector) == 0 && c.Fault == ""
}

// Refused is what is wrong with the cell: its fault, or the error of a type that made something of the rest.
func (c *Cell) Refused(err error) error {
	if c.Fault != "" {
		return errors.New(c.Fault)
	}
	return err
}

// Reset makes the cell empty, and keeps its memory.
func (c *Cell) Reset() { *c = Cell{Values: c.Values[:0], Vector: c.Vector[:0]} }

// Values are what a column type makes of one cell. The memory is used again for the next object.
//
// A column with one attribute, as most have, gives it all values that there are of its type. A column with several gives each of
// them one, in their order, or, of strings, as many as Ends says.
type Values struct {
	Numbers  []float64 // of attributes of type Number; finite
	Strings  []string  // of type Text
	Ends     []int     // where the strings of each attribute end; empty: see above
	Ordinals []uint32  // of type Ordinal
	Stored   []byte    // for a structure that stores the column in a form of its own; of trees and graphs what is kept
	Text     string    // kept as it is for comparing it with queries: sequences, strings

	// What is kept beside keywords (KeptSpec).
	Frequencies []uint32  // how often each of Strings, which are distinct, occurs; empty: once
	Vector      []float32 // finite; empty: none
	JSON        []byte    // what is returned with hits, a JSON value; empty: none
}

// Reset empties v and keeps its memory.
func (v *Values) Reset() {
	v.Numbers, v.Strings, v.Ordinals, v.Stored, v.Text = v.Numbers[:0], v.Strings[:0], v.Ordinals[:0], v.Stored[:0], ""
	v.Ends, v.Frequencies, v.Vector, v.JSON = v.Ends[:0], v.Frequencies[:0], v.Vector[:0], v.JSON[:0]
}

// NumberText is the canonical decimal text of a number, as a JSON number stands for a category: the shortest digits that give the same float64,
// without an exponent.
func NumberText(v float64) string {
	if v == 0 {
		v = 0 // not "-0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// ShownNumber is a number for people: as NumberText, but with an exponent where that would be a long row of zeros, as JSON is written by most.
func ShownNumber(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	return NumberText(v)
}

package wire

import (
	"slices"

	"github.com/geniemq/geniemq/wire/fields"
)

// conditionField is a field of a condition in a message. Those of [fields.Condition] have constants here, in its order, so
// that what reads a condition, token by token (decode_condition.go) or by the short cut (condition_msgpack.go), and what writes one can switch on them. A new
// field is a line there, a constant, and what it means for a [Condition].
type conditionField uint8

const (
	valueField conditionField = iota
	minField
	maxField
	inField
	unitField
	weightField
	attrField // where conditions are a list; in a row the attribute is the key
	conditionFields
)

// conditionNames are the names of the fields, in the order in which they are written.
var conditionNames = fields.Condition.Names()

// bucketUnit is the one unit there is but for the attribute's own.
const bucketUnit = "bucket"

// conditionFieldOf finds a field by its name; conditionFields if there is none.
func conditionFieldOf(name string) conditionField {
	if f := slices.Index(conditionNames, name); f >= 0 {
		return conditionField(f)
	}
	return conditionFields
}

// scalar is where a field that holds a scalar has it; nil for other fields.
func (c *Condition) scalar(f conditionField) *Value {
	switch f {
	case valueField:
		return &c.Value
	case minField:
		return &c.Min
	case maxField:
		return &c.Max
	}
	return nil
}

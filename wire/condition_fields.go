package wire

// conditionField is a field of a condition in a message. The fields are listed here and nowhere else: what reads a condition, token
// by token (decode_query.go) or by the short cut (condition_msgpack.go), and what writes one goes by this table. A new
// field is a line in it, a line in conditionNames, and what it means for a [Condition].
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
var conditionNames = [conditionFields]string{"value", "min", "max", "in", "unit", "weight", "attr"}

// bucketUnit is the one unit there is but for the attribute's own.
const bucketUnit = "bucket"

// What a field holds.
const (
	aScalar = iota // a number, a string or a bool
	someScalars
	aUnit
	aWeight
	aName
)

var conditionHolds = [conditionFields]uint8{valueField: aScalar, minField: aScalar, maxField: aScalar, inField: someScalars,
	unitField: aUnit, weightField: aWeight, attrField: aName}

// conditionFieldOf finds a field by its name; conditionFields if there is none.
func conditionFieldOf(name string) conditionField {
	switch name {
	case "value":
		return valueField
	case "min":
		return minField
	case "max":
		return maxField
	case "in":
		return inField
	case "unit":
		return unitField
	case "weight":
		return weightField
	case "attr":
		return attrField
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

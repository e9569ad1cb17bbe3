package column

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// appendStrings appends what is returned of a cell of texts: a string, or an array of several; of a list always an array. Nothing of none.
func appendStrings(dst []byte, values []string, list bool) []byte {
	if len(values) == 0 {
		return dst
	}
	if list = list || len(values) > 1; list {
		dst = append(dst, '[')
	}
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, _ = jsontext.AppendQuote(dst, v) // which is UTF-8
	}
	if list {
		dst = append(dst, ']')
	}
	return dst
}

// unsearched is the type of columns that have no values to search by. What is stored of them, the index makes of their cells.
type unsearched struct{ traits }

// Check returns every fault.
func (unsearched) Check(_ *schema.Schema, c *schema.Column) []error {
	faults := Foreign(c)
	if _, err := schema.ParseLayout(c.Layout, schema.Text); err != nil { // then this is what is said of it
		faults[len(faults)-1] = err
	}
	return faults
}

// Attributes implements Type.
func (unsearched) Attributes(*schema.Column) []schema.AttributeSpec { return nil }

// Objects implements Type.
func (unsearched) Objects(*schema.Schema, *schema.Column) (ObjectEncoder, error) { return nil, nil }

// Queries implements Type.
func (unsearched) Queries(*schema.Schema, *schema.Column, int, Vocabulary) (QueryEncoder, error) {
	return nil, nil
}

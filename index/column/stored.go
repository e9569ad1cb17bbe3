package column

import "github.com/geniemq/geniemq/index/schema"

// Payload is the type of columns that are stored and returned with hits, and not indexed.
type Payload struct{ unsearched }

// Name returns payload.
func (Payload) Name() string { return string(schema.PayloadColumn) }

// Skip is the type of columns that are present in the input and otherwise ignored.
type Skip struct{ unsearched }

// Name returns skip.
func (Skip) Name() string { return string(schema.SkipColumn) }

// unsearched is what types have in common whose columns have no values to search by. What is stored of them, the index makes of their cells.
type unsearched struct{}

// In is true of all kinds.
func (unsearched) In(schema.Kind) bool { return true }

// Check returns every fault.
func (unsearched) Check(_ *schema.Schema, c *schema.Column) []error {
	faults := foreign(c)
	if _, err := schema.ParseLayout(c.Layout); err != nil { // then this is what is said of it
		faults[len(faults)-1] = err
	}
	return faults
}

// Attributes returns none.
func (unsearched) Attributes(*schema.Column) []schema.AttributeSpec { return nil }

// Objects returns nil.
func (unsearched) Objects(*schema.Schema, *schema.Column) (ObjectEncoder, error) { return nil, nil }

// Queries returns nil.
func (unsearched) Queries(*schema.Schema, *schema.Column, int, Vocabulary) (QueryEncoder, error) {
	return nil, nil
}

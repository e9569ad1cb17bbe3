package index

import (
	"errors"
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

// Objects builds an index of records: cells become values by the types of their columns, and what is stored of an object its payload. It is for
// one goroutine. What it has beside Add is the Builder's: WriteFile above all.
type Objects struct {
	*Builder
	columns []recordColumn
	values  []schema.Values // of a record, by column
	payload *payloadWriter
}

// recordColumn is where the values of a column go.
type recordColumn struct {
	encoder column.ObjectEncoder // nil: nowhere
	first   int                  // its first attribute
	types   []schema.AttributeType
}

// NewObjects begins an index of records of the built-in kinds; see Kinds.NewObjects.
func NewObjects(s *schema.Schema, options BuilderOptions) (*Objects, error) {
	return Builtin().NewObjects(s, options)
}

// NewObjects begins an index of records, with the attributes of the schema's columns.
func (k Kinds) NewObjects(s *schema.Schema, options BuilderOptions) (*Objects, error) {
	b, err := k.NewBuilder(s, k.Attributes(s), options)
	if err != nil {
		return nil, err
	}
	return b.records()
}

func (b *Builder) records() (*Objects, error) {
	s := b.schema
	o := &Objects{
		Builder: b, payload: newPayloadWriter(s),
		columns: make([]recordColumn, len(s.Columns)), values: make([]schema.Values, len(s.Columns)),
	}
	next := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		t := b.kinds.Column(s.Kind, c.Type)
		encoder, err := t.Objects(s, c)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		o.columns[i] = recordColumn{encoder: encoder, first: next}
		for _, spec := range t.Attributes(c) {
			o.columns[i].types = append(o.columns[i].types, spec.Type)
			next++
		}
	}
	return o, nil
}

// Add adds one record as the next object. A *RecordError concerns this record alone and leaves the builder as it
// was before; any other error is the builder's and the whole index's.
func (o *Objects) Add(rec *schema.Record) error {
	if len(rec.Cells) != len(o.schema.Columns) {
		return fmt.Errorf("the record has %d cells, the schema has %d columns", len(rec.Cells), len(o.schema.Columns))
	}
	text := ""
	for i := range o.columns {
		v := &o.values[i]
		v.Reset()
		if o.columns[i].encoder == nil {
			continue
		}
		if err := o.columns[i].encoder.Encode(v, &rec.Cells[i]); err != nil {
			return &RecordError{Line: rec.Line, Column: o.schema.Columns[i].Name, Reason: err.Error()}
		}
		if v.Text != "" {
			text = v.Text
		}
	}
	payload, column, err := o.payload.object(rec)
	if err != nil {
		return &RecordError{Line: rec.Line, Column: o.schema.Columns[column].Name, Reason: "cannot be stored as JSON: " + err.Error(), Err: err}
	}
	for i := range o.columns {
		if err := o.addValues(&o.columns[i], &o.values[i]); err != nil {
			o.DiscardObject()
			return fmt.Errorf("column %q: %w", o.schema.Columns[i].Name, err)
		}
	}
	if err = o.EndObject(rec.Key, payload, text); err == nil {
		return o.addToFamilies(o.values)
	}
	if duplicate := (*DuplicateKeyError)(nil); errors.As(err, &duplicate) {
		return &RecordError{Line: rec.Line, Column: o.schema.Key, Reason: duplicate.Error(), Err: err}
	}
	return err
}

// addValues adds the values of a column to the lists of its attributes.
func (o *Objects) addValues(c *recordColumn, v *schema.Values) error {
	if len(c.types) == 1 {
		return o.addTo(c.first, c.types[0], v.Numbers, v.Strings, v.Ordinals)
	}
	for i, t := range c.types {
		if err := o.addTo(c.first+i, t, ith(v.Numbers, i), ith(v.Strings, i), ith(v.Ordinals, i)); err != nil {
			return err
		}
	}
	return nil
}

// ith is the part of a column's values that is of its i-th attribute.
func ith[T any](values []T, i int) []T { return values[min(i, len(values)):min(i+1, len(values))] }

func (o *Objects) addTo(attr int, t schema.AttributeType, numbers []float64, texts []string, ordinals []uint32) error {
	switch t {
	case schema.Number:
		for _, v := range numbers {
			if err := o.AddNumber(attr, v); err != nil {
				return err
			}
		}
	case schema.Text:
		for _, v := range texts {
			o.AddString(attr, v)
		}
	case schema.Ordinal:
		for _, v := range ordinals {
			if err := o.AddOrdinal(attr, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// RecordError says that a record cannot become an object and why. The builder is as it was before the record, so
// that the caller can count it and go on.
type RecordError struct {
	Line   int64  // 1-based line of the source, 0 when unknown
	Column string // empty when the fault is not one column's
	Reason string
	Err    error // the builder's error, such as *DuplicateKeyError; else nil
}

func (e *RecordError) Error() string {
	var b strings.Builder
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Column != "" {
		fmt.Fprintf(&b, "column %s: ", e.Column)
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Unwrap returns the builder's error.
func (e *RecordError) Unwrap() error { return e.Err }

package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/filling"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Objects builds an index of records: cells become values by the types of their columns, and what is stored of an object its payload. It is for
// one goroutine. What it has beside AddAll is the Builder's: WriteFile above all.
type Objects struct {
	*Builder
	columns  []recordColumn
	blocks   bool            // some encoder is a column.BlockEncoder
	fillings filling.Columns // by column
}

// recordColumn is where the values of a column go.
type recordColumn struct {
	encoder column.ObjectEncoder // nil: nowhere
	first   int                  // its first attribute
	types   []schema.AttributeType
	strict  bool // a cell that it cannot take is a fault of its record
}

// NewObjects begins an index of records of the built-in kinds; see Kinds.NewObjects.
func NewObjects(s *schema.Schema, options BuilderOptions) (*Objects, error) {
	return Builtin().NewObjects(s, options)
}

// NewObjects begins an index of records, with the attributes of the schema's columns. What the schema leaves to the data has been learned (Kinds.Learn).
func (k Kinds) NewObjects(s *schema.Schema, options BuilderOptions) (*Objects, error) {
	if name := k.unlearned(s); name != "" {
		return nil, fmt.Errorf("column %q: something of it has to be learned from data first (Learn)", name)
	}
	b, err := k.NewBuilder(s, k.Attributes(s), options)
	if err != nil {
		return nil, err
	}
	return b.records()
}

func (b *Builder) records() (*Objects, error) {
	s := b.schema
	o := &Objects{Builder: b, columns: make([]recordColumn, len(s.Columns)), fillings: make(filling.Columns, len(s.Columns))}
	next := 0
	for i := range s.Columns {
		c := &s.Columns[i]
		t := b.kinds.Column(s.Kind, c.Type)
		encoder, err := t.Objects(s, c)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		o.columns[i] = recordColumn{encoder: encoder, first: next, strict: c.Invalid == schema.InvalidError}
		o.fillings[i].Name = c.Name
		if _, ok := encoder.(column.BlockEncoder); ok {
			o.blocks = true
		}
		for _, spec := range t.Attributes(c) {
			o.columns[i].types = append(o.columns[i].types, spec.Type)
			next++
		}
	}
	return o, nil
}

// encode makes values of a record's cells, and what is stored of it, which is good until the writer is used again. Cells that their columns cannot take
// are emptied, unless the column says that this is a fault of the record. What became of the cells is added to c. The error, which adds nothing, is a
// *RecordError, or the whole index's.
func (o *Objects) encode(rec *schema.Record, values []schema.Values, w *objects.PayloadWriter, c *filling.Cells) (payload []byte, text string, err error) {
	if len(rec.Cells) != len(o.schema.Columns) {
		return nil, "", fmt.Errorf("the record has %d cells, the schema has %d columns", len(rec.Cells), len(o.schema.Columns))
	}
	sequences := o.schema.Kind == schema.Sequences
	mark := c.Mark()
	defer func() {
		if err != nil {
			c.Forget(mark)
		}
	}()
	for i := range o.columns {
		v, cell := &values[i], &rec.Cells[i]
		state, why := filling.Filled, filling.Invalid{}
		if cell.Empty() {
			state = filling.Missing
		}
		v.Reset()
		if o.columns[i].encoder != nil {
			err := cell.Refused(o.columns[i].encoder.Encode(v, cell))
			if err != nil && !o.columns[i].strict && state == filling.Filled {
				state, why = filling.Refused, filling.Invalid{Line: rec.Line, Reason: err.Error()}
				cell.Reset()
				v.Reset()
				err = o.columns[i].encoder.Encode(v, cell)
			}
			if err != nil {
				return nil, "", &RecordError{Line: rec.Line, Column: o.schema.Columns[i].Name, Reason: err.Error()}
			}
		}
		c.Add(state, why)
		if sequences && v.Text != "" {
			text = v.Text
		}
	}
	payload, column, err := w.Object(rec)
	if err != nil {
		return nil, "", &RecordError{Line: rec.Line, Column: o.schema.Columns[column].Name, Reason: "cannot be stored as JSON: " + err.Error(), Err: err}
	}
	return payload, text, nil
}

// Fillings says of each column what became of its cells. Records are counted once they are objects.
func (o *Objects) Fillings() filling.Columns { return slices.Clone(o.fillings) }

// recordError is the error of a record whose key is another's; any other stays as it is.
func (o *Objects) recordError(rec *schema.Record, err error) error {
	if duplicate := (*objects.DuplicateKeyError)(nil); errors.As(err, &duplicate) {
		return &RecordError{Line: rec.Line, Column: o.schema.Key, Reason: duplicate.Error(), Err: err}
	}
	return err
}

// addValues adds the values of a column to its attributes.
func (c *recordColumn) addValues(to *postings.Batch, v *schema.Values) error {
	if len(c.types) == 1 {
		return addTo(to, c.first, c.types[0], v.Numbers, v.Strings, v.Ordinals)
	}
	start := 0
	for i, t := range c.types {
		texts := ith(v.Strings, i)
		if i < len(v.Ends) {
			texts, start = v.Strings[start:v.Ends[i]], v.Ends[i]
		}
		if err := addTo(to, c.first+i, t, ith(v.Numbers, i), texts, ith(v.Ordinals, i)); err != nil {
			return err
		}
	}
	return nil
}

// ith is the part of a column's values that is of its i-th attribute.
func ith[T any](values []T, i int) []T { return values[min(i, len(values)):min(i+1, len(values))] }

func addTo(to *postings.Batch, attr int, t schema.AttributeType, numbers []float64, texts []string, ordinals []uint32) error {
	switch t {
	case schema.Number:
		for _, v := range numbers {
			if err := to.AddNumber(attr, v); err != nil {
				return err
			}
		}
	case schema.Text:
		for _, v := range texts {
			to.AddString(attr, v)
		}
	case schema.Ordinal:
		for _, v := range ordinals {
			if err := to.AddOrdinal(attr, v); err != nil {
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
	Err    error // the builder's error, such as *objects.DuplicateKeyError; else nil
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

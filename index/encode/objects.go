package encode

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index"
)

// Objects gives a builder the keywords of records. It is for one goroutine.
type Objects struct {
	schema  *index.Schema
	builder *index.Builder
	attrs   []int // attribute of each schema column, -1 for columns that are not indexed
	payload *payloadWriter
	terms   *terms
	list    []string
	stop    map[string]struct{}
}

// NewObjects returns an encoder for a builder that was made with Attributes(s).
func NewObjects(s *index.Schema, b *index.Builder) *Objects {
	o := &Objects{
		schema:  s,
		builder: b,
		attrs:   make([]int, len(s.Columns)),
		payload: newPayloadWriter(s),
		terms:   newTerms(),
		stop:    make(map[string]struct{}, len(s.StopWords)),
	}
	next := 0
	for i := range s.Columns {
		switch s.Columns[i].Type {
		case index.NumberColumn, index.CategoryColumn, index.TextColumn:
			o.attrs[i] = next
			next++
		default:
			o.attrs[i] = -1
		}
	}
	// Stop words go the way of all words, so that a list in any case and normal form works.
	for _, word := range s.StopWords {
		o.terms.addWords(word)
	}
	for _, word := range o.terms.strings(nil) {
		o.stop[word] = struct{}{}
	}
	return o
}

// Add adds one record as the next object. A *RecordError concerns this record alone and leaves the builder as it
// was before; any other error is the builder's and the whole index's.
func (o *Objects) Add(rec *index.Record) error {
	if len(rec.Cells) != len(o.schema.Columns) {
		return fmt.Errorf("the record has %d cells, the schema has %d columns", len(rec.Cells), len(o.schema.Columns))
	}
	err := o.add(rec)
	var bad *RecordError
	if errors.As(err, &bad) {
		bad.Line = rec.Line
		o.builder.DiscardObject()
	}
	return err
}

func (o *Objects) add(rec *index.Record) error {
	text := ""
	for i, attr := range o.attrs {
		if attr < 0 {
			continue
		}
		column, values := &o.schema.Columns[i], rec.Cells[i].Values
		var err error
		switch column.Type {
		case index.NumberColumn:
			err = o.addNumbers(attr, column, values)
		case index.CategoryColumn:
			err = o.addCategories(attr, column, values)
		case index.TextColumn:
			err = o.addText(attr, column, values)
			if o.schema.Kind == index.Sequences && len(values) > 0 {
				text = values[0]
			}
		}
		if err != nil {
			return err
		}
	}
	payload, column, err := o.payload.object(rec)
	if err != nil {
		return &RecordError{Column: o.schema.Columns[column].Name, Reason: "cannot be stored as JSON: " + err.Error(), Err: err}
	}
	err = o.builder.EndObject(rec.Key, payload, text)
	var duplicate *index.DuplicateKeyError
	if errors.As(err, &duplicate) {
		return &RecordError{Column: o.schema.Key, Reason: duplicate.Error(), Err: err}
	}
	return err
}

func (o *Objects) addNumbers(attr int, column *index.Column, values []string) error {
	for _, value := range values {
		v, ok := parseNumber(value)
		if !ok {
			return &RecordError{Column: column.Name, Reason: fmt.Sprintf("%.80q is not a finite decimal number; if it means "+
				"that there is no value, list it under missing in the schema", value)}
		}
		if err := o.builder.AddNumber(attr, v); err != nil {
			return err
		}
	}
	return nil
}

func (o *Objects) addCategories(attr int, column *index.Column, values []string) error {
	for _, value := range values {
		if !utf8.ValidString(value) {
			return notUTF8(column, value)
		}
		o.builder.AddString(attr, category(value))
	}
	return nil
}

// addText adds the terms of a text column. Terms are a set: words that come again are dropped, ordered n-grams
// cannot come again.
func (o *Objects) addText(attr int, column *index.Column, values []string) error {
	if o.schema.Kind == index.Sequences && len(values) > 1 {
		return &RecordError{Column: column.Name, Reason: fmt.Sprintf("holds a list of %d texts, but a sequence is one text",
			len(values))}
	}
	o.terms.reset()
	for _, value := range values {
		if !utf8.ValidString(value) {
			return notUTF8(column, value)
		}
		if o.schema.Kind == index.Sequences {
			o.terms.addGrams(value, o.schema.NGram)
		} else {
			o.terms.addWords(value)
		}
	}
	o.list = o.terms.strings(o.list[:0])
	if o.schema.Kind != index.Sequences {
		slices.Sort(o.list)
		o.list = slices.Compact(o.list)
	}
	for _, term := range o.list {
		if _, stopped := o.stop[term]; !stopped {
			o.builder.AddString(attr, term)
		}
	}
	return nil
}

func notUTF8(column *index.Column, value string) error {
	return &RecordError{Column: column.Name, Reason: fmt.Sprintf("%.80q is not valid UTF-8", value)}
}

package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// jsonCells makes cells of JSON values: of fields of JSON Lines, and of cells of text that are an array. It is for one goroutine.
type jsonCells struct {
	shape *shape
	list  bytes.Reader      // what inner reads
	inner *jsontext.Decoder // of an array
	text  []byte            // unquoted string, reused
}

func newJSONCells(s *shape) *jsonCells {
	j := &jsonCells{shape: s}
	j.inner = jsontext.NewDecoder(&j.list)
	return j
}

// written adds a text of a format that has texts alone to the cell of a column. A set that is written as a JSON array is that list, as vectors, trees and graphs are
// read that are written so, unless the column names a separator. A string of JSON or Parquet is taken as it stands: who wrote it could have written a list.
func (j *jsonCells) written(cell *schema.Cell, column int, text string) {
	if c := &j.shape.columns[column]; c.Type == schema.SetColumn && c.Split == "" {
		list := strings.TrimSpace(text)
		if strings.HasPrefix(list, "[") && strings.HasSuffix(list, "]") && !j.shape.isMissing(list) && jsontext.Value(list).IsValid() &&
			j.field(cell, column, jsontext.Value(list)) == nil {
			return
		}
	}
	j.shape.add(cell, column, text)
}

// field adds the value of a column.
func (j *jsonCells) field(cell *schema.Cell, column int, raw jsontext.Value) error {
	if j.shape.columns[column].Type.Nested() || raw.Kind() != '[' {
		return j.value(cell, column, raw)
	}
	j.list.Reset(raw)
	j.inner.Reset(&j.list)
	if _, err := j.inner.ReadToken(); err != nil {
		return err
	}
	vector := j.shape.columns[column].Type == schema.VectorColumn
	for j.inner.PeekKind() != ']' {
		raw, err := j.inner.ReadValue()
		if err != nil {
			return err
		}
		if vector {
			j.number(cell, raw)
			continue
		}
		text, isScalar, err := j.scalar(raw)
		switch {
		case err != nil:
			return err
		case isScalar:
			j.add(cell, text, j.meant(column, raw, text))
		case raw.Kind() != 'n':
			j.nested(cell, column, raw)
		}
	}
	return nil
}

// number adds a number to the cell of a vector column.
func (j *jsonCells) number(cell *schema.Cell, raw jsontext.Value) {
	v, err := strconv.ParseFloat(string(raw), 32)
	switch {
	case raw.Kind() == '0' && err == nil && len(cell.Vector) < MaxVector:
		cell.Vector = append(cell.Vector, float32(v))
	default:
		notNumber(cell, string(raw))
	}
}

// value adds one JSON value to the cell of a column.
func (j *jsonCells) value(cell *schema.Cell, column int, raw jsontext.Value) error {
	if raw.Kind() == 'n' {
		return nil
	}
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	c := &j.shape.columns[column]
	if c.Type.Nested() {
		if !isScalar || j.add(cell, text, text) {
			cell.JSON = json.RawMessage(bytes.Clone(raw))
		}
		return nil
	}
	if !isScalar {
		j.nested(cell, column, raw)
		return nil
	}
	if c.Split != "" && raw.Kind() == '"' {
		j.shape.add(cell, column, text)
	} else {
		j.add(cell, text, j.meant(column, raw, text))
	}
	return nil
}

// meant is the text that a scalar stands for in a column. For categories and elements of records a number that is written with a point or an exponent
// is the number, as it is in a query: 5.0 is 5. One of digits alone stays as it is written, since it may be a code with more digits than numbers keep.
func (j *jsonCells) meant(column int, raw jsontext.Value, text string) string {
	t := j.shape.columns[column].Type
	if raw.Kind() == '"' || t == schema.DateColumn { // times that are counted may be numbers; numbers that are such need no notation
		return j.shape.meant(column, text)
	}
	if raw.Kind() != '0' || !j.shape.mixed || t != schema.CategoryColumn && t != schema.SetColumn || text != "-0" && !strings.ContainsAny(text, ".eE") {
		return text
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text // beyond what numbers keep
	}
	return schema.NumberText(v)
}

// add adds what a text means, unless as it stands it means that there is no value.
func (j *jsonCells) add(cell *schema.Cell, text, meant string) bool {
	missing := j.shape.isMissing(strings.TrimSpace(text))
	if !missing {
		cell.Values = append(cell.Values, meant)
	}
	return !missing
}

// scalar returns the text of a string, a number (its literal) or a boolean.
func (j *jsonCells) scalar(raw jsontext.Value) (text string, ok bool, err error) {
	switch raw.Kind() {
	case '"':
		if j.text, err = jsontext.AppendUnquote(j.text[:0], raw); err != nil {
			return "", false, err
		}
		return string(j.text), true, nil
	case '0', 't', 'f':
		return string(raw), true, nil
	}
	return "", false, nil
}

// nested notes that a column cannot have a value.
func (j *jsonCells) nested(cell *schema.Cell, column int, raw jsontext.Value) {
	if cell.Fault != "" {
		return
	}
	what, name := "an object", j.shape.columns[column].Name
	if raw.Kind() == '[' {
		what = "a list within a list"
	}
	cell.Fault = fmt.Sprintf("%.40s is %s, but a %s column takes strings, numbers, booleans and lists of them; a column called %s.x has the field x of objects, "+
		"payload columns store nested values, tree and graph columns take theirs", raw, what, j.shape.columns[column].Type, name)
}

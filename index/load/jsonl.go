package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// jsonLines decodes JSON Lines: one object per line, its fields matched to columns by name.
type jsonLines struct {
	*lines
	input   bytes.Reader
	json    *jsontext.Decoder
	columns map[string]int // of the columns that are used
	key     string
	text    []byte // unquoted string, reused
	from    []gathered
}

// gathered is what an object has for a column that is made of several fields.
type gathered struct {
	column       int
	names, texts []string
}

func newJSONL(r *Reader) (decoder, error) {
	j := &jsonLines{lines: newLines(r), columns: make(map[string]int), key: r.shape.key}
	j.json = jsontext.NewDecoder(&j.input)
	for i, c := range r.shape.columns {
		switch {
		case c.From != nil:
			j.from = append(j.from, gathered{column: i})
		case r.shape.used(i):
			j.columns[c.Name] = i
		}
	}
	return j, nil
}

func (j *jsonLines) next(rec *schema.Record) error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = j.nextLine(); err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
	}
	rec.Line = j.n
	if !readableBytes(line) {
		return j.r.bad(rec.Line, "%s", unreadable(line))
	}
	err := j.object(rec, line)
	if err == nil && j.key != "" && rec.Key == "" {
		err = fmt.Errorf("key field %q is missing or empty, and every record needs a key", j.key)
	}
	if err != nil {
		return j.r.bad(rec.Line, "%s", explainJSON(err))
	}
	return nil
}

// object decodes one line. Every error it returns concerns this line alone.
func (j *jsonLines) object(rec *schema.Record, line []byte) error {
	if line[0] != '{' {
		if line[0] == '[' {
			return errors.New("is a JSON array, not an object: JSON Lines is one object per line (jq -c '.[]' makes that)")
		}
		return errors.New("is not a JSON object: JSON Lines is one object per line")
	}
	j.input.Reset(line)
	j.json.Reset(&j.input)
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	for i := range j.from {
		j.from[i].names, j.from[i].texts = j.from[i].names[:0], j.from[i].texts[:0]
	}
	for j.json.PeekKind() != '}' {
		quoted, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		if j.text, err = jsontext.AppendUnquote(j.text[:0], quoted); err != nil {
			return err
		}
		column, wanted := j.columns[string(j.text)]
		isKey := j.key != "" && string(j.text) == j.key
		switch {
		case isKey:
			err = j.keyField(rec, column, wanted)
		case j.from != nil && j.gathers(string(j.text)):
			err = j.element(rec, string(j.text), column, wanted)
		case wanted:
			err = j.field(&rec.Cells[column], column)
		case j.r.opts.Columns.watches():
			var value jsontext.Value
			if j.json.PeekKind() == '{' {
				value, err = j.json.ReadValue()
			} else {
				err = j.json.SkipValue()
			}
			j.r.opts.Columns.other(j.text, value)
		default:
			err = j.json.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	if err := j.gather(rec); err != nil {
		return err
	}
	if rest := line[j.json.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("has text after its object: JSON Lines is one object per line")
	}
	return nil
}

// gathers says whether a column is made of a field, among others.
func (j *jsonLines) gathers(name string) bool {
	return slices.ContainsFunc(j.from, func(g gathered) bool {
		return slices.ContainsFunc(j.r.shape.columns[g.column].From, func(entry string) bool { return matches(entry, name) })
	})
}

// element reads a field that columns are made of, which may be a column as well.
func (j *jsonLines) element(rec *schema.Record, name string, column int, wanted bool) error {
	raw, err := j.json.ReadValue()
	if err != nil {
		return err
	}
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	if !isScalar && raw.Kind() != 'n' {
		return fmt.Errorf("field %q, which a column is made of, is neither a number nor null", name)
	}
	for i := range j.from {
		g := &j.from[i]
		g.names, g.texts = append(g.names, name), append(g.texts, text)
	}
	if wanted {
		return j.value(&rec.Cells[column], column, raw)
	}
	return nil
}

// gather fills the cells of columns that are made of several fields.
func (j *jsonLines) gather(rec *schema.Record) error {
	for i := range j.from {
		g := &j.from[i]
		at, missing := resolve(j.r.shape.columns[g.column].From, g.names)
		texts := make([]string, len(at), len(at)+len(missing))
		for i, field := range at {
			texts[i] = g.texts[field]
		}
		if len(at) > 0 {
			texts = append(texts, make([]string, len(missing))...) // which have no value
		}
		if err := j.r.shape.gather(&rec.Cells[g.column], g.column, texts); err != nil {
			return err
		}
	}
	return nil
}

// keyField reads the key, which may be a column as well.
func (j *jsonLines) keyField(rec *schema.Record, column int, wanted bool) error {
	kind := j.json.PeekKind()
	raw, err := j.json.ReadValue()
	if err != nil {
		return err
	}
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	if !isScalar && kind != 'n' {
		return fmt.Errorf("key field %q must be a string or a number", j.key)
	}
	if isScalar && !j.r.shape.setKey(rec, text) {
		rec.Key = ""
	}
	if !wanted {
		return nil
	}
	return j.value(&rec.Cells[column], column, raw)
}

// field reads the value of a column.
func (j *jsonLines) field(cell *schema.Cell, column int) error {
	if j.r.shape.columns[column].Type.Nested() || j.json.PeekKind() != '[' {
		raw, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		return j.value(cell, column, raw)
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	vector := j.r.shape.columns[column].Type == schema.VectorColumn
	for j.json.PeekKind() != ']' {
		raw, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		if vector {
			if err := j.number(cell, column, raw); err != nil {
				return err
			}
			continue
		}
		text, isScalar, err := j.scalar(raw)
		switch {
		case err != nil:
			return err
		case isScalar:
			j.add(cell, text, j.meant(column, raw, text))
		case raw.Kind() != 'n':
			return j.nested(column)
		}
	}
	_, err := j.json.ReadToken()
	return err
}

// number adds a number to the cell of a vector column.
func (j *jsonLines) number(cell *schema.Cell, column int, raw jsontext.Value) error {
	v, err := strconv.ParseFloat(string(raw), 32)
	if raw.Kind() != '0' || err != nil || len(cell.Vector) == MaxVector {
		return fmt.Errorf("field %q: element %d of the vector is %.40s: a vector is at most %d finite numbers", j.r.shape.columns[column].Name,
			len(cell.Vector), raw, MaxVector)
	}
	cell.Vector = append(cell.Vector, float32(v))
	return nil
}

// value adds one JSON value to the cell of a column.
func (j *jsonLines) value(cell *schema.Cell, column int, raw jsontext.Value) error {
	if raw.Kind() == 'n' {
		return nil
	}
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	c := &j.r.shape.columns[column]
	if c.Type.Nested() {
		if !isScalar || j.add(cell, text, text) {
			cell.JSON = json.RawMessage(bytes.Clone(raw))
		}
		return nil
	}
	if !isScalar {
		return j.nested(column)
	}
	if c.Split != "" && raw.Kind() == '"' {
		j.r.shape.add(cell, column, text)
	} else {
		j.add(cell, text, j.meant(column, raw, text))
	}
	return nil
}

// meant is the text that a scalar stands for in a column. For categories and elements of records a number that is written with a point or an exponent
// is the number, as it is in a query: 5.0 is 5. One of digits alone stays as it is written, since it may be a code with more digits than numbers keep.
func (j *jsonLines) meant(column int, raw jsontext.Value, text string) string {
	t := j.r.shape.columns[column].Type
	if raw.Kind() == '"' || t == schema.DateColumn { // times that are counted may be numbers; numbers that are such need no notation
		return j.r.shape.meant(column, text)
	}
	if raw.Kind() != '0' || !j.r.schema.Kind.Mixed() || t != schema.CategoryColumn && t != schema.SetColumn || text != "-0" && !strings.ContainsAny(text, ".eE") {
		return text
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text // beyond what numbers keep
	}
	return schema.NumberText(v)
}

// add adds what a text means, unless as it stands it means that there is no value.
func (j *jsonLines) add(cell *schema.Cell, text, meant string) bool {
	missing := j.r.shape.isMissing(strings.TrimSpace(text))
	if !missing {
		cell.Values = append(cell.Values, meant)
	}
	return !missing
}

// scalar returns the text of a string, a number (its literal) or a boolean.
func (j *jsonLines) scalar(raw jsontext.Value) (text string, ok bool, err error) {
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

func (j *jsonLines) nested(column int) error {
	c := &j.r.shape.columns[column]
	return fmt.Errorf("field %q holds a nested value, but a %s column takes strings, numbers, booleans and lists of "+
		"them; payload columns store nested values, tree and graph columns take theirs", c.Name, c.Type)
}

// explainJSON turns a decoder's error into a reason without the decoder's name.
func explainJSON(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return err.Error()
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fmt.Sprintf("names a field twice (byte %d)", syntax.ByteOffset+1)
	}
	return fmt.Sprintf("is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
}

package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// jsonLines decodes JSON Lines: one object per line, its fields matched to columns by name.
type jsonLines struct {
	r       *Reader
	scanner *lineScanner
	input   bytes.Reader
	json    *jsontext.Decoder
	columns map[string]int // of the columns that are used
	key     string
	text    []byte // unquoted string, reused
}

func newJSONL(r *Reader) (decoder, error) {
	j := &jsonLines{
		r:       r,
		scanner: newLineScanner(r.source.text, r.opts.MaxRecord),
		columns: make(map[string]int),
		key:     r.shape.key,
	}
	j.json = jsontext.NewDecoder(&j.input)
	for i, c := range r.shape.columns {
		if r.shape.used(i) {
			j.columns[c.Name] = i
		}
	}
	return j, nil
}

func (j *jsonLines) line() int64 { return j.scanner.line() }

func (j *jsonLines) next(rec *schema.Record) error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = j.r.nextLine(j.scanner); err != nil {
			return err
		}
		line = bytes.TrimSpace(line)
	}
	rec.Line = j.scanner.n
	if !utf8.Valid(line) {
		return j.r.bad(rec.Line, "%s", notUTF8(line))
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
	if rest := line[j.json.InputOffset():]; len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("has text after its object: JSON Lines is one object per line")
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
	if j.r.shape.columns[column].Type == schema.PayloadColumn || j.json.PeekKind() != '[' {
		raw, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		return j.value(cell, column, raw)
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	for j.json.PeekKind() != ']' {
		raw, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		text, isScalar, err := j.scalar(raw)
		switch {
		case err != nil:
			return err
		case isScalar:
			if !j.r.shape.isMissing(strings.TrimSpace(text)) {
				cell.Values = append(cell.Values, text)
			}
		case raw.Kind() != 'n':
			return j.nested(column)
		}
	}
	_, err := j.json.ReadToken()
	return err
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
	if c.Type == schema.PayloadColumn {
		if !isScalar || !j.r.shape.isMissing(strings.TrimSpace(text)) {
			cell.JSON = json.RawMessage(bytes.Clone(raw))
		}
		if isScalar && cell.JSON != nil {
			cell.Values = append(cell.Values, text)
		}
		return nil
	}
	if !isScalar {
		return j.nested(column)
	}
	if c.Split != "" && raw.Kind() == '"' {
		j.r.shape.add(cell, column, text)
	} else if !j.r.shape.isMissing(strings.TrimSpace(text)) {
		cell.Values = append(cell.Values, text)
	}
	return nil
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
		"them; only a payload column stores nested values", c.Name, c.Type)
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

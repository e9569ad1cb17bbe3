package load

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/load/jsonpath"
	"github.com/geniemq/geniemq/index/schema"
)

// jsonLines decodes JSON Lines: one object per line, its fields matched to columns by name.
type jsonLines struct {
	*lines
	*jsonCells
	input   bytes.Reader
	json    *jsontext.Decoder
	columns map[string]int // of the columns that are used
	paths   map[string][]within
	key     string
	several []byte // a list of values, reused
	from    []gathered
}

// within is a column, or the key, whose value lies within that of a field.
type within struct {
	path   jsonpath.Path
	column int // -1: the key
}

// gathered is what an object has for a column that is made of several fields.
type gathered struct {
	column       int
	names, texts []string
	fault        string // a field is nothing that a column can be made of
}

func newJSONL(r *Reader) (decoder, error) {
	j := &jsonLines{lines: newLines(r), jsonCells: newJSONCells(r.shape), columns: make(map[string]int), paths: make(map[string][]within), key: r.shape.key}
	j.json = jsontext.NewDecoder(&j.input)
	j.leads(j.key, -1)
	for i, c := range r.shape.columns {
		switch {
		case c.From != nil:
			j.from = append(j.from, gathered{column: i})
		case r.shape.used(i):
			j.columns[c.Name] = i
			j.leads(c.Name, i)
		}
	}
	return j, nil
}

// leads notes a name that is a path too. A field that is called so as a whole goes before what the path leads to.
func (j *jsonLines) leads(name string, column int) {
	if path, ok := jsonpath.Parse(name); ok {
		j.paths[path.Head] = append(j.paths[path.Head], within{path, column})
	}
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
			return errors.New("is a JSON array, not an object: JSON Lines is one object per line, and an array of objects is all of its file")
		}
		return errors.New("is not a JSON object: JSON Lines is one object per line")
	}
	j.input.Reset(line)
	j.json.Reset(&j.input)
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	for i := range j.from {
		j.from[i].names, j.from[i].texts, j.from[i].fault = j.from[i].names[:0], j.from[i].texts[:0], ""
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
		gathers := j.from != nil && j.gathers(string(j.text))
		paths := j.paths[string(j.text)]
		if !isKey && !gathers && !wanted && paths == nil {
			j.r.opts.Columns.other(j.text)
			if err := j.json.SkipValue(); err != nil {
				return err
			}
			continue
		}
		name := ""
		if gathers {
			name = string(j.text)
		}
		raw, err := j.json.ReadValue()
		if err != nil {
			return err
		}
		if err := j.read(rec, paths, raw); err != nil {
			return err
		}
		switch {
		case isKey:
			err = j.keyField(rec, raw)
		case gathers:
			err = j.element(name, raw)
		}
		if err == nil && wanted {
			rec.Cells[column].Reset() // a path may have been there before
			err = j.field(&rec.Cells[column], column, raw)
		}
		if err != nil {
			return err
		}
	}
	if _, err := j.json.ReadToken(); err != nil {
		return err
	}
	j.gather(rec)
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

// read reads what paths lead to within a field.
func (j *jsonLines) read(rec *schema.Record, paths []within, raw jsontext.Value) (err error) {
	for i := range paths {
		w := &paths[i]
		if w.column >= 0 && !rec.Cells[w.column].Empty() || w.column < 0 && rec.Key != "" {
			continue // a field is called as the path
		}
		nested := w.column >= 0 && j.r.shape.columns[w.column].Type.Nested()
		j.several = append(j.several[:0], '[')
		first, n := jsontext.Value(nil), 0
		w.path.Find(raw, func(value []byte) {
			switch {
			case err != nil:
			case nested:
				j.several = append(append(j.several, value...), ',')
				first = value
				n++
			case w.column >= 0:
				err = j.field(&rec.Cells[w.column], w.column, value)
			case rec.Key == "":
				err = j.keyField(rec, value)
			}
		})
		switch {
		case n == 1:
			err = j.field(&rec.Cells[w.column], w.column, first)
		case n > 1: // what is kept as it is, is a list of all
			j.several[len(j.several)-1] = ']'
			err = j.field(&rec.Cells[w.column], w.column, j.several)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// element reads a field that columns are made of.
func (j *jsonLines) element(name string, raw jsontext.Value) error {
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	for i := range j.from {
		g := &j.from[i]
		g.names, g.texts = append(g.names, name), append(g.texts, text)
		if !isScalar && raw.Kind() != 'n' {
			g.fault = fmt.Sprintf("field %q, which it is made of, is neither a number nor null", name)
		}
	}
	return nil
}

// gather fills the cells of columns that are made of several fields.
func (j *jsonLines) gather(rec *schema.Record) {
	for i := range j.from {
		g := &j.from[i]
		if g.fault != "" && j.r.shape.used(g.column) {
			rec.Cells[g.column].Fault = g.fault
			continue
		}
		at, missing := resolve(j.r.shape.columns[g.column].From, g.names)
		texts := make([]string, len(at), len(at)+len(missing))
		for i, field := range at {
			texts[i] = g.texts[field]
		}
		if len(at) > 0 {
			j.r.opts.Columns.gathered(g.column)
			texts = append(texts, make([]string, len(missing))...) // which have no value
		}
		j.r.shape.gather(&rec.Cells[g.column], g.column, texts)
	}
}

// keyField reads the key.
func (j *jsonLines) keyField(rec *schema.Record, raw jsontext.Value) error {
	text, isScalar, err := j.scalar(raw)
	if err != nil {
		return err
	}
	if !isScalar && raw.Kind() != 'n' {
		return fmt.Errorf("key field %q must be a string or a number", j.key)
	}
	if isScalar && !j.r.shape.setKey(rec, text) {
		rec.Key = ""
	}
	return nil
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

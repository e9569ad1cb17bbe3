package load

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/notation"
	"github.com/geniemq/geniemq/index/schema"
)

// shape is what loading needs of a schema: how a raw text becomes a cell of a column. All formats fill cells
// through it, so that the same data mean the same in each of them.
type shape struct {
	columns []schema.Column
	missing []string
	mixed   bool              // columns of all types may stand side by side
	key     string            // name of the key column, "" for none
	read    []notation.Reader // by column: how its values are written; nil: as they are meant
}

func newShape(s *schema.Schema) *shape {
	shape := &shape{columns: s.Columns, missing: s.Missing, mixed: s.Kind.Mixed(), key: s.Key, read: make([]notation.Reader, len(s.Columns))}
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.Parse == "":
		case c.Type == schema.NumberColumn:
			shape.read[i], _ = notation.Number(c.Parse) // the column was checked
		case c.Type == schema.DateColumn:
			shape.read[i], _ = notation.Date(c.Parse)
		}
	}
	return shape
}

// reset prepares rec for the next record and keeps its memory.
func (s *shape) reset(rec *schema.Record) {
	rec.Line, rec.Key = 0, ""
	rec.Cells = slices.Grow(rec.Cells[:0], len(s.columns))[:len(s.columns)]
	for i := range rec.Cells {
		rec.Cells[i].Reset()
	}
}

// used says whether the values of a column go anywhere.
func (s *shape) used(column int) bool { return s.columns[column].Type != schema.SkipColumn }

// add adds a raw text to the cell of a column: split where the column says so, trimmed, without missing values.
func (s *shape) add(cell *schema.Cell, column int, text string) {
	separator := s.columns[column].Split
	for separator != "" {
		value, rest, found := strings.Cut(text, separator)
		if !found {
			break
		}
		s.addValue(cell, column, value)
		text = rest
	}
	s.addValue(cell, column, text)
}

func (s *shape) addValue(cell *schema.Cell, column int, value string) {
	if value = strings.TrimSpace(value); !s.isMissing(value) {
		cell.Values = append(cell.Values, s.meant(column, value))
	}
}

// meant is what a value means that is written in a notation of its column. One that is not stays as it is, for the column's type to refuse.
func (s *shape) meant(column int, value string) string {
	if read := s.read[column]; read != nil {
		if plain, ok := read(value); ok {
			return plain
		}
	}
	return value
}

// notNumber notes that the next element of a vector is none that a vector can have.
func notNumber(cell *schema.Cell, text string) {
	if cell.Fault == "" {
		cell.Fault = fmt.Sprintf("element %d of the vector is %.40s: a vector is at most %d finite numbers", len(cell.Vector), text, MaxVector)
	}
}

// isMissing tells whether a trimmed value is one of the schema's words for a missing value.
func (s *shape) isMissing(value string) bool { return slices.Contains(s.missing, value) }

// columnNamed returns the position of the schema column called name, or -1.
func (s *shape) columnNamed(name string) int {
	return slices.IndexFunc(s.columns, func(c schema.Column) bool { return c.Name == name })
}

// setKey sets the key of rec and reports whether it has one.
func (s *shape) setKey(rec *schema.Record, key string) bool {
	rec.Key = strings.TrimSpace(key)
	return rec.Key != "" && !s.isMissing(rec.Key)
}

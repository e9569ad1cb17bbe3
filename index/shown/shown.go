// Package shown is what answers show of objects.
package shown

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/forward"
)

// Objects is what is shown of the objects of an index: a JSON object of what was stored with each, by name. Payload columns come first, then columns with
// store, in the order of the schema, and the text of a sequence before all. It is shared and does not change.
type Objects struct {
	index   *index.Index
	text    string // the column of sequences; "": none
	columns []shownColumn
	longest int64
}

// shownColumn is a column whose value is kept for hits.
type shownColumn struct {
	name  []byte // quoted
	kept  *forward.Column
	shows column.NumberShower // of numbers that are not written as such; nil: they are
}

const (
	// quoteFactor is how many times longer a string may become in JSON.
	quoteFactor = 6
)

// Of returns what is shown of the objects of an index. text is the column of the texts of sequences.
func Of(x *index.Index, text string) *Objects {
	_, payload, longest := x.Longest()
	s := &Objects{index: x, text: text, longest: int64(payload) + 2}
	if text != "" {
		s.longest += quoteFactor * int64(longest+len(text)+4)
	}
	kept := x.Forward()
	if kept == nil {
		return s
	}
	columns := x.Schema().Columns
	for i := range columns {
		c := &columns[i]
		of := kept.Column(c.Name)
		if of == nil || !of.Returned {
			continue
		}
		shown := shownColumn{kept: of}
		shown.name, _ = jsontext.AppendQuote(nil, c.Name) // Validate has checked that names are UTF-8
		shown.shows, _ = x.ColumnType(c).(column.NumberShower)
		s.columns = append(s.columns, shown)
		s.longest += int64(len(shown.name)) + 4 + of.LongestJSON()
	}
	if len(s.columns) > 0 {
		s.longest += int64(kept.LongestRow())
	}
	return s
}

// Longest is how many bytes are shown of an object at most.
func (s *Objects) Longest() int64 { return s.longest }

// Composed says that what is shown is put together, and not stored as it is.
func (s *Objects) Composed() bool { return s.text != "" || len(s.columns) > 0 }

// Reader returns a reader of what is shown, for one goroutine at a time.
func (s *Objects) Reader() *Reader {
	r := &Reader{shown: s}
	if len(s.columns) > 0 {
		r.rows = s.index.Forward().NewReader()
	}
	return r
}

// Reader reads what is shown of objects. It keeps its memory.
type Reader struct {
	shown *Objects
	rows  *forward.Reader
}

// Object returns what is shown of an object, nil where nothing is stored of it. It points into the map or is a copy.
func (r *Reader) Object(id uint32) []byte {
	s := r.shown
	stored := s.index.Payload(id)
	if !s.Composed() {
		return stored
	}
	dst := []byte{'{'}
	if s.text != "" {
		dst = appendText(append(appendText(dst, s.text), ':'), s.index.Text(id))
	}
	if len(stored) > len("{}") {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, stored[1:len(stored)-1]...)
	}
	for i := range s.columns {
		dst = r.member(dst, &s.columns[i], id)
	}
	if len(dst) == 1 {
		return nil
	}
	return append(dst, '}')
}

// appendText appends a string as it always was: <, > and & are escaped.
func appendText(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // strings cannot fail
	return append(dst, quoted...)
}

// member appends a column of an object, if it has a value.
func (r *Reader) member(dst []byte, c *shownColumn, id uint32) []byte {
	before := len(dst)
	if before > 1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, c.name...), ':')
	ok := false
	if numbers := c.kept.Numbers(id); c.shows != nil && numbers != nil {
		dst, ok = appendShown(dst, c.shows, numbers), len(numbers) > 0
	} else {
		dst, ok = r.rows.AppendJSON(dst, c.kept, id)
	}
	if !ok {
		return dst[:before]
	}
	return dst
}

// appendShown appends numbers as their type shows them: one as itself, several as an array.
func appendShown(dst []byte, by column.NumberShower, numbers []float64) []byte {
	if len(numbers) == 1 {
		return by.AppendJSON(dst, numbers[0])
	}
	for i, v := range numbers {
		dst = by.AppendJSON(append(dst, "[,"[min(i, 1)]), v)
	}
	return append(dst, ']')
}

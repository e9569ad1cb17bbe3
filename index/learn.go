package index

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

// learnBytes bounds the memory of the records of a sample, roughly, and learnRecords how far it is looked for a first value.
const (
	learnBytes   = 256 << 20
	learnRecords = 1 << 17
)

// Learn fills in what a schema leaves to the data, such as the width of hash buckets: what NewObjects needs to know. It reads as many records by next as that
// takes, at the beginning of the data, or more where a column has no value in these, and returns a next that gives these again, then the rest. Errors after which next may be called again, as skippable
// says (nil: none), are given again too; any other ends it. A schema that leaves nothing open is left alone.
func (k Kinds) Learn(s *schema.Schema, next func(*schema.Record) error, skippable func(error) bool) (func(*schema.Record) error, error) {
	most := 0
	for i := range s.Columns {
		if learner := k.learner(s, i); learner != nil {
			most = max(most, learner.Sample(&s.Columns[i]))
		}
	}
	if most == 0 {
		return next, nil
	}
	r := &replay{next: next}
	if err := r.sample(most, k.untaught(s), skippable); err != nil {
		return nil, err
	}
	for i := range s.Columns {
		learner := k.learner(s, i)
		if learner == nil {
			continue
		}
		read := r.read[:min(most, len(r.read))]
		if !slices.ContainsFunc(read, func(r readRecord) bool { return r.has(i) }) {
			read = r.read
		}
		var cells []schema.Cell
		for j := range read {
			if r := &read[j]; r.err == nil && i < len(r.rec.Cells) && !r.rec.Cells[i].Empty() {
				cells = append(cells, r.rec.Cells[i])
			}
		}
		err := learner.Learn(&s.Columns[i], cells, errors.Is(read[len(read)-1].err, io.EOF), runtime.GOMAXPROCS(0))
		switch {
		case err != nil && len(cells) == 0:
			return nil, &NoValueError{s.Columns[i].Name, err}
		case err != nil:
			return nil, fmt.Errorf("column %q: %w", s.Columns[i].Name, err)
		}
	}
	return r.record, nil
}

// NoValueError says that nothing can be learned of a column since the data have no value for it: its name may be another in them.
type NoValueError struct {
	Column string
	Err    error // what is not known
}

func (e *NoValueError) Error() string { return fmt.Sprintf("column %q: %v", e.Column, e.Err) }

// Unwrap returns what is not known.
func (e *NoValueError) Unwrap() error { return e.Err }

// sample reads so many records, and goes on while some columns have no value in any of them: there would be nothing to learn from. It returns an error
// that is neither skippable nor the end of the data.
func (r *replay) sample(most int, untaught []int, skippable func(error) bool) error {
	for size := 0; size < learnBytes && len(r.read) < max(most, learnRecords) && (len(r.read) < most || len(untaught) > 0); {
		var rec schema.Record // so that what is read has memory of its own
		err := r.next(&rec)
		r.read = append(r.read, readRecord{rec, err})
		size += recordBytes(&rec)
		untaught = slices.DeleteFunc(untaught, r.read[len(r.read)-1].has)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && (skippable == nil || !skippable(err)):
			return err // what can be learned from a part is not what is wrong
		}
	}
	return nil
}

// untaught are the columns of which something is learned.
func (k Kinds) untaught(s *schema.Schema) (columns []int) {
	for i := range s.Columns {
		if k.learner(s, i) != nil {
			columns = append(columns, i)
		}
	}
	return columns
}

// learner is what learns of a column; nil where there is nothing to learn.
func (k Kinds) learner(s *schema.Schema, i int) column.Learner {
	learner, ok := k.Column(s.Kind, s.Columns[i].Type).(column.Learner)
	if !ok || learner.Sample(&s.Columns[i]) == 0 {
		return nil
	}
	return learner
}

// unlearned names a column of which something has to be learned; "" where there is none.
func (k Kinds) unlearned(s *schema.Schema) string {
	for i := range s.Columns {
		if k.learner(s, i) != nil {
			return s.Columns[i].Name
		}
	}
	return ""
}

// replay gives records that were read before, then the others.
type replay struct {
	read []readRecord
	next func(*schema.Record) error
}

// readRecord is a record that was read, or why it was not.
type readRecord struct {
	rec schema.Record
	err error
}

// has says that there is something in the cell of a column that may be learned from.
func (r readRecord) has(column int) bool {
	return r.err == nil && column < len(r.rec.Cells) && !r.rec.Cells[column].Empty() && r.rec.Cells[column].Fault == ""
}

func (r *replay) record(rec *schema.Record) error {
	if len(r.read) == 0 {
		return r.next(rec)
	}
	first := &r.read[0]
	if first.err == nil {
		*rec = first.rec
	}
	err := first.err
	*first = readRecord{} // which nobody needs any more
	r.read = r.read[1:]
	return err
}

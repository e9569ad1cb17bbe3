package index

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

// learnBytes bounds the memory of the records of a sample, roughly.
const learnBytes = 256 << 20

// Learn fills in what a schema leaves to the data, such as the width of hash buckets: what NewObjects needs to know. It reads as many records by next as that
// takes, at the beginning of the data, and returns a next that gives these again, then the rest. Errors after which next may be called again, as skippable
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
	for size := 0; len(r.read) < most && size < learnBytes; {
		var rec schema.Record // so that what is read has memory of its own
		err := next(&rec)
		r.read = append(r.read, readRecord{rec, err})
		size += recordBytes(&rec)
		if err != nil && (skippable == nil || !skippable(err)) {
			if !errors.Is(err, io.EOF) {
				return nil, err // what can be learned from a part is not what is wrong
			}
			break
		}
	}
	for i := range s.Columns {
		learner := k.learner(s, i)
		if learner == nil {
			continue
		}
		var cells []schema.Cell
		for j := range r.read {
			if read := &r.read[j]; read.err == nil && i < len(read.rec.Cells) && !read.rec.Cells[i].Empty() {
				cells = append(cells, read.rec.Cells[i])
			}
		}
		if err := learner.Learn(&s.Columns[i], cells, errors.Is(r.read[len(r.read)-1].err, io.EOF), runtime.GOMAXPROCS(0)); err != nil {
			return nil, fmt.Errorf("column %q: %w", s.Columns[i].Name, err)
		}
	}
	return r.record, nil
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

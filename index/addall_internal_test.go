package index

import (
	"io"
	"slices"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/schema"
)

// TestLargeRecordsLeaveNoMemory passes records through one batch, of which now and then one is large, at another place each time: the places must
// not keep what these took.
func TestLargeRecordsLeaveNoMemory(t *testing.T) {
	s, err := Builtin().ParseSchema([]byte("name: t\ncolumns:\n- {name: s, type: set}\n"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := NewObjects(s, BuilderOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	elements := make([]string, 2*largeRecord)
	for i := range elements {
		elements[i] = strconv.Itoa(i)
	}
	b := &recordBatch{lists: o.NewBatch(), payload: objects.NewPayloadWriter(s)}
	const rounds = 40
	for round := range rounds + 1 {
		next := 0
		b.read(&Source{Next: func(rec *schema.Record) error {
			if next == rounds {
				return io.EOF
			}
			values := []string{"x"}
			if next == round { // in the last one none is
				values = elements
			}
			next++
			rec.Cells = slices.Grow(rec.Cells[:0], 1)[:1]
			rec.Cells[0].Values = append(rec.Cells[0].Values[:0], values...)
			return nil
		}})
		o.encodeAll(b)
	}
	kept := 0
	for i := range b.records {
		for _, cell := range b.records[i].Cells {
			kept += cap(cell.Values)
		}
	}
	for _, values := range b.values {
		kept += cap(values[0].Strings)
	}
	if kept > largeRecord {
		t.Errorf("room for %d strings is kept for records of one each", kept)
	}
}

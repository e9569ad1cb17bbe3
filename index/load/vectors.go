package load

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/geniemq/geniemq/index/load/array"
	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/schema"
)

// MaxVector bounds the elements of a vector.
const MaxVector = array.MaxElements

// vectorLines decodes sources that are vectors and nothing else: each record is one, the cell of the schema's vector column.
type vectorLines struct {
	r      *Reader
	column int
	layout array.Layout
	n      int64 // records read
	buffer []byte
}

func newNPY(r *Reader) (decoder, error) {
	layout, err := array.NPY(r.source.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	return r.newVectors(layout)
}

func newFVecs(r *Reader) (decoder, error) { return r.newCounted(array.FVecs()) }

func newBVecs(r *Reader) (decoder, error) { return r.newCounted(array.BVecs()) }

// newCounted looks at the head of the first vector. What is wrong with it is told where it is read.
func (r *Reader) newCounted(layout array.Layout) (decoder, error) {
	text := r.buffered(r.source.Text)
	r.source.Text = text
	if head, err := text.Peek(layout.Head()); err == nil {
		if n := array.Count(head); n >= 1 && n <= MaxVector {
			layout.Elements = n
		}
	}
	return r.newVectors(layout)
}

func (r *Reader) newVectors(layout array.Layout) (decoder, error) {
	if !source.UTF8(r.opts.Encoding) {
		return nil, fmt.Errorf("%s: vectors are no text: leave --encoding out", r.name)
	}
	if r.shape.key != "" {
		return nil, fmt.Errorf("%s: vectors have no key column, but the schema names %q: leave key out (keys are then the object ids)",
			r.name, r.shape.key)
	}
	column := -1
	for i, c := range r.shape.columns {
		switch {
		case c.Type == schema.SkipColumn, c.Type == schema.PayloadColumn:
		case c.Type == schema.VectorColumn && column < 0:
			column = i
		default:
			return nil, fmt.Errorf("%s: the source is vectors, which fill one column of type vector; the schema has column %q of type %s too or instead",
				r.name, c.Name, c.Type)
		}
	}
	if column < 0 {
		return nil, fmt.Errorf("%s: the source is vectors, but the schema has no column of type vector", r.name)
	}
	return &vectorLines{r: r, column: column, layout: layout}, nil
}

// line is the number of the record: there are no lines.
func (v *vectorLines) line() int64 { return v.n }

// again returns a decoder of another part of the source.
func (v *vectorLines) again(r *Reader) decoder {
	d := &vectorLines{r: r, column: v.column, layout: v.layout, n: r.before}
	if p := r.source.Text.(*part); !p.Last && !d.layout.Headed { // whose end is none of the source's
		d.layout.Rows = min(d.layout.Rows, r.before+int64(len(p.Text)/d.layout.Stride()))
	}
	return d
}

func (v *vectorLines) next(rec *schema.Record) error {
	n, err := v.elements()
	if err != nil {
		return err
	}
	v.n++
	rec.Line = v.n
	e := &v.layout
	if size := n * e.Bytes; cap(v.buffer) < size {
		v.buffer = make([]byte, size)
	}
	data := v.buffer[:n*e.Bytes]
	if _, err := io.ReadFull(v.r.source.Text, data); err != nil {
		return v.ends(err)
	}
	cell := &rec.Cells[v.column]
	for i := range n {
		x := e.Read(data[i*e.Bytes:])
		f := float32(x)
		if math.IsNaN(x) || math.IsInf(float64(f), 0) {
			return v.r.bad(v.n, "element %d is %v, not a number that a vector can have", i, x)
		}
		cell.Vector = append(cell.Vector, f)
	}
	return nil
}

// elements is how many the next vector has; io.EOF after the last one.
func (v *vectorLines) elements() (int, error) {
	if !v.layout.Headed {
		if v.n == v.layout.Rows {
			return 0, io.EOF
		}
		return v.layout.Elements, nil
	}
	var head [4]byte
	if n, err := io.ReadFull(v.r.source.Text, head[:]); err != nil {
		if n > 0 {
			v.n++
			err = v.ends(err)
		}
		return 0, err
	}
	n := array.Count(head[:])
	switch {
	case n < 1 || n > MaxVector:
		return 0, &fault{v.n + 1, fmt.Sprintf("vector %d has %d elements; a vector has 1 to %d: is the source of this format?", v.n+1, n, MaxVector)}
	case v.layout.Elements != n: // the first one has them
		return 0, &fault{v.n + 1, fmt.Sprintf("vector %d has %d elements, the ones before have %d", v.n+1, n, v.layout.Elements)}
	}
	return n, nil
}

// ends is an error of reading, where a vector has begun.
func (v *vectorLines) ends(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &fault{v.n, fmt.Sprintf("the source ends within vector %d, it is truncated", v.n)}
	}
	return err
}

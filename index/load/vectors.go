package load

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/schema"
)

// MaxVector bounds the elements of a vector.
const MaxVector = 1 << 16

// element is how a source stores the elements of vectors.
type element struct {
	bytes int
	read  func(data []byte) float64 // data has so many bytes
}

// vectorLines decodes sources that are vectors and nothing else: each record is one, the cell of the schema's vector column.
type vectorLines struct {
	r       *Reader
	column  int
	element element
	// elements of the next vector, io.EOF after the last one. It may read from the source.
	elements func() (int, error)
	n        int64 // records read
	buffer   []byte
}

func (r *Reader) newVectors(e element) (*vectorLines, error) {
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
	return &vectorLines{r: r, column: column, element: e}, nil
}

// line is the number of the record: there are no lines.
func (v *vectorLines) line() int64 { return v.n }

func (v *vectorLines) next(rec *schema.Record) error {
	n, err := v.elements()
	if err != nil {
		return err
	}
	v.n++
	rec.Line = v.n
	if size := n * v.element.bytes; cap(v.buffer) < size {
		v.buffer = make([]byte, size)
	}
	data := v.buffer[:n*v.element.bytes]
	if _, err := io.ReadFull(v.r.source.Text, data); err != nil {
		return v.ends(err)
	}
	cell := &rec.Cells[v.column]
	for i := range n {
		x := v.element.read(data[i*v.element.bytes:])
		f := float32(x)
		if math.IsNaN(x) || math.IsInf(float64(f), 0) {
			return v.r.bad(v.n, "element %d is %v, not a number that a vector can have", i, x)
		}
		cell.Vector = append(cell.Vector, f)
	}
	return nil
}

// ends is an error of reading, where a vector has begun.
func (v *vectorLines) ends(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &fault{v.n, fmt.Sprintf("the source ends within vector %d, it is truncated", v.n)}
	}
	return err
}

func newFVecs(r *Reader) (decoder, error) {
	return r.newCounted(element{4, func(d []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(d))) }})
}

func newBVecs(r *Reader) (decoder, error) {
	return r.newCounted(element{1, func(d []byte) float64 { return float64(d[0]) }})
}

// newCounted decodes vectors that have their number of elements before them, an int32 that is the same for all.
func (r *Reader) newCounted(e element) (decoder, error) {
	v, err := r.newVectors(e)
	if err != nil {
		return nil, err
	}
	first := 0
	v.elements = func() (int, error) {
		var head [4]byte
		if n, err := io.ReadFull(r.source.Text, head[:]); err != nil {
			if n > 0 {
				v.n++
				err = v.ends(err)
			}
			return 0, err
		}
		n := int(int32(binary.LittleEndian.Uint32(head[:])))
		switch {
		case n < 1 || n > MaxVector:
			return 0, &fault{v.n + 1, fmt.Sprintf("vector %d has %d elements; a vector has 1 to %d: is the source of this format?", v.n+1, n, MaxVector)}
		case first != 0 && n != first:
			return 0, &fault{v.n + 1, fmt.Sprintf("vector %d has %d elements, the ones before have %d", v.n+1, n, first)}
		}
		first = n
		return n, nil
	}
	return v, nil
}

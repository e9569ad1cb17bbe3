package vector

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
)

// Objects implements column.Type.
func (Column) Objects(_ *schema.Schema, c *schema.Column) (column.ObjectEncoder, error) {
	p, err := plainObjectsOf(c)
	if err != nil {
		return nil, err
	}
	if !distance.Hashed(c) {
		return &p, nil
	}
	f, err := functions(c)
	if err != nil {
		return nil, err
	}
	return &objects{plainObjects: p, functions: f, block: hostBlock}, nil
}

// plainObjectsOf returns the encoder of a column as far as there are no hash functions. Its dimensions may not be known yet.
func plainObjectsOf(c *schema.Column) (p plainObjects, err error) {
	p = plainObjects{dims: c.Dims, keep: cmp.Or(c.Storage, c.Keep), store: c.Store}
	if distance.Nearest(c) {
		p.metric, err = distance.ParseMetric(c.Metric)
	}
	return p, err
}

// plainObjects reads vectors that have no keywords.
type plainObjects struct {
	metric metric.Metric // zero: they are not searched by distance
	dims   int
	keep   string
	store  bool
}

// Encode implements column.ObjectEncoder.
func (o *plainObjects) Encode(dst *schema.Values, cell *schema.Cell) (err error) {
	first := len(dst.Vector)
	if dst.Vector, err = appendCell(dst.Vector, cell); err != nil {
		return err
	}
	x := dst.Vector[first:]
	if len(x) == 0 {
		return nil
	}
	if err := check(x, o.dims); err != nil {
		return err
	}
	if err := o.takes(x); err != nil {
		return err
	}
	if o.keep == keepNothing && o.store {
		dst.JSON = appendJSON(dst.JSON, x)
	}
	return nil
}

// takes says why a vector cannot be compared or kept, whatever its dimensions.
func (o *plainObjects) takes(x []float32) error {
	if o.metric.Kind != "" {
		if err := o.metric.Admits(x); err != nil {
			return err
		}
	}
	if at := distance.Loses(o.keep, x); at >= 0 {
		if o.keep == keepBytes {
			return fmt.Errorf("element %d is %v, and elements that are stored as u8 are integers from 0 to 255", at, x[at])
		}
		return fmt.Errorf("element %d is %v, which is no 16-bit float: build with storage: f32", at, x[at])
	}
	return nil
}

const (
	hostBlock   = 192 // vectors whose hashes fit a cache, and of which the last stretch is not short
	deviceBlock = 1024
	// deviceLeast is from how many vectors on a device hashes them. A call takes it some 0.1 ms whatever it hashes, in which a core hashes 30 of
	// 128 dimensions by 237 functions.
	deviceLeast = 64
)

// objects makes keywords of cells too.
type objects struct {
	plainObjects
	functions *lsh.Functions
	block     int // vectors that are hashed together
}

// HashBy lets an engine hash: it is called before anything is encoded. The hasher, nil where the engine does not hash, is to be closed after that.
func (o *objects) HashBy(e lsh.Engine) (lsh.Hasher, error) {
	h, err := e.Hasher(o.functions)
	if err != nil || h == nil {
		return nil, err
	}
	o.functions, o.block = o.functions.By(h, deviceLeast), deviceBlock
	return h, nil
}

// Encode implements column.ObjectEncoder. The keywords are not there before EncodeAll.
func (o *objects) Encode(dst *schema.Values, cell *schema.Cell) error {
	first := len(dst.Vector)
	if err := o.plainObjects.Encode(dst, cell); err != nil || len(dst.Vector) == first {
		return err
	}
	if err := o.functions.Check(dst.Vector[first:]); err != nil {
		return explain(err)
	}
	return nil
}

// EncodeAll implements column.BlockEncoder: vectors are hashed together.
func (o *objects) EncodeAll(all []*schema.Values) error {
	m := o.functions.Parameters().Functions
	block := min(o.block, len(all))
	vectors, hashes := make([]float32, 0, block*o.dims), make([]uint32, block*m)
	for len(all) > 0 {
		part := all[:min(block, len(all))]
		all = all[len(part):]
		vectors = vectors[:0]
		for _, v := range part {
			vectors = append(vectors, v.Vector...)
		}
		n := len(vectors) / o.dims
		if err := o.functions.Hash(hashes[:n*m], vectors, 1); err != nil {
			return explain(err)
		}
		at := 0
		for _, v := range part {
			if len(v.Vector) > 0 {
				v.Ordinals = append(v.Ordinals[:0], hashes[at:at+m]...)
				at += m
			}
		}
	}
	return nil
}

// explain says an element's fault without the number of its vector, which is the caller's.
func explain(err error) error {
	var fault *lsh.ElementError
	if !errors.As(err, &fault) {
		return err
	}
	return fmt.Errorf("element %d is %g, beyond %g, where the sums of hash functions overflow: scale the vectors", fault.Element, fault.Value, fault.Limit)
}

// appendJSON appends a vector as JSON.
func appendJSON(dst []byte, x []float32) []byte {
	dst = append(dst, '[')
	for i, v := range x {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
	}
	return append(dst, ']')
}

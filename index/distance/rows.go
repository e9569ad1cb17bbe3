package distance

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// rows are the vectors of a column in the order of an access path. Objects that a search looks at together then lie together: read from memory in another order each takes
// a cache miss, which is several times what comparing it takes. The price is that vectors are stored twice.
type rows struct {
	data    []byte // nil: there are none, and vectors are read where they lie by id
	storage string
}

func newRows(c *schema.Column, data []byte) rows { return rows{data, c.Storage} }

// elementBytes is the size of an element of vectors.
func elementBytes(storage string) int64 {
	switch storage {
	case StorageU8:
		return 1
	case StorageF16:
		return 2
	}
	return 4
}

// vectorsOf is a space of vectors in a storage, which lie one after the other.
func vectorsOf(m metric.Metric, dims int, storage string, data []byte) (*metric.Vectors, error) {
	switch storage {
	case StorageU8:
		return metric.NewVectors(m, dims, data)
	case StorageF16:
		return metric.NewVectors(m, dims, store.View[sums.Half](data))
	}
	return metric.NewVectors(m, dims, store.View[float32](data))
}

// space is the objects of a space in the order of the path. Unit vectors of points are made anew when a file is opened, so they are put in order here.
func (r rows) space(by metric.Space, order []uint32) (metric.Space, error) {
	if points, ok := by.(*metric.Points); ok {
		units := make([]float64, 3*len(order))
		for at, id := range order {
			points.Coordinates(id, units[3*at:])
		}
		return metric.NewPoints(units)
	}
	v, ok := by.(*metric.Vectors)
	if !ok || r.data == nil {
		return permuted(by, order)
	}
	s, err := vectorsOf(v.Metric(), v.Dims(), r.storage, r.data)
	if err != nil || !byAngle(v.Metric()) {
		return s, err
	}
	return s.UseNorms(s.Norms(make([]float64, 0, s.Len())))
}

// bytes is what space takes in memory beside the file.
func (r rows) bytes(space metric.Space) int64 {
	if _, ok := space.(*metric.Points); ok {
		return unitBytes * int64(space.Len())
	}
	if r.data == nil || !byAngle(space.Metric()) {
		return 0
	}
	return 8 * int64(space.Len())
}

// verify compares rows with the vectors by id.
func (r rows) verify(by metric.Space, order []uint32) error {
	v, ok := by.(*metric.Vectors)
	if !ok || r.data == nil {
		return nil
	}
	s, err := vectorsOf(v.Metric(), v.Dims(), r.storage, r.data)
	if err != nil {
		return err
	}
	own, want := make([]float64, v.Dims()), make([]float64, v.Dims())
	for at, id := range order {
		s.Coordinates(uint32(at), own)
		v.Coordinates(id, want)
		for i := range own {
			if math.Float64bits(own[i]) != math.Float64bits(want[i]) {
				return fmt.Errorf("the row at position %d is not the vector of object %d", at, id)
			}
		}
	}
	return nil
}

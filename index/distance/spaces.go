package distance

import (
	"fmt"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/store"
)

// unitBytes is what the unit vector of a point takes in memory.
const unitBytes = 24

// Space is the objects of the column under its metric. Those without a value have some value; see Present. Vectors and texts are where they lie in the file; of
// points unit vectors are made, and of vectors that are compared by angle norms, so that who keeps a space should make it once. SpaceBytes is what it takes then.
func (c *Column) Space() (metric.Space, error) {
	switch c.Of {
	case Points:
		return c.points()
	case Texts:
		return metric.NewTexts(c.Objects, c.texts.Text, nil)
	}
	v, err := c.vectors()
	if err != nil || !byAngle(c.Metric) {
		return v, err
	}
	return v.UseNorms(v.Norms(make([]float64, 0, c.Objects)))
}

// permuted is a space of some objects of another.
func permuted(space metric.Space, ids []uint32) (metric.Space, error) {
	switch s := space.(type) {
	case *metric.Vectors:
		return s.Permuted(ids)
	case *metric.Points:
		return s.Permuted(ids)
	case *metric.Texts:
		return s.Permuted(ids)
	}
	return nil, fmt.Errorf("no part of a %T is known", space)
}

// byAngle says that a metric compares directions.
func byAngle(m metric.Metric) bool { return m.Kind == metric.Cosine || m.Kind == metric.Angular }

// SpaceBytes is what Space takes in memory beside the file.
func (c *Column) SpaceBytes() int64 {
	switch {
	case c.Of == Points:
		return unitBytes * int64(c.Objects)
	case c.Of == Vectors && byAngle(c.Metric):
		return 8 * int64(c.Objects)
	}
	return 0
}

func (c *Column) vectors() (*metric.Vectors, error) {
	var floats [][]float32
	var halves [][]sums.Half
	var bytes [][]uint8
	for tile := range c.kept.Tiles() {
		t := c.kept.VectorsTile(tile)
		floats, halves, bytes = append(floats, t.Floats), append(halves, t.Halves), append(bytes, t.Bytes)
	}
	switch c.Storage {
	case StorageU8:
		return metric.NewVectors(c.Metric, c.Dims, bytes...)
	case StorageF16:
		return metric.NewVectors(c.Metric, c.Dims, halves...)
	}
	return metric.NewVectors(c.Metric, c.Dims, floats...)
}

func (c *Column) points() (*metric.Points, error) {
	var parts [][]float64
	for first := uint32(0); first < c.Objects; first += min(store.TileObjects, c.Objects-first) {
		part := make([]float64, 0, 3*min(store.TileObjects, c.Objects-first))
		for id := first; id < min(c.Objects, first+store.TileObjects); id++ {
			var unit [3]float64
			if n := c.kept.Numbers(id); len(n) == 2 {
				var err error
				if unit, err = metric.Unit(n[0], n[1]); err != nil {
					return nil, store.Corrupt("the point of object %d: %v", id, err)
				}
			}
			part = append(part, unit[:]...)
		}
		parts = append(parts, part)
	}
	return metric.NewPoints(parts...)
}

// Rows are the vectors of a tile as they are stored, row after row. The rows of objects without one are zero.
func (c *Column) Rows(tile int) *forward.VectorsTile { return c.kept.VectorsTile(tile) }

// Asker prepares a query that was checked, of the space of its column, for one goroutine.
func (q *Query) Asker(space metric.Space) (metric.Asker, error) {
	switch s := space.(type) {
	case *metric.Vectors:
		return s.Query(q.Vector)
	case *metric.Points:
		return s.Query(q.Point.Lat, q.Point.Lon)
	case *metric.Texts:
		return s.Query(q.Text), nil
	}
	return nil, fmt.Errorf("no query of a %T is known", space)
}

package verify

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/store"
)

// vectors is l2, l1, ip and angular.
type vectors struct {
	metric similarity.Metric
	vector similarity.Vector
	column *forward.Column
}

func newVectors(by *Measure, a *Asked) (measure, error) {
	m, ok := similarity.ParseMetric(by.Name)
	if !ok {
		return nil, fmt.Errorf("%s is no metric of vectors", by.Name)
	}
	if len(a.Vector) != a.Column.Dimensions {
		return nil, fmt.Errorf("the vector for column %q has %d elements, and the column's have %d", a.Column.Name, len(a.Vector), a.Column.Dimensions)
	}
	if i := similarity.NotFinite(a.Vector); i >= 0 {
		return nil, fmt.Errorf("element %d of the vector for column %q is %v", i, a.Column.Name, a.Vector[i])
	}
	v := &vectors{metric: m, column: a.Column}
	v.vector.Reset(m, similarity.Widen(nil, a.Vector))
	return v, nil
}

func (v *vectors) bytes() int64 { return 8 * int64(v.column.Dimensions) }

func (v *vectors) cost() int64 { return 60 + int64(v.column.Dimensions) }

// certified is false: the count of hashes that agree proves nothing.
func (v *vectors) certified(*ranked, uint32) bool { return false }

func (v *vectors) empty() bool { return false }

func (v *vectors) report(r *ranked) float64 {
	if r.key == nowhere {
		return nowhere
	}
	return v.metric.Report(r.key)
}

func (v *vectors) comparer(old comparer) comparer {
	c, ok := old.(*vectorsComparer)
	if !ok {
		c = &vectorsComparer{wide: similarity.NewComparer()}
	}
	c.vectors = v
	return c
}

type vectorsComparer struct {
	*vectors
	wide *similarity.Comparer
	rows []float32 // of a block, which lie anywhere, beside each other
	keys []float64
}

// block is as many vectors as have room in a core's first cache.
func (c *vectorsComparer) block() int {
	const most, elements = 16, 4096
	return max(1, min(most, elements/c.column.Dimensions))
}

func (c *vectorsComparer) compare(dst []ranked, candidates []Candidate, _ float64, m *meter) ([]ranked, error) {
	dimensions := c.column.Dimensions
	c.keys = slices.Grow(c.keys[:0], len(candidates))[:len(candidates)]
	c.wide.Keys(c.keys, &c.vector, c.gather(candidates))
	for i := range candidates {
		r := ranked{id: candidates[i].ID, count: candidates[i].Count, key: nowhere}
		if key := c.keys[i]; key == key && c.tile(r.id).Has(r.id%store.TileObjects) { // NaN only of a file that was made on purpose
			r.key = key
		}
		dst = append(dst, r)
	}
	m.Did(len(candidates) * (8 + dimensions/8))
	return dst, nil
}

func (c *vectorsComparer) tile(id uint32) *forward.VectorsTile {
	return c.column.VectorsTile(int(id / store.TileObjects))
}

// gather copies the vectors of candidates: those of all are fetched from memory at the same time so.
func (c *vectorsComparer) gather(candidates []Candidate) []float32 {
	dimensions := c.column.Dimensions
	c.rows = slices.Grow(c.rows[:0], len(candidates)*dimensions)[:len(candidates)*dimensions]
	for i := range candidates {
		id := candidates[i].ID
		tile, first, to := c.tile(id), int(id%store.TileObjects)*dimensions, c.rows[i*dimensions:][:dimensions]
		switch {
		case c.column.Bytes:
			c.wide.Bytes(to, tile.Bytes[first:first+dimensions])
		case c.column.Halves:
			c.wide.Halves(to, tile.Halves[first:first+dimensions])
		default:
			copy(to, tile.Floats[first:first+dimensions])
		}
	}
	return c.rows
}

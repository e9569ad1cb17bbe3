package nearest

import (
	"math"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
)

// Terms is what kernels add up over elements: each metric has one.
type Terms string

// The kernels, by what comes behind near_ in their names.
const (
	Squares     Terms = "squares"
	Differences Terms = "differences"
	Dots        Terms = "dots"
	Products    Terms = "products" // which are scanned alone
	Powers      Terms = "powers"
	Largest     Terms = "largest"
	Unequal     Terms = "unequal"
)

// Those of texts, by how many lanes compare a pair: descents alone have them (kernels/descent_texts.cu).
const (
	Edits1 Terms = "edits_1"
	Edits2 Terms = "edits_2"
	Edits4 Terms = "edits_4"
)

// TextTerms are those of texts.
func TextTerms() []Terms { return []Terms{Edits1, Edits2, Edits4} }

// AllTerms are those of all metrics of vectors and points that other ways than a scan know.
func AllTerms() []Terms { return []Terms{Squares, Differences, Dots, Powers, Largest, Unequal} }

// ScanTerms are those, and what is scanned alone.
func ScanTerms() []Terms { return append(AllTerms(), Products) }

// HalvesTerms are those of columns that may have a sieve of float16s and a limit from a sample of it.
func HalvesTerms() []Terms { return []Terms{Squares, Dots} }

func termsOf(m metric.Metric) Terms {
	switch m.Kind {
	case metric.L1:
		return Differences
	case metric.Linf:
		return Largest
	case metric.Lp:
		return Powers
	case metric.Cosine, metric.Angular:
		return Dots
	case metric.IP:
		return Products
	case metric.Hamming:
		return Unequal
	}
	return Squares
}

// A Column is a column of vectors or points, or its rows in a range of tiles, as it lies on a device: rows as in the file, one after the other; of points unit
// vectors; norms for angles; and a bit per object where not all have a value.
type Column struct {
	Of      *distance.Column
	Terms   Terms
	Storage uint32 // abi.NearF32 ...
	Dims    int
	Tiles   run.Tiles
	Objects uint32 // of the tiles
	Sieve   *Sieve // nil: every object is compared exactly

	texts *patterns // of a column of texts (NewTexts)
}

// NewColumn is what lies on a device of a column in some tiles of an index; nil of texts, and where there is no object.
func NewColumn(c *distance.Column, tiles run.Tiles) *Column {
	own := &Column{Of: c, Terms: termsOf(c.Metric), Dims: c.Dims, Tiles: tiles, Objects: tiles.Objects(c.Objects)}
	switch {
	case c.Of == distance.Texts || own.Objects == 0:
		return nil
	case c.Of == distance.Points:
		own.Dims, own.Storage = 3, abi.NearF64
	case c.Storage == distance.StorageF16:
		own.Storage = abi.NearF16
	case c.Storage == distance.StorageU8:
		own.Storage = abi.NearU8
	}
	return own
}

// Angles says that values are those of directions, which want norms.
func (c *Column) Angles() bool { return c.Terms == Dots }

// ElementBytes is the size of an element.
func (c *Column) ElementBytes() int64 {
	return map[uint32]int64{abi.NearF32: 4, abi.NearF16: 2, abi.NearU8: 1, abi.NearF64: 8}[c.Storage]
}

// RowsBytes, NormsBytes and PresentBytes are the memory of the arrays; the last two are 0 where there is none.
func (c *Column) RowsBytes() int64 { return int64(c.Objects) * int64(c.Dims) * c.ElementBytes() }
func (c *Column) NormsBytes() int64 {
	if !c.Angles() {
		return 0
	}
	return 8 * int64(c.Objects)
}

// SetWords is how many uint32s a bit per object takes.
func (c *Column) SetWords() int { return c.Tiles.Len() * abi.TileWords }

// ordered is a value as an integer, in the order of values (kernels/near.cuh); valueOf is the value again.
func ordered(v float64) uint64 {
	if b := math.Float64bits(v); b>>63 == 1 {
		return ^b
	} else {
		return b | 1<<63
	}
}

func valueOf(ordered uint64) float64 {
	if ordered>>63 == 1 {
		return math.Float64frombits(ordered ^ 1<<63)
	}
	return math.Float64frombits(^ordered)
}

// point writes the unit vector of a query for points. What it asks has been checked.
func (c *Column) point(q *distance.Query, dst []float64) {
	unit, err := metric.Unit(q.Point.Lat, q.Point.Lon)
	if err != nil {
		panic(err) // which Check has refused
	}
	copy(dst, unit[:])
}

package alike

import (
	"math"

	"github.com/geniemq/geniemq/index/column/point"
	"github.com/geniemq/geniemq/index/column/vector"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
)

// Scale is what distances mean of a column of vectors or points.
//
// A distance has a unit, and a share of likeness has none: somebody has to say which distance is the end of it. With cosines and angles it is the right angle.
type Scale struct {
	Metric metric.Metric
	// Most is how far apart two values are that have nothing in common. Known says that there is such a distance; without, the only order is that of distances.
	Most  float64
	Known bool
	// Limit says that records which are farther apart are no pair, whatever else they have.
	Limit bool
}

// Far says that values of a type are as alike as they are near.
func Far(t schema.ColumnType) bool { return t == schema.VectorColumn || t == schema.PointColumn }

// Own is the scale that a metric has by itself, of vectors of so many elements (0: nobody knows).
func Own(m metric.Metric, dims int) Scale {
	s := Scale{Metric: m, Known: true}
	switch {
	case m.Kind == metric.Cosine:
		s.Most = 1
	case m.Kind == metric.Angular:
		s.Most = 90
	case m.Kind == metric.Hamming && dims > 0:
		s.Most = float64(dims)
	default:
		s.Known = false
	}
	return s
}

// Alike is what a distance is worth: 1 for none, 0 for the most and beyond. Where nobody knows the most, it is 1/(1+distance).
func (s *Scale) Alike(d float64) float64 {
	switch {
	case !s.Known:
		return 1 / (1 + d)
	case d <= 0:
		return 1
	case d >= s.Most:
		return 0
	}
	return 1 - d/s.Most
}

// Beyond says that records at a distance are no pair.
func (s *Scale) Beyond(d float64) bool { return s.Limit && d > s.Most }

// Place is a value of a column of vectors or points.
type Place struct {
	Vector []float32 // nil: a point
	Point  distance.Point
}

// PlaceOf reads a cell as the index does. A cell without a value has none, nil.
func PlaceOf(t schema.ColumnType, cell *schema.Cell) (p *Place, err error) {
	if cell.Empty() {
		return nil, nil
	}
	p = new(Place)
	if t == schema.PointColumn {
		p.Point, err = point.Read(cell)
	} else {
		p.Vector, err = vector.Read(cell)
	}
	if err != nil {
		return nil, cell.Refused(err)
	}
	return p, nil
}

// Distance is how far apart two values are, as a service reports it, to the bit where both are stored as they are; ok is false where they cannot be compared, as vectors of unlike length.
func (s *Scale) Distance(a, b *Place) (d float64, ok bool) {
	var asker metric.Asker
	var err error
	if s.Metric.Kind == metric.Geo {
		unit, errUnit := metric.Unit(a.Point.Lat, a.Point.Lon)
		space, errSpace := metric.NewPoints(unit[:])
		if errUnit != nil || errSpace != nil {
			return 0, false
		}
		asker, err = space.Query(b.Point.Lat, b.Point.Lon)
	} else {
		space, errSpace := metric.NewVectors(s.Metric, len(a.Vector), a.Vector)
		if errSpace != nil || s.Metric.Admits(a.Vector) != nil {
			return 0, false
		}
		asker, err = space.Query(b.Vector)
	}
	if err != nil {
		return 0, false
	}
	d = s.Metric.Report(asker.Value(0))
	return d, !math.IsInf(d, 0)
}

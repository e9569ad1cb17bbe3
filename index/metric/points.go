package metric

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric/fenced"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// Points are a space of points on the earth under Geo. It is immutable.
type Points struct{ Vectors }

// Unit is the unit vector of a point: what a space of points is made of. Latitudes are -90 to 90 degrees, longitudes any number of degrees.
func Unit(latitude, longitude float64) (u [3]float64, err error) {
	switch {
	case !(latitude >= -90 && latitude <= 90):
		return u, fmt.Errorf("the latitude %v: it is -90 to 90 degrees", latitude)
	case math.IsNaN(longitude) || math.IsInf(longitude, 0):
		return u, fmt.Errorf("the longitude %v: it is a number of degrees", longitude)
	}
	z, r := fenced.SinCosDegrees(latitude)
	y, x := fenced.SinCosDegrees(longitude)
	return [3]float64{float64(r*x) + 0, float64(r*y) + 0, z}, nil
}

// NewPoints makes a space of the points whose unit vectors lie in parts, as those of NewVectors.
func NewPoints(parts ...[]float64) (*Points, error) {
	v, err := newVectors(Metric{Kind: Geo}, 3, parts)
	if err != nil {
		return nil, err
	}
	return &Points{*v}, nil
}

// Query makes a point a query: an error says why it cannot be one.
func (s *Points) Query(latitude, longitude float64) (Asker, error) {
	u, err := Unit(latitude, longitude)
	if err != nil {
		return nil, err
	}
	return s.rows.asker(&s.Vectors, sums.NewQuery(u[:])), nil
}

// Permuted is that of Vectors.
func (s *Points) Permuted(order []uint32) (*Points, error) {
	v, err := s.Vectors.Permuted(order)
	if err != nil {
		return nil, err
	}
	return &Points{*v}, nil
}

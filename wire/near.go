package wire

import (
	"cmp"
	"math"

	"github.com/geniemq/geniemq/wire/fields"
)

// Near is what a search by distance says beside what hits are to be near to. Which queries are searched by distance is up to the index: those
// with a radius or a point always are.
type Near struct {
	// Column is which column is asked. It may be left out where one column alone fits.
	Column string
	// Radius is how far hits are away at most, in what the column's metric reports; only if HasRadius.
	Radius    float64
	HasRadius bool
	// Method is the way to search: auto, scan, tree, cells, permutation, lsh or ngram. Default auto.
	Method string
	// Fraction of the objects that are compared, above 0 and at most 1, or the Recall that is wanted, above 0 and below 1, of methods that do not look at
	// everything. 0: left to the index.
	Fraction, Recall float64
}

// Point is a place on earth, in degrees.
type Point struct{ Lat, Lon float64 }

// hits is how many hits a query wants.
func (q *Query) hits() int {
	switch {
	case q.K != 0 || q.CountOnly:
		return q.K
	case q.HasRadius:
		return DefaultWithin
	}
	return DefaultK
}

func (p *Point) validate() *Error {
	switch {
	case !(p.Lat >= -90 && p.Lat <= 90):
		return badRequest("point: the latitude is %v, and latitudes are -90 to 90 degrees; it comes first, the longitude second", p.Lat)
	case p.Lon-p.Lon != 0:
		return badRequest("point: the longitude is %v: it must be a finite number of degrees", p.Lon)
	}
	return nil
}

func (q *Query) validateCountOnly() *Error {
	switch {
	case q.K != 0:
		return badRequest("k is %d, and only the number of objects within a radius is wanted: leave one of both out", q.K)
	case !q.HasRadius:
		return badRequest("k must be between 1 and %d, not 0; with a radius it may be 0", MaxK)
	}
	return nil
}

// validateNear checks what needs no schema.
func (q *Query) validateNear(l *Limits, form Form) *Error {
	n := &q.Near
	if *n == (Near{}) && form != PointForm {
		return nil
	}
	if err := l.checkString(max(len(n.Column), len(n.Method))); err != nil {
		return err
	}
	switch {
	case form != TextForm && form != VectorForm && form != PointForm:
		return badRequest("radius, column, method, fraction and recall are of searches by distance: they go with text, vector or point")
	case n.HasRadius && !(n.Radius >= -math.MaxFloat64 && n.Radius <= math.MaxFloat64):
		return badRequest("radius must be a finite number, not %v", n.Radius)
	case !n.HasRadius && n.Radius != 0:
		return badRequest("radius is %v, and not said to be there: set HasRadius", n.Radius)
	case n.Fraction != 0 && !(n.Fraction > 0 && n.Fraction <= 1):
		return badRequest("fraction must be above 0 and at most 1, not %v", n.Fraction)
	case n.Recall != 0 && !(n.Recall > 0 && n.Recall < 1):
		return badRequest("recall must be above 0 and below 1, not %v", n.Recall)
	case n.Fraction != 0 && n.Recall != 0:
		return badRequest("fraction and recall exclude each other: one follows from the other")
	}
	distance := n.HasRadius || q.Point != nil
	switch {
	case distance && q.MinCount > 0:
		return badRequest("min_count does not go with a search by distance, which counts nothing")
	case distance && q.Certify:
		return badRequest("certify does not go with a search by distance: its answer says whether it is exact")
	}
	return nil
}

// hits decodes k, which may be 0 where a query only counts.
func (d *queryDecoder) hits(q *Query, f *fields.Field) *Error {
	v, err := d.r.number()
	if err == nil {
		err = q.wantHits(v, f)
	}
	return err
}

// wantHits sets k to what was said, which may be no k.
func (q *Query) wantHits(v float64, f *fields.Field) (err *Error) {
	if q.CountOnly = v == 0; v != 0 {
		q.K, err = integerOf[int](v, f)
	}
	return err
}

// share decodes a number of a search by distance, which has bounds that are looked at later, with what it goes with. Nor is 0 given where it means
// that there is none.
func (d *queryDecoder) share(n *Near, f *fields.Field) *Error {
	v, err := d.r.number()
	if err == nil && v == 0 && f.AboveLeast {
		err = badRequest("must be above 0")
	}
	switch f.Name {
	case "radius":
		n.Radius, n.HasRadius = v, true
	case "fraction":
		n.Fraction = v
	case "recall":
		n.Recall = v
	}
	return err
}

// point decodes a place: an array of latitude and longitude, or an object of lat and lon.
func (d *queryDecoder) point() (*Point, *Error) {
	p := new(Point)
	k := d.r.peek()
	if k != arrayKind && k != objectKind {
		return nil, expected("[latitude, longitude] or {\"lat\":…,\"lon\":…}", k)
	}
	if err := d.r.enter(); err != nil {
		return nil, err
	}
	var seen field
	given := 0
	for ; d.r.more(); given++ {
		to := [...]*float64{&p.Lat, &p.Lon}[min(given, 1)]
		if k == objectKind {
			name, err := d.r.str()
			if err != nil {
				return nil, err
			}
			if _, err := once(&seen, &fields.Place, name); err != nil {
				return nil, err
			}
			to = map[string]*float64{"lat": &p.Lat, "lon": &p.Lon}[name]
		} else if given == 2 {
			break
		}
		var err *Error
		if *to, err = d.r.number(); err != nil {
			return nil, err
		}
	}
	if failed := d.r.failed(); failed != nil {
		return nil, failed
	}
	if given != 2 || d.r.more() {
		return nil, badRequest("takes two numbers, latitude and longitude")
	}
	d.r.leave()
	return p, d.r.failed()
}

// near writes what a search by distance says.
func (e *encoder) near(at int, q *Query) {
	if p := q.Point; p != nil {
		e.name(at, "point")
		e.list(2)
		e.next(0)
		e.number(p.Lat)
		e.next(1)
		e.number(p.Lon)
		e.endList()
	}
	if q.HasRadius {
		e.name(at, "radius")
		e.number(q.Radius)
	}
	e.text(at, "column", q.Column)
	e.text(at, "method", q.Method)
	for _, share := range [...]struct {
		name string
		v    float64
	}{{"fraction", q.Fraction}, {"recall", q.Recall}} {
		if share.v != 0 {
			e.name(at, share.name)
			e.number(share.v)
		}
	}
}

// Found is what a search by distance tells beside hits. The zero value tells nothing.
type Found struct {
	// InRange is how many objects that pass lie within the radius, though k cut them; only if HasInRange.
	InRange    uint64
	HasInRange bool
	// Method is how the hits were found.
	Method string
	// Fraction of the objects that were compared; 0 where all were, or it is not known.
	Fraction float64
}

// found writes what a search by distance tells.
func (e *encoder) found(at int, f *Found) {
	if f.HasInRange {
		e.whole(at, "in_range", f.InRange)
	}
	e.text(at, "method", f.Method)
	if f.Fraction != 0 {
		e.name(at, "fraction")
		e.number(f.Fraction)
	}
}

// WantsDistance says that a query can only be a search by distance, whatever the index.
func (q *Query) WantsDistance() bool {
	return cmp.Or(q.HasRadius, q.Point != nil, q.CountOnly, q.Fraction != 0, q.Recall != 0)
}

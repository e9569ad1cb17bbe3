// Package nearest says which requests are searches by distance, of which column, and makes their queries.
package nearest

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/schema"
)

// Request is what is asked for, and how. The zero value of Near says nothing: whether the request is a search by distance is up to the schema then.
type Request struct {
	// One of these at most is not nil: what hits are to be near to. Without any, nothing is.
	Vector []float32
	Text   *string
	Point  *Point
	Near
	Total bool
}

// Point is a latitude and a longitude, in degrees.
type Point = distance.Point

// Near is what a request says beside what hits are to be near to.
type Near struct {
	// Column is which column is asked; "" the one that the form fits.
	Column string
	// K hits, at most. CountOnly: none, but how many there are within Radius.
	K         int
	CountOnly bool
	// Radius, if not nil, is how far hits are away at most, as the column's metric reports distances.
	Radius *float64
	// Method is the way to search: one of distance.Methods, "" where the request does not say.
	Method string
	// Fraction of the objects that are compared, and the Recall that is wanted, of methods that have such; 0: unsaid.
	Fraction, Recall float64
}

// Columns are those of an index that are asked. The zero value is of an index without any.
type Columns struct {
	Schema    *schema.Schema
	Distances *distance.Columns // nil: there are none
	Texts     []string          // the columns of which texts are asked for matches
}

// counted says that a request names a method by which matches are counted, as they are where the schema says nothing of distances. With a radius n-grams find what is
// within it.
func (r *Request) counted() bool {
	return r.Method == lsh || r.Method == distance.Ngram && r.Radius == nil
}

// lsh is the method of counting hash functions that agree.
const lsh = "lsh"

// said are the fields of a request that only a search by distance has, but for its method.
func (r *Request) said() string {
	var fields []string
	for _, f := range [...]struct {
		name string
		is   bool
	}{{"point", r.Point != nil}, {"radius", r.Radius != nil}, {"recall", r.Recall != 0}, {"fraction", r.Fraction != 0}} {
		if f.is {
			fields = append(fields, f.name)
		}
	}
	return strings.Join(fields, " or ")
}

// Of is the column of whose objects a request asks distances; ok is false where it does not, and matches are counted. It asks so if it says so: with a point, a
// radius, or a method that is not one of counting. Else the schema says: a vector or a text asks so of a column that is searched by distance
// (distance.Nearest), but of sequences, which are asked as they always were. The error is a *refusal.Error.
func (x *Columns) Of(r *Request) (c *distance.Column, ok bool, err error) {
	said := r.Point != nil || r.Radius != nil || r.Method != "" && !r.counted() || r.Fraction != 0 || r.Recall != 0
	switch {
	case !said && r.Method == lsh && r.Text != nil:
		return nil, true, refusal.New("method lsh compares vectors, and a text has no hash functions: use scan, or leave method out")
	case !said && r.Method == distance.Ngram && r.Vector != nil:
		return nil, true, refusal.New("method ngram compares texts, and a vector has no n-grams: use scan, or leave method out")
	case !said && r.Method != "" && r.Vector != nil:
		if r.Column == "" && slices.ContainsFunc(x.Vectors(), func(name string) bool { return x.is(name, distance.Hashed) }) {
			return nil, false, nil // counted, in the one that has hash functions
		}
		if c, err = x.named(r); err == nil && !x.is(c.Name, distance.Hashed) {
			return nil, true, refusal.Unsupported("column %q of index %s has no %s: it has %s", c.Name, x.Schema.Name, r.Method, strings.Join(c.Methods(), ", "))
		}
		return nil, false, nil // counted
	case !said && (r.Method != "" || r.Vector == nil && r.Text == nil || x.Distances.Len() == 0):
		return nil, false, nil
	case !said && r.Column == "":
		c = x.only(r)
		return c, c != nil, nil
	case !said:
		if c, err = x.named(r); err != nil || !x.is(c.Name, distance.Nearest) {
			return nil, false, nil // the column is one to count in, or to be refused there
		}
		return c, true, nil
	case r.Method != "" && !slices.Contains(distance.Methods(), r.Method):
		return nil, true, refusal.New("method %.40q is unknown: there are %s", r.Method, strings.Join(distance.Methods(), ", "))
	case r.Method == distance.Ngram && r.Radius == nil:
		return nil, true, refusal.Unsupported("method ngram without a radius counts n-grams, and knows no %s: use scan", r.said())
	case r.counted():
		return nil, true, refusal.Unsupported("method %s counts matches, and knows no %s: use scan", r.Method, r.said())
	}
	c, err = x.named(r)
	return c, true, err
}

// only is the column of which a request that says nothing else asks distances; nil: none.
func (x *Columns) only(r *Request) (found *distance.Column) {
	if r.Text != nil && len(x.Texts) == 1 && x.Schema.Kind != schema.Sequences && x.is(x.Texts[0], distance.Nearest) {
		return x.Distances.Column(x.Texts[0])
	}
	if r.Vector == nil {
		return nil
	}
	if all := x.Vectors(); len(all) == 1 {
		return x.Distances.Column(all[0])
	}
	return nil
}

// Vectors are the columns of vectors, however they are asked.
func (x *Columns) Vectors() (names []string) {
	for i := range x.Schema.Columns {
		if c := &x.Schema.Columns[i]; c.Type == schema.VectorColumn {
			names = append(names, c.Name)
		}
	}
	return names
}

// is says that the schema has a column of a name, which is so.
func (x *Columns) is(name string, so func(*schema.Column) bool) bool {
	at := slices.IndexFunc(x.Schema.Columns, func(c schema.Column) bool { return c.Name == name })
	return at >= 0 && so(&x.Schema.Columns[at])
}

// named is the column that a request means, by its name or because no other fits.
func (x *Columns) named(r *Request) (*distance.Column, error) {
	of, form := distance.Vectors, "vector"
	switch {
	case r.Point != nil:
		of, form = distance.Points, "point"
	case r.Text != nil:
		of, form = distance.Texts, "text"
	case r.Vector == nil:
		return nil, refusal.New("radius, method, fraction and recall are of searches by distance: ask with a vector, a text or a point")
	}
	var fit []string
	for i := range x.Distances.Len() {
		if c := x.Distances.At(i); c.Of == of {
			fit = append(fit, c.Name)
		}
	}
	name := r.Column
	switch {
	case name == "" && len(fit) == 0:
		return nil, refusal.Unsupported("index %s has no column of which a %s could ask distances%s", x.Schema.Name, form, lacking(of))
	case name == "" && len(fit) > 1:
		return nil, refusal.New("index %s has several columns of %v (%s): name the one to ask in column", x.Schema.Name, of, strings.Join(fit, ", "))
	case name == "":
		name = fit[0]
	}
	c := x.Distances.Column(name)
	switch {
	case c != nil && c.Of == of:
		return c, nil
	case c != nil:
		return nil, refusal.New("column %q holds %v: a %s cannot ask it", name, c.Of, form)
	case !slices.ContainsFunc(x.Schema.Columns, func(c schema.Column) bool { return c.Name == name }):
		return nil, refusal.New("column %.80q is not in index %s: a %s can ask %s", name, x.Schema.Name, form, schema.List(fit))
	}
	return nil, refusal.Unsupported("column %q is not searched by distance%s", name, lacking(of))
}

// lacking is how a column would be searched by distance.
func lacking(of distance.Values) string {
	if of == distance.Vectors {
		return ": build the index with a metric in its schema"
	}
	return ""
}

// Query makes the query of a request for distances from the objects of a column. Its filter is missing. The error is a *refusal.Error.
func (x *Columns) Query(r *Request, c *distance.Column) (*distance.Query, error) {
	q := &distance.Query{
		Column: c, Vector: r.Vector, K: r.K, Most: math.Inf(1), Total: r.Total || r.CountOnly, Method: r.Method, Fraction: r.Fraction, Recall: r.Recall,
	}
	q.Method = cmp.Or(q.Method, distance.Auto)
	if r.Point != nil {
		q.Point = *r.Point
	}
	if r.Text != nil {
		q.Text = *r.Text
	}
	if r.Radius != nil {
		if q.Radius = *r.Radius; math.IsNaN(q.Radius) || math.IsInf(q.Radius, 0) {
			return nil, refusal.New("radius %v: it must be a finite number", q.Radius)
		}
		if q.Radius < c.Metric.Least() {
			return nil, refusal.New("radius %v: no distance by the metric %s of column %q is below 0", q.Radius, distance.MetricName(c.Metric), c.Name)
		}
		q.Most, q.Bounded = c.Metric.Within(q.Radius), true
	}
	if q.Method != distance.Auto && !slices.Contains(c.Methods(), q.Method) {
		return nil, refusal.Unsupported("column %q of index %s has no %s: it has %s", c.Name, x.Schema.Name, q.Method, strings.Join(c.Methods(), ", "))
	}
	switch m := q.Method; {
	case q.Fraction != 0 && m == distance.Auto:
		return nil, refusal.New("fraction is of method permutation: name it")
	case q.Fraction != 0 && m != "permutation":
		return nil, refusal.New("fraction is of method permutation, and not of %s", m)
	case q.Recall != 0 && (m == distance.Scan || m == "tree" || m == distance.Ngram):
		return nil, refusal.New("recall is of methods that do not look at everything, and %s finds all", m)
	}
	if err := q.Check(); err != nil {
		return nil, refusal.New("column %q: %v", c.Name, err)
	}
	return q, nil
}

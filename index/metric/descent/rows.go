package descent

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/columns"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// squares are vectors under l2, in columns by leaf.
type squares struct{ *columns.Objects }

func (r squares) values(dst []float64, leaf uint32, n node, q *[Most]float64) []float64 {
	return r.Squares(dst, leaf, n.count, q)
}

// units are points, by position.
type units struct {
	x       []float64
	kernels *sums.Kernels
}

func newUnits(space metric.Placed) *units {
	u := &units{make([]float64, 3*int(space.Len())), &sums.All()[0]}
	for i := range space.Len() {
		space.Coordinates(i, u.x[3*i:3*i+3])
	}
	return u
}

func (u *units) values(dst []float64, _ uint32, n node, q *[Most]float64) []float64 {
	dst = slices.Grow(dst[:0], int(n.count))[:n.count]
	u.kernels.Points(dst, u.x[3*int(n.first):3*int(n.first+n.count)], (*[3]float64)(q[:]))
	return dst
}

func (u *units) Bytes() int64 { return 8 * int64(len(u.x)) }

// differences are vectors under l1 or linf, by position.
type differences struct {
	largest bool // linf
	dims    int
	x       []float32
}

func newDifferences(space metric.Placed, k metric.Kind) *differences {
	d := &differences{k == metric.Linf, space.Dims(), make([]float32, 0, int(space.Len())*space.Dims())}
	var x [Most]float64
	for i := range space.Len() {
		space.Coordinates(i, x[:d.dims])
		for _, v := range x[:d.dims] {
			d.x = append(d.x, float32(v)) // elements are float32s, or as exact in them
		}
	}
	return d
}

func (d *differences) values(dst []float64, _ uint32, n node, q *[Most]float64) []float64 {
	dst = slices.Grow(dst[:0], int(n.count))[:n.count]
	x := d.x[int(n.first)*d.dims : int(n.first+n.count)*d.dims]
	var s [Most]float64 // partial sums of one term each
	for i := range dst {
		for j, o := range x[i*d.dims : (i+1)*d.dims] {
			s[j%Most] = math.Abs(q[j%Most] - float64(o))
		}
		if d.largest {
			dst[i] = max(max(max(s[0], s[1]), max(s[2], s[3])), max(max(s[4], s[5]), max(s[6], s[7])))
		} else {
			dst[i] = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
		}
		if dst[i] != dst[i] { // of a damaged object
			dst[i] = math.Inf(1)
		}
	}
	return dst
}

func (d *differences) Bytes() int64 { return 4 * int64(len(d.x)) }

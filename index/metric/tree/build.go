package tree

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/geniemq/geniemq/index/metric"
)

// Options are how a tree is built. The zero value leaves everything to the cost model.
type Options struct {
	Bounds   Bounds // auto
	Capacity int    // children of a node, 2 to 256; 0: the cheapest of 4 to 128
	Leaf     int    // objects of a leaf at most, 1 to 1,024; 0: the cheapest of 32, 128 and 512
	Seed     uint64
	Workers  int // as many goroutines; 0: one per processor
}

// A Refused is an option, or a space, of which no tree can be made.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return "no tree can be built: " + r.Reason }

func refuse(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// check fills in the defaults, and finds out how many elements objects have and whether they have coordinates.
func (o *Options) check(space metric.Space) (dims int, placed metric.Placed, err error) {
	o.Bounds = cmp.Or(o.Bounds, Auto)
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	m := newMeasure(space.Metric(), 0)
	sized, ok := space.(metric.Sized)
	if ok {
		dims = sized.Dims()
	}
	placed, _ = space.(metric.Placed)
	switch {
	case o.Bounds != Auto && o.Bounds != Box && o.Bounds != Pivot:
		return 0, nil, refuse("bounds are auto, box or pivot, not %q", o.Bounds)
	case o.Capacity != 0 && (o.Capacity < 2 || o.Capacity > MostCapacity):
		return 0, nil, refuse("a capacity is 2 to %d, or 0 for the cheapest, not %d", MostCapacity, o.Capacity)
	case o.Leaf < 0 || o.Leaf > MostLeaf:
		return 0, nil, refuse("a leaf has 1 to %d objects, or 0 for the cheapest, not %d", MostLeaf, o.Leaf)
	case !m.whole && !ok:
		return 0, nil, refuse("the space does not say how many elements its objects have, and rounding grows with them")
	case m.whole || dims < 1:
		placed = nil // no coordinates that distances are sums of
	case placed != nil && space.Len() > 0:
		if q, ok := space.Of(0).(metric.PlacedAsker); !ok || len(q.Coordinates()) != dims {
			placed = nil
		}
	}
	if o.Bounds == Box && placed == nil {
		return 0, nil, refuse("objects under %s have no coordinates to put boxes around; use bounds: pivot", space.Metric().Kind)
	}
	return dims, placed, nil
}

// Build builds a tree over a space. The same space, options and seed give the same bytes, with any number of workers and on every machine. An error is a *Refused
// or the context's.
func Build(ctx context.Context, space metric.Space, o Options) (*Tree, error) {
	dims, placed, err := o.check(space)
	if err != nil {
		return nil, err
	}
	c := calibrator{ctx: ctx, space: space, placed: placed, dims: dims, options: o}
	return c.build()
}

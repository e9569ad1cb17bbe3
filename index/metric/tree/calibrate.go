package tree

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

const (
	calibrating = 256     // objects that are asked for,
	inLarge     = 16      // of which one in so many within large shares, which most of a tree is entered for
	quantiles   = 1 << 10 // of an object's distances, of which large shares are found
	compared    = 1 << 13 // objects that they are compared with, to learn distances
	considered  = 1 << 17 // objects of which trees are built to choose among shapes
	looked      = 1 << 15 // objects of a leaf that are looked at for a query
	probed      = 1 << 14 // distances after which a search for the nearest is given up
)

// calibrator chooses what to build. It takes no notice of time, so that it chooses the same everywhere.
type calibrator struct {
	ctx     context.Context
	space   metric.Space
	placed  metric.Placed
	dims    int
	options Options

	asked []asked
	rows  []Row
}

// asked is an object that is asked for, and the values within which its hits are: ascending, with the row that each belongs to.
type asked struct {
	object uint32
	limits []float64
	rows   []int // of a shape's rows
}

func (c *calibrator) build() (*Tree, error) {
	shapes := c.shapes()
	n := c.space.Len()
	if n < 2 {
		return c.grow(shapes[0], nil)
	}
	var members []uint32
	if n > considered && len(shapes) > 1 {
		members = c.draw(n, considered, 1)
	}
	idim, err := c.ask(shapes[0])
	if err != nil {
		return nil, err
	}
	var best *Tree
	cheapest := math.Inf(1)
	for _, shape := range shapes {
		t, err := c.grow(shape, members)
		if err != nil {
			return nil, err
		}
		rows, err := c.count(t, members)
		if err != nil {
			return nil, err
		}
		c.rows = append(c.rows, rows...)
		if cost := t.Price(rows); cost < cheapest {
			best, cheapest = t, cost
		}
	}
	if members != nil {
		if best, err = c.grow(Shape{Bounds: best.bounds, Capacity: best.capacity, Leaf: best.leaf}, nil); err != nil {
			return nil, err
		}
		rows, err := c.count(best, nil)
		if err != nil {
			return nil, err
		}
		c.rows = slices.DeleteFunc(c.rows, func(r Row) bool {
			return r.Bounds == best.bounds && r.Capacity == best.capacity && r.Leaf == best.leaf
		})
		c.rows = append(c.rows, rows...)
	}
	best.calibration = Calibration{idim, c.rows}
	best.expected = best.expect()
	return best, nil
}

// Price is the logarithm of what a tree costs in the mean of all that is wanted often, of which there are rows, on the reference device: the mean of logarithms, so that searches that are
// always dear do not decide alone.
func (t *Tree) Price(rows []Row) float64 {
	rows = rows[:min(priced(), len(rows))]
	sum, p := 0.0, t.reference()
	for _, r := range rows {
		sum += math.Log(t.Cost(p, r))
	}
	return sum / float64(len(rows))
}

// shapes are those that the options leave open.
func (c *calibrator) shapes() (shapes []Shape) {
	o := c.options
	bounds, capacities, leaves := []Bounds{o.Bounds}, []int{o.Capacity}, []int{o.Leaf}
	if o.Bounds == Auto {
		if bounds = []Bounds{Pivot}; c.placed != nil && c.dims <= 64 {
			bounds = []Bounds{Box, Pivot}
		}
	}
	if o.Capacity == 0 {
		capacities = []int{4, 8, 16, 32, 64, 128}
	}
	if o.Leaf == 0 {
		leaves = []int{32, 128, 512}
	}
	for _, b := range bounds {
		for _, capacity := range capacities {
			for _, leaf := range leaves {
				shapes = append(shapes, Shape{Bounds: b, Capacity: capacity, Leaf: leaf})
			}
		}
	}
	return shapes
}

func (c *calibrator) grow(s Shape, members []uint32) (*Tree, error) {
	t := &Tree{measure: newMeasure(c.space.Metric(), c.dims), bounds: s.Bounds, capacity: s.Capacity, leaf: s.Leaf, seed: c.options.Seed, objects: c.space.Len()}
	if members != nil {
		t.objects = uint32(len(members))
	}
	b := builder{ctx: c.ctx, space: c.space, placed: c.placed, workers: c.options.Workers, tree: t, members: members}
	return b.grow()
}

// draw draws different objects, ascending.
func (c *calibrator) draw(n uint32, want int, purpose uint64) []uint32 {
	drawn := make([]uint32, 0, want)
	rng := rand.New(rand.NewPCG(c.options.Seed, math.MaxUint64-purpose)) // no node has such a number
	left := want
	for i := uint32(0); i < n && left > 0; i++ {
		if rng.Uint64N(uint64(n-i)) < uint64(left) {
			drawn = append(drawn, i)
			left--
		}
	}
	return drawn
}

// ask draws the objects to ask for, and finds the values within which their hits are. The nearest other objects are found by comparing all if there are few, else by a
// search that is given up before long.
func (c *calibrator) ask(shape Shape) (idim float64, err error) {
	n := c.space.Len()
	others := c.draw(n, min(int(n), compared), 2)
	var probe *Tree
	if int(n) > compared {
		if probe, err = c.grow(Shape{Bounds: shape.Bounds, Capacity: 8, Leaf: 32}, nil); err != nil {
			return 0, err
		}
	}
	objects := c.draw(n, min(int(n), calibrating), 3)
	c.asked = make([]asked, len(objects))
	values := make([][]float64, len(objects))
	if err = parallel(c.ctx, c.options.Workers, len(objects), func(i int) {
		values[i] = c.compare(objects[i], others)
		c.asked[i] = asked{object: objects[i], limits: c.nearest(objects[i], values[i], probe)}
	}); err != nil {
		return 0, err
	}
	idim, within, large := c.overall(values)
	for i := range c.asked {
		a := &c.asked[i]
		a.limits = append(a.limits, within...)
		if i%inLarge == 0 {
			a.limits = append(a.limits, large...)
		}
		for row := range a.limits {
			a.rows = append(a.rows, row)
		}
		slices.SortFunc(a.rows, func(x, y int) int { return cmp.Or(cmp.Compare(a.limits[x], a.limits[y]), cmp.Compare(x, y)) })
		slices.Sort(a.limits)
	}
	return idim, nil
}

// compare gives the values of others but the object itself, ascending.
func (c *calibrator) compare(object uint32, others []uint32) []float64 {
	but := slices.DeleteFunc(slices.Clone(others), func(o uint32) bool { return o == object })
	values := make([]float64, len(but))
	asker := c.space.Of(object)
	metric.ValuesOf(asker, asker, but, math.Inf(1), values)
	slices.Sort(values)
	return values
}

// nearest are the values within which the nearest objects are.
func (c *calibrator) nearest(object uint32, values []float64, probe *Tree) (limits []float64) {
	if probe != nil {
		values = values[:0:0]
		for _, h := range c.near(object, probe) {
			values = append(values, h.Value)
		}
	}
	nearest, _, _ := wanted()
	for _, k := range nearest {
		limits = append(limits, values[min(k, len(values))-1])
	}
	return limits
}

// near are the objects nearest to one, as far as some thousand comparisons find them.
func (c *calibrator) near(object uint32, probe *Tree) []metric.Hit {
	nearest, _, _ := wanted()
	s, err := probe.Begin(Ask{
		Asker: probe.Positions(c.space.Of(object)), Want: metric.Want{K: slices.Max(nearest), Most: math.Inf(1)},
		Pass: func(id uint32) bool { return id != object },
	})
	if err != nil {
		return nil
	}
	s.budget = probed
	s.Run(metric.Until(c.ctx)) // what calls asks the context
	return s.End().Hits
}

// overall is the intrinsic dimension, and the values within which shares of all pairs are.
func (c *calibrator) overall(values [][]float64) (idim float64, within, large []float64) {
	m := newMeasure(c.space.Metric(), c.dims)
	var all, some []float64
	count, mean, square := 0.0, 0.0, 0.0
	for _, v := range values {
		for _, v := range v {
			d := m.distance(v)
			count, mean, square = count+1, mean+d, square+float64(d*d)
		}
		all = append(all, v[:(len(v)+7)/8]...) // the least of each: shares are small
		for i, n := 0, min(len(v), quantiles); i < n; i++ {
			some = append(some, v[(2*i+1)*len(v)/(2*n)])
		}
	}
	mean /= count
	if variance := square/count - float64(mean*mean); variance > 0 {
		idim = float64(mean*mean) / float64(2*variance)
	}
	if !(idim >= 0 && idim <= math.MaxFloat64) {
		idim = 0
	}
	slices.Sort(all)
	slices.Sort(some)
	_, often, seldom := wanted()
	for _, s := range often {
		within = append(within, all[min(max(1, int(math.Ceil(s*count))), len(all))-1])
	}
	for _, s := range seldom {
		large = append(large, some[int(s*float64(len(some)))])
	}
	least := m.distance(within[0])
	return idim, append(within, m.value(least/2), m.value(0), m.value(least/4)), large
}

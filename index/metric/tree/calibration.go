package tree

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
)

// Calibration is what was found by sampling when a tree was built: 256 objects as queries, for what is wanted often, with every shape that was considered.
//
// The paper's model predicts from the variance of distances alone: its Eq. 3 is negative for small radii, and Eq. 2 takes levels as independent,
// which they are not (words within 2 edits: 28 % are compared where it says 1 to 4). So what a search does is counted, not derived.
type Calibration struct {
	Idim float64 // intrinsic dimension: mean^2 / (2 variance) of distances between objects
	Rows []Row   // by shape, in the order of wanted
}

// Row is what searches of one kind do on average in a tree of one shape.
type Row struct {
	Bounds         Bounds
	Capacity, Leaf int
	Height         int     // of the tree that was counted
	K              int     // the nearest so many; 0: all within a distance
	Share          float64 // of the objects, which are within it: 0.0001 to 0.3
	Reach          float64 // the distance within which the hits are
	Work           Work
}

const (
	rowSize  = 72
	mostRows = 1024
)

// wanted are the searches that are counted: for the nearest, and within the distances within which a share of all pairs are; within half the least of these, and none. So far by
// what is wanted often, which chooses the shape (priced). The others only say what to expect: within a quarter of the least, and, for some of the objects that are asked for, within
// distances of large shares.
func wanted() (nearest []int, shares, large []float64) {
	return []int{1, 10, 100}, []float64{0.0001, 0.0002, 0.0004, 0.0008, 0.0016, 0.0032}, []float64{0.01, 0.03, 0.1, 0.3}
}

// priced is how many of the rows of a shape choose among shapes: the first.
func priced() int {
	nearest, often, _ := wanted()
	return len(nearest) + len(often) + 2 // within half the least, and none
}

func (r *Row) append(w []byte) []byte {
	bounds := uint32(0)
	if r.Bounds == Box {
		bounds = 1
	}
	for _, v := range []uint32{bounds, uint32(r.Capacity), uint32(r.Leaf), uint32(r.Height), uint32(r.K), 0} {
		w = binary.LittleEndian.AppendUint32(w, v)
	}
	for _, v := range []float64{r.Share, r.Reach, r.Work.Nodes, r.Work.Blocks, r.Work.Distances, r.Work.Hits} {
		w = binary.LittleEndian.AppendUint64(w, math.Float64bits(v))
	}
	return w
}

func readRow(data []byte) Row {
	word := func(i int) int { return int(binary.LittleEndian.Uint32(data[4*i:])) }
	float := func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(data[24+8*i:])) }
	bounds := Pivot
	if word(0) == 1 {
		bounds = Box
	}
	return Row{bounds, word(1), word(2), word(3), word(4), float(0), float(1), Work{float(2), float(3), float(4), float(5)}}
}

// sound says that a row can be reckoned with.
func (r *Row) sound() bool {
	for _, v := range []float64{r.Share, r.Reach, r.Work.Nodes, r.Work.Blocks, r.Work.Distances, r.Work.Hits} {
		if !(v >= 0 && v <= math.MaxFloat64) {
			return false
		}
	}
	return r.Capacity >= 2 && r.Capacity <= MostCapacity && r.Leaf >= 1 && r.Leaf <= MostLeaf && r.Height <= mostHeight
}

// Prices are what the parts of a search take on some device, in nanoseconds per query.
type Prices struct {
	Query    float64       // to begin, with a heap of nodes
	Node     float64       // entering one
	Distance cost.Distance // one, beside others in a run
	Far      float64       // more: of vectors that lie beyond near caches
	Run      float64       // of distances, between objects that the path strikes out
	Test     float64       // holding an interval against a query
	Side     float64       // holding a coordinate of a box, or of an object, against it
	Lane     float64       // the same, where several are held against it at once
	Block    float64       // entering a leaf
	Level    float64       // of it, holding an interval of its path against a query
	Byte     float64       // of that, each object's
	Hit      float64
}

// PricesOn are those of a device, where a distance takes so much.
func PricesOn(d *cost.Device, distance cost.Distance) Prices {
	plain := func(name string, reference float64) float64 {
		return d.Of(cost.Constant{Name: name, Reference: reference})
	}
	return Prices{
		Distance: distance, Query: plain("begin", 400), Node: plain("node", 30), Run: plain("run", 26), Test: plain("test", 0.6), Side: plain("side", 1.1),
		Lane: plain("lane", 0.4), Block: plain("block", 105), Level: plain("level", 24), Byte: plain("byte", 0.4), Hit: plain("hit", 22),
	}
}

// reference are the prices by which builds choose, so that the same bytes are built everywhere.
func (t *Tree) reference() Prices {
	d := cost.Reference()
	return PricesOn(d, d.Distance(cost.Object{Metric: t.Metric, Dims: t.dims}))
}

// Cost is what a search of a row takes, of one that is expected (Expect) or was made (Did):
//
//	C = c_query + V (c_node + c_d + capacity c_t) + E (c_block + height (c_level + leaf c_byte)) + R c_run + L c_d + H c_hit
//
// with V nodes, E leaves, L distances in R runs, H hits. Box trees have no distance per node, and tests of as many sides as there are coordinates, several at once where values are squares.
// Where coordinates are few (Few) there is no heap, and objects are compared several at once too. Those that a path lets through are taken for evenly spread over the leaves that are entered.
func (t *Tree) Cost(p Prices, r Row) float64 {
	w, children := r.Work, float64(r.Capacity)
	lane := p.Lane * float64(t.dims)
	side := lane
	if !t.squares() {
		side = p.Side * float64(t.dims)
	}
	hits := w.Hits * p.Hit * (1 + min(w.Hits, 128)/90) // each comes between others, up to 128 of which are kept in order
	distance := p.Distance.Within(r.Reach).Alone + p.Distance.Apart + p.Far
	switch {
	case t.few(r.Bounds):
		return w.Nodes*(p.Node*0.75+children*(p.Test+lane)) + w.Blocks*p.Block*0.6 + w.Distances*side + hits
	case r.Bounds == Box:
		return p.Query + w.Nodes*(p.Node+children*(p.Test+side)) + w.Blocks*(p.Block+p.Run) + w.Distances*distance + hits
	}
	leaf := float64(t.objects) / max(1, t.leaves(r))
	share := min(1, w.Distances/max(1, w.Blocks*leaf))
	runs := w.Distances*(1-share) + w.Blocks*share
	return p.Query + w.Nodes*(p.Node+distance+children*p.Test) + w.Blocks*(p.Block+float64(r.Height)*(p.Level+p.Byte*leaf)) + runs*p.Run + w.Distances*distance + hits
}

// leaves is how many a tree of a row's shape has, about: nodes are cut into as many parts as can be.
func (t *Tree) leaves(r Row) float64 {
	count, leaves := float64(t.objects), 1.0
	for range r.Height {
		parts := min(float64(r.Capacity), math.Ceil(count/float64(r.Leaf)))
		count, leaves = count/parts, leaves*parts
	}
	return leaves
}

// Did is the row of a search that was made, or of many on average, which wanted what is within a value in the end.
func (t *Tree) Did(w Work, within float64) Row {
	return Row{Bounds: t.bounds, Capacity: t.capacity, Leaf: t.leaf, Height: t.height, Reach: t.distance(within), Work: w}
}

// Calibration is what was found when the tree was built.
func (t *Tree) Calibration() Calibration { return t.calibration }

// own are the rows of the tree's own shape.
func (t *Tree) own() (rows []Row) {
	for _, r := range t.calibration.Rows {
		if r.Bounds == t.bounds && r.Capacity == t.capacity && r.Leaf == t.leaf {
			rows = append(rows, r)
		}
	}
	return rows
}

// expected are the rows of a tree in the order in which searches are looked up: found once, since every query asks.
type expected struct {
	everything      Row
	nearest, within []Row // by hits; by reach
}

// expect makes them.
func (t *Tree) expect() *expected {
	s := t.Shape()
	x := &expected{everything: Row{t.bounds, t.capacity, t.leaf, t.height, 0, 1, math.MaxFloat64,
		Work{float64(s.Nodes - s.Leaves), float64(s.Leaves), float64(t.objects), float64(t.objects)}}}
	x.nearest, x.within = []Row{x.everything}, []Row{x.everything}
	for _, r := range t.own() {
		if r.K > 0 || r.Work.Hits > 100 {
			x.nearest = append(x.nearest, r)
		}
		if r.K == 0 {
			x.within = append(x.within, r)
		}
	}
	slices.SortStableFunc(x.nearest, func(a, b Row) int { return cmp.Compare(a.Work.Hits, b.Work.Hits) })
	slices.SortStableFunc(x.within, func(a, b Row) int { return cmp.Compare(a.Reach, b.Reach) })
	if last := len(x.within) - 1; last > 0 {
		x.within[last].Reach = 2 * x.within[last-1].Reach // nothing better is known
	}
	return x
}

// Expect is what a search is expected to do (K 0: one that counts all within): between the rows of the tree on both sides, by K as a power of it, or by the distance. Beyond all rows it goes on to
// where everything is compared.
func (t *Tree) Expect(want metric.Want) Row {
	x := t.expected
	if x == nil { // of a tree that was just built
		x = t.expect()
	}
	e := between(x.nearest, math.Log(max(1, float64(want.K))), func(r Row) float64 { return math.Log(max(1, r.Work.Hits)) }, power)
	if want.K == 0 {
		e = x.everything
	}
	if math.IsInf(want.Most, 1) {
		return e
	}
	most := t.distance(want.Most)
	if r := between(x.within, most, func(r Row) float64 { return r.Reach }, straight); r.Work.Distances < e.Work.Distances {
		e = r
	}
	e.Reach = min(e.Reach, most)
	return e
}

// straight and power are what lies between a and b: on a straight line, and on one between their logarithms.
func straight(a, b, share float64) float64 { return a + share*(b-a) }

func power(a, b, share float64) float64 {
	if !(a > 0 && b > 0) {
		return straight(a, b, share)
	}
	return a * math.Pow(b/a, share)
}

// between finds where x lies among rows, whose places ascend, and mixes the two beside it.
func between(rows []Row, x float64, place func(Row) float64, mix func(a, b, share float64) float64) Row {
	i := slices.IndexFunc(rows, func(r Row) bool { return place(r) >= x })
	switch i {
	case -1:
		return rows[len(rows)-1]
	case 0:
		return rows[0]
	}
	low, high := rows[i-1], rows[i]
	share := (x - place(low)) / (place(high) - place(low))
	if !(share >= 0 && share <= 1) {
		return high
	}
	mixed, a, b := high, low.Work, high.Work
	mixed.Work = Work{mix(a.Nodes, b.Nodes, share), mix(a.Blocks, b.Blocks, share), mix(a.Distances, b.Distances, share), power(a.Hits, b.Hits, share)}
	return mixed
}

package tree

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/metric/bound"
)

// place reads the coordinates that objects are cut by. Those that need more bits are rounded: where a node is cut changes no answer.
func (b *builder) place() {
	d := b.tree.dims
	b.near, b.keys, b.spareKeys = make([]float32, int(b.tree.objects)*d), make([]uint64, b.tree.objects), make([]uint64, b.tree.objects)
	var rounded atomic.Bool
	_ = b.stretches(int(b.tree.objects), func(lo, hi int) { // split asks the context
		x, exact := make([]float64, d), true
		for i := lo; i < hi; i++ {
			b.keys[i] = uint64(i)
			b.placed.Coordinates(b.object(uint32(i)), x)
			b.tree.place(x)
			for j, v := range x {
				b.near[i*d+j] = float32(v)
				exact = exact && float64(float32(v)) == v
			}
		}
		if !exact {
			rounded.Store(true)
		}
	})
	b.exact = !rounded.Load()
}

// cutBoxes puts the objects of some nodes of a level into the order of their parts.
func (b *builder) cutBoxes(nodes []uint32) error {
	t, free := b.tree, make(chan struct{}, b.workers-1) // as many again as take nodes: of few nodes, or when few are left, they are what works
	return parallel(b.ctx, b.workers, len(nodes), func(i int) {
		begin, count := t.begin[nodes[i]], t.count[nodes[i]]
		h := halving{b, count, t.parts(count), free}
		h.halve(begin, begin+count, 0, h.parts)
	})
}

// halving cuts a node into its parts. What an object is cut by is a key: its coordinate, as bits in the order of numbers, above its own number. So no two are alike, and
// they are compared as integers, one after the other in memory.
type halving struct {
	*builder
	count uint32
	parts int
	free  chan struct{} // holds a token for each further goroutine
}

// halve cuts what will be the parts from to to-1, which lie from begin to end-1, into two, along the widest coordinate, by (coordinate, object), and goes on with both.
func (h *halving) halve(begin, end uint32, from, to int) {
	if to-from < 2 || h.ctx.Err() != nil {
		return
	}
	middle := (from + to) / 2
	n := cut(h.count, middle, h.parts) - cut(h.count, from, h.parts)
	keys := h.keys[begin:end]
	h.by(keys, h.widest(keys))
	part(keys, h.spareKeys[begin:end], int(n))
	if len(keys) > 2*stretch {
		select {
		case h.free <- struct{}{}:
			var group sync.WaitGroup
			group.Go(func() { h.halve(begin, begin+n, from, middle) })
			h.halve(begin+n, end, middle, to)
			group.Wait()
			<-h.free
			return
		default:
		}
	}
	h.halve(begin, begin+n, from, middle)
	h.halve(begin+n, end, middle, to)
}

// wide is how many objects are read for one goroutine more.
const wide = 16 * stretch

// spread calls work for all of n objects, on goroutines that are free where there are many.
func (h *halving) spread(n int, work func(lo, hi int)) {
	var group sync.WaitGroup
	lo, helpers := 0, min(n/wide, cap(h.free))
	for i := range helpers {
		select {
		case h.free <- struct{}{}:
			from, to := lo, n*(i+1)/(helpers+1)
			lo = to
			group.Go(func() {
				work(from, to)
				<-h.free
			})
		default:
		}
	}
	work(lo, n)
	group.Wait()
}

// by makes keys of the coordinate.
func (h *halving) by(keys []uint64, axis int) {
	d := h.tree.dims
	h.spread(len(keys), func(lo, hi int) {
		for i, key := range keys[lo:hi] {
			object := uint32(key)
			x := math.Float32bits(h.near[int(object)*d+axis])
			x ^= uint32(int32(x)>>31) | 1<<31
			keys[lo+i] = uint64(x)<<32 | uint64(object)
		}
	})
}

// widest is the coordinate along which objects are farthest apart, the first of equal ones.
func (h *halving) widest(keys []uint64) int {
	d := h.tree.dims
	lo, hi := slices.Clone(h.coordinates(keys[0])), slices.Clone(h.coordinates(keys[0]))
	var mu sync.Mutex
	h.spread(len(keys), func(from, to int) {
		own := make([]float32, 2*d)
		least, most := own[:d], own[d:]
		copy(least, h.coordinates(keys[from]))
		copy(most, least)
		for _, key := range keys[from:to] {
			for j, v := range h.coordinates(key) {
				if v < least[j] {
					least[j] = v
				}
				if v > most[j] {
					most[j] = v
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for j := range d {
			lo[j], hi[j] = min(lo[j], least[j]), max(hi[j], most[j])
		}
	})
	axis, most := 0, float32(-1)
	for j := range d {
		if width := hi[j] - lo[j]; width > most {
			axis, most = j, width
		}
	}
	return axis
}

// coordinates are those of the object of a key.
func (b *builder) coordinates(key uint64) []float32 {
	d := b.tree.dims
	return b.near[int(uint32(key))*d : int(uint32(key))*d+d]
}

// part brings the n least keys to the front, which are all different. It puts them on either side of one that is expected to be a little off the n-th, again and again, without
// branches that nobody foresees; spare is memory of as many.
func part(keys, spare []uint64, n int) {
	for round := 0; len(keys) > few && n > 0 && n < len(keys); round++ {
		pivot := pivotOf(keys, n, round)
		l, r := 0, len(keys)-1
		for _, key := range keys {
			spare[l], spare[r] = key, key // one of which stays
			_, less := bits.Sub64(key, pivot, 0)
			l += int(less)
			r -= 1 - int(less)
		}
		copy(keys, spare)
		if n <= l {
			keys, spare = keys[:l], spare[:l]
		} else {
			keys, spare, n = keys[l:], spare[l:], n-l
		}
	}
	if n > 0 && n < len(keys) {
		slices.Sort(keys)
	}
}

// few keys are sorted.
const few = 24

// pivotOf is the key of a sample that has as large a share of it before it as n is of the keys. Another key is less, so that neither side is without any.
func pivotOf(keys []uint64, n, round int) uint64 {
	var drawn [63]uint64
	sample := drawn[:min(len(drawn), 3+len(keys)/64)]
	each := len(keys) / len(sample)
	for i := range sample {
		sample[i] = keys[i*each+(i+round)*7%each]
	}
	slices.Sort(sample)
	return sample[max(1, n*len(sample)/len(keys))]
}

// enclose puts the objects of each leaf in order, and computes the boxes, from the leaves up.
func (b *builder) enclose() error {
	t := b.tree
	d := t.dims
	t.boxes = make([]float32, int(t.nodes())*2*d)
	if t.objects == 0 {
		return b.ctx.Err()
	}
	if err := b.stretches(int(t.nodes()), func(first, end int) {
		x := make([]float64, d)
		for i := first; i < end; i++ {
			if t.isLeaf(uint32(i)) {
				b.encloseLeaf(uint32(i), t.boxes[i*2*d:i*2*d+d], t.boxes[i*2*d+d:(i+1)*2*d], x)
			}
		}
	}); err != nil {
		return err
	}
	for node := int(t.nodes()) - 1; node >= 0; node-- {
		box := t.boxes[node*2*d : (node+1)*2*d]
		for child := t.first[node]; child < t.first[node+1]; child++ {
			below := t.boxes[int(child)*2*d : (int(child)+1)*2*d]
			if child == t.first[node] {
				copy(box, below)
			}
			for j := range d {
				box[j], box[d+j] = min(box[j], below[j]), max(box[d+j], below[d+j])
			}
		}
	}
	return nil
}

// encloseLeaf finds the box of a leaf's objects. x is memory of one.
func (b *builder) encloseLeaf(leaf uint32, lo, hi []float32, x []float64) {
	t := b.tree
	objects := t.order[t.begin[leaf] : t.begin[leaf]+t.count[leaf]]
	slices.Sort(objects)
	for i, object := range objects {
		if b.exact {
			for j, v := range b.coordinates(uint64(object)) {
				if i == 0 {
					lo[j], hi[j] = v, v
				}
				lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
			}
			continue
		}
		b.placed.Coordinates(b.object(object), x)
		t.place(x)
		for j, v := range x {
			least, most := bound.Float32Down(v), bound.Float32Up(v)
			if i > 0 {
				least, most = min(least, lo[j]), max(most, hi[j])
			}
			lo[j], hi[j] = least, most
		}
	}
}

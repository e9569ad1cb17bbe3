package tree

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sorting"
)

// place reads the coordinates that objects are cut by. Those that need more bits are rounded: where a node is cut changes no answer.
func (b *builder) place() {
	d := b.tree.dims
	b.places = sorting.Places{Dims: d, Of: make([]float32, int(b.tree.objects)*d)}
	b.keys, b.spareKeys = make([]uint64, b.tree.objects), make([]uint64, b.tree.objects)
	var rounded atomic.Bool
	_ = b.stretches(int(b.tree.objects), stretch, func(lo, hi int) { // split asks the context
		x, exact := make([]float64, d), true
		for i := lo; i < hi; i++ {
			b.keys[i] = uint64(i)
			b.placed.Coordinates(b.object(uint32(i)), x)
			b.tree.place(x)
			for j, v := range x {
				b.places.Of[i*d+j] = float32(v)
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
	t := b.tree
	return b.each(nodes, func(node uint32, workers int) {
		begin, count := t.begin[node], t.count[node]
		h := halving{b, count, t.parts(count), make(chan struct{}, workers-1)}
		h.halve(begin, begin+count, 0, h.parts)
	})
}

// halving cuts a node into its parts.
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
	h.places.By(keys, h.places.Widest(keys, h.spread), h.spread)
	sorting.Least(keys, h.spareKeys[begin:end], int(n))
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

// enclose puts the objects of each leaf in order, and computes the boxes, from the leaves up.
func (b *builder) enclose() error {
	t := b.tree
	d := t.dims
	t.boxes = make([]float32, int(t.nodes())*2*d)
	if t.objects == 0 {
		return b.ctx.Err()
	}
	if err := b.stretches(int(t.nodes()), several, func(first, end int) {
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
		if !b.exact {
			b.placed.Coordinates(b.object(object), x)
			t.place(x)
		}
		for j, v := range b.places.At(uint64(object)) {
			least, most := v, v
			if !b.exact {
				least, most = bound.Float32Down(x[j]), bound.Float32Up(x[j])
			}
			if i > 0 {
				least, most = min(least, lo[j]), max(most, hi[j])
			}
			lo[j], hi[j] = least, most
		}
	}
}

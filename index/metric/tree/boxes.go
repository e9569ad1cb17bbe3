package tree

import (
	"cmp"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/index/metric/bound"
)

// place reads the coordinates that objects are cut by. Those that need more bits are rounded: where a node is cut changes no answer.
func (b *builder) place() {
	d := b.tree.dims
	b.near = make([]float32, int(b.tree.objects)*d)
	pieces := (int(b.tree.objects) + stretch - 1) / stretch
	_ = parallel(b.ctx, b.workers, pieces, func(p int) { // split asks the context
		x := make([]float64, d)
		for i := p * stretch; i < min((p+1)*stretch, int(b.tree.objects)); i++ {
			b.placed.Coordinates(b.object(uint32(i)), x)
			b.tree.place(x)
			for j, v := range x {
				b.near[i*d+j] = float32(v)
			}
		}
	})
}

// cutBoxes puts the objects of some nodes of a level into the order of their parts.
func (b *builder) cutBoxes(nodes []uint32) error {
	t := b.tree
	return parallel(b.ctx, b.workers, len(nodes), func(i int) {
		begin, count := t.begin[nodes[i]], t.count[nodes[i]]
		h := halving{b, count, t.parts(count), make(chan struct{}, max(0, b.workers-len(nodes)))}
		h.halve(b.items[begin:begin+count], 0, h.parts)
	})
}

// halving cuts a node into its parts.
type halving struct {
	*builder
	count uint32
	parts int
	free  chan struct{} // holds a token for each further goroutine
}

// halve cuts what will be the parts from to to-1 into two, along the widest coordinate, by (coordinate, object), and goes on with both.
func (h *halving) halve(items []item, from, to int) {
	if to-from < 2 || h.ctx.Err() != nil {
		return
	}
	middle := (from + to) / 2
	n := cut(h.count, middle, h.parts) - cut(h.count, from, h.parts)
	d, axis := h.tree.dims, h.widest(items)
	part(items, int(n), func(x, y item) int {
		return cmp.Or(cmp.Compare(h.near[int(x.object)*d+axis], h.near[int(y.object)*d+axis]), cmp.Compare(x.object, y.object))
	})
	if len(items) > 2*stretch {
		select {
		case h.free <- struct{}{}:
			var group sync.WaitGroup
			group.Go(func() { h.halve(items[:n], from, middle) })
			h.halve(items[n:], middle, to)
			group.Wait()
			<-h.free
			return
		default:
		}
	}
	h.halve(items[:n], from, middle)
	h.halve(items[n:], middle, to)
}

// widest is the coordinate along which objects are farthest apart, the first of equal ones.
func (b *builder) widest(items []item) int {
	d := b.tree.dims
	lo, hi := make([]float32, d), make([]float32, d)
	for i, it := range items {
		x := b.near[int(it.object)*d : int(it.object)*d+d]
		if i == 0 {
			copy(lo, x)
			copy(hi, x)
			continue
		}
		for j, v := range x {
			lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
		}
	}
	axis, most := 0, float32(-1)
	for j := range d {
		if width := hi[j] - lo[j]; width > most {
			axis, most = j, width
		}
	}
	return axis
}

// part brings the n least items to the front. No two compare equal, so which ones these are is given.
func part(items []item, n int, compare func(x, y item) int) {
	for len(items) > 16 && n > 0 && n < len(items) {
		x, y, z := items[0], items[len(items)/2], items[len(items)-1]
		trio := []item{x, y, z}
		slices.SortFunc(trio, compare)
		pivot := trio[1]
		i, j := 0, len(items)-1
		for i <= j {
			for compare(items[i], pivot) < 0 {
				i++
			}
			for compare(items[j], pivot) > 0 {
				j--
			}
			if i <= j {
				items[i], items[j] = items[j], items[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			items = items[:j+1]
		case n >= i:
			items, n = items[i:], n-i
		default:
			return
		}
	}
	if n > 0 && n < len(items) {
		slices.SortFunc(items, compare)
	}
}

// enclose computes the boxes, from the leaves up.
func (b *builder) enclose() error {
	t := b.tree
	d := t.dims
	t.boxes = make([]float32, int(t.nodes())*2*d)
	if t.objects == 0 {
		return b.ctx.Err()
	}
	if err := parallel(b.ctx, b.workers, int(t.nodes()), func(i int) {
		if t.isLeaf(uint32(i)) {
			x := make([]float64, d)
			box := t.boxes[i*2*d : (i+1)*2*d]
			for at := t.begin[i]; at < t.begin[i]+t.count[i]; at++ {
				b.placed.Coordinates(b.object(t.order[at]), x)
				t.place(x)
				for j, v := range x {
					lo, hi := bound.Float32Down(v), bound.Float32Up(v)
					if at > t.begin[i] {
						lo, hi = min(lo, box[j]), max(hi, box[d+j])
					}
					box[j], box[d+j] = lo, hi
				}
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

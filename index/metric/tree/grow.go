package tree

import (
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
)

// grow builds a tree over some objects of a space, or over all. Objects of the tree count in the order of members.
func (b *builder) grow() (*Tree, error) {
	t := b.tree
	if t.bounds == Box {
		b.place()
	} else {
		b.items, b.spare = make([]metric.Hit, t.objects), make([]metric.Hit, t.objects)
		if err := b.stretches(len(b.items), stretch, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				b.items[i].ID = uint32(i)
			}
		}); err != nil {
			return nil, err
		}
	}
	t.first, t.begin, t.count = []uint32{1}, []uint32{0}, []uint32{t.objects}
	t.pivots, t.lo, t.hi = []uint32{0}, []float32{0}, []float32{float32(math.Inf(1))}
	for from, to := uint32(0), uint32(1); from < to; from, to = to, t.nodes() {
		if err := b.split(from, to); err != nil {
			return nil, err
		}
	}
	t.order = make([]uint32, t.objects)
	if err := b.stretches(len(t.order), stretch, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			if t.bounds == Box {
				t.order[i] = uint32(b.keys[i])
			} else {
				t.order[i] = b.items[i].ID
			}
		}
	}); err != nil {
		return nil, err
	}
	t.levels = levelsOf(t.first)
	t.height = len(t.levels) - 2
	var err error
	if t.bounds == Box {
		t.pivots, t.lo, t.hi = nil, nil, nil
		err = b.enclose()
	} else {
		err = b.layPaths()
	}
	t.derive()
	return t, err
}

// split splits the nodes of a level that have more objects than a leaf.
func (b *builder) split(from, to uint32) error {
	t := b.tree
	var large []uint32
	for node := from; node < to; node++ {
		if t.count[node] > uint32(t.leaf) {
			large = append(large, node)
		}
	}
	var err error
	if t.bounds == Box {
		err = b.cutBoxes(large)
	} else {
		err = b.cutByPivots(large)
	}
	if err != nil {
		return err
	}
	for node := from; node < to; node++ {
		if t.count[node] > uint32(t.leaf) {
			b.addChildren(node)
		}
		t.first = append(t.first, t.nodes())
	}
	if t.bounds == Box {
		return nil
	}
	return parallel(b.ctx, b.workers, len(large), func(i int) { b.encodePath(large[i]) })
}

func (b *builder) addChildren(node uint32) {
	t := b.tree
	begin, count := t.begin[node], t.count[node]
	for j, parts := 0, t.parts(count); j < parts; j++ {
		from, to := begin+cut(count, j, parts), begin+cut(count, j+1, parts)
		t.begin, t.count = append(t.begin, from), append(t.count, to-from)
		if t.bounds == Pivot {
			t.pivots = append(t.pivots, 0)
			t.lo = append(t.lo, bound.Float32Down(b.items[from].Value))
			t.hi = append(t.hi, bound.Float32Up(b.items[to-1].Value))
		}
	}
}

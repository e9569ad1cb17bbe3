package tree

import (
	"context"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sorting"
	"github.com/geniemq/geniemq/internal/spread"
)

// builder builds one tree, whose shape is decided.
type builder struct {
	ctx     context.Context
	space   metric.Space
	placed  metric.Placed
	workers int
	tree    *Tree

	members []uint32 // which objects of the space the tree is over; nil: all

	items, spare []metric.Hit // pivot trees, [position]: objects, and their distances to the pivot of their node
	paths        [][]byte

	places          sorting.Places // box trees: of objects, to cut by
	exact           bool           // these are not rounded
	keys, spareKeys []uint64       // [position]
}

// object is the number in the space of an object of the tree.
func (b *builder) object(i uint32) uint32 {
	if b.members == nil {
		return i
	}
	return b.members[i]
}

// parts is into how many parts a node is split: what leaves would do, at most capacity.
func (t *Tree) parts(count uint32) int {
	return min(t.capacity, int((uint64(count)+uint64(t.leaf)-1)/uint64(t.leaf)))
}

// cut is where part j of so many begins, in a node of count objects: parts differ by one object at most.
func cut(count uint32, j, parts int) uint32 {
	return uint32(uint64(j) * uint64(count) / uint64(parts))
}

// stretches calls work for all of n things, some at a time, on some goroutines.
func (b *builder) stretches(n, some int, work func(lo, hi int)) error {
	return parallel(b.ctx, b.workers, (n+some-1)/some, func(i int) { work(i*some, min((i+1)*some, n)) })
}

// each calls work for nodes of a level: for one of many objects on all goroutines, of which it is told, for the others on one each.
func (b *builder) each(nodes []uint32, work func(node uint32, workers int)) error {
	var small []uint32
	for _, node := range nodes {
		if int(b.tree.count[node]) < b.workers*wide {
			small = append(small, node)
		} else if b.ctx.Err() == nil {
			work(node, b.workers)
		}
	}
	return parallel(b.ctx, b.workers, len(small), func(i int) { work(small[i], 1) })
}

// What a goroutine takes at a time.
const (
	stretch = 4096        // objects
	wide    = 4 * stretch // of a node that goroutines share
	several = 128         // nodes
)

// parallel calls work for 0 to n-1 on some goroutines.
func parallel(ctx context.Context, workers, n int, work func(i int)) error {
	return spread.Run(ctx, workers, n, func() func(int) { return work })
}

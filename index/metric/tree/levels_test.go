package tree

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// seeds are the leaves that a query of a batch looks at, at most, before the batch goes down the tree. Eight leave less to compare than fewer do on all data that were tried: those
// beyond what is wanted are not entered.
const seeds = 8

// SearchAll answers a batch, in a way that a device can: level by level, in one buffer of `entries` entries per level, whatever the batch.
//
// An entry says that a query is to enter a node. Entries are taken from the lowest level that has any, so the level below is empty, and at most entries / capacity of them: each
// leads to capacity entries at most, so what they lead to fits into the level below. Hence every level holds, for any batch and for a single query, with entries >= capacity.
// Queries are fed to the root in pieces. There is nothing to wait for, so nothing locks up. (The paper divides the queries, of which one alone may exceed all, and leaves holes
// where it prunes.)
//
// Leaves that are taken together are put in the order of their blocks, so the objects of a block are read once for all of its queries. Before that each query that wants the
// nearest looks at up to 8 leaves that seem best, so that it prunes from the root on.
//
// The answers are those of Search. One goroutine answers a batch; a caller who has more cuts it.
//
// It is what a device is to do, kept here to hold that its buffers are enough. On a CPU Search is better: the nearest take 1.0 to 1.9 times as long here, since what is wanted narrows later, and
// a radius three times in batches of 64, for which the buffers are large; only a radius in batches of 1,000 takes 3 to 46 % less.
func (t *Tree) SearchAll(ctx context.Context, asks []Ask, entries int) ([]Answer, error) {
	if entries < t.capacity {
		return nil, fmt.Errorf("buffers of %d entries cannot hold the children of a node: this tree needs %d at least", entries, t.capacity)
	}
	b := batch{tree: t, entries: entries}
	if err := b.prepare(asks); err != nil {
		return nil, err
	}
	if err := b.run(ctx); err != nil {
		return nil, err
	}
	answers := make([]Answer, len(asks))
	for i, a := range b.askings {
		answers[i] = a.answer()
	}
	return answers, nil
}

// entry is a query that is to enter a node.
type entry struct {
	bound       float64
	query, node uint32
}

// level is the buffer of a level: its entries, and for each the distances to the pivots above it, the root's first.
type level struct {
	entries   []entry
	distances []float64
}

// leveled is a query of a batch, and the leaves that are done.
type leveled struct {
	*asking
	seeds []uint32
}

type batch struct {
	tree    *Tree
	entries int
	askings []*leveled
	levels  []level
	fed     int // queries
	order   []int32
}

// prepare makes the buffers. No more entries than nodes of a level for each query can ever be in it.
func (b *batch) prepare(asks []Ask) error {
	t := b.tree
	b.askings = make([]*leveled, len(asks))
	for i, ask := range asks {
		a := new(asking)
		if err := a.ask(t, ask); err != nil {
			return fmt.Errorf("query %d of the batch: %w", i, err)
		}
		b.askings[i] = &leveled{asking: a}
	}
	b.levels = make([]level, t.height+1)
	for depth := range b.levels {
		most := int(min(uint64(b.entries), uint64(len(asks))*uint64(t.levels[depth+1]-t.levels[depth])))
		b.levels[depth] = level{make([]entry, 0, most), make([]float64, 0, most*depth)}
	}
	return nil
}

func (b *batch) run(ctx context.Context) error {
	for b.feed() || b.lowest() >= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for depth := b.lowest(); depth >= 0; depth = b.lowest() {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			b.take(depth)
		}
	}
	return nil
}

// feed puts queries at the root, as many as fit.
func (b *batch) feed() bool {
	root := &b.levels[0]
	for b.fed < len(b.askings) && len(root.entries) < cap(root.entries) {
		if a := b.askings[b.fed]; !a.idle() {
			a.seed()
			root.entries = append(root.entries, entry{least, uint32(b.fed), 0})
		}
		b.fed++
	}
	return len(root.entries) > 0
}

// lowest is the lowest level that has entries, or -1.
func (b *batch) lowest() int {
	for depth := len(b.levels) - 1; depth >= 0; depth-- {
		if len(b.levels[depth].entries) > 0 {
			return depth
		}
	}
	return -1
}

// take takes entries of a level: leaves are scanned, the others lead to the level below, which is empty.
func (b *batch) take(depth int) {
	from := &b.levels[depth]
	most := b.entries / b.tree.capacity
	if depth == len(b.levels)-1 {
		most = b.entries // these are leaves, and lead to nothing
	}
	begin := max(0, len(from.entries)-most)
	leaves := b.order[:0]
	for i := begin; i < len(from.entries); i++ {
		e := from.entries[i]
		distances := from.distances[i*depth : i*depth+depth]
		switch a := b.askings[e.query]; {
		case e.bound > a.limit:
		case b.tree.isLeaf(e.node):
			leaves = append(leaves, int32(i))
		default:
			b.expand(&b.levels[depth+1], a, e, distances)
		}
	}
	slices.SortFunc(leaves, func(i, j int32) int {
		x, y := from.entries[i], from.entries[j]
		return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.query, y.query))
	})
	for _, i := range leaves {
		e := from.entries[i]
		if a := b.askings[e.query]; e.bound <= a.limit && !slices.Contains(a.seeds, e.node) {
			a.scan(e.node, from.distances[int(i)*depth:int(i)*depth+depth], 0)
		}
	}
	b.order = leaves
	from.entries, from.distances = from.entries[:begin], from.distances[:begin*depth]
}

func (b *batch) expand(below *level, a *leveled, e entry, distances []float64) {
	d, _ := a.enter(e.node)
	for child := b.tree.first[e.node]; child < b.tree.first[e.node+1]; child++ {
		if bound := max(e.bound, a.bound(child, d)); bound <= a.limit {
			below.entries = append(below.entries, entry{bound, e.query, child})
			below.distances = append(append(below.distances, distances...), d)
		}
	}
}

// seed goes down to the leaves that seem best, depth first, so that a query that wants the nearest has a limit from the start. What is found
// is kept, and these leaves are not scanned again. It remembers at most capacity nodes per level.
func (a *leveled) seed() {
	t := a.tree
	if a.Total || a.K == 0 || uint64(a.K) >= uint64(t.objects) || t.height == 0 {
		return
	}
	a.descend(entry{bound: least}, make([]float64, 0, t.height))
}

func (a *leveled) descend(e entry, distances []float64) {
	t := a.tree
	if t.isLeaf(e.node) {
		a.scan(e.node, distances, 0)
		a.seeds = append(a.seeds, e.node)
		return
	}
	d, _ := a.enter(e.node)
	children := make([]entry, 0, t.first[e.node+1]-t.first[e.node])
	for child := t.first[e.node]; child < t.first[e.node+1]; child++ {
		children = append(children, entry{max(e.bound, a.bound(child, d)), 0, child})
	}
	slices.SortFunc(children, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.bound, y.bound), cmp.Compare(x.node, y.node))
	})
	for _, child := range children {
		if len(a.seeds) >= seeds || child.bound > a.limit || math.IsInf(child.bound, 1) {
			return
		}
		a.descend(child, append(distances, d))
	}
}

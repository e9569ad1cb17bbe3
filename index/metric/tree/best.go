package tree

import (
	"context"
	"math"
	"slices"
)

// Search answers one query, best first: it enters the node with the least bound, until every bound that is left is above what is wanted. The error
// is that of the context, or says what is wrong with the query.
func (t *Tree) Search(ctx context.Context, ask Ask) (Answer, error) {
	a, err := t.asking(ask)
	if err != nil || a.idle() {
		return Answer{}, err
	}
	if err := newBestFirst(a).run(ctx, math.Inf(1)); err != nil {
		return Answer{}, err
	}
	return a.answer(), nil
}

// open is a node that may have to be entered.
type open struct {
	bound float64
	node  uint32
	step  int32 // the last of those that led to it; -1: none
}

// step is the distance to the pivot of a node that was entered, and the step before.
type step struct {
	distance float64
	before   int32
}

type bestFirst struct {
	*asking
	todo      []open // a heap
	steps     []step
	distances []float64
}

func newBestFirst(a *asking) *bestFirst { return &bestFirst{asking: a, todo: []open{{least, 0, -1}}} }

// run enters nodes until nothing is left that could be wanted, or so many distances were computed.
func (b *bestFirst) run(ctx context.Context, budget float64) error {
	for steps := 0; len(b.todo) > 0 && b.work.Distances < budget; steps++ {
		if steps%64 == 63 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next := b.pop()
		if next.bound > b.limit {
			break
		}
		if b.tree.isLeaf(next.node) {
			b.scan(next.node, b.above(next.step))
		} else {
			b.expand(next)
		}
	}
	return nil
}

func (b *bestFirst) expand(o open) {
	d := b.enter(o.node)
	b.steps = append(b.steps, step{d, o.step})
	last := int32(len(b.steps) - 1)
	for child := b.tree.first[o.node]; child < b.tree.first[o.node+1]; child++ {
		if bound := max(o.bound, b.bound(child, d)); bound <= b.limit {
			b.push(open{bound, child, last})
		}
	}
}

// above are the distances to the pivots that led to a leaf, the root's first.
func (b *bestFirst) above(last int32) []float64 {
	b.distances = b.distances[:0]
	for ; last >= 0; last = b.steps[last].before {
		b.distances = append(b.distances, b.steps[last].distance)
	}
	slices.Reverse(b.distances)
	return b.distances
}

// before is the order in which nodes are entered. Of equal bounds the lower level is first, since it has the objects.
func (o open) sooner(other open) bool {
	return o.bound < other.bound || o.bound == other.bound && o.node > other.node
}

func (b *bestFirst) push(o open) {
	b.todo = append(b.todo, o)
	for i := len(b.todo) - 1; i > 0; {
		up := (i - 1) / 2
		if !b.todo[i].sooner(b.todo[up]) {
			return
		}
		b.todo[i], b.todo[up] = b.todo[up], b.todo[i]
		i = up
	}
}

func (b *bestFirst) pop() open {
	top, last := b.todo[0], len(b.todo)-1
	b.todo[0] = b.todo[last]
	b.todo = b.todo[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && b.todo[child+1].sooner(b.todo[child]) {
			child++
		}
		if !b.todo[child].sooner(b.todo[i]) {
			return top
		}
		b.todo[i], b.todo[child] = b.todo[child], b.todo[i]
		i = child
	}
}

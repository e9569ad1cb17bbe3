package tree

import (
	"errors"
	"fmt"
)

// MaxCompared is the size up to which trees are compared.
const MaxCompared = 512

// ErrTooLarge is wrapped by errors about a tree of more than MaxCompared nodes, which cannot be compared. Its keywords are as good as
// those of any other.
var ErrTooLarge = errors.New("too large to be compared")

// Pattern is one tree made ready for being compared with many stored ones: exact tree edit distances, and match counts.
//
// The tree edit distance is the fewest operations that turn one tree into the other, where an operation gives a node another
// label, deletes a node (its children take its place), or inserts one (around a run of siblings, or as a leaf). The root may be
// deleted on the way too. All cost 1.
//
// # How
//
// The algorithm is that of Zhang and Shasha (SIAM J. Comput. 18, 1989): distances of forests that are prefixes, in postorder, of
// subtrees, for each pair of keyroots. It is exact, and its cost is the product of the sizes of all keyroots' subtrees: quadratic
// for balanced trees, of fourth degree for combs. Two things keep it down:
//
//   - The distance of two trees is that of their mirror images, whose keyroots are others. The cheaper of both is computed.
//   - With a bound t, pairs of prefixes of i and j nodes matter only if |i-j| + |(n-m)-(i-j)| <= t, since so many nodes are
//     deleted or inserted before and after (Touzet, DAM 2007). All others count as infinite. Values computed are then never
//     too small, and right wherever a script of cost t passes, so the result is exact when it is at most t, and above t otherwise.
//
// Before that, the sizes and the bag of labels may say that the bound is exceeded.
//
// # Work
//
// The largest trees, if they are zigzag combs, take seconds. So a pace is asked every fraction of a millisecond. When it
// returns an error the comparison stops with that error, and Resume goes on with it, to the same result. Nothing is allocated
// per comparison: memory grows to what the largest pair needs, 1 MiB at most, and is kept. A Pattern is for one goroutine at a
// time.
type Pattern struct {
	tree  Tree
	sides [2]side // of the pattern, as it is and mirrored
	held  []int32 // how often the pattern has a label

	other  Tree     // of the comparison
	label  []uint32 // its labels by the pattern's numbers, none where that has no such label
	mirror side     // its better side
	spare  side
	count  []int32 // scratch, as long as held

	matrix
	task task
}

// Reset makes a copy of a tree the pattern.
func (p *Pattern) Reset(t *Tree) {
	p.task = task{}
	q := &p.tree
	q.reset()
	for _, name := range t.labels.Names {
		q.labels.Add(name)
	}
	q.label = append(q.label, t.label...)
	q.parent = append(q.parent, t.parent...)
	q.size = append(q.size, t.size...)
	p.held = grown(p.held, len(q.labels.Names))
	clear(p.held)
	for _, label := range q.label {
		p.held[label]++
	}
	if q.Len() <= MaxCompared {
		for mirrored := range p.sides {
			p.sides[mirrored].reset(q, q.label, mirrored == 1)
		}
	}
}

// Len is the number of nodes of the pattern.
func (p *Pattern) Len() int { return p.tree.Len() }

// load reads a stored tree and gives its labels the pattern's numbers. A label that the pattern does not have gets one of its own,
// so that it does not pass for a node that is not there.
func (p *Pattern) load(stored string) error {
	if err := p.other.read(stored); err != nil {
		return err
	}
	p.label = grown(p.label, p.other.Len())
	for i, label := range p.other.label {
		id, ok := p.tree.labels.Of(p.other.labels.Names[label])
		if !ok {
			id = foreign
		}
		p.label[i] = id
	}
	return nil
}

// Distance returns the edit distance of the pattern and a stored tree, and true, when it is at most bound. Otherwise it returns
// false, as soon as that is certain, and a number that means nothing. pace may be nil. The error is the pace's, after which Resume
// goes on; ErrTooLarge; or ErrDamaged.
func (p *Pattern) Distance(stored string, bound int, pace func() error) (distance int, within bool, err error) {
	p.task = task{}
	if p.Len() > MaxCompared {
		return 0, false, fmt.Errorf("the query's tree has %d nodes, more than %d: %w", p.Len(), MaxCompared, ErrTooLarge)
	}
	if err := p.load(stored); err != nil {
		return 0, false, err
	}
	n, m := p.Len(), len(p.label)
	if m > MaxCompared {
		return 0, false, fmt.Errorf("a stored tree has %d nodes, more than %d: %w", m, MaxCompared, ErrTooLarge)
	}
	if bound < max(n-m, m-n) || bound < max(n, m)-p.commonLabels() {
		return 0, false, nil
	}
	side := &p.sides[0]
	p.mirror.reset(&p.other, p.label, false)
	p.spare.reset(&p.other, p.label, true)
	if p.sides[1].cost*p.spare.cost < side.cost*p.mirror.cost {
		side = &p.sides[1]
		p.mirror, p.spare = p.spare, p.mirror
	}
	p.task.begin(side, &p.mirror, min(bound, n+m))
	p.matrix.reserve(n, m)
	return p.Resume(pace)
}

// commonLabels is the size of the multiset intersection of both trees' labels. No operation changes it, or one of the sizes, by
// more than 1.
func (p *Pattern) commonLabels() int {
	p.count = grown(p.count, len(p.held))
	clear(p.count)
	common := 0
	for _, label := range p.label {
		if label < uint32(len(p.held)) && p.count[label] < p.held[label] {
			p.count[label]++
			common++
		}
	}
	return common
}

// Resume goes on with the comparison that a pace has stopped, and returns what Distance would have returned.
func (p *Pattern) Resume(pace func() error) (distance int, within bool, err error) {
	if p.task.a == nil {
		return 0, false, errors.New("there is no comparison of trees to go on with")
	}
	if err := p.task.run(&p.matrix, pace); err != nil {
		return 0, false, err
	}
	distance = p.matrix.whole(len(p.task.a.label), len(p.task.b.label))
	within = distance <= p.task.bound
	p.task = task{}
	return distance, within, nil
}

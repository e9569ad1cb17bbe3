package tree

// foreign is the label of a node of one tree that the other does not have.
const foreign = none - 1

// side is a tree in postorder, as it is or mirrored.
type side struct {
	label []uint32
	left  []int32 // the leftmost leaf of a node's subtree: the subtree is left to node
	roots []int32 // keyroots: for each leftmost leaf the highest node that has it; ascending
	cost  int64   // the sizes of the keyroots' subtrees together
	above []int32 // scratch: a node's depth; then what is known of a leaf
}

func (s *side) reset(t *Tree, label []uint32, mirrored bool) {
	n := t.Len()
	s.label, s.left, s.above = grown(s.label, n), grown(s.left, n), grown(s.above, n)
	for i := range n {
		// In postorder a node comes after its subtree and before its ancestors. That of the mirror image is preorder backwards.
		s.above[i] = 0
		if p := t.parent[i]; p >= 0 {
			s.above[i] = s.above[p] + 1
		}
		at := int32(n-1) - int32(i)
		if !mirrored {
			at = int32(i) + t.size[i] - 1 - s.above[i]
		}
		s.label[at] = label[i]
		s.left[at] = at - t.size[i] + 1
	}
	s.roots, s.cost = s.roots[:0], 0
	clear(s.above)
	for i := n - 1; i >= 0; i-- {
		if leaf := s.left[i]; s.above[leaf] == 0 {
			s.above[leaf] = 1
			s.roots = append(s.roots, int32(i))
			s.cost += int64(i) - int64(leaf) + 1
		}
	}
	for i, j := 0, len(s.roots)-1; i < j; i, j = i+1, j-1 {
		s.roots[i], s.roots[j] = s.roots[j], s.roots[i]
	}
}

// matrix is what is known of a pair of trees.
type matrix struct {
	// forest has in row r and column c the distance of the forests that a pair of keyroots' subtrees has before nodes r and c.
	forest []int16
	// trees has in row i and column j the distance of the subtrees of nodes i and j.
	trees  []int16
	stride int // of both
}

// infinite is more than any distance, and twice that with what is added is still an int16.
const infinite = 1 << 13

func (m *matrix) reserve(rows, columns int) {
	m.stride = columns + 2 // a column before the first node, and one to say that the band has ended
	cells := (rows + 1) * m.stride
	m.forest, m.trees = grown(m.forest, cells), grown(m.trees, cells)
}

func (m *matrix) whole(rows, columns int) int {
	return int(m.trees[(rows-1)*m.stride+columns-1])
}

// task is a comparison, and how far it has come.
type task struct {
	a, b      *side
	bound     int
	low, high int32 // the band: row minus column
	i, j      int   // the next pair of keyroots
	work      int   // cells since the pace was asked
}

// paceCells is what is computed between two questions to a pace, some third of a millisecond; a pair of keyroots is not interrupted.
const paceCells = 1 << 17

func (t *task) begin(a, b *side, bound int) {
	delta := len(a.label) - len(b.label)
	slack := (bound - max(delta, -delta)) / 2
	*t = task{a: a, b: b, bound: bound, low: int32(min(0, delta) - slack), high: int32(max(0, delta) + slack)}
}

func (t *task) run(m *matrix, pace func() error) error {
	for ; t.i < len(t.a.roots); t.i++ {
		for ; t.j < len(t.b.roots); t.j++ {
			if t.work >= paceCells && pace != nil {
				if err := pace(); err != nil {
					return err
				}
				t.work = 0
			}
			t.work += t.pair(m, t.a.roots[t.i], t.b.roots[t.j])
		}
		t.j = 0
	}
	return nil
}

// pair computes the distances of all pairs of subtrees that have the same leftmost leaves as those of the keyroots i and j, and returns
// how much that was. Rows and columns are counted in nodes before, so that row r is that of the forest whose last node is r-1.
func (t *task) pair(m *matrix, i, j int32) (work int) {
	top, start := t.a.left[i], t.b.left[j]
	if d := top - start; d < t.low || d > t.high {
		return 1 // no script within the bound has these leaves at the same place
	}
	stride := int32(m.stride)
	row := m.forest[top*stride:][:stride]
	row[start] = 0
	last := min(j+1, top-t.low)
	for c := start + 1; c <= last; c++ {
		row[c] = row[c-1] + 1
	}
	row[last+1] = infinite
	for r := top + 1; r <= i+1; r++ {
		first, last := max(start, r-t.high), min(j+1, r-t.low)
		if first > last {
			break
		}
		above := row
		row = m.forest[r*stride:][:stride]
		if first == start {
			row[start] = above[start] + 1
			first++
		} else {
			row[first-1] = infinite
		}
		if t.a.left[r-1] == top {
			t.whole(m, r, first, last, start, row, above)
		} else {
			t.split(m, r, first, last, row, above)
		}
		row[last+1] = infinite
		work += int(last-first) + 8
	}
	return work
}

// whole computes the columns first to last of a row whose forest is one tree. Where that of the column is one too, they are a pair of subtrees.
func (t *task) whole(m *matrix, r, first, last, start int32, row, above []int16) {
	top := t.a.left[r-1]
	label := t.a.label[r-1]
	trees := m.trees[(r-1)*int32(m.stride):][:m.stride]
	base := m.forest[top*int32(m.stride):][:m.stride]
	for c := first; c <= last; c++ {
		best := min(above[c], row[c-1]) + 1
		if left := t.b.left[c-1]; left == start {
			change := above[c-1]
			if t.b.label[c-1] != label {
				change++
			}
			best = min(best, change)
			trees[c-1] = best
		} else if d := top - left; d >= t.low && d <= t.high {
			best = min(best, base[left]+trees[c-1])
		}
		row[c] = best
	}
}

// split computes the columns first to last of a row whose forest has several trees: the last one is compared as it was when its keyroot was.
func (t *task) split(m *matrix, r, first, last int32, row, above []int16) {
	cut := t.a.left[r-1]
	trees := m.trees[(r-1)*int32(m.stride):][:m.stride]
	base := m.forest[cut*int32(m.stride):][:m.stride]
	lefts := t.b.left
	for c := first; c <= last; c++ {
		best := min(above[c], row[c-1]) + 1
		left := lefts[c-1]
		if d := cut - left; d >= t.low && d <= t.high {
			best = min(best, base[left]+trees[c-1])
		}
		row[c] = best
	}
}

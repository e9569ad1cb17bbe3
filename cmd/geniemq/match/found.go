package match

import (
	"cmp"
	"io"
	"slices"

	"github.com/geniemq/geniemq/cmd/geniemq/match/journal"
	"github.com/geniemq/geniemq/cmd/geniemq/match/pairing"
)

// found is what a journal has, of which the output is made.
type found struct {
	rows   int64
	pairs  []pairing.Pair    // those that are left
	keys   map[uint32]string // of rows among themselves, those in pairs and, for gold, of all
	right  map[[2]uint32]bool
	wanted int // gold pairs
	lost   int // of them such as name rows that the input does not have
	// distances are those of undirected pairs that were found by distance, which is the same from both sides.
	distances map[[2]uint32]float64
}

// collect reads the journal, and leaves the pairs that are asked for.
func (r *runner) collect(j *journal.Journal, g *gold) (*found, error) {
	f := &found{rows: j.Rows(), keys: make(map[uint32]string), right: make(map[[2]uint32]bool), distances: make(map[[2]uint32]float64)}
	err := j.Each(func(row *journal.Row) error {
		if r.within {
			f.keys[uint32(row.Number)] = row.Key
		}
		g.row(row)
		for _, p := range row.Pairs {
			f.pairs = append(f.pairs, pairing.Pair{Row: uint32(row.Number), Object: p.ID, Score: p.Score})
			if n := uint32(row.Number); r.within && p.Distance != nil {
				f.distances[[2]uint32{min(n, p.ID), max(n, p.ID)}] = *p.Distance
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := g.orient(); err != nil {
		return nil, err
	}
	if r.within {
		f.pairs = pairing.Undirected(f.pairs)
	}
	if g != nil {
		if err := f.judge(j, g, r.within); err != nil {
			return nil, err
		}
	}
	switch {
	case r.oneToOne && r.within:
		f.pairs = pairing.Apart(f.pairs)
	case r.oneToOne:
		f.pairs = pairing.OneToOne(f.pairs)
	}
	slices.SortFunc(f.pairs, func(a, b pairing.Pair) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(b.Score, a.Score), cmp.Compare(a.Object, b.Object))
	})
	return f, nil
}

// judge finds which pairs are right.
func (f *found) judge(j *journal.Journal, g *gold, within bool) error {
	f.wanted, f.lost = g.count()
	if within {
		for _, p := range f.pairs {
			if g.has(f.keys[p.Row], f.keys[p.Object]) || g.has(f.keys[p.Object], f.keys[p.Row]) {
				f.right[[2]uint32{p.Row, p.Object}] = true
			}
		}
		return nil
	}
	return j.Each(func(row *journal.Row) error {
		for _, p := range row.Pairs {
			if g.has(row.Key, p.Key) {
				f.right[[2]uint32{uint32(row.Number), p.ID}] = true
			}
		}
		return nil
	})
}

// write writes the output.
func (r *runner) write(out io.Writer, j *journal.Journal, f *found) error {
	w := newWriter(out, r.format, r.fieldNames())
	var err error
	switch {
	case r.clusters:
		err = r.writeClusters(w, f)
	case r.within:
		err = r.writePairs(w, f)
	default:
		chosen := make(map[[2]uint32]bool)
		if r.oneToOne {
			for _, p := range f.pairs {
				chosen[[2]uint32{p.Row, p.Object}] = true
			}
		}
		err = j.Each(func(row *journal.Row) error {
			if r.oneToOne {
				row.Pairs = slices.DeleteFunc(row.Pairs, func(p journal.Pair) bool { return !chosen[[2]uint32{uint32(row.Number), p.ID}] })
			}
			return r.writeRow(w, row)
		})
	}
	if err != nil {
		return err
	}
	return w.flush()
}

// fieldNames are the names of what a line of the output has.
func (r *runner) fieldNames() []string {
	var names []string
	switch {
	case r.clusters:
		return []string{"row", "key", "cluster", "cluster_key", "size"}
	case r.within:
		names = []string{"row", "key", "other", "other_key", "score"}
	default:
		names = []string{"row", "key", "found", "found_key", "rank", "score"}
	}
	if r.question.apart() {
		names = append(names, "distance")
	}
	return names
}

// writeRow writes the pairs of a row.
func (r *runner) writeRow(w *writer, row *journal.Row) error {
	for i, p := range row.Pairs {
		if err := w.line(row.Number, row.Key, p.ID, p.Key, i+1, p.Score, distanceOf(p.Distance)); err != nil {
			return err
		}
	}
	if len(row.Pairs) == 0 && r.unmatched {
		return w.line(row.Number, row.Key, nil, nil, nil, nil, nil)
	}
	return nil
}

// distanceOf is a distance as a field, nil where a row was not asked by it.
func distanceOf(d *float64) any {
	if d == nil {
		return nil
	}
	return apartness(*d)
}

// writePairs writes pairs of rows, each once.
func (r *runner) writePairs(w *writer, f *found) error {
	for _, p := range f.pairs {
		far := any(nil)
		if d, ok := f.distances[[2]uint32{p.Row, p.Object}]; ok {
			far = apartness(d)
		}
		if err := w.line(p.Row, f.keys[p.Row], p.Object, f.keys[p.Object], p.Score, far); err != nil {
			return err
		}
	}
	return nil
}

// writeClusters writes each row once, with the first of its cluster.
func (r *runner) writeClusters(w *writer, f *found) error {
	clusters := pairing.Clusters(int(f.rows), f.pairs)
	size := make([]int, f.rows)
	for _, c := range clusters {
		size[c]++
	}
	for row, c := range clusters {
		if err := w.line(row, f.keys[uint32(row)], c, f.keys[c], size[c]); err != nil {
			return err
		}
	}
	return nil
}

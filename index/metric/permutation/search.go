package permutation

import (
	"context"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// Result is what a search found. Its hits are the searcher's and hold until the next search.
type Result struct {
	Hits     []metric.Hit // in the order of (value, id)
	Compared int          // objects: candidates, or all
	// Exact: all objects that pass were candidates, so that the answer is proven.
	Exact bool
	// Expected is what was measured for searches like this one, if Measured: of k neighbours that the table covers, with neither filter nor radius. What is exact
	// needs no measurement.
	Expected recall.Recall
	Measured bool
}

// Searcher searches an index. One goroutine at a time uses it; it keeps its memory.
type Searcher struct {
	index     *Index
	ranker    ranker
	permuted  []float64 // values of the permutants
	ranks     []byte
	packed    []byte
	distances [512]uint32
	selected  selection
	best      metric.Best
	values    [512]float64
}

// Searcher returns a new one.
func (x *Index) Searcher() *Searcher {
	m := len(x.permutants)
	return &Searcher{index: x, permuted: make([]float64, m), ranks: make([]byte, m)}
}

// Search finds the hits that are wanted among the candidates, which are a fraction of all objects, above 0; 1 and more compares all. A filter, if any, says
// which objects pass. The asker's objects are those that the index was built of, by the same numbers.
func (s *Searcher) Search(ctx context.Context, a metric.Asker, want metric.Want, fraction float64, pass func(id uint32) bool) (Result, error) {
	if !(fraction > 0) {
		return Result{}, fmt.Errorf("searching a permutation index with the fraction %v: it has to be above 0, and at most 1", fraction)
	}
	if want.K < 1 {
		return Result{Exact: true}, nil
	}
	s.best.Reset(want)
	steps := s.index.steps(want.K, fraction, s.index.objects)
	if steps == s.index.objects {
		if err := s.everything(ctx, a, pass); err != nil {
			return Result{}, fmt.Errorf("searching a permutation index: comparing all objects: %w", err)
		}
		return Result{Hits: s.best.Sorted(), Compared: int(steps), Exact: true}, nil
	}
	if err := s.candidates(ctx, a, steps, pass); err != nil {
		return Result{}, fmt.Errorf("searching a permutation index: %w", err)
	}
	if err := s.compare(ctx, a); err != nil {
		return Result{}, fmt.Errorf("searching a permutation index: comparing candidates: %w", err)
	}
	r := Result{Hits: s.best.Sorted(), Compared: len(s.selected.entries), Exact: s.selected.cuts == 0}
	if pass == nil && math.IsInf(want.Most, 1) && !r.Exact {
		r.Expected, r.Measured = s.index.recall.At(want.K, fraction)
	}
	return r, nil
}

// compare compares the candidates, which come by ascending id. Those that are near each other are compared in one run, with what lies between them: to begin a run takes as long as
// comparing some objects more, unless each takes long, as texts do.
func (s *Searcher) compare(ctx context.Context, a metric.Asker) error {
	gap := uint32(8)
	if _, dear := a.(metric.Cutter); dear {
		gap = 1
	}
	runs := 0
	for rest := s.selected.entries; len(rest) > 0; runs++ {
		if runs&(1<<10-1) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		lo, n := rest[0].id, 1
		for n < len(rest) && rest[n].id-rest[n-1].id <= gap && rest[n].id-lo < uint32(len(s.values)) {
			n++
		}
		hi := rest[n-1].id + 1
		metric.ValuesTo(a, lo, hi, s.best.Bound(), s.values[:hi-lo])
		for _, c := range rest[:n] {
			s.best.Add(metric.Hit{Value: s.values[c.id-lo], ID: c.id})
		}
		rest = rest[n:]
	}
	return nil
}

// everything compares all objects, which needs no ranks.
func (s *Searcher) everything(ctx context.Context, a metric.Asker, pass func(uint32) bool) error {
	for lo, n := uint64(0), uint64(s.index.objects); lo < n; lo += uint64(len(s.values)) {
		if lo&(1<<14-1) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := s.values[:min(uint64(len(s.values)), n-lo)]
		metric.ValuesTo(a, uint32(lo), uint32(lo)+uint32(len(part)), s.best.Bound(), part)
		for i, v := range part {
			if id := uint32(lo) + uint32(i); v <= s.best.Bound() && (pass == nil || pass(id)) {
				s.best.Add(metric.Hit{Value: v, ID: id})
			}
		}
	}
	return nil
}

// steps is how many of some objects are candidates for k neighbours. Of all within a radius, k is no number, and the fraction decides.
func (x *Index) steps(k int, fraction float64, objects uint32) uint32 {
	n := float64(objects)
	if share := math.Ceil(fraction * n); k == math.MaxInt || float64(k) < share {
		return uint32(min(share, n))
	}
	return uint32(min(float64(k), n))
}

// candidates selects the first objects that pass by (rank distance, id). They come by ascending id.
func (s *Searcher) candidates(ctx context.Context, a metric.Asker, first uint32, pass func(uint32) bool) error {
	x := s.index
	m := len(x.permutants)
	s.prepare(a)
	s.selected.reset(int(first))
	for lo := uint64(0); lo < uint64(x.objects); lo += uint64(len(s.distances)) {
		if lo&(1<<16-1) == 0 && ctx.Err() != nil {
			return fmt.Errorf("comparing ranks: %w", context.Cause(ctx))
		}
		count := min(uint64(len(s.distances)), uint64(x.objects)-lo)
		distances := s.distances[:count]
		x.distances(distances, x.ranks[lo*uint64(m):(lo+count)*uint64(m)], s.packed, m)
		s.selected.add(uint32(lo), distances, pass)
	}
	s.selected.cut()
	return nil
}

// prepare ranks the permutants by a query.
func (s *Searcher) prepare(a metric.Asker) {
	for j, id := range s.index.permutants {
		s.permuted[j] = a.Value(id)
	}
	s.ranker.rank(s.ranks, s.permuted)
	s.packed = pack(s.packed[:0], s.ranks)
}

// CompareRanks compares the rank vectors of so many objects, at most, with those of the last query: what that takes, whoever plans wants to know.
func (s *Searcher) CompareRanks(objects int) int {
	x := s.index
	m := len(x.permutants)
	if len(s.packed) == 0 {
		s.packed = pack(s.packed, s.ranks)
	}
	n := min(objects, int(x.objects))
	for lo := 0; lo < n; lo += len(s.distances) {
		count := min(len(s.distances), n-lo)
		x.distances(s.distances[:count], x.ranks[lo*m:(lo+count)*m], s.packed, m)
	}
	return n
}

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

	// The search that was begun.
	asker metric.Asker
	want  metric.Want
	steps uint32 // candidates
	state state
	at    uint64 // permutants, objects or candidates that are done
	pass  func(id uint32) bool
	share float64
}

// state is what a search does next.
type state int

const (
	ranking    state = iota // the permutants, by the query
	selecting               // candidates, by their ranks
	comparing               // candidates
	everything              // objects, which needs no ranks
	done
)

// Searcher returns a new one.
func (x *Index) Searcher() *Searcher {
	m := len(x.permutants)
	return &Searcher{index: x, permuted: make([]float64, m), ranks: make([]byte, m)}
}

// Search finds the hits that are wanted, as Begin says. A filter, if any, says which objects pass.
func (s *Searcher) Search(ctx context.Context, a metric.Asker, want metric.Want, fraction float64, pass func(id uint32) bool) (Result, error) {
	if err := s.Begin(a, want, fraction); err != nil {
		return Result{}, err
	}
	if !s.Run(pass, metric.Until(ctx)) || ctx.Err() != nil {
		return Result{}, fmt.Errorf("searching a permutation index: %w", context.Cause(ctx))
	}
	return s.End(), nil
}

// Begin begins a search for the hits that are wanted among the candidates, which are a fraction of all objects, above 0; 1 and more compares all. The asker's objects are those that the index
// was built of, by the same numbers.
func (s *Searcher) Begin(a metric.Asker, want metric.Want, fraction float64) error {
	if !(fraction > 0) {
		return fmt.Errorf("searching a permutation index with the fraction %v: it has to be above 0, and at most 1", fraction)
	}
	s.asker, s.want, s.share, s.state, s.at = a, want, fraction, ranking, 0
	s.best.Reset(want)
	s.selected.reset(0)
	if want.K < 1 {
		s.state = done
		return nil
	}
	if s.steps = s.index.Candidates(want.K, fraction, s.index.objects); s.steps == s.index.objects {
		s.state = everything
	} else {
		s.selected.reset(int(s.steps))
	}
	return nil
}

// Run goes on until all is found, or the meter stops it. The filter says which objects pass, nil: all, and is alike in all calls.
func (s *Searcher) Run(pass func(id uint32) bool, meter metric.Meter) bool {
	s.pass = pass
	long, end := metric.Metered(s.asker, meter)
	defer end()
	for s.state != done {
		work, ok := s.step(long)
		if meter.Did(work); !ok || meter.Stop() {
			return false
		}
	}
	return true
}

// step does a piece of work; false: it was stopped in the middle.
func (s *Searcher) step(long metric.Pausing) (work int, ok bool) {
	x := s.index
	stopped := func() bool { return long != nil && long.Paused() }
	switch s.state {
	case ranking:
		j := s.at
		v := s.asker.Value(x.permutants[j])
		if stopped() {
			return 0, false
		}
		s.permuted[j] = v
		if s.at++; s.at == uint64(len(x.permutants)) {
			s.ranker.rank(s.ranks, s.permuted)
			s.packed = pack(s.packed[:0], s.ranks)
			s.state, s.at = selecting, 0
		}
		return s.value(), true
	case selecting:
		count := min(uint64(len(s.distances)), uint64(x.objects)-s.at)
		distances, m := s.distances[:count], len(x.permutants)
		x.distances(distances, x.ranks[s.at*uint64(m):(s.at+count)*uint64(m)], s.packed, m)
		s.selected.add(uint32(s.at), distances, s.pass)
		if s.at += count; s.at == uint64(x.objects) {
			s.selected.cut()
			s.state, s.at = comparing, 0
		}
		return int(count) * (1 + m/32), true
	case comparing:
		return s.compare(long)
	}
	return s.everything(long)
}

// value is about what a value takes, for a meter.
func (s *Searcher) value() int {
	if c, ok := s.asker.(metric.PlacedAsker); ok {
		return 3 + len(c.Coordinates())/5
	}
	return 16
}

// compare compares some of the candidates, which come by ascending id. Those that are near each other are compared in one run, with what lies between them: to begin a run takes as long as
// comparing some objects more, unless each takes long, as texts do.
func (s *Searcher) compare(long metric.Pausing) (work int, ok bool) {
	gap, most := uint32(8), uint32(len(s.values))
	if _, dear := s.asker.(metric.Cutter); dear {
		gap = 1
	}
	if long != nil {
		most = 1
	}
	rest := s.selected.entries[s.at:]
	if len(rest) == 0 {
		s.state = done
		return 0, true
	}
	lo, n := rest[0].id, 1
	for n < len(rest) && rest[n].id-rest[n-1].id <= gap && rest[n].id-lo < most {
		n++
	}
	hi := rest[n-1].id + 1
	metric.ValuesTo(s.asker, lo, hi, s.best.Bound(), s.values[:hi-lo])
	if long != nil && long.Paused() {
		return 0, false
	}
	for _, c := range rest[:n] {
		s.best.Add(metric.Hit{Value: s.values[c.id-lo], ID: c.id})
	}
	s.at += uint64(n)
	return int(hi-lo) * s.value(), true
}

// everything compares some of all objects.
func (s *Searcher) everything(long metric.Pausing) (work int, ok bool) {
	n := min(uint64(len(s.values)), uint64(s.index.objects)-s.at)
	if long != nil {
		n = min(n, 1)
	}
	if n == 0 {
		s.state = done
		return 0, true
	}
	lo, part := uint32(s.at), s.values[:n]
	metric.ValuesTo(s.asker, lo, lo+uint32(n), s.best.Bound(), part)
	if long != nil && long.Paused() {
		return 0, false
	}
	for i, v := range part {
		if id := lo + uint32(i); v <= s.best.Bound() && (s.pass == nil || s.pass(id)) {
			s.best.Add(metric.Hit{Value: v, ID: id})
		}
	}
	s.at += n
	return int(n) * s.value(), true
}

// End is what was found. Nothing of the query is kept.
func (s *Searcher) End() Result {
	r := Result{Hits: s.best.Sorted(), Compared: len(s.selected.entries), Exact: s.selected.cuts == 0}
	switch {
	case s.want.K < 1:
		r = Result{Exact: true}
	case s.steps == s.index.objects:
		r.Compared = int(s.steps)
	case s.pass == nil && math.IsInf(s.want.Most, 1) && !r.Exact:
		r.Expected, r.Measured = s.index.recall.At(s.want.K, s.share)
	}
	s.asker, s.pass = nil, nil
	return r
}

// Candidates is how many of some objects are candidates for k neighbours: as many as what was measured speaks of (recall.Table.Neighbours), at least. Of all within a radius, k is no number,
// and the fraction decides.
func (x *Index) Candidates(k int, fraction float64, objects uint32) uint32 {
	n := float64(objects)
	k = x.recall.Neighbours(k)
	if share := math.Ceil(fraction * n); k == math.MaxInt || float64(k) < share {
		return uint32(min(share, n))
	}
	return uint32(min(float64(k), n))
}

// prepare ranks the permutants by a query.
func (s *Searcher) prepare(a metric.Asker) {
	for j, id := range s.index.permutants {
		s.permuted[j] = a.Value(id)
	}
	s.ranker.rank(s.ranks, s.permuted)
	s.packed = pack(s.packed[:0], s.ranks)
}

// Ranks are those of a query: they hold until the searcher is used again.
func (s *Searcher) Ranks(a metric.Asker) []byte {
	s.prepare(a)
	return s.ranks
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

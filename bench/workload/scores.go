package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/wire"
)

// scored is what rescoring compares of a workload's objects and queries, terms that ascend, and how the reference scores them.
type scored struct {
	column  string
	terms   int
	query   func(i int) []uint32
	object  func(dst []uint32, id int) []uint32
	weights rarity // of measures of sets

	by      string
	objects int
	holders []uint32 // by term
	mean    float64  // length of an object
}

// ofTerms makes the reference of a workload whose objects and queries are terms of one column, ascending and without repeats.
func (w *Workload) ofTerms(opts *Options, column string, terms int, queries [][]uint32, object func(dst []uint32, id int) []uint32) error {
	weights, err := opts.rarities(terms, object)
	w.scored = &scored{column: column, terms: terms, query: func(i int) []uint32 { return queries[i] }, object: object, weights: weights}
	w.Reference = func(i, lo, hi int, visit func(id, count uint32)) {
		var own []uint32
		for id := lo; id < hi; id++ {
			own = object(own, id)
			if count := overlap(queries[i], own, weights); count > 0 {
				visit(uint32(id), count)
			}
		}
	}
	return err
}

// rescored are the workloads with Options.Rescore.
var rescored = []string{"w3", "w6", "w6words", "w7"}

// rescore makes the queries of a workload ask for the order of a measure.
func (w *Workload) rescore() {
	s := w.scored
	s.by, s.objects, s.holders = w.Options.Rescore, w.Options.Objects, make([]uint32, s.terms)
	var object []uint32
	words := 0
	for id := range s.objects {
		object = s.object(object, id)
		words += len(object)
		for _, term := range object {
			s.holders[term]++
		}
	}
	s.mean = float64(words) / float64(max(1, s.objects))
	for i := range w.Queries {
		q := &w.Queries[i]
		q.Rescore, q.Candidates = &wire.Rescore{By: s.by, Column: s.column}, w.Options.Candidates
		q.EnsureDefaults()
	}
}

// score compares an object with query i.
func (s *scored) score(i, id int) float64 {
	query, object := s.query(i), s.object(nil, id)
	if s.by == "bm25" {
		sum := 0.0
		for _, term := range query {
			if _, ok := slices.BinarySearch(object, term); ok {
				idf := math.Log((2*float64(s.objects) + 2) / (2*float64(s.holders[term]) + 1))
				sum += idf * 2.2 / (1 + 1.2*(0.25+0.75*float64(len(object))/s.mean))
			}
		}
		return sum
	}
	weigh := func(terms []uint32) (n float64) {
		for _, term := range terms {
			n += float64(s.weights.of(term))
		}
		return n
	}
	common, asked, own := float64(overlap(query, object, s.weights)), weigh(query), weigh(object)
	if common == 0 {
		return 0
	}
	switch s.by {
	case "jaccard":
		return common / (asked + own - common)
	case "dice":
		return 2 * common / (asked + own)
	case "cosine":
		return common / math.Sqrt(asked*own)
	}
	return common / asked // containment
}

// check holds a rescored answer against the candidates by brute force: the best of these, with their scores. Scores are floats that were
// added in another order here, so that those which differ by next to nothing may stand either way.
func (s *scored) check(i int, q *wire.Query, candidates, got []gpuexec.Hit) error {
	const nothing = 1e-9
	if want := min(q.K, len(candidates)); len(got) != want {
		return fmt.Errorf("query %d: %d hits, want %d", i, len(got), want)
	}
	counts := make(map[uint32]uint32, len(candidates))
	for _, c := range candidates {
		counts[c.ID] = c.Count
	}
	for j, h := range got {
		count, ok := counts[h.ID]
		if own := s.score(i, int(h.ID)); !ok || h.Count != count || math.Abs(h.Score-own) > nothing {
			return fmt.Errorf("query %d: hit %d is object %d with count %d and score %v, want count %d (a candidate: %v) and score %v",
				i, j, h.ID, h.Count, h.Score, count, ok, own)
		}
		if j > 0 {
			last := got[j-1]
			if cmp.Or(cmp.Compare(h.Score, last.Score), cmp.Compare(h.Count, last.Count), cmp.Compare(last.ID, h.ID)) >= 0 {
				return fmt.Errorf("query %d: hit %d does not come after the one before it", i, j)
			}
		}
		delete(counts, h.ID)
	}
	for id := range counts {
		if len(got) > 0 && s.score(i, int(id)) > got[len(got)-1].Score+nothing {
			return fmt.Errorf("query %d: object %d is no hit and scores more than the last", i, id)
		}
	}
	return nil
}

package verify

import (
	"fmt"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/store"
)

// termsBlock is how many objects of columns with terms are compared at a time: their records are read first, then the first of their terms, so
// that the core waits for memory once and not twice for each.
const termsBlock = 32

// termsReader finds the terms of candidates.
type termsReader struct {
	records [termsBlock]forward.Record
	rows    [termsBlock][]uint32 // their terms
	touched uint32
}

// load reads records, and the beginnings and ends of rows.
func (t *termsReader) load(column *forward.Column, c []Candidate) {
	for i := range c {
		t.records[i] = column.TermsTile(int(c[i].ID / store.TileObjects)).Records[c[i].ID%store.TileObjects]
	}
	sum := uint32(0)
	for i := range c {
		r := &t.records[i]
		row := column.TermsTile(int(c[i].ID / store.TileObjects)).Words[r.Start : r.Start+r.Terms]
		if t.rows[i] = row; len(row) > 0 {
			sum += row[0] + row[len(row)-1]
		}
	}
	t.touched = sum // so that the reads are not left out
}

// TermsAsked is the query's side of a measure of terms, for who compares these elsewhere and hands the outcome on as Known. Slices must not
// change.
type TermsAsked struct {
	Column *forward.Column
	Terms  []uint32 // that the column knows, ascending
	// Of measures of sets: what each term weighs, nil: 1. Summed: objects weigh what their record says, and not 1 for each of their terms.
	Weights []uint32
	Summed  bool
	// BM25 is made ready with the terms; nil: the measure is one of sets.
	BM25 *similarity.BM25
}

// Terms is what is asked by a measure of terms; ok is false of others.
func (s *Scores) Terms() (a TermsAsked, ok bool) {
	switch m := s.measure.(type) {
	case *sets:
		return TermsAsked{Column: m.column, Terms: m.terms, Weights: m.weights, Summed: m.summed}, true
	case *bm25:
		return TermsAsked{Column: m.column, Terms: m.terms, BM25: &m.score}, true
	}
	return a, false
}

// sets is jaccard, dice, cosine and containment.
type sets struct {
	queryTerms
	set    similarity.Set
	summed bool // objects weigh what their record says
}

func newSets(by *Measure, a *Asked) (measure, error) {
	m, ok := similarity.ParseMeasure(by.Name)
	if !ok {
		return nil, fmt.Errorf("%s is no measure of sets", by.Name)
	}
	if a.IDF && a.Column.IDFScale == 0 {
		return nil, unsupported("%v with idf needs the weights of objects, which the index does not keep of column %q", m, a.Column.Name)
	}
	q, err := newQueryTerms(a)
	if err != nil {
		return nil, err
	}
	q.lookup.reset(q.terms, q.weights)
	s := &sets{queryTerms: q, summed: a.IDF}
	return s, s.set.Reset(m, s.terms, s.weights, s.total)
}

func (s *sets) certified(last *ranked, count uint32) bool {
	return s.unit > 0 && s.set.Certified(last.set, s.set.Reach(count, s.unit))
}

func (s *sets) report(r *ranked) float64 { return s.set.Value(r.set) }

func (s *sets) comparer(old comparer) comparer {
	c := reused[setsComparer](old)
	c.sets = s
	return c
}

type setsComparer struct {
	*sets
	termsReader
}

func (c *setsComparer) block() int { return termsBlock }

func (c *setsComparer) compare(dst []ranked, candidates []Candidate, _ float64, m *meter) ([]ranked, error) {
	c.load(c.column, candidates)
	work := 0
	for i := range candidates {
		r, row := &c.records[i], c.rows[i]
		weight := uint64(r.Terms)
		if c.summed {
			weight = uint64(r.Sum)
		}
		common := uint64(0)
		if c.lookup.fits(len(c.terms), len(row)) {
			common = c.lookup.sum(row)
		} else {
			common = c.set.Common(row)
		}
		score := c.set.Score(common, weight)
		dst = append(dst, ranked{id: candidates[i].ID, count: candidates[i].Count, key: score.Key(), set: score})
		work += 8 + len(row)/4
	}
	m.Did(work)
	return dst, nil
}

func (c *setsComparer) keys(dst []float64, known []Known) []float64 {
	for _, k := range known {
		common, weight := k.Sets()
		dst = append(dst, c.set.Score(uint64(common), uint64(weight)).Key())
	}
	return dst
}

func (c *setsComparer) known(dst []ranked, of Candidate, known Known) []ranked {
	common, weight := known.Sets()
	score := c.set.Score(uint64(common), uint64(weight))
	return append(dst, ranked{id: of.ID, count: of.Count, key: score.Key(), set: score})
}

// bm25 is BM25 with k1 1.2 and b 0.75.
type bm25 struct {
	queryTerms
	score similarity.BM25
}

func newBM25(_ *Measure, a *Asked) (measure, error) {
	if a.IDF && a.Column.IDFScale == 0 {
		return nil, unsupported("bm25 of words that weigh by idf needs a scale, which column %q has not", a.Column.Name)
	}
	q, err := newQueryTerms(a)
	if err != nil {
		return nil, err
	}
	b := &bm25{queryTerms: q}
	frequencies, places := make([]uint32, len(b.terms)), make([]uint32, len(b.terms))
	for i, term := range b.terms {
		frequencies[i], places[i] = a.Column.Frequency(term), uint32(i)
	}
	b.lookup.reset(b.terms, places)
	return b, b.score.Reset(b.terms, frequencies, similarity.Collection{Objects: uint64(a.Column.AllObjects()), Words: a.Column.Total})
}

func (b *bm25) certified(last *ranked, count uint32) bool {
	return b.unit > 0 && -last.key >= b.score.Bound(count, b.unit, b.weights)
}

func (b *bm25) report(r *ranked) float64 { return 0 - r.key }
func (b *bm25) ranked(hit *Scored) ranked {
	return ranked{id: hit.ID, count: hit.Count, key: 0 - hit.Score}
}

func (b *bm25) comparer(old comparer) comparer {
	c := reused[bm25Comparer](old)
	c.bm25 = b
	return c
}

type bm25Comparer struct {
	*bm25
	termsReader
	found   []uint32
	matches []match
	times   []uint32
}

func (c *bm25Comparer) block() int { return termsBlock }

func (c *bm25Comparer) compare(dst []ranked, candidates []Candidate, _ float64, m *meter) ([]ranked, error) {
	c.load(c.column, candidates)
	work := 0
	for i := range candidates {
		r, row := &c.records[i], c.rows[i]
		score := 0.0
		if c.lookup.fits(len(c.terms), len(row)) && r.Length == r.Terms { // each once
			norm := c.score.Norm(uint64(r.Length))
			c.found = c.lookup.find(c.found, row)
			for _, at := range c.found {
				score += c.score.Term(int(at), 1, norm)
			}
		} else {
			score = c.repeated(candidates[i].ID, r)
		}
		dst = append(dst, ranked{id: candidates[i].ID, count: candidates[i].Count, key: 0 - score})
		work += 12 + len(row)/2
	}
	m.Did(work)
	return dst, nil
}

func (c *bm25Comparer) keys(dst []float64, known []Known) []float64 {
	for _, k := range known {
		dst = append(dst, 0-k.Score())
	}
	return dst
}

func (c *bm25Comparer) known(dst []ranked, of Candidate, known Known) []ranked {
	return append(dst, ranked{id: of.ID, count: of.Count, key: 0 - known.Score()})
}

// repeated scores an object that has words more than once, or many words.
func (c *bm25Comparer) repeated(id uint32, r *forward.Record) (score float64) {
	row := c.column.TermsTile(int(id / store.TileObjects)).Row(r)
	if c.lookup.fits(len(c.terms), len(row.Keywords)) {
		norm := c.score.Norm(uint64(r.Length))
		c.matches = c.lookup.findPlaces(c.matches, row.Keywords)
		for _, match := range c.matches {
			score += c.score.Term(int(match.value), row.Frequency(int(match.place)), norm)
		}
		return score
	}
	c.times = c.times[:0]
	for i := range row.Keywords {
		c.times = append(c.times, row.Frequency(i))
	}
	return c.score.Score(row.Keywords, c.times, uint64(r.Length))
}

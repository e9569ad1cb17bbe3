package translate

import (
	"math"
	"strings"
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/wire"
)

// More is what few queries have: what is told of them beside hits, and what that is made of when they are answered.
type More struct {
	Warnings   []string
	Total      bool // the answer has a total
	filtered   bool // the plan asks for a total, since it has a filter
	filterOnly bool
	selects    bool // the query has a filter or an exclusion
	similarity bool // scores are similarities, not distances
	// matched and explained are what is told of hits. query is the plan's then, in the memory of the message.
	matched, explained bool
	query              postings.MatchQuery
	unknown            []UnknownValue
	unknownMore        bool             // there may be others
	estimates          []index.Estimate // of hits
	recall             float64          // that is expected, if hasRecall
	hasRecall          bool
	near               *distance.Query // of a search by distance
}

// more makes what is told of a query beside hits; nil: nothing.
func (e *Translator) more(to *Query, q *wire.Query, made *index.Plan) *More {
	m := &More{
		Total: q.Total, filtered: to.Match.Total, filterOnly: q.FilterOnly(), selects: q.Filter != nil || q.Exclude != nil, similarity: made.Measure != nil && made.Measure.Similarity,
		matched: q.Matched, explained: q.Explain,
	}
	if m.estimates = made.Estimates; m.looksUp() && !m.matched {
		m.estimates = nil // they would have to be looked up, hit by hit, which takes longer than to find them
	}
	if near, ok := made.Query.(*distance.Query); ok {
		m.near, m.filtered, m.query = near, false, postings.MatchQuery{Filter: near.Filter}
		e.warn(m, made)
		return m
	}
	switch {
	case q.MinCount > 1: // which drops some of those that were found when it was measured
	case made.Measure == nil:
		m.recall, m.hasRecall = e.queries.ExpectedRecall(made, "", q.K, q.K)
	case !q.Certify: // else all are compared
		m.recall, m.hasRecall = e.queries.ExpectedRecall(made, made.Measure.Name, q.K, to.Plan.K)
	}
	if made.Rescore == nil && len(m.estimates) == 0 && len(made.Warnings) == 0 && !m.Total && !m.filtered && !m.filterOnly && !m.similarity && !m.matched && !m.explained {
		return nil
	}
	e.warn(m, made)
	if m.matched || m.explained || m.looksUp() {
		m.query = to.Match
	}
	return m
}

// warn tells what is known of the query before it is asked.
func (e *Translator) warn(m *More, made *index.Plan) {
	for _, w := range made.Warnings {
		m.Warnings = append(m.Warnings, w.String())
		m.unknownMore = m.unknownMore || w.Kind == column.More
		if m.explained && w.Kind == column.Unknown {
			m.unknown = append(m.unknown, UnknownValue{
				Column: w.Column, Value: strings.Clone(w.Value[:min(len(w.Value), maxName)]), Nearest: e.queries.Nearest(w.Column, w.Value),
			})
		}
	}
}

// warnings are those of an answer: what is known of the query, and what only counting has shown.
func (m *More) warnings(a *gpuexec.Answer) []string {
	if m.selects && ((m.Total || m.filtered) && a.Total == 0 || m.filterOnly && len(a.Hits) == 0) {
		return append(m.Warnings[:len(m.Warnings):len(m.Warnings)], "no object passes the filter")
	}
	return m.Warnings
}

// bytes is what it takes in memory, and in an answer, beside what is told of hits.
func (m *More) bytes() int64 {
	n := int64(unsafe.Sizeof(*m)) + 64
	for _, w := range m.Warnings {
		n += 2*int64(len(w)) + 16
	}
	for _, u := range m.unknown {
		n += 2*int64(len(u.Value)+len(u.Nearest)) + 128
	}
	return n
}

// looksUp says that counts of columns have to be looked up.
func (m *More) looksUp() bool { return len(m.estimates) > 0 && !m.estimates[0].Alone }

// lookups is how often lists are searched for what is told of so many hits.
func (m *More) lookups(hits int64) int64 {
	if m.near != nil {
		return 0
	}
	spans := int64(len(m.query.Spans)) + int64(len(m.query.Items)) + int64(len(m.query.Presences))
	n := int64(0)
	if m.matched {
		n += hits * spans
	}
	if m.looksUp() {
		n += hits * spans
	}
	if m.explained {
		n += min(hits, maxExplainedHits) * min(spans, maxExplainedSpans)
	}
	return n
}

// tell puts what a query wants to know besides into its hits.
func (e *Translator) tell(dst []wire.Hit, details []wire.HitDetail, q *Query) {
	m := q.More
	if m.near != nil {
		m.tellDistances(dst, details)
		return
	}
	var matcher *index.Matcher
	if m.matched {
		matcher = e.queries.Matcher(&m.query)
	}
	for i := range dst {
		if hit := &dst[i]; hit.HasDistance {
			switch {
			case math.IsInf(hit.Distance, 0): // there is nothing to compare: objects without a vector, a tree or a graph
				hit.Distance, hit.HasDistance = 0, false
			case m.similarity:
				hit.Score, hit.HasScore, hit.Distance, hit.HasDistance = hit.Distance, true, 0, false
			}
		}
		if m.detailed() {
			details[i] = wire.HitDetail{}
			dst[i].Detail = &details[i]
		}
		if m.matched {
			details[i].Matched = matcher.Append([]string{}, dst[i].ID)
		}
		e.estimate(&dst[i], m)
	}
}

// detailed says that hits have details.
func (m *More) detailed() bool { return m.matched || len(m.estimates) > 0 }

// estimate puts estimates of the similarity of vectors into a hit.
func (e *Translator) estimate(hit *wire.Hit, m *More) {
	for i := range m.estimates {
		similarity, bound := e.queries.Estimate(&m.estimates[i], &m.query, hit.ID, hit.Count)
		hit.Detail.Columns = append(hit.Detail.Columns, wire.ColumnEstimate{Column: m.estimates[i].Column, Similarity: similarity, Bound: bound})
		if len(m.estimates) == 1 {
			hit.Similarity, hit.HasSimilarity = float32(similarity), true
		}
	}
}

// detailBytes is what is told of a hit at most, in memory and encoded.
func (e *Translator) detailBytes(m *More) (held, encoded int64) {
	if !m.detailed() {
		return 0, 0
	}
	if m.near != nil {
		return int64(unsafe.Sizeof(wire.HitDetail{})) + 16, 6*int64(len(m.near.Column.Name)) + 32
	}
	held, encoded = int64(unsafe.Sizeof(wire.HitDetail{})), 16
	const escaped = 6 // bytes of a byte in JSON
	for i := range m.estimates {
		held += int64(unsafe.Sizeof(wire.ColumnEstimate{}))
		encoded += int64(len(m.estimates[i].Column))*escaped + 80
	}
	if !m.matched {
		return held, encoded
	}
	seen := make(map[uint32]bool)
	column := func(attr uint32) {
		if seen[attr] {
			return
		}
		seen[attr] = true
		held += 2 * 16
		encoded += int64(len(e.queries.ColumnOf(int(attr))))*escaped + 3
	}
	for _, item := range m.query.Items {
		column(item.Attr)
	}
	for _, p := range m.query.Presences {
		column(p.Attr)
	}
	return held, encoded
}

package enginetest

import (
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// Query is that of a plan of postings, which it makes where there is none. Copies of a plan share it.
func Query(p *gpuexec.Plan) *postings.MatchQuery {
	if p.Query == nil {
		p.Family, p.Query = postings.FamilyName, new(postings.MatchQuery)
	}
	return p.Query.(*postings.MatchQuery)
}

// OwnQuery gives a copy of a plan a query of its own.
func OwnQuery(p *gpuexec.Plan) *postings.MatchQuery {
	q := Query(p)
	p.Query = &postings.MatchQuery{Items: slices.Clone(q.Items), Spans: slices.Clone(q.Spans), Filter: q.Filter, Total: q.Total}
	return Query(p)
}

// TextOf is the text whose neighbours a plan asks for.
func TextOf(p *gpuexec.Plan) []rune { return p.Rescore.(*verify.Nearest).Text }

// Sought is a rescorer that looks for the k texts nearest to one, at a distance of at most within.
func Sought(texts verify.Texts, ngram int, text []rune, k, within int) verify.Rescorer {
	r := (&verify.Nearest{Texts: texts, NGram: ngram, Text: text, K: k}).New(nil)
	if within < math.MaxInt32-1 { // so many have been found that are one farther away
		candidates, known := make([]verify.Candidate, k), make([]verify.Known, k)
		for i := range known {
			candidates[i], known[i] = verify.Candidate{ID: math.MaxUint32 - uint32(i), Count: math.MaxUint32}, verify.KnownScore(float64(within+1))
		}
		if err := r.Offer(candidates, known, nil, 0); err != nil {
			panic(err)
		}
	}
	return r
}

// Free is what nobody holds of a budget (run.Budget).
func Free(b interface {
	Place(choose func(free int64) ([]gpuexec.Holding, error)) (release func(), err error)
}) (free int64) {
	_, _ = b.Place(func(left int64) ([]gpuexec.Holding, error) { free = left; return nil, nil })
	return free
}

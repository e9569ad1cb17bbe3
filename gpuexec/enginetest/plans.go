package enginetest

import (
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
	p.Query = &postings.MatchQuery{Items: slices.Clone(q.Items), Spans: slices.Clone(q.Spans)}
	return Query(p)
}

// TextOf is the text whose neighbours a plan asks for.
func TextOf(p *gpuexec.Plan) []rune { return p.Rescore.(*verify.Nearest).Text }

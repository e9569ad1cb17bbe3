package enginetest

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// Query is that of a plan of postings, which it makes where there is none. Copies of a plan share it.
func Query(p *gpuexec.Plan) *index.Query {
	if p.Query == nil {
		p.Family, p.Query = postings.FamilyName, new(index.Query)
	}
	return p.Query.(*index.Query)
}

// OwnQuery gives a copy of a plan a query of its own.
func OwnQuery(p *gpuexec.Plan) *index.Query {
	q := Query(p)
	p.Query = &index.Query{Items: slices.Clone(q.Items), Spans: slices.Clone(q.Spans)}
	return Query(p)
}

// TextOf is the text whose neighbours a plan asks for.
func TextOf(p *gpuexec.Plan) []rune { return p.Rescore.(*verify.Nearest).Text }

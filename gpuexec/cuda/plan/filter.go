package plan

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/index/filter"
)

// An askedFilter is what of a job's filter is found out on the core that plans the job: whatever takes reading the filter, which lies anywhere in
// memory.
type askedFilter struct {
	filter  *filter.Filter // nil: none
	hash    uint64
	planned filters.Planned
}

func (a *askedFilter) plan(f *filter.Filter) {
	if *a = (askedFilter{filter: f}); f != nil {
		a.hash, a.planned = f.Hash(), filters.Plan(f)
	}
}

// filters gives each query its filter, the same one to all whose filters are equal. It reads no filter but such as have equal hashes.
func (b *Batch) filters() {
	b.distinct.FindHashed(len(b.asked), func(i int) *filter.Filter { return b.asked[i].filter }, func(i int) uint64 { return b.asked[i].hash })
	b.planned = slices.Grow(b.planned[:0], len(b.distinct.Filters)) // which is pointed into
	for i := range b.queries {
		n, ok := b.distinct.Of(i)
		if !ok {
			continue
		}
		if n == len(b.planned) { // it comes up first
			b.planned = append(b.planned, b.asked[i].planned)
		}
		b.queries[i].filter = &b.planned[n]
	}
}

// takeFilters numbers the filters of the piece's queries.
func (p *Piece) takeFilters() {
	p.Filters.Begin()
	for i := range p.Queries {
		if q := &p.Queries[i]; q.filter != nil {
			q.filterNumber = p.Filters.Number(q.filter, q.only)
		}
	}
}

// Filtered tells whether some of the queries of a launch have filters.
func (p *Piece) Filtered(first, count int) bool {
	return p.Filters.Count > 0 && slices.ContainsFunc(p.Queries[first:first+count], func(q Query) bool { return q.filter != nil })
}

// Listing is 1 where tiles in which few objects pass have lists in place of bits, else 0: where the (query, tile) kernel alone meets filters.
func (p *Piece) Listing(x *Index) uint32 {
	if x.device.Profile.Filters.Lists && !p.Filters.Only && !p.Filtered(p.Tiled, len(p.Queries)-p.Tiled) {
		return 1
	}
	return 0
}

// empty is true of an attribute in which no object has a keyword.
func (x *Index) empty(attr uint32) bool { return x.attributes[attr].form == formNothing }

// encodeFilterOf says which filter a query of the piece has.
func (p *Piece) encodeFilterOf(in []byte, query int) {
	if p.Filters.Count == 0 {
		return
	}
	of := &p.Filters.OfQueries(in, len(p.Queries))[query]
	*of = abi.NoFilter
	if q := &p.Queries[query]; q.filter != nil {
		if *of = q.filterNumber; q.only {
			*of |= abi.FilterOnly
		}
	}
}

// total gives a job how many objects pass, if it asks.
func (p *Piece) total(x *Index, q *Query, totals []uint64) {
	switch {
	case !q.total:
	case q.filter == nil:
		q.Job.Total = uint64(x.Objects())
	default:
		q.Job.Total = totals[q.filterNumber]
	}
}

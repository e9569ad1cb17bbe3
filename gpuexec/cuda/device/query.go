//go:build cuda

package device

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
)

// laneQuery is a job in a piece of a batch: what it asks of the device.
type laneQuery struct {
	job     *run.Job
	variant int    // of the (query, tile) kernel
	bound   uint32 // tighter than the job's
	spans   int

	// Of the shared-decode kernel.
	counters     int    // its variant, or -1 where the query cannot be executed there
	rows         uint32 // that its spans become, at most
	weightedRows uint32 // each as often as its weight has bits
	weights      uint32 // all bits of its weights
	crowded      uint32 // trees that its spans may need because many are on one attribute, see planTotals.crowd
	postings     uint64 // in its spans, where it can be executed there
	planeRows    uint64 // planes that its spans read in the (query, tile) kernel; 0 where it reads their postings
	sliced       bool   // it is executed there, or by the filter

	// Of the filter.
	filterable bool
	dense      int  // see codesLayout.filterable
	filter     bool // it is executed there
}

// A planner says what queries ask of a resident index. It is all that the host looks at for a batch, a line an attribute and
// tables that stay in a core's cache, since a large batch has hundreds of thousands of spans. It belongs to the resident:
// members that share an index plan for themselves, at the same time, because bounds, forms and shares differ.
type planner struct {
	attributes []plannedAttribute
	kernels    *cudaKernels
	layout     *slicedLayout // nil: nothing is sliced
	postings   bool          // what is sliced has postings too
}

// plannedAttribute is what planning knows of an attribute.
type plannedAttribute struct {
	form    attributeForm
	most    uint32 // keywords of an object
	repeats uint32 // of one keyword in an object, at most
	// Of formSliced.
	planes uint32
	before []uint32 // postings, by keyword (postingsBefore)
}

// attributeForm says how an attribute lies on the device.
type attributeForm uint8

const (
	formPostings attributeForm = iota // of all keywords, or of the frequent ones beside lists of the rare ones
	formSliced                        // planes, and maybe postings too
	formNothing                       // no object has a keyword
)

// newPlanner makes the planner of an index that has been loaded.
func newPlanner(r *resident) *planner {
	p := &planner{attributes: make([]plannedAttribute, r.attributes), kernels: r.kernels, layout: r.slicedLayout(), postings: r.postings}
	for i, attribute := range r.index.Attributes() {
		a := &p.attributes[i]
		a.most, a.repeats = attribute.MaxPerObject, r.repeats[i]
		switch {
		case p.layout.has(i):
			a.form, a.planes = formSliced, p.layout.attributes[i].Planes
			a.before = postingsBefore(p.layout.codes[i], attribute.Keywords)
		case attribute.Layout == index.LayoutSliced:
			a.form = formNothing
		}
	}
	return p
}

// plan says what a job asks of the device.
func (r *resident) plan(job *run.Job) laneQuery {
	p := r.planner
	t := planTotals{sliced: p.layout != nil}
	query := queryOf(job)
	for i := range query.Items {
		item := &query.Items[i]
		if item.Count == 0 {
			continue
		}
		spans := query.ItemSpans(*item)
		switch a := &p.attributes[item.Attr]; a.form {
		case formSliced:
			a.addSliced(&t, spans, item.Weight)
			t.crowd(item.Attr, uint32(len(spans)))
		case formPostings:
			a.addPostings(&t, spans, item.Weight)
		}
	}
	q := laneQuery{
		job: job, bound: uint32(min(t.bound, uint64(job.Bound))), spans: t.spans,
		counters: -1, rows: t.rows, weightedRows: t.weightedRows, weights: t.weights,
		crowded: min(t.crowded, t.rows/abi.TreeRows),
	}
	q.variant = p.kernels.variant(q.bound)
	if !p.postings {
		q.planeRows = t.planeRows
	}
	if t.sliced {
		q.postings = p.layout.share(t.postings)
		for v := range p.kernels.sliced {
			if uint64(q.bound)+t.bias < 1<<p.kernels.sliced[v].planes {
				q.counters = v
				break
			}
		}
	}
	if q.counters >= 0 && r.codes != nil {
		q.filterable, q.dense = r.codes.filterable(query)
	}
	return q
}

// planTotals sums up the items of a query.
type planTotals struct {
	bound  uint64
	spans  int
	sliced bool // everything is
	// Of sliced attributes.
	bias, postings, planeRows   uint64
	rows, weightedRows, weights uint32
	crowded                     uint32
	seen                        [seenAttributes / 64]uint64 // attributes that had an item, by bits
}

// seenAttributes: of those from here on crowd believes that they had an item before.
const seenAttributes = 4096

// crowd adds to crowded for so many spans of one attribute. A unit of rows that gives a query r rows takes ceil(r / 8) - 1 trees
// more than the one that each unit may take (kernels/sliced.cuh). A span becomes one row (equal or less), and some a second one
// (atLeast), which is in another unit. So s spans of an attribute give its units at most s rows in all of the first sort and s of
// the second, and each sort makes floor((s - 1) / 8) such trees at most, all in one unit; n spans that come on top of others
// make at most ceil(n / 8) more.
func (t *planTotals) crowd(attribute, n uint32) {
	if word, bit := attribute/64, uint64(1)<<(attribute%64); attribute < seenAttributes && t.seen[word]&bit == 0 {
		t.seen[word] |= bit
		n--
	} else {
		n += abi.TreeRows - 1
	}
	t.crowded += 2 * (n / abi.TreeRows)
}

// addSliced adds an item. It calls nothing and touches little, since it takes most of the time that planning takes.
func (a *plannedAttribute) addSliced(t *planTotals, spans []index.Span, weight uint32) {
	rows, postings := uint32(len(spans)), uint64(0)
	for _, span := range spans {
		postings += uint64(a.before[span.Hi] - a.before[span.Lo])
		// A range may take two rows, one for each bound: that depends on which keywords occur, which only the device
		// looks at (sliced_plan.cu). There are no branches here because nothing would predict them.
		rows += min(span.Lo, 1) & min((span.Hi-span.Lo)>>1, 1)
	}
	n := uint32(len(spans))
	t.spans += len(spans)
	t.bound += uint64(weight) * uint64(a.most)
	t.bias += uint64(weight) * uint64(rows-n)
	t.postings += postings
	t.planeRows += uint64(a.planes) * uint64(n)
	t.rows += rows
	t.weightedRows += rows * uint32(weightBits(weight))
	t.weights |= weight
}

// addPostings adds an item.
func (a *plannedAttribute) addPostings(t *planTotals, spans []index.Span, weight uint32) {
	t.sliced = false
	t.bound += uint64(weight) * a.mostOf(spans)
	t.spans += len(spans)
}

// mostOf is how many keywords of an item's spans an object can have.
func (a *plannedAttribute) mostOf(spans []index.Span) uint64 {
	if a.most <= a.repeats {
		return uint64(a.most)
	}
	var keywords uint64
	for _, span := range spans {
		keywords += uint64(span.Hi - span.Lo)
	}
	return min(uint64(a.most), keywords*uint64(a.repeats))
}

// encodeSpans writes the spans of a query: as keywords, whatever the forms of the attributes.
func (p *planner) encodeSpans(to []abi.Span, query *index.Query) {
	for i := range query.Items {
		item := &query.Items[i]
		if item.Count == 0 || p.attributes[item.Attr].form == formNothing {
			continue
		}
		spans := query.ItemSpans(*item)
		own := to[:len(spans)]
		for j, span := range spans {
			own[j] = abi.Span{Attribute: item.Attr, Lo: span.Lo, Hi: span.Hi, Weight: item.Weight}
		}
		to = to[len(spans):]
	}
}

// deviceQuery is the query as the kernels read it, but for what depends on its place.
func (q *laneQuery) deviceQuery() abi.Query {
	return abi.Query{Spans: uint32(q.spans), K: uint32(q.job.K), Bound: q.bound}
}

package plan

import (
	"math/bits"
	"sync/atomic"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/filters"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/pool"
)

// An Index is a placed index to who plans for it. Beside the placement it is all that the host looks at for a batch, a line per
// attribute and tables that stay in a core's cache, since a large batch has hundreds of thousands of spans. It belongs to one
// device: members that share an index plan for themselves, at the same time, because bounds, forms and shares differ.
//
// It does not change but for rest, which is a lesson and not a fact, and memory that is used again.
type Index struct {
	Placement
	device *Device

	attributes []plannedAttribute
	slots      int
	// rest is for how many batches more the bound is left alone, because it did not pay (BoundCosts.Rest).
	rest    atomic.Int32
	batches pool.Of[Batch]
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

// NewIndex makes the Index of a placed index. repeats is, by attribute, the most times that one object has one keyword: it is
// derived when the index is loaded, and makes count bounds tight.
func NewIndex(d *Device, p Placement, repeats []uint32) *Index {
	x := &Index{Placement: p, device: d, attributes: make([]plannedAttribute, p.Attributes), slots: p.Resident.slots()}
	for i, attribute := range p.Lists.Attributes() {
		a := &x.attributes[i]
		a.most, a.repeats = attribute.MaxPerObject, repeats[i]
		switch {
		case p.Planes.Has(i):
			a.form, a.planes = formSliced, p.Planes.Attributes[i].Planes
			a.before = postingsBefore(p.Planes.codes[i], attribute.Keywords)
		case attribute.Layout == schema.LayoutSliced:
			a.form = formNothing
		}
	}
	return x
}

// Resting is for how many batches more the bound is left alone, because it did not pay.
func (x *Index) Resting() int32 { return x.rest.Load() }

// groups is the number of groups of 1,024 objects that are here.
func (x *Index) groups() int { return groupsOf(x.Objects()) }

// Slots is how many spans the device makes of one, at most, before the (query, tile) kernel: where attributes do not lie as
// postings of all keywords it resolves them first (kernels/resolve.cu). 0: it need not.
func (x *Index) Slots() int { return x.slots }

// spanRoom is how many spans have room on the device for so many of a query: they and what they become.
func (x *Index) spanRoom(spans int) int { return spans * (1 + x.slots) }

// A Query is what a job asks of the device.
type Query struct {
	Job *run.Job
	rescoring.Share
	filter       *filters.Planned // nil: none
	filterNumber uint32           // of the filter in a Piece
	only, total  bool             // it asks for nothing else, and how many objects pass
	// Of the shared-decode kernel.
	postings uint64 // in its spans, where it can be executed there

	// Of the job, which lies anywhere in memory, where other cores have written to it: one core goes through all queries of a batch several times.
	K        int
	minCount uint32

	planeRows uint64 // planes that its spans read in the (query, tile) kernel; 0 where it reads their postings
	Bound     uint32 // of its counts, tighter than the job's
	spans     uint32

	rows         uint32 // that its spans become in the shared-decode kernel, at most
	weightedRows uint32 // each as often as its weight has bits
	weights      uint32 // all bits of its weights
	crowded      uint32 // trees that its spans may need because many are on one attribute, see planTotals.crowd

	dense     uint32 // of the bound, see Codes.boundable
	boundable bool   // the bound can execute it
	kernel    kernel // that executes it, in a Piece
	variant   int8   // of the (query, tile) kernel
	counters  int8   // variant of the shared-decode kernel, or -1 where the query cannot be executed there
}

// kernel is one of the three.
type kernel uint8

const (
	kernelTile kernel = iota
	kernelSliced
	kernelBound
)

// order is by kernel, then by the width of counters; in the (query, tile) kernel queries with filters have launches of their own.
func (q *Query) order() int {
	switch q.kernel {
	case kernelBound:
		return 2 << 8
	case kernelSliced:
		return 1<<8 + int(q.counters)
	case kernelTile:
		if q.filter != nil {
			return 2*int(q.variant) + 1
		}
	}
	return 2 * int(q.variant)
}

// queryOf is what a job asks, which Check has seen.
func queryOf(job *run.Job) *postings.MatchQuery { return job.Query.(*postings.MatchQuery) }

// Plan says what a job asks of the device. Its filter is its own; a batch has one for all that are equal.
func (x *Index) Plan(job *run.Job) Query {
	q := x.plan(job)
	if f := queryOf(job).Filter; f != nil {
		planned := filters.Plan(f)
		q.filter = &planned
	}
	return q
}

// plan says what a job asks of the device, but for its filter.
func (x *Index) plan(job *run.Job) Query {
	t := planTotals{sliced: x.Planes != nil}
	query := queryOf(job)
	for i := range query.Items {
		item := &query.Items[i]
		if item.Count == 0 {
			continue
		}
		spans := query.ItemSpans(*item)
		switch a := &x.attributes[item.Attr]; a.form {
		case formSliced:
			a.addSliced(&t, spans, item.Weight)
			t.crowd(item.Attr, uint32(len(spans)))
		case formPostings:
			a.addPostings(&t, spans, item.Weight)
		}
	}
	q := Query{
		Job: job, K: job.K, minCount: job.MinCount, Bound: uint32(min(t.bound, uint64(job.Bound))), spans: uint32(t.spans),
		counters: -1, rows: t.rows, weightedRows: t.weightedRows, weights: t.weights,
		crowded: min(t.crowded, t.rows/abi.TreeRows), Share: x.Originals.Share(job, x.device.MaxPattern),
	}
	_, q.only, q.total = query.Filtering()
	q.variant = int8(x.device.tileVariant(q.Bound))
	if !x.Decoded {
		q.planeRows = t.planeRows
	}
	if t.sliced {
		q.postings = x.Planes.share(t.postings)
		for v := range x.device.Sliced {
			if uint64(q.Bound)+t.bias < 1<<x.device.Sliced[v].Planes {
				q.counters = int8(v)
				break
			}
		}
	}
	if q.counters >= 0 && x.Codes != nil {
		ok, dense := x.Codes.boundable(query)
		q.boundable, q.dense = ok, uint32(dense)
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
func (a *plannedAttribute) addSliced(t *planTotals, spans []postings.Span, weight uint32) {
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
	t.weightedRows += rows * uint32(bits.OnesCount32(weight)) // a row is added once for each
	t.weights |= weight
}

// addPostings adds an item.
func (a *plannedAttribute) addPostings(t *planTotals, spans []postings.Span, weight uint32) {
	t.sliced = false
	t.bound += uint64(weight) * a.mostOf(spans)
	t.spans += len(spans)
}

// mostOf is how many keywords of an item's spans an object can have.
func (a *plannedAttribute) mostOf(spans []postings.Span) uint64 {
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
func (x *Index) encodeSpans(to []abi.Span, query *postings.MatchQuery) {
	for i := range query.Items {
		item := &query.Items[i]
		if item.Count == 0 || x.attributes[item.Attr].form == formNothing {
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

//go:build cuda

package gpuexec

import "github.com/geniemq/geniemq/index"

// laneQuery is a job in a piece of a batch: what it asks of the device. Its spans on the device are those on postings,
// then those on planes, then runs of rare lists (kernels/batch.cuh). In the shared-decode kernel all are of the first kind.
type laneQuery struct {
	job     *matchJob
	variant int    // of the (query, tile) kernel
	bound   uint32 // tighter than the job's
	spans   int    // of all kinds

	// Of the (query, tile) kernel.
	planeSpans, rareSpans int

	// Of the shared-decode kernel.
	counters     int    // its variant, or -1 where the query cannot be executed there
	rows         uint32 // that its spans become
	weightedRows uint32 // each as often as its weight has bits
	weights      uint32 // all bits of its weights
	postings     uint64 // in its spans
	planeRows    uint64 // planes that its spans read in the (query, tile) kernel; 0 where it reads their postings
	sliced       bool   // it is executed there, or by the filter

	// Of the filter.
	filterable bool
	dense      int  // see codesLayout.filterable
	filter     bool // it is executed there
}

// A planner says what queries ask of a resident index. It is all that the host looks at for a batch, a line an attribute and
// tables that stay in a core's cache, since a large batch has hundreds of thousands of spans. It belongs to the resident.
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
	// Of formRare.
	rare *rareKeywords
}

// attributeForm says how an attribute lies on the device.
type attributeForm uint8

const (
	formPostings attributeForm = iota
	formSliced                 // planes, and maybe postings too
	formRare                   // postings of the frequent keywords, lists of the rare ones
	formNothing                // no object has a keyword
)

// newPlanner makes the planner of an index that has been loaded.
func newPlanner(r *resident) *planner {
	p := &planner{attributes: make([]plannedAttribute, r.attributes), kernels: r.kernels, layout: r.slicedLayout(), postings: r.postings}
	for i, attribute := range r.index.Attributes() {
		a := &p.attributes[i]
		a.most, a.repeats = attribute.MaxPerObject, r.repeats[i]
		switch {
		case p.layout.has(i):
			a.form, a.planes = formSliced, p.layout.attributes[i].planes
			a.before = postingsBefore(p.layout.codes[i], attribute.Keywords)
		case attribute.Layout == index.LayoutSliced:
			a.form = formNothing
		case attribute.Layout == index.LayoutRare:
			a.form, a.rare = formRare, &r.rareOf[i]
		}
	}
	return p
}

// plan says what a job asks of the device.
func (r *resident) plan(job *matchJob) laneQuery {
	p := r.planner
	t := planTotals{sliced: p.layout != nil}
	for i := range job.query.Items {
		item := &job.query.Items[i]
		if item.Count == 0 {
			continue
		}
		spans := job.query.ItemSpans(*item)
		switch a := &p.attributes[item.Attr]; a.form {
		case formSliced:
			a.addSliced(&t, spans, item.Weight)
		case formRare:
			a.addRare(&t, spans, item.Weight)
		case formPostings:
			a.addPostings(&t, spans, item.Weight)
		}
	}
	q := laneQuery{
		job: job, bound: uint32(min(t.bound, uint64(job.bound))), spans: t.spans, rareSpans: t.rareSpans,
		counters: -1, rows: t.rows, weightedRows: t.weightedRows, weights: t.weights,
	}
	q.variant = p.kernels.variant(q.bound)
	if !p.postings {
		q.planeSpans, q.planeRows = t.slicedSpans, t.planeRows
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
		q.filterable, q.dense = r.codes.filterable(job.query)
	}
	return q
}

// planTotals sums up the items of a query.
type planTotals struct {
	bound                  uint64
	spans                  int
	slicedSpans, rareSpans int  // of these
	sliced                 bool // everything is
	// Of sliced attributes.
	bias, postings, planeRows   uint64
	rows, weightedRows, weights uint32
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
	t.slicedSpans += len(spans)
	t.bound += uint64(weight) * uint64(a.most)
	t.bias += uint64(weight) * uint64(rows-n)
	t.postings += postings
	t.planeRows += uint64(a.planes) * uint64(n)
	t.rows += rows
	t.weightedRows += rows * uint32(weightBits(weight))
	t.weights |= weight
}

// addRare adds an item.
func (a *plannedAttribute) addRare(t *planTotals, spans []index.Span, weight uint32) {
	t.sliced = false
	t.bound += uint64(weight) * a.mostOf(spans)
	for _, span := range spans {
		frequent, rare := a.rare.spans(0, span, weight)
		if frequent.lo < frequent.hi {
			t.spans++
		}
		if rare.lo < rare.hi {
			t.spans++
			t.rareSpans++
		}
	}
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

// spans is what a span means to the device: the frequent keywords, by their numbers, and the run of the rare ones' ids. Either
// may be empty.
func (k *rareKeywords) spans(attribute uint32, span index.Span, weight uint32) (frequent, rare deviceSpan) {
	lo, hi := k.Frequent(span.Lo), k.Frequent(span.Hi)
	first, end := span.Lo-lo, span.Hi-hi // rare keywords
	oneList := uint32(0)
	if end == first+1 {
		oneList = 1
	}
	return deviceSpan{attribute, lo, hi, weight}, deviceSpan{uint32(k.unit)<<1 | oneList, k.starts[first], k.starts[end], weight}
}

// encodeSpans writes the spans of a query in the order that the kernels want.
func (r *resident) encodeSpans(to []deviceSpan, q *laneQuery) {
	rare := to[q.spans-q.rareSpans:]
	planes := to[q.spans-q.rareSpans-q.planeSpans:]
	if q.sliced {
		planes = nil
	}
	for _, item := range q.job.query.Items {
		a := item.Attr
		spans := q.job.query.ItemSpans(item)
		if len(spans) == 0 || r.planner.attributes[a].form == formNothing {
			continue
		}
		switch {
		case r.rareOf[a].starts != nil:
			for _, span := range spans {
				f, run := r.rareOf[a].spans(a, span, item.Weight)
				if f.lo < f.hi {
					to[0] = f
					to = to[1:]
				}
				if run.lo < run.hi {
					rare[0] = run
					rare = rare[1:]
				}
			}
		case !q.sliced && !r.postings && r.slicedLayout().has(int(a)):
			at, codes := r.sliced.attributes[a], r.sliced.codes[a]
			for _, span := range spans {
				planes[0] = deviceSpan{at.plane<<8 | at.planes, codes.Of(span.Lo), codes.Of(span.Hi), item.Weight}
				planes = planes[1:]
			}
		default:
			for _, span := range spans {
				to[0] = deviceSpan{a, span.Lo, span.Hi, item.Weight}
				to = to[1:]
			}
		}
	}
}

// deviceQuery is the query as the kernels read it, but for what depends on its place.
func (q *laneQuery) deviceQuery() deviceQuery {
	d := deviceQuery{spans: uint32(q.spans), k: uint32(q.job.k), bound: q.bound}
	if !q.sliced {
		d.planeSpans, d.rareSpans = uint32(q.planeSpans), uint32(q.rareSpans)
		d.spans -= d.planeSpans + d.rareSpans
	}
	return d
}

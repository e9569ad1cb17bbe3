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
	sliced       bool   // it is executed there
}

// plan says what a job asks of the device.
func (r *resident) plan(job *matchJob) laneQuery {
	attributes := r.index.Attributes()
	q := laneQuery{job: job, counters: -1}
	sliced := r.sliced != nil && len(r.kernels.sliced) > 0
	var bound, bias uint64
	for _, item := range job.query.Items {
		a := item.Attr
		spans := job.query.ItemSpans(item)
		var keywords uint64
		for _, span := range spans {
			keywords += uint64(span.Hi - span.Lo)
		}
		if keywords == 0 || r.empty(a) {
			continue
		}
		most := min(uint64(attributes[a].MaxPerObject), keywords*uint64(r.repeats[a]))
		bound += uint64(item.Weight) * most
		switch {
		case r.slicedLayout().has(int(a)):
			q.spans += len(spans)
			if !r.postings {
				q.planeSpans += len(spans)
			}
			bias += r.sliced.ask(&q, a, spans, item.Weight)
		case r.rareOf[a].starts != nil:
			sliced = false
			for _, span := range spans {
				frequent, rare := r.rareOf[a].spans(a, span, item.Weight)
				if frequent.lo < frequent.hi {
					q.spans++
				}
				if rare.lo < rare.hi {
					q.spans++
					q.rareSpans++
				}
			}
		default:
			sliced = false
			q.spans += len(spans)
		}
	}
	q.bound = uint32(min(bound, uint64(job.bound)))
	q.variant = r.kernels.variant(q.bound)
	if r.postings {
		q.planeRows = 0
	}
	if sliced {
		for v := range r.kernels.sliced {
			if uint64(q.bound)+bias < 1<<r.kernels.sliced[v].planes {
				q.counters = v
				break
			}
		}
	}
	return q
}

// empty says whether no object has a keyword of a bit-sliced attribute: it has no planes then.
func (r *resident) empty(attribute uint32) bool {
	return r.index.Attributes()[attribute].Layout == index.LayoutSliced && !r.slicedLayout().has(int(attribute))
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
		if r.empty(a) || len(spans) == 0 {
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

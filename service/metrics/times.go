package metrics

import (
	"math"
	"sort"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/geniemq/geniemq/service/pipeline"
)

// times are how long the queries of an index took that came by one way: a histogram for each stage.
//
// The queries of a message are counted together. Most of them took the same: all of a message are published at once, and those of a batch are
// with the engine together. The library's histograms take one observation at a time, with several atomics each, which
// was a tenth of all that a worker did; and the times of stored messages are counted by the one goroutine that takes
// confirmations. So these are our own, and what queries in a row have in common is added once.
//
// What is exposed is what the library's histogram exposes for the same observations, with classic and native buckets and exemplars of both kinds, and tests
// compare the two. Exemplars are the library's own: those few observations that have one are made again by a histogram of the library, of which
// nothing else is shown.
//
// A lock is taken once for a message and once for a scrape. So count, sum and buckets are always of the same
// queries, messages are in all stages or in none, and a scrape never sees a part of one.
type times struct {
	mu                                           sync.Mutex
	queue, batch, engine, verify, publish, total histogram
}

func newTimes() *times {
	t, now := &times{}, time.Now()
	for _, h := range t.stages() {
		h.reset(now)
	}
	return t
}

func (t *times) stages() map[string]*histogram {
	return map[string]*histogram{Queue: &t.queue, Batch: &t.batch, Engine: &t.engine, Verify: &t.verify, Publish: &t.publish, total: &t.total}
}

// message adds the queries of a message. The first is the exemplar of a message with a trace.
func (t *times) message(a Answered, queries int, outcome func(i int) pipeline.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publish.add(a.Publish, queries)
	t.total.add(a.Total, queries)
	queue, batch, engine, verify := run{of: &t.queue}, run{of: &t.batch}, run{of: &t.engine}, run{of: &t.verify}
	for i := range queries {
		o := outcome(i)
		if o.Ran {
			queue.add(o.Queue)
			batch.add(o.Batch)
			if o.Engine > 0 {
				engine.add(o.Engine)
				verify.add(o.Verify)
			}
		}
	}
	queue.end()
	batch.end()
	engine.end()
	verify.end()
	if a.TraceID != "" && queries > 0 {
		t.example(a, outcome(0))
	}
}

func (t *times) example(a Answered, o pipeline.Outcome) {
	trace := prometheus.Labels{"trace_id": a.TraceID}
	t.total.example(a.Total, trace)
	t.publish.example(a.Publish, trace)
	if !o.Ran {
		return
	}
	t.queue.example(o.Queue, trace)
	t.batch.example(o.Batch, trace)
	if o.Engine > 0 {
		t.engine.example(o.Engine, trace)
		t.verify.example(o.Verify, trace)
	}
}

// run are queries in a row that took the same.
type run struct {
	of   *histogram
	took time.Duration
	n    int
}

func (r *run) add(took time.Duration) {
	if took != r.took {
		r.end()
		r.took, r.n = took, 0
	}
	r.n++
}

func (r *run) end() { r.of.add(r.took, r.n) }

// timesOptions are those of the library's histogram that ours is like. The classic buckets double from 50 us to about 105 s: from one query on an idle
// GPU to a backlog.
var timesOptions = prometheus.HistogramOpts{
	Name: "geniemq_query_seconds",
	Help: "Time of queries by way (stored or direct) and stage: queue, batch, engine, verify, publish, and total.",

	Buckets:                         prometheus.ExponentialBuckets(50e-6, 2, 22),
	NativeHistogramBucketFactor:     1.1,
	NativeHistogramMaxBucketNumber:  160,
	NativeHistogramMinResetDuration: time.Hour,
}

// The native buckets of a factor of 1.1 are eight for each power of two, which is schema 3; the coarsest that Prometheus knows is -4.
const finest, coarsest = 3, -4

// eighths are the upper bounds of the native buckets from a half to 1: Prometheus has them to the last bit.
var eighths = []float64{0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048, 0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711}

// histogram is of one stage. The lock of its times guards it.
type histogram struct {
	since   time.Time // it counts from then on
	count   uint64
	sum     float64              // in seconds
	classic []uint64             // by the bounds of timesOptions, not cumulative; what is above all of them is in count only
	native  map[int]int64        // by the bucket's number in schema
	zero    uint64               // took no time at all
	schema  int32                // finest, unless there were too many native buckets
	traced  prometheus.Histogram // of the exemplars; nil before there is one
}

// reset makes it as it was at first. Exemplars stay.
func (h *histogram) reset(now time.Time) {
	*h = histogram{since: now, classic: make([]uint64, len(timesOptions.Buckets)), native: make(map[int]int64), schema: finest, traced: h.traced}
}

// add counts n queries that took so long. What has ended before it began, as clocks of two machines may have it, took no time.
func (h *histogram) add(took time.Duration, n int) {
	if n == 0 {
		return
	}
	h.refine()
	seconds, most := max(0, took).Seconds(), int(timesOptions.NativeHistogramMaxBucketNumber)
	h.put(seconds, n)
	if len(h.native) > most && time.Since(h.since) >= timesOptions.NativeHistogramMinResetDuration {
		h.reset(time.Now())
		h.put(seconds, n)
	}
	for i := 0; i < n && len(h.native) > most && h.schema > coarsest; i++ { // each may find that there are too many
		h.coarsen()
	}
}

func (h *histogram) put(seconds float64, n int) {
	h.count += uint64(n)
	h.sum += seconds * float64(n)
	if i := sort.SearchFloat64s(timesOptions.Buckets, seconds); i < len(h.classic) {
		h.classic[i] += uint64(n)
	}
	if seconds == 0 {
		h.zero += uint64(n)
		return
	}
	fraction, exponent := math.Frexp(seconds)
	key := sort.SearchFloat64s(eighths, fraction) + (exponent-1)*len(eighths)
	h.native[coarser(key, finest-h.schema)] += int64(n)
}

// coarser is the bucket that a bucket is in when buckets are made twice as wide so many times. A bucket's number is that of its upper bound.
func coarser(key int, times int32) int { return -(-key >> times) }

// coarsen makes native buckets twice as wide.
func (h *histogram) coarsen() {
	wide := make(map[int]int64, len(h.native))
	for key, n := range h.native {
		wide[coarser(key, 1)] += n
	}
	h.native = wide
	h.schema--
}

// refine begins anew what has counted coarsely for long enough.
func (h *histogram) refine() {
	if h.schema == finest {
		return
	}
	if until := h.since.Add(timesOptions.NativeHistogramMinResetDuration); !time.Now().Before(until) {
		h.reset(until)
	}
}

// example makes a time that was counted an exemplar.
func (h *histogram) example(took time.Duration, trace prometheus.Labels) {
	if h.traced == nil {
		h.traced = prometheus.NewHistogram(timesOptions)
	}
	h.traced.(prometheus.ExemplarObserver).ObserveWithExemplar(max(0, took).Seconds(), trace) // as every histogram is
}

// scrape is what Prometheus sees of it.
func (h *histogram) scrape(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	h.refine()
	s := scraped{buckets: make([]*dto.Bucket, len(h.classic))}
	below := uint64(0)
	for i, n := range h.classic {
		below += n
		s.buckets[i] = &dto.Bucket{CumulativeCount: new(below), UpperBound: new(timesOptions.Buckets[i])}
	}
	native, err := prometheus.NewConstNativeHistogram(desc, h.count, h.sum, h.native, nil, h.zero, h.schema, prometheus.DefNativeHistogramZeroThreshold, h.since, labels...)
	var examples dto.Metric
	if err == nil && h.traced != nil {
		err = h.traced.Write(&examples)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(desc, err)
	}
	s.Metric, s.exemplars = native, examples.GetHistogram().GetExemplars()
	for i, b := range examples.GetHistogram().GetBucket() {
		if i == len(s.buckets) { // above all bounds, which is a bucket only with an exemplar
			s.buckets = append(s.buckets, &dto.Bucket{CumulativeCount: new(h.count), UpperBound: new(math.Inf(1))})
		}
		s.buckets[i].Exemplar = b.Exemplar
	}
	return s
}

// scraped adds to a histogram of native buckets the classic ones, and the exemplars of both: the library's constant histograms are either.
type scraped struct {
	prometheus.Metric
	buckets   []*dto.Bucket
	exemplars []*dto.Exemplar
}

func (s scraped) Write(to *dto.Metric) error {
	if err := s.Metric.Write(to); err != nil {
		return err
	}
	to.Histogram.Bucket, to.Histogram.Exemplars = s.buckets, s.exemplars
	return nil
}

// allTimes are the times of all indexes, as a collector.
type allTimes struct {
	desc *prometheus.Desc
	mu   sync.Mutex
	of   map[source]*times
}

// source is where queries come from.
type source struct{ index, way string }

func newAllTimes() *allTimes {
	return &allTimes{desc: prometheus.NewDesc(timesOptions.Name, timesOptions.Help, []string{"index", "way", "stage"}, nil), of: make(map[source]*times)}
}

// at are the times of queries from there, new ones if there are none.
func (a *allTimes) at(from source) *times {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.of[from]
	if t == nil {
		t = newTimes()
		a.of[from] = t
	}
	return t
}

// forget takes those of an index away.
func (a *allTimes) forget(index string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for from := range a.of {
		if from.index == index {
			delete(a.of, from)
		}
	}
}

func (a *allTimes) Describe(to chan<- *prometheus.Desc) { to <- a.desc }

func (a *allTimes) Collect(to chan<- prometheus.Metric) {
	for _, m := range a.scrape() {
		to <- m
	}
}

func (a *allTimes) scrape() (all []prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for from, t := range a.of {
		t.mu.Lock()
		for stage, h := range t.stages() {
			all = append(all, h.scrape(a.desc, from.index, from.way, stage))
		}
		t.mu.Unlock()
	}
	return all
}

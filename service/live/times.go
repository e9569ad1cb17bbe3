package live

import (
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// times is a native histogram of seconds. Bucket i holds what is above base^(i-1) and at most base^i, where base is 2^(2^-schema).
type times struct {
	schema  int32
	zero    float64 // what is about 0
	count   float64
	buckets map[int32]float64
}

func newTimes(h *dto.Histogram) *times {
	t := &times{schema: h.GetSchema(), zero: float64(h.GetZeroCount()), count: float64(h.GetSampleCount()), buckets: make(map[int32]float64)}
	at, n, next := int32(0), int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		at += span.GetOffset()
		for range span.GetLength() {
			if next == len(h.GetPositiveDelta()) {
				return t
			}
			n += h.GetPositiveDelta()[next]
			t.buckets[at] += float64(n)
			at++
			next++
		}
	}
	return t
}

// coarser has the histogram forget what a lower schema does not know.
func (t *times) coarser(schema int32) {
	if schema >= t.schema {
		return
	}
	by := t.schema - schema
	merged := make(map[int32]float64, len(t.buckets))
	for i, n := range t.buckets {
		merged[(i-1)>>by+1] += n
	}
	t.schema, t.buckets = schema, merged
}

// add adds another histogram, times a factor.
func (t *times) add(other *times, factor float64) {
	o := &times{other.schema, other.zero, other.count, maps.Clone(other.buckets)}
	schema := min(t.schema, o.schema)
	t.coarser(schema)
	o.coarser(schema)
	t.zero += factor * o.zero
	t.count += factor * o.count
	for i, n := range o.buckets {
		t.buckets[i] += factor * n
	}
}

// since is what has come since an earlier look at the same histogram. One that was reset meanwhile, as native histograms are after a while, has come whole.
func (t *times) since(before *times) *times {
	d := &times{t.schema, t.zero, t.count, maps.Clone(t.buckets)}
	if before == nil {
		return d
	}
	d.add(before, -1)
	less := d.zero < 0 || d.count < 0
	for _, n := range d.buckets {
		less = less || n < 0
	}
	if less {
		return &times{t.schema, t.zero, t.count, maps.Clone(t.buckets)}
	}
	return d
}

// quantile is a time that a share of all does not exceed, to within a bucket.
func (t *times) quantile(share float64) float64 {
	all := t.zero
	for _, n := range t.buckets {
		all += n
	}
	rank := share * all
	if rank <= t.zero {
		return 0
	}
	seen := t.zero
	bound := func(i int32) float64 { return math.Exp2(float64(i) * math.Exp2(-float64(t.schema))) }
	last := 0.0
	for _, i := range slices.Sorted(maps.Keys(t.buckets)) {
		n := t.buckets[i]
		if n <= 0 {
			continue
		}
		if last = bound(i); seen+n >= rank {
			low := bound(i - 1)
			return low * math.Pow(last/low, (rank-seen)/n)
		}
		seen += n
	}
	return last
}

// sizes is a classic histogram of batches.
type sizes struct {
	sum, count float64
	buckets    map[float64]float64 // by upper end, up to it and not cumulative
}

func (s *sizes) add(h *dto.Histogram) {
	if s.buckets == nil {
		s.buckets = make(map[float64]float64)
	}
	s.sum += h.GetSampleSum()
	s.count += float64(h.GetSampleCount())
	before := 0.0
	for _, b := range h.GetBucket() {
		if n := float64(b.GetCumulativeCount()); !math.IsInf(b.GetUpperBound(), 0) {
			s.buckets[b.GetUpperBound()] += n - before
			before = n
		}
	}
}

func (s *sizes) since(before *sizes) (batches, mean float64, all []Size) {
	all = []Size{}
	batches = max(s.count-before.count, 0)
	for _, end := range slices.Sorted(maps.Keys(s.buckets)) {
		if n := s.buckets[end] - before.buckets[end]; n > 0 {
			all = append(all, Size{end, n})
		}
	}
	if batches > 0 {
		mean = (s.sum - before.sum) / batches
	}
	return batches, mean, all
}

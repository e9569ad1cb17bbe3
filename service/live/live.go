// Package live says what a worker does now: rates and times between two looks at its metrics.
package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// Figures are what a worker did within a time.
type Figures struct {
	Seconds float64 `json:"seconds"` // the time
	Busy    float64 `json:"busy"`    // share of it in which the engine had something to do
	Indexes []Index `json:"indexes"` // by name
	Dead    []Count `json:"dead"`    // messages that became dead letters since the start, by reason
}

// Index are the figures of one index.
type Index struct {
	Name    string  `json:"name"`
	Rate    float64 `json:"rate"`    // queries answered per second
	Errors  float64 `json:"errors"`  // of these, by errors
	Waiting float64 `json:"waiting"` // messages of the stream that are not answered, now
	Stages  []Stage `json:"stages"`  // in the order in which a query goes through them, "total" last; those that were gone through
	Batches float64 `json:"batches"` // per second
	// PerBatch is how many queries batches have on average, Sizes how many batches have up to so many, Reasons why they were cut.
	PerBatch float64 `json:"per_batch"`
	Sizes    []Size  `json:"sizes"`
	Reasons  []Count `json:"reasons"`
}

// Stage is how long queries took for a stage, in seconds: half of them at most P50, all but a hundredth at most P99.
type Stage struct {
	Name string  `json:"name"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

// Size is how many batches had up to UpTo queries, and more than the size before.
type Size struct {
	UpTo    float64 `json:"up_to"`
	Batches float64 `json:"batches"`
}

// Count is a number of something.
type Count struct {
	Name  string  `json:"name"`
	Count float64 `json:"count"`
}

// stages are those of a query, in order.
var stages = []string{"queue", "batch", "engine", "verify", "publish", "total"}

// Window remembers what was seen lately. It belongs to one goroutine.
type Window struct {
	// Length is of how long figures are. Default 10s.
	Length time.Duration
	looks  []look
}

// Look takes what a registry has gathered at a time, which is later than that of the look before, and returns the figures since the oldest look within the
// window. Those of the first look are since the start.
func (w *Window) Look(families []*dto.MetricFamily, at time.Time, started time.Time) Figures {
	now := read(families, at)
	before := look{at: started}
	length := cmp.Or(w.Length, 10*time.Second)
	for len(w.looks) > 1 && at.Sub(w.looks[1].at) >= length {
		w.looks = w.looks[1:]
	}
	if len(w.looks) > 0 {
		before = w.looks[0]
	}
	w.looks = append(w.looks, now)
	return between(before, now)
}

// look is what metrics said at a time.
type look struct {
	at      time.Time
	busy    float64
	indexes map[string]*seen
	dead    map[string]float64 // by reason
}

type seen struct {
	answered, errors, waiting float64
	stages                    map[string]*times
	sizes                     sizes
	reasons                   map[string]float64
}

// read picks what it knows. Labels that it does not know are summed over.
func read(families []*dto.MetricFamily, at time.Time) look {
	l := look{at: at, indexes: make(map[string]*seen), dead: make(map[string]float64)}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := make(map[string]string, len(m.Label))
			for _, pair := range m.Label {
				labels[pair.GetName()] = pair.GetValue()
			}
			l.take(family.GetName(), labels, m)
		}
	}
	return l
}

func (l *look) take(name string, labels map[string]string, m *dto.Metric) {
	switch name {
	case "geniemq_engine_busy_seconds_total":
		l.busy += m.GetCounter().GetValue()
		return
	case "geniemq_dead_total":
		l.dead[labels["reason"]] += m.GetCounter().GetValue()
		return
	case "geniemq_queries_total", "geniemq_query_seconds", "geniemq_batch_size", "geniemq_batches_total", "geniemq_pending_messages":
	default:
		return
	}
	x := l.indexes[labels["index"]]
	if x == nil {
		x = &seen{stages: make(map[string]*times), reasons: make(map[string]float64)}
		l.indexes[labels["index"]] = x
	}
	switch name {
	case "geniemq_queries_total":
		x.answered += m.GetCounter().GetValue()
		if labels["outcome"] != "ok" {
			x.errors += m.GetCounter().GetValue()
		}
	case "geniemq_query_seconds":
		if x.stages[labels["stage"]] == nil {
			x.stages[labels["stage"]] = newTimes(m.GetHistogram())
		} else {
			x.stages[labels["stage"]].add(newTimes(m.GetHistogram()), 1)
		}
	case "geniemq_batch_size":
		x.sizes.add(m.GetHistogram())
	case "geniemq_batches_total":
		x.reasons[labels["reason"]] += m.GetCounter().GetValue()
	case "geniemq_pending_messages":
		x.waiting += m.GetGauge().GetValue()
	}
}

func between(before, now look) Figures {
	f := Figures{Seconds: max(now.at.Sub(before.at).Seconds(), 1e-3), Indexes: []Index{}, Dead: counts(now.dead)}
	f.Busy = min(max(now.busy-before.busy, 0)/f.Seconds, 1)
	for _, name := range slices.Sorted(maps.Keys(now.indexes)) {
		is, was := now.indexes[name], before.indexes[name]
		if was == nil || is.answered < was.answered { // an index that was removed and added counts from 0 again
			was = &seen{}
		}
		x := Index{Name: name, Rate: (is.answered - was.answered) / f.Seconds, Errors: (is.errors - was.errors) / f.Seconds, Waiting: is.waiting, Stages: []Stage{}}
		for _, stage := range stages {
			if t := is.stages[stage]; t != nil {
				if since := t.since(was.stages[stage]); since.count > 0 {
					x.Stages = append(x.Stages, Stage{stage, since.quantile(0.5), since.quantile(0.99)})
				}
			}
		}
		x.Batches, x.PerBatch, x.Sizes = is.sizes.since(&was.sizes)
		x.Batches /= f.Seconds
		reasons := make(map[string]float64)
		for reason, n := range is.reasons {
			if more := n - was.reasons[reason]; more > 0 {
				reasons[reason] = more
			}
		}
		x.Reasons = counts(reasons)
		f.Indexes = append(f.Indexes, x)
	}
	return f
}

func counts(of map[string]float64) []Count {
	all := []Count{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, Count{name, of[name]})
	}
	return all
}

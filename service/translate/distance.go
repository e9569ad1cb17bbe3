package translate

import (
	"math"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/wire"
)

// tellDistances makes of the values of hits what their metric reports.
func (m *More) tellDistances(dst []wire.Hit, details []wire.HitDetail) {
	column := m.near.Column
	var matched []string
	if m.matched {
		matched = []string{column.Name}
	}
	for i := range dst {
		dst[i].Distance = column.Metric.Report(dst[i].Distance)
		if m.detailed() {
			details[i] = wire.HitDetail{Matched: matched}
			dst[i].Detail = &details[i]
		}
	}
}

// found puts what a search by distance tells beside hits into a result.
func (m *More) found(r *wire.Result, a *gpuexec.Answer) {
	answer, ok := a.Value.(*distance.Answer)
	if !ok { // an index without objects
		answer = &distance.Answer{Method: distance.Scan, Exact: true, Counted: true}
	}
	r.Method, r.Fraction = answer.Method, answer.Fraction
	if m.near.Bounded && m.near.Total && answer.Counted {
		r.InRange, r.HasInRange = answer.Within, true
	}
	if answer.Recall > 0 {
		r.ExpectedRecall, r.HasExpectedRecall = answer.Recall, true
	}
}

// explainDistance says what a search by distance did.
func (m *More) explainDistance(a *gpuexec.Answer) *ExplainedDistance {
	c := m.near.Column
	x := &ExplainedDistance{Column: clipped(c.Name), Metric: distance.MetricName(c.Metric), Methods: c.Methods(), Objects: c.Objects}
	if answer, ok := a.Value.(*distance.Answer); ok {
		x.Method, x.Distances, x.Blocks, x.Why, x.Took = answer.Method, answer.Distances, answer.Blocks, answer.Why, micros(a.Rescoring)
		for _, w := range answer.Considered {
			x.Ways = append(x.Ways, ExplainedWay{w.Method, micros(w.Predicted), math.Round(100*w.Factor) / 100, w.Exact})
		}
	}
	return x
}

// micros are microseconds, to the tenth.
func micros(d time.Duration) float64 { return math.Round(float64(d)/100) / 10 }

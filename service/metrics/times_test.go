package metrics

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// library counts messages with the library's histograms, one query at a time.
type library struct {
	*prometheus.Registry
	seconds *prometheus.HistogramVec
}

func newLibrary() library {
	l := library{prometheus.NewRegistry(), prometheus.NewHistogramVec(timesOptions, []string{"index", "way", "stage"})}
	l.MustRegister(l.seconds)
	for _, way := range []Way{Stored, Direct} {
		for _, stage := range []string{Queue, Batch, Engine, Verify, Publish, total} {
			l.seconds.WithLabelValues("a", way.String(), stage)
		}
	}
	return l
}

func (l library) answered(a Answered, queries int, outcome func(int) pipeline.Outcome) {
	var trace prometheus.Labels
	if a.TraceID != "" {
		trace = prometheus.Labels{"trace_id": a.TraceID}
	}
	for i := range queries {
		observe := func(stage string, took time.Duration) {
			l.seconds.WithLabelValues("a", a.Way.String(), stage).(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), trace)
		}
		o := outcome(i)
		observe(total, a.Total)
		observe(Publish, a.Publish)
		if o.Ran {
			observe(Queue, o.Queue)
			observe(Batch, o.Batch)
		}
		if o.Ran && o.Engine > 0 {
			observe(Engine, o.Engine)
			observe(Verify, o.Verify)
		}
		trace = nil
	}
}

// seconds is what is exposed of times, as text, with the sums apart: they are added in another order.
func seconds(t *testing.T, from prometheus.Gatherer) (text string, sums []float64) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "geniemq_query_seconds" {
			continue
		}
		for _, m := range f.Metric {
			sums = append(sums, m.Histogram.GetSampleSum())
			m.Histogram.SampleSum = nil
			text += fmt.Sprintln(m)
		}
		f.Metric = nil
		text += fmt.Sprintln(f)
	}
	return text, sums
}

// What is exposed is what the library's histograms expose: buckets of both kinds, also when there are too many and when they begin anew, and exemplars of both.
func TestTimesAreTheLibrarys(t *testing.T) {
	rng := seeded.Rand(t)
	coarse, anew := 0, 0
	for round := range 12 {
		synctest.Test(t, func(t *testing.T) {
			m, l, began := New(), newLibrary(), time.Now()
			x := m.Index("a")
			width := []float64{4, 30, 40}[round%3] // of times, as a power of two: the wider, the more buckets
			seldom := []int{50, 1000}[round%2]     // does time pass
			took := func() time.Duration { return time.Duration(math.Exp2(width * rng.Float64())) }
			for step := range 1500 {
				a, outcomes := randomMessage(rng, took)
				outcome := func(i int) pipeline.Outcome { return outcomes[i] }
				x.answered(a, len(outcomes), outcome)
				l.answered(a, len(outcomes), outcome)
				if rng.IntN(seldom) == 0 {
					time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Minute))))
					synctest.Wait() // for what the library does by the clock
				}
				if step%100 != 0 {
					continue
				}
				got, gotSums := seconds(t, m)
				want, wantSums := seconds(t, l)
				if got != want {
					t.Fatalf("step %d: exposed is\n%s\nthe library has\n%s", step, got, want)
				}
				for i, sum := range gotSums {
					if math.Abs(sum-wantSums[i]) > 1e-9*wantSums[i] {
						t.Fatalf("step %d: sum %d is %v, the library's %v", step, i, sum, wantSums[i])
					}
				}
				if h := &x.ways[Stored].times.queue; h.schema < finest {
					coarse++
				} else if h.since.After(began) {
					anew++
				}
			}
		})
	}
	if coarse == 0 || anew == 0 {
		t.Errorf("buckets were coarser %d times, and had begun anew %d times", coarse, anew)
	}
}

// randomMessage has queries of a few batches, some that never ran or failed, and a trace at times.
func randomMessage(rng *rand.Rand, took func() time.Duration) (Answered, []pipeline.Outcome) {
	a := Answered{Way: Way(rng.IntN(2)), Publish: took(), Total: took()}
	if rng.IntN(4) == 0 {
		a.TraceID = fmt.Sprintf("%032x", rng.Uint64())
	}
	outcomes := make([]pipeline.Outcome, rng.IntN(6))
	batch := pipeline.Outcome{}
	for i := range outcomes {
		if rng.IntN(3) == 0 {
			batch = pipeline.Outcome{Ran: rng.IntN(4) > 0, Queue: took(), Batch: took(), Engine: took(), Verify: took()}
		}
		outcomes[i] = batch
		switch rng.IntN(6) {
		case 0:
			outcomes[i].Engine = 0
		case 1:
			outcomes[i].Verify = 0
		case 2:
			outcomes[i].Err = wire.Errorf(wire.Internal, "failed")
		}
	}
	return a, outcomes
}

// A scrape sees messages as a whole, whoever adds them meanwhile.
func TestTimesTogether(t *testing.T) {
	m := New()
	x := m.Index("a")
	const writers, messages, queries = 4, 300, 8
	var writing sync.WaitGroup
	for range writers {
		writing.Go(func() {
			for i := range messages {
				took := time.Duration(1+i%7) * time.Second
				x.answered(Answered{Publish: took, Total: took}, queries, func(int) pipeline.Outcome {
					return pipeline.Outcome{Ran: true, Queue: took, Batch: took, Engine: took, Verify: took}
				})
			}
		})
	}
	for looks, last := 0, false; !last; looks++ {
		if last = looks > 200; last {
			writing.Wait()
		}
		checkTogether(t, family(t, m, "geniemq_query_seconds").Metric, queries)
	}
	for _, metric := range family(t, m, "geniemq_query_seconds").Metric {
		if n := metric.Histogram.GetSampleCount(); n != writers*messages*queries && n != 0 {
			t.Errorf("%d were counted of %d", n, writers*messages*queries)
		}
	}
}

func checkTogether(t *testing.T, all []*dto.Metric, queries uint64) {
	t.Helper()
	counts := make(map[uint64]bool)
	for _, metric := range all {
		h := metric.Histogram
		native, sum := int64(0), int64(0)
		for _, delta := range h.PositiveDelta {
			native += delta
			sum += native
		}
		n := h.GetSampleCount()
		if top := h.Bucket[len(h.Bucket)-1].GetCumulativeCount(); n%queries != 0 || top != n || uint64(sum) != n || h.GetSampleSum() < float64(n) || h.GetSampleSum() > float64(7*n) {
			t.Fatalf("%d queries, %d in classic buckets, %d in native ones, of %v s", n, top, sum, h.GetSampleSum())
		}
		if n > 0 {
			counts[n] = true
		}
	}
	if len(counts) > 1 {
		t.Fatalf("stages have different counts: %v", counts)
	}
}

// Clocks of two machines may differ: nothing takes less than no time, which would make a sum smaller.
func TestTimesBelowZero(t *testing.T) {
	m := New()
	m.Index("a").answered(Answered{Publish: time.Second, Total: -time.Second}, 2, func(int) pipeline.Outcome { return pipeline.Outcome{} })
	for _, metric := range family(t, m, "geniemq_query_seconds").Metric {
		if metric.Histogram.GetSampleSum() < 0 {
			t.Errorf("a sum is negative: %v", metric)
		}
	}
}

// Queries that failed are counted by their codes, whatever their order, and those that were too large are not ok.
func TestOutcomes(t *testing.T) {
	m := New()
	x := m.Index("a")
	codes := []wire.Code{wire.Internal, wire.Internal, "", wire.BadRequest, wire.Internal, ""}
	x.answered(Answered{TooLarge: 1}, len(codes), func(i int) pipeline.Outcome {
		if codes[i] == "" {
			return pipeline.Outcome{}
		}
		return pipeline.Outcome{Err: wire.Errorf(codes[i], "failed")}
	})
	x.answered(Answered{Reason: wire.Errorf(wire.BadRequest, "refused")}, 0, nil)
	want := map[string]float64{"ok": 1, string(wire.Internal): 3, string(wire.BadRequest): 2, string(wire.TooLarge): 1}
	for _, metric := range family(t, m, "geniemq_queries_total").Metric {
		if way := metric.Label[2].GetValue(); way != "stored" {
			continue
		}
		if outcome := metric.Label[1].GetValue(); metric.Counter.GetValue() != want[outcome] {
			t.Errorf("%s: %v, want %v", outcome, metric.Counter.GetValue(), want[outcome])
		}
	}
	if got := x.Totals(); got.OK != 1 || got.Errors != 6 {
		t.Errorf("%+v", got)
	}
}

// An index that is forgotten takes its times along, and what still comes of it brings none back.
func TestTimesForgotten(t *testing.T) {
	m := New()
	m.Index("a")
	b := m.Index("b")
	if n := len(family(t, m, "geniemq_query_seconds").Metric); n != 2*2*6 {
		t.Errorf("two indexes have %d histograms", n)
	}
	m.Forget("b")
	b.answered(Answered{}, 1, func(int) pipeline.Outcome { return pipeline.Outcome{} })
	if n := len(family(t, m, "geniemq_query_seconds").Metric); n != 2*6 {
		t.Errorf("one index has %d histograms", n)
	}
}

// ofBatches are the outcomes of a message whose queries were in batches of 100.
func ofBatches(i int) pipeline.Outcome {
	batch := time.Duration(i / 100)
	return pipeline.Outcome{Ran: true, Queue: 50*time.Microsecond + batch, Batch: 100*time.Microsecond + batch, Engine: 3*time.Millisecond + batch}
}

// Counting a message takes no memory.
func TestAnsweredTakesNoMemory(t *testing.T) {
	x := New().Index("a")
	for _, queries := range []int{1, 256} {
		if n := testing.AllocsPerRun(100, func() {
			x.answered(Answered{Publish: time.Millisecond, Total: 5 * time.Millisecond}, queries, ofBatches)
		}); n != 0 {
			t.Errorf("a message of %d queries takes %v allocations", queries, n)
		}
	}
}

func BenchmarkAnswered(b *testing.B) {
	for _, queries := range []int{1, 256} {
		for _, together := range []bool{false, true} {
			b.Run(fmt.Sprintf("queries=%d/together=%v", queries, together), func(b *testing.B) {
				x := New().Index("a")
				one := func(i int) {
					x.answered(Answered{Publish: time.Duration(i%1000) * time.Microsecond, Total: time.Duration(i%10000) * time.Microsecond}, queries, ofBatches)
				}
				if !together {
					for i := range b.N {
						one(i)
					}
				} else {
					b.RunParallel(func(pb *testing.PB) {
						for i := 0; pb.Next(); i++ {
							one(i)
						}
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*queries), "ns/query")
			})
		}
	}
}

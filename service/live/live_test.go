package live_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service/live"
)

// worker has metrics as a worker has them, with a label more, as later versions may have.
type worker struct {
	registry *prometheus.Registry
	queries  *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	sizes    *prometheus.HistogramVec
	batches  *prometheus.CounterVec
	dead     *prometheus.CounterVec
	busy     prometheus.Counter
	pending  *prometheus.GaugeVec
}

func newWorker(t *testing.T, schemas uint32) *worker {
	w := &worker{
		registry: prometheus.NewRegistry(),
		queries:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "geniemq_queries_total"}, []string{"index", "way", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "geniemq_query_seconds", Buckets: prometheus.ExponentialBuckets(50e-6, 2, 22),
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: schemas, NativeHistogramMinResetDuration: time.Hour}, []string{"index", "way", "stage"}),
		sizes:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "geniemq_batch_size", Buckets: prometheus.ExponentialBuckets(1, 2, 15)}, []string{"index"}),
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "geniemq_batches_total"}, []string{"index", "reason"}),
		dead:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "geniemq_dead_total"}, []string{"reason"}),
		busy:    prometheus.NewCounter(prometheus.CounterOpts{Name: "geniemq_engine_busy_seconds_total"}),
		pending: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "geniemq_pending_messages"}, []string{"index"}),
	}
	w.registry.MustRegister(w.queries, w.seconds, w.sizes, w.batches, w.dead, w.busy, w.pending)
	return w
}

func (w *worker) gather(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// TestQuantiles: of what came between two looks, to within a bucket, also where buckets became coarser in between, and by both ways.
func TestQuantiles(t *testing.T) {
	rng := seeded.Rand(t)
	for range 20 {
		most := uint32(5 + rng.IntN(160)) // few buckets make them coarser
		w, window, now := newWorker(t, most), live.Window{Length: time.Minute}, time.Unix(1000, 0)
		observe := func() (all []float64) {
			spread, middle := 3*rng.Float64(), math.Exp(-8+6*rng.Float64())
			for range 1 + rng.IntN(3000) {
				v := middle * math.Exp(spread*rng.NormFloat64())
				w.seconds.WithLabelValues("x", []string{"stored", "direct"}[rng.IntN(2)], "total").Observe(v)
				all = append(all, v)
			}
			slices.Sort(all)
			return all
		}
		observe()
		window.Look(w.gather(t), now, now.Add(-time.Second))
		all := observe()
		f := window.Look(w.gather(t), now.Add(time.Second), now)
		if len(f.Indexes) != 1 || len(f.Indexes[0].Stages) != 1 || f.Indexes[0].Stages[0].Name != "total" {
			t.Fatalf("%+v", f)
		}
		coarse := 1.1
		for _, family := range w.gather(t) {
			for _, m := range family.Metric {
				if h := m.GetHistogram(); h != nil {
					coarse = max(coarse, math.Exp2(math.Exp2(-float64(h.GetSchema()))))
				}
			}
		}
		for share, got := range map[float64]float64{0.5: f.Indexes[0].Stages[0].P50, 0.99: f.Indexes[0].Stages[0].P99} {
			want := all[min(max(int(math.Ceil(share*float64(len(all))))-1, 0), len(all)-1)]
			if got < want/coarse/1.001 || got > want*coarse*1.001 {
				t.Errorf("quantile %v of %d: %v, want %v to within a factor of %v", share, len(all), got, want, coarse)
			}
		}
	}
}

// TestFigures: rates are of the window, sizes and reasons too; what waits and what died is as it is.
func TestFigures(t *testing.T) {
	w, now := newWorker(t, 160), time.Unix(1000, 0)
	window := live.Window{Length: 2 * time.Second}
	second := func(ok, failed int) live.Figures {
		w.queries.WithLabelValues("x", "stored", "ok").Add(float64(ok))
		w.queries.WithLabelValues("x", "direct", "bad_request").Add(float64(failed))
		w.sizes.WithLabelValues("x").Observe(float64(ok))
		w.batches.WithLabelValues("x", "idle").Inc()
		w.busy.Add(0.25)
		now = now.Add(time.Second)
		return window.Look(w.gather(t), now, now.Add(-10*time.Second))
	}
	w.pending.WithLabelValues("x").Set(7)
	w.dead.WithLabelValues("bad_reply").Inc()
	if f := second(100, 0); f.Seconds != 10 || f.Indexes[0].Rate != 10 {
		t.Errorf("since the start: %+v", f)
	}
	second(50, 0)
	f := second(30, 10)
	if x := f.Indexes[0]; f.Seconds != 2 || x.Rate != 45 || x.Errors != 5 || x.Waiting != 7 || x.Batches != 1 || x.PerBatch != 40 || f.Busy != 0.25 ||
		!slices.Equal(x.Sizes, []live.Size{{UpTo: 32, Batches: 1}, {UpTo: 64, Batches: 1}}) || !slices.Equal(x.Reasons, []live.Count{{Name: "idle", Count: 2}}) ||
		!slices.Equal(f.Dead, []live.Count{{Name: "bad_reply", Count: 1}}) {
		t.Errorf("%+v", f)
	}
	if f := second(0, 0); f.Seconds != 2 || f.Indexes[0].Rate != 20 {
		t.Errorf("the window does not move: %+v", f)
	}
}

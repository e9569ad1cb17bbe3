package metrics

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

func family(t *testing.T, m *Metrics, name string) *dto.MetricFamily {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return families[i]
}

// An index that takes another's place takes it in the metrics, too; others keep theirs.
func TestServing(t *testing.T) {
	m := New()
	for _, x := range []Served{
		{Name: "a", Version: "1", Kind: "rows", Bytes: 10, Engine: "cpu", Device: "2 cores"},
		{Name: "b", Version: "1", Kind: "rows", Bytes: 20, Engine: "cpu", Device: "2 cores"},
		{Name: "a", Version: "2", Kind: "rows", Bytes: 30, Engine: "cpu", Device: "2 cores"},
	} {
		m.Serving(x)
	}
	var shown []string
	for _, metric := range family(t, m, "geniemq_index_info").Metric {
		for _, l := range metric.Label {
			if l.GetName() == "index" || l.GetName() == "version" {
				shown = append(shown, l.GetValue())
			}
		}
	}
	if want := []string{"a", "2", "b", "1"}; !slices.Equal(shown, want) {
		t.Errorf("indexes and versions are %q, want %q", shown, want)
	}
	if sizes := family(t, m, "geniemq_index_bytes").Metric; len(sizes) != 2 || sizes[0].Gauge.GetValue() != 30 {
		t.Errorf("the sizes are %v", sizes)
	}
}

// Whoever collects while an index takes the place of another finds one of them.
func TestServingAlways(t *testing.T) {
	m := New()
	index := Served{Name: "a", Version: "0", Kind: "rows", Engine: "cpu", Device: "2 cores"}
	m.Serving(index)
	const changes = 5000
	var changing sync.WaitGroup
	var done atomic.Bool
	changing.Go(func() {
		defer done.Store(true)
		for i := range changes {
			index.Version = strconv.Itoa(i + 1)
			m.Serving(index)
		}
	})
	collected := make(chan prometheus.Metric, 2+2*changes) // all that there could be
	for wrong := 0; !done.Load() && wrong < 3; runtime.Gosched() {
		m.serving.Collect(collected)
		if n := len(collected); n != 2 { // its version and its size
			t.Errorf("%d metrics are collected, want 2", n)
			wrong++
		}
		for len(collected) > 0 {
			<-collected
		}
	}
	changing.Wait()
}

// Recall tables are those of the index that is served now, and no more than are stated.
func TestRecalls(t *testing.T) {
	m := New()
	before := make([]Recall, 1000)
	for i := range before {
		before[i] = Recall{Column: "v", Method: "cells", K: 10, Effort: float64(i + 1), Share: 0.5}
	}
	m.Serving(Served{Name: "b", Recalls: []Recall{{Column: "w", Method: "cells", K: 1, Effort: 3, Share: 0.7}}})
	m.Serving(Served{Name: "a", Recalls: before})
	if shown := family(t, m, "geniemq_index_recall_ratio").Metric; len(shown) != mostRecalls+1 {
		t.Errorf("%d numbers are shown, want %d and one", len(shown), mostRecalls)
	}
	m.Serving(Served{Name: "a", Recalls: []Recall{{Column: "v", Method: "permutation", K: 1, Effort: 0.01, Share: 0.9}}})
	if shown := family(t, m, "geniemq_index_recall_ratio").Metric; len(shown) != 2 || shown[0].Gauge.GetValue() != 0.9 {
		t.Errorf("the numbers are %v", shown)
	}
	m.Forget("a")
	if shown := family(t, m, "geniemq_index_recall_ratio").Metric; len(shown) != 1 || shown[0].Gauge.GetValue() != 0.7 {
		t.Errorf("of an index that is gone and one that is not there are %v", shown)
	}
}

// Spans that overlap count once.
func TestBusy(t *testing.T) {
	m := New()
	a, b := m.Index("a"), m.Index("b")
	start := time.Now()
	a.Begun()
	b.Begun()
	a.Ended()
	time.Sleep(2 * time.Millisecond)
	open := m.Busy()
	b.Ended()
	busy, most := m.Busy(), time.Since(start)
	if open <= 0 || busy < open || busy > most+time.Millisecond {
		t.Errorf("busy for %v and then %v of %v", open, busy, most)
	}
	if again := m.Busy(); again != busy {
		t.Errorf("busy for %v although nothing runs, it was %v", again, busy)
	}
	if n := family(t, m, "geniemq_engine_busy_seconds_total").Metric[0].Counter.GetValue(); n != busy.Seconds() {
		t.Errorf("the metric says %v s, want %v", n, busy)
	}
}

// What a search took is held against what was expected, by method; what nobody has expected is not.
func TestPlannerRatio(t *testing.T) {
	m := New()
	x := m.Index("a")
	x.Measured("scan", 10, 1, 30*time.Microsecond, 10*time.Microsecond)
	x.Measured("tree", 10, 1, 5*time.Microsecond, 10*time.Microsecond)
	x.Measured("tree", 10, 1, 5*time.Microsecond, 0)
	all := family(t, m, "geniemq_distance_planner_ratio").Metric
	if len(all) != 2 || all[0].Histogram.GetSampleSum() != 3 || all[1].Histogram.GetSampleSum() != 0.5 || all[1].Histogram.GetSampleCount() != 1 {
		t.Errorf("%v", all)
	}
	if n := family(t, m, "geniemq_distance_queries_total").Metric; len(n) != 2 || n[1].Counter.GetValue() != 2 {
		t.Errorf("%v", n)
	}
}

// The admin page and Prometheus have the same figures.
func TestTotals(t *testing.T) {
	m := New()
	x := m.Index("a")
	x.Batch(3, "full")
	x.Batch(5, "idle")
	if got := x.Totals(); got.Batches != 2 || got.Batched != 8 {
		t.Errorf("%+v", got)
	}
	if h := family(t, m, "geniemq_batch_size").Metric[0].Histogram; h.GetSampleCount() != 2 || h.GetSampleSum() != 8 {
		t.Errorf("%v", h)
	}
}

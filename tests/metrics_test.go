package tests

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// scraped is what /metrics said.
type scraped struct {
	t        testing.TB
	families map[string]*dto.MetricFamily
}

func (r *running) scrape() scraped {
	r.t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(r.get("/metrics")))
	if err != nil {
		r.t.Fatalf("the metrics cannot be parsed: %v", err)
	}
	return scraped{r.t, families}
}

// get fetches a page of the admin server.
func (r *running) get(path string) string {
	r.t.Helper()
	body, _ := r.getStatus(path)
	return body
}

func (r *running) getStatus(path string) (string, int) {
	r.t.Helper()
	resp, err := http.Get(r.srv.AdminURL() + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(body), resp.StatusCode
}

// metric finds the first metric with these labels, names and values in turn.
func (s scraped) metric(name string, labels ...string) *dto.Metric {
	s.t.Helper()
	for _, m := range s.all(name, labels...) {
		return m
	}
	return nil
}

func (s scraped) all(name string, labels ...string) (found []*dto.Metric) {
	s.t.Helper()
	family := s.families[name]
	if family == nil {
		return nil
	}
next:
	for _, m := range family.Metric {
		have := make(map[string]string)
		for _, l := range m.Label {
			have[l.GetName()] = l.GetValue()
		}
		for i := 0; i < len(labels); i += 2 {
			if have[labels[i]] != labels[i+1] {
				continue next
			}
		}
		found = append(found, m)
	}
	return found
}

// value is the sum of the metrics with these labels.
func (s scraped) value(name string, labels ...string) (sum float64) {
	s.t.Helper()
	for _, m := range s.all(name, labels...) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}

// Every metric of the contract is there with its labels and says what happened.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{})
	for range 5 {
		r.publish("people", `{"row":{"age":30}}`)
	}
	r.publish("people", `{"queries":[{"row":{"age":30}},{"row":{"agee":30}},{"row":{"age":52}}]}`)
	r.publish("people", `nonsense`)
	r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", "no")
	r.publish("words", `{"text":"aple"}`)
	r.publish("words", `{"text":"aple","radius":1}`)
	r.settled()
	r.works()
	var s scraped
	testkit.Eventually(t, func() error { // a direct answer is out before it is counted, and a busy machine is not always ready
		if s = r.scrape(); s.value("geniemq_messages_total", "index", "people", "way", "direct") == 0 || s.value("geniemq_ready") == 0 {
			return fmt.Errorf("the direct message is not counted, or the worker is not ready: %v", r.ready())
		}
		return nil
	})
	if m := s.metric("geniemq_clock_skew_seconds"); m == nil || math.Abs(m.GetGauge().GetValue()) > 60 {
		t.Errorf("the skew to a server with the same clock: %v", m)
	}
	lately := map[string]bool{"geniemq_pending_messages": true, "geniemq_queries_pending": true, "geniemq_oldest_pending_seconds": true} // looked at once a second
	for _, c := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"geniemq_queries_total", []string{"index", "people", "outcome", "ok"}, 8},
		{"geniemq_queries_total", []string{"index", "people", "outcome", "bad_request"}, 3},
		{"geniemq_queries_total", []string{"index", "words", "outcome", "ok"}, 2},
		{"geniemq_distance_queries_total", []string{"index", "words"}, 1},
		{"geniemq_messages_total", []string{"index", "people", "way", "stored"}, 8},
		{"geniemq_messages_total", []string{"index", "people", "way", "direct"}, 1},
		{"geniemq_dead_total", []string{"index", "people", "reason", "bad_reply"}, 1},
		{"geniemq_build_info", []string{"version", service.Version()}, 1},
		{"geniemq_connected", nil, 1},
		{"geniemq_ready", nil, 1},
		{"geniemq_stream_limit_bytes", []string{"stream", "results"}, 4 << 30},
		{"geniemq_pending_limit_messages", []string{"index", "people"}, 1e6},
		{"geniemq_oldest_pending_seconds", []string{"index", "people"}, 0},
		{"geniemq_queries_pending", []string{"index", "people", "way", "stored"}, 0},
		{"geniemq_queries_pending", []string{"index", "people", "way", "direct"}, 0},
		{"geniemq_direct_dropped_total", []string{"index", "people"}, 0},
		{"geniemq_pending_messages", []string{"index", "people"}, 0},
		{"geniemq_redelivered_total", []string{"index", "people"}, 0},
		{"geniemq_index_info", []string{"index", "people", "kind", "rows", "engine", "cpu"}, 1},
	} {
		if s.metric(c.name, c.labels...) == nil {
			t.Errorf("%s%v is missing", c.name, c.labels)
		} else if got := s.value(c.name, c.labels...); got != c.want && !lately[c.name] {
			t.Errorf("%s%v is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	for _, stage := range []string{"queue", "batch", "engine", "verify", "publish", "total"} {
		h := s.metric("geniemq_query_seconds", "index", "people", "way", "stored", "stage", stage).GetHistogram()
		if h.GetSampleCount() < 7 || len(h.Bucket) < 10 {
			t.Errorf("stage %s has %d samples in %d classic buckets", stage, h.GetSampleCount(), len(h.Bucket))
		}
		if sum := h.GetSampleSum(); sum < 0 || sum > patience.Seconds()*20 {
			t.Errorf("stage %s sums to %v s", stage, sum)
		}
	}
	if n := s.metric("geniemq_batch_size", "index", "people").GetHistogram().GetSampleSum(); n != 8 {
		t.Errorf("batches held %v queries, want 8", n)
	}
	if s.value("geniemq_distances_total", "index", "words") < 1 || s.value("geniemq_distance_blocks_total", "index", "words") < 1 {
		t.Error("no distance was counted")
	}
	if s.value("geniemq_batches_total", "index", "people", "reason", "idle") < 1 {
		t.Error("no batch was cut because an executor was free")
	}
	for _, name := range []string{
		"geniemq_engine_busy_seconds_total", "geniemq_postings_scanned_total", "geniemq_candidates_total", "geniemq_index_bytes",
		"go_goroutines", "process_cpu_seconds_total",
	} {
		if s.value(name) <= 0 {
			t.Errorf("%s is %v", name, s.value(name))
		}
	}
	if s.families["geniemq_device_memory_bytes"] == nil {
		t.Error("geniemq_device_memory_bytes is missing")
	}
}

func TestAdminPages(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{})
	testkit.Eventually(t, func() error {
		if body, code := r.getStatus("/readyz"); code != http.StatusOK {
			return fmt.Errorf("readyz: %d %s", code, body)
		}
		return nil
	})
	if body, code := r.getStatus("/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	page, code := r.getStatus("/")
	if code != http.StatusOK {
		t.Fatalf("page: %d", code)
	}
	for _, part := range []string{"people", "words", "papers", "rows", "sequences", "ready", r.srv.NATSURL(), "geniemq query"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	for _, path := range []string{"/nothing", "/debug/pprof/"} {
		if _, code := r.getStatus(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	open := start(t, config.Config{Admin: "127.0.0.1:0", Pprof: true}, service.Options{})
	if _, code := open.getStatus("/debug/pprof/"); code != http.StatusOK {
		t.Errorf("pprof: %d", code)
	}
}

// promtool finds nothing to complain about.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("promtool is not installed (Debian's package prometheus), and CI=true")
	} else if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus)")
	}
	r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{})
	r.publish("people", `{"row":{"age":30}}`)
	r.publish("people", `{"row":{"agee":30}}`, "Genie-Reply", "no")
	r.settled()
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(r.get("/metrics"))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

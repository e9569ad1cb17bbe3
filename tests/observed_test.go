package tests

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// lockedText is what many goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// collected are spans that arrived at a collector.
type collected struct {
	mu    sync.Mutex
	spans []*traces.Span
	names []string // of services
}

// ServeHTTP takes what an exporter sends, as the protocol has it.
func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				c.names = append(c.names, a.Value.GetStringValue())
			}
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// of are the spans of a trace: the message's, and those below it by name.
func (c *collected) of(trace string) (message *traces.Span, stages map[string]*traces.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stages = make(map[string]*traces.Span)
	for _, s := range c.spans {
		switch {
		case hex.EncodeToString(s.TraceId) != trace:
		case strings.Contains(s.Name, " people"):
			message = s
		default:
			stages[s.Name] = s
		}
	}
	return message, stages
}

// Spans of a message belong to the trace of its query, exemplars name that trace, and the log says why a message was slow. Messages whose sender
// records no trace, and what is no traceparent, make neither spans nor exemplars.
func TestObserved(t *testing.T) {
	t.Parallel()
	taken := &collected{}
	server := httptest.NewServer(taken)
	defer server.Close()
	var log lockedText
	cfg := config.Config{Admin: "127.0.0.1:0", Traces: server.URL, SlowQuery: time.Nanosecond,
		Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}}
	srv, err := service.Start(t.Context(), withServer(t, cfg), service.Options{Logger: textLogger(&log)})
	if err != nil {
		t.Fatal(err)
	}
	nc, js := connect(t, srv.NATSURL())
	r := &running{t: t, srv: srv, nc: nc, js: js}

	const stored, direct, failed, untold = "4bf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e4737", "4bf92f3577b34da6a3ce929d0e0e4738", "4bf92f3577b34da6a3ce929d0e0e4739"
	parent := func(trace, flags string) string { return "00-" + trace + "-00f067aa0ba902b7-" + flags }
	r.publish("people", `{"id":"q7","row":{"age":30}}`, "traceparent", parent(stored, "01"))
	r.publish("people", `{"queries":[{"row":{"age":30}},{"row":{"age":35}}]}`, "traceparent", parent(untold, "00"))
	r.publish("people", `{"row":{"age":30}}`, "traceparent", "00-nonsense-01")
	r.publish("people", `nonsense`, "traceparent", parent(failed, "01"))
	if _, err := nc.RequestMsg(message("genie.search.people", `{"row":{"age":35}}`, "traceparent", parent(direct, "01")), patience); err != nil {
		t.Fatal(err)
	}
	r.settled()
	testkit.Eventually(t, func() error { // what is answered is counted a moment later
		if n := r.scrape().value("geniemq_messages_total", "index", "people"); n != 5 {
			return fmt.Errorf("%v messages", n)
		}
		return nil
	})
	exemplars := openMetrics(t, srv.AdminURL())
	if err := srv.Shutdown(within(t)); err != nil {
		t.Fatal(err)
	}

	for trace, want := range map[string]struct {
		name   string
		kind   traces.Span_SpanKind
		stages []string
		status string
	}{
		stored: {"process people", traces.Span_SPAN_KIND_CONSUMER, []string{"queue", "batch", "engine", "publish"}, ""},
		direct: {"search people", traces.Span_SPAN_KIND_SERVER, []string{"queue", "batch", "engine", "publish"}, ""},
		failed: {"process people", traces.Span_SPAN_KIND_CONSUMER, []string{"queue", "publish"}, "bad_request"},
	} {
		span, stages := taken.of(trace)
		if span == nil || span.Name != want.name || span.Kind != want.kind || hex.EncodeToString(span.ParentSpanId) != "00f067aa0ba902b7" || span.Status.GetMessage() != want.status {
			t.Errorf("%s: the message's span is %v", trace, span)
			continue
		}
		for _, name := range want.stages {
			s := stages[name]
			if s == nil || !bytes.Equal(s.ParentSpanId, span.SpanId) || s.EndTimeUnixNano < s.StartTimeUnixNano || s.EndTimeUnixNano > span.EndTimeUnixNano {
				t.Errorf("%s: the span of %s is %v, below %v", trace, name, s, span)
			}
		}
		if want.status == "" && !strings.Contains(exemplars, `# {trace_id="`+trace+`"}`) {
			t.Errorf("no exemplar names %s", trace)
		}
	}
	if span, _ := taken.of(untold); span != nil || len(taken.spans) > 15 {
		t.Errorf("%d spans, of a trace that nobody records: %v", len(taken.spans), span)
	}
	if strings.Contains(exemplars, untold) || !slices.Contains(taken.names, "geniemq") {
		t.Errorf("an exemplar of what nobody records, or no service is named: %v", taken.names)
	}
	text := log.String()
	for _, part := range []string{"a query was slow: ", "index=people", "way=stored", "seconds=", "queue=", "publish=", "trace_id="} {
		if !strings.Contains(text, part) {
			t.Errorf("the log of slow queries lacks %q:\n%s", part, text)
		}
	}
}

// dozing is a real engine that takes its time.
type dozing struct{ gpuexec.Engine }

const doze = 300 * time.Millisecond

func (d dozing) Load(ctx context.Context, source gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := d.Engine.Load(ctx, source, later...)
	return dozingSearcher{s}, err
}

type dozingSearcher struct{ gpuexec.Searcher }

func (s dozingSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	time.Sleep(doze)
	return s.Searcher.Search(ctx, plans, answers, t)
}

// Behind an engine that is slow, the first message is slow because of the engine, and those after it because they wait for it.
func TestSlowReasons(t *testing.T) {
	t.Parallel()
	var log lockedText
	r := start(t, config.Config{Admin: "127.0.0.1:0", SlowQuery: doze, BatchSize: 1,
		Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}},
	}, service.Options{Logger: textLogger(&log), OpenEngine: func(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
		engine, err := open.Engine(kind, opts)
		return dozing{engine}, err
	}})
	testkit.Eventually(t, func() error {
		for range 8 {
			r.publish("people", `{"row":{"age":30}}`)
		}
		r.settled()
		s := r.scrape()
		for _, reason := range []string{"engine", "batch"} {
			if s.value("geniemq_slow_messages_total", "index", "people", "reason", reason) == 0 {
				return fmt.Errorf("no message was slow because of %s", reason)
			}
		}
		return nil
	})
	for _, part := range []string{"a query was slow: the engine searched", "a query was slow: its batch waited for the engine"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log lacks %q:\n%s", part, log.String())
		}
	}
}

// A collector that is away costs nothing but a line in the log.
func TestCollectorIsAway(t *testing.T) {
	t.Parallel()
	var log lockedText
	r := start(t, config.Config{Traces: "http://127.0.0.1:1"}, service.Options{Logger: textLogger(&log)})
	r.publish("people", `{"row":{"age":30}}`, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	r.settled()
	r.works()
}

// openMetrics are the metrics with their exemplars.
func openMetrics(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withServer is a configuration with an embedded server of its own.
func withServer(t *testing.T, cfg config.Config) config.Config {
	cfg.NATSListen, cfg.DataDir = "127.0.0.1:0", t.TempDir()
	return cfg
}

// docs/metrics.md has all metrics, and no more series than it says.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	described := make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		first, prefix := strings.Split(line, "|"), ""
		if len(first) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(first[1], -1) {
			if strings.HasPrefix(m[1], "_") { // the rest of a name like the first one
				described[prefix+m[1]] = true
				continue
			}
			described[m[1]] = true
			prefix = strings.Join(strings.Split(m[1], "_")[:2], "_")
		}
	}
	r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{})
	r.publish("people", `{"row":{"age":30}}`)
	for i := range 20 { // names that users choose make no series
		r.publish(fmt.Sprintf("nobody%d", i), `{"row":{"age":30}}`)
	}
	r.works()
	r.settled()
	var s scraped
	testkit.Eventually(t, func() error {
		if s = r.scrape(); s.value("geniemq_dead_total", "index", "(unserved)") < 20 {
			return errors.New("not all are swept")
		}
		return nil
	})
	for name := range s.families {
		if strings.HasPrefix(name, "geniemq_") && !described[name] {
			t.Errorf("docs/metrics.md has no %s", name)
		}
	}
	asPageSays(t, string(page), s)
}

// asPageSays counts series and compares what the page says of their number.
func asPageSays(t *testing.T, page string, s scraped) {
	t.Helper()
	says := regexp.MustCompile("A worker has about ([0-9]+) series, and about ([0-9]+) for each index in classic histograms \\(([0-9]+) of these are `geniemq_query_seconds`: " +
		"([0-9]+) stages, ([0-9]+) ways, ([0-9]+) buckets with their sum and count").FindStringSubmatch(page)
	if says == nil {
		t.Fatal("docs/metrics.md does not say how many series there are")
	}
	var n [6]int // worker, index, times, stages, ways, buckets
	for i, text := range says[1:] {
		n[i], _ = strconv.Atoi(text)
	}
	worker, byIndex, times := 0, make(map[string]int), make(map[string]int)
	for name, family := range s.families {
		for _, m := range family.Metric {
			index, series := "", 1
			for _, l := range m.Label {
				if l.GetName() == "index" {
					index = l.GetValue()
				}
			}
			if h := m.Histogram; h != nil {
				series = len(h.Bucket) + 2
			}
			if name == "geniemq_query_seconds" {
				times[index] += series
				if len(m.Histogram.Bucket) != n[5] {
					t.Errorf("a stage has %d buckets, docs/metrics.md says %d", len(m.Histogram.Bucket), n[5])
				}
			}
			if index == "" {
				worker += series
			} else {
				byIndex[index] += series
			}
		}
	}
	t.Logf("%d series, and by index %v, of which times are %v", worker, byIndex, times)
	for _, index := range []string{"people", "words", "papers"} {
		if times[index] != n[2] || n[2] != n[3]*n[4]*(n[5]+2) {
			t.Errorf("index %s has %d series of times, docs/metrics.md says %v", index, times[index], n)
		}
		if off := byIndex[index] - n[1]; off < -5 || off > 5 { // what a batch was cut for, and forms, come with the first of them
			t.Errorf("index %s has %d series, docs/metrics.md says %d", index, byIndex[index], n[1])
		}
		delete(byIndex, index)
	}
	if delete(byIndex, "(unserved)"); len(byIndex) > 0 {
		t.Errorf("there are series of %v", byIndex)
	}
	if off := worker - n[0]; off < -20 || off > 20 { // the runtime's are of its version and the system
		t.Errorf("%d series are of no index, docs/metrics.md says %d", worker, n[0])
	}
}

package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/service/admin"
)

// start starts a server that shows what status points to.
func start(t *testing.T, status *atomic.Pointer[admin.Status], pprof bool, metrics ...prometheus.Collector) *admin.Server {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "shown"}, func() float64 { return 7 }))
	registry.MustRegister(metrics...)
	var log bytes.Buffer
	server, err := admin.Start("127.0.0.1:0", admin.Source{
		Metrics: registry, Status: func() admin.Status { return *status.Load() }, Pprof: pprof, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if log.Len() > 0 {
			t.Errorf("the server complains: %s", &log)
		}
	})
	return server
}

func get(t *testing.T, server *admin.Server, path string) (int, string) {
	t.Helper()
	response, err := http.Get(server.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// A worker lives as long as nothing is broken for good, and is ready while nothing is missing: restarts and traffic follow from that.
func TestHealth(t *testing.T) {
	var status atomic.Pointer[admin.Status]
	status.Store(&admin.Status{})
	server := start(t, &status, false)
	for _, c := range []struct {
		status        admin.Status
		health, ready int
		says          string // by /healthz and /readyz, one after the other
	}{
		{admin.Status{Ready: true}, 200, 200, "ok\nready\n"},
		{admin.Status{NotReady: []string{"no server", "no probe"}}, 200, 503, "ok\nno server\nno probe\n"},
		{admin.Status{NotReady: []string{"the device is lost"}, Fault: "lost"}, 503, 503, "lost\nthe device is lost\n"},
	} {
		status.Store(&c.status)
		health, says := get(t, server, "/healthz")
		ready, also := get(t, server, "/readyz")
		if health != c.health || ready != c.ready || says+also != c.says {
			t.Errorf("%+v: healthz %d, readyz %d, %q; want %d, %d, %q", c.status, health, ready, says+also, c.health, c.ready, c.says)
		}
	}
}

// The page shows what the status says, as text: names and queries are those of users.
func TestPage(t *testing.T) {
	var status atomic.Pointer[admin.Status]
	status.Store(&admin.Status{
		Version: "1.2.3", NotReady: []string{"a reason"}, NATS: "nats://host:4222", Engine: "cpu on 2 cores",
		Indexes: []admin.IndexStatus{{Name: "people", Kind: "rows", Version: "v2", Retiring: "v1", Objects: 12345, Example: `{"text":"<script>"}`, QuerySubject: "genie.query.people"}},
	})
	server := start(t, &status, false)
	code, page := get(t, server, "/")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, page)
	}
	for _, want := range []string{"1.2.3", "not ready", "a reason", "nats://host:4222", "cpu on 2 cores", "people", "<code>v2</code>, <code>v1</code> until", "12345", "genie.query.people"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "<script>") {
		t.Errorf("an example becomes a part of the page:\n%s", page)
	}
	if _, metrics := get(t, server, "/metrics"); !strings.Contains(metrics, "\nshown 7\n") {
		t.Errorf("the metrics are %s", metrics)
	}
	if code, _ := get(t, server, "/other"); code != http.StatusNotFound {
		t.Errorf("a path that does not exist is answered by %d", code)
	}
}

// The page and the metric say who has the engine's memory. Holdings that differ only in whether they are needed are one in the metric.
func TestMemory(t *testing.T) {
	holdings := []admin.Holding{
		{Device: 0, Owner: "people", Index: "p", Form: "postings", Bytes: 3 << 20, Needed: true},
		{Device: 0, Owner: "people", Index: "p", Form: "planes", Bytes: 1 << 20, Needed: true},
		{Device: 0, Owner: "people", Index: "p", Form: "planes", Bytes: 5 << 20},
		{Device: admin.Host, Owner: "batches", Form: "counters", Bytes: 7, Needed: true},
	}
	var status atomic.Pointer[admin.Status]
	status.Store(&admin.Status{Memory: holdings})
	server := start(t, &status, false, admin.MemoryCollector(func() []admin.Holding { return holdings }))
	_, page := get(t, server, "/")
	for _, want := range []string{
		"<td>0</td><td>people</td><td>postings</td><td class=\"n\">3.0 MiB</td><td>yes</td>",
		"<td>0</td><td>people</td><td>planes</td><td class=\"n\">5.0 MiB</td><td>no, it makes queries faster</td>",
		"<td>host</td><td>batches</td><td>counters</td><td class=\"n\">7 B</td><td>yes</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}

	shown := func() (lines []string) {
		_, metrics := get(t, server, "/metrics")
		for line := range strings.Lines(metrics) {
			if strings.HasPrefix(line, "geniemq_device_memory_bytes{") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	want := []string{
		`geniemq_device_memory_bytes{device="0",form="planes",index="p",owner="people"} 6.291456e+06`,
		`geniemq_device_memory_bytes{device="0",form="postings",index="p",owner="people"} 3.145728e+06`,
		`geniemq_device_memory_bytes{device="host",form="counters",index="",owner="batches"} 7`,
	}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("the metrics are %q, want %q", got, want)
	}
	holdings = holdings[:1] // an index was swapped
	if got := shown(); !slices.Equal(got, want[1:2]) {
		t.Errorf("after memory was given back the metrics are %q, want %q", got, want[1:2])
	}
}

// Profiles are there only where they were asked for, and the command line, which may hold a secret, never.
func TestProfiles(t *testing.T) {
	var status atomic.Pointer[admin.Status]
	status.Store(&admin.Status{})
	for _, c := range []struct {
		pprof bool
		path  string
		code  int
	}{
		{false, "/debug/pprof/", 404}, {false, "/debug/pprof/heap", 404}, {true, "/debug/pprof/", 200}, {true, "/debug/pprof/heap", 200},
		{true, "/debug/pprof/cmdline", 404},
	} {
		if code, _ := get(t, start(t, &status, c.pprof), c.path); code != c.code {
			t.Errorf("pprof %v: %s is answered by %d, want %d", c.pprof, c.path, code, c.code)
		}
	}
}

// An address that is taken is an error that says what to do.
func TestAddressIsTaken(t *testing.T) {
	var status atomic.Pointer[admin.Status]
	status.Store(&admin.Status{})
	server := start(t, &status, false)
	_, err := admin.Start(strings.TrimPrefix(server.URL(), "http://"), admin.Source{})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "--admin") {
		t.Errorf("%v", err)
	}
}

package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/wire"
)

// whole is a server with all parts: swaps and queries that are counted, dead letters of a real NATS server.
type whole struct {
	url          string
	js           jetstream.JetStream
	swaps, asked int
	added        []string // and what was removed
}

func startWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{js: testkit.JetStream(t, testkit.StartBroker(t).URL())}
	if _, err := streams.Ensure(t.Context(), w.js, new(streams.Settings).Configs(wire.Subjects{})); err != nil {
		t.Fatal(err)
	}
	server, err := admin.Start("127.0.0.1:0", admin.Source{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		Status: func() admin.Status {
			return admin.Status{Version: "1.2.3", Ready: true, Uptime: time.Minute, Indexes: []admin.IndexStatus{{Name: "people", Kind: "rows", Example: `{"text":"</script><b>"}`}}}
		},
		Swap: func(context.Context, string, string) (was, is string, err error) { w.swaps++; return "v1", "v2", nil },
		Add: func(_ context.Context, index, file string) (name, version string, err error) {
			w.added = append(w.added, "+"+index+" "+file)
			return "cities", "v1", nil
		},
		Remove: func(_ context.Context, index string) (version string, note, err error) {
			w.added = append(w.added, "-"+index)
			return "v1", nil, nil
		},
		Ask: func(_ context.Context, index string, query []byte) ([]byte, error) {
			w.asked++
			if index != "people" {
				return nil, admin.ErrNoSuchIndex
			}
			return append(append([]byte(`{"said":`), query...), '}'), nil
		},
		Letters: func() *letters.Box { return letters.Of(w.js, wire.Subjects{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(context.Background()) })
	w.url = server.URL()
	return w
}

// send sends a request and returns its code and what was said.
func (w *whole) send(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (w *whole) bury(t *testing.T) uint64 {
	t.Helper()
	ack, err := w.js.PublishMsg(t.Context(), &nats.Msg{Subject: "genie.dead.people", Data: []byte(`{"text":"<b>"}`), Header: nats.Header{
		consumer.HeaderDeadSubject: {"genie.query.people"}, consumer.HeaderDeadReason: {"worker_lost"}}})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// actions are what the page can do, each of which changes something or shows data of users.
var actions = []struct{ method, path, body string }{
	{"POST", "/swap", `{"index":"people","file":"/good"}`},
	{"POST", "/add", `{"file":"/good"}`},
	{"POST", "/remove", `{"index":"people"}`},
	{"POST", "/query", `{"index":"people","query":{"text":"x"}}`},
	{"GET", "/dead", ""},
	{"GET", "/dead/1", ""},
	{"POST", "/dead/replay", `{"sequence":1}`},
	{"POST", "/dead/drop", `{"sequence":1}`},
}

// TestOtherSites: pages of other sites can do nothing, whatever a browser lets them send; the page itself and programs of this machine can.
func TestOtherSites(t *testing.T) {
	w := startWhole(t)
	w.bury(t)
	for _, a := range actions {
		for name, headers := range map[string][]string{
			"from another site":                       {"Sec-Fetch-Site", "cross-site"},
			"from another port":                       {"Origin", "http://127.0.0.1:8080"},
			"from another port, newer":                {"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:8080"},
			"from no origin":                          {"Origin", "null"},
			"by TLS":                                  {"Origin", strings.Replace(w.url, "http:", "https:", 1)},
			"by a name that stands for this machine":  {"Host", "evil.example:9464"},
			"the same, as if it were the page itself": {"Host", "evil.example:9464", "Origin", "http://evil.example:9464", "Sec-Fetch-Site", "same-origin"},
		} {
			if code, said := w.send(t, a.method, a.path, a.body, headers...); code != http.StatusForbidden {
				t.Errorf("%s %s %s: %d %s", a.method, a.path, name, code, said)
			}
		}
		if a.method == "POST" {
			for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
				if code, _ := w.send(t, a.method, a.path, a.body, "Content-Type", kind); code != http.StatusUnsupportedMediaType {
					t.Errorf("%s as %q: %d", a.path, kind, code)
				}
			}
			if code, _ := w.send(t, a.method, a.path, `{"other":1}`); code != http.StatusBadRequest {
				t.Errorf("%s with another body: %d", a.path, code)
			}
		}
	}
	if n, err := letters.Of(w.js, wire.Subjects{}).Count(t.Context()); err != nil || n != 1 || w.swaps+w.asked+len(w.added) > 0 {
		t.Fatalf("%d letters, %d swaps, %d queries, changes %q, %v", n, w.swaps, w.asked, w.added, err)
	}
	for _, a := range actions[:len(actions)-1] {
		for _, headers := range [][]string{{}, {"Origin", w.url, "Sec-Fetch-Site", "same-origin"}} {
			if a.path == "/dead/replay" {
				a.body = fmt.Sprintf(`{"sequence":%d}`, w.bury(t))
			}
			if code, said := w.send(t, a.method, a.path, a.body, headers...); code != http.StatusOK {
				t.Errorf("%s %s with %v: %d %s", a.method, a.path, headers, code, said)
			}
		}
	}
	if want := []string{"+ /good", "+ /good", "-people", "-people"}; !slices.Equal(w.added, want) {
		t.Errorf("added and removed were %q", w.added)
	}
}

// TestDeadLetters: the page lists, shows, replays and drops them.
func TestDeadLetters(t *testing.T) {
	w := startWhole(t)
	if code, said := w.send(t, "GET", "/dead", ""); code != 200 || said != `{"all":0,"letters":[]}`+"\n" {
		t.Errorf("none: %d %s", code, said)
	}
	first, second := w.bury(t), w.bury(t)
	if _, said := w.send(t, "GET", "/dead", ""); !strings.Contains(said, `"all":2`) || !strings.Contains(said, `"reason":"worker_lost"`) {
		t.Errorf("two: %s", said)
	}
	if _, said := w.send(t, "GET", "/dead/1", ""); !strings.Contains(said, `\u003cb\u003e`) {
		t.Errorf("the body is not shown, or as it is: %s", said)
	}
	if code, said := w.send(t, "POST", "/dead/replay", `{"sequence":1}`); code != 200 || !strings.Contains(said, `"subject":"genie.query.people"`) {
		t.Errorf("replay: %d %s", code, said)
	}
	if code, _ := w.send(t, "POST", "/dead/replay", `{"sequence":1}`); code != http.StatusNotFound {
		t.Errorf("replayed twice: %d", code)
	}
	if code, said := w.send(t, "POST", "/dead/drop", `{"sequence":2}`); code != 200 {
		t.Errorf("drop: %d %s", code, said)
	}
	if n, err := letters.Of(w.js, wire.Subjects{}).Count(t.Context()); err != nil || n != 0 || first != 1 || second != 2 {
		t.Errorf("%d letters are left, %v", n, err)
	}
	if code, _ := w.send(t, "GET", "/dead/x", ""); code != http.StatusBadRequest {
		t.Errorf("no sequence: %d", code)
	}
}

// TestPageIsClosed: only the page's own script runs, which a nonce says, and nothing is fetched from elsewhere. What comes from data is text.
func TestPageIsClosed(t *testing.T) {
	w := startWhole(t)
	response, err := http.Get(w.url)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	policy, page := response.Header.Get("Content-Security-Policy"), string(text)
	_, nonce, _ := strings.Cut(policy, "script-src 'nonce-")
	nonce, _, _ = strings.Cut(nonce, "'")
	if len(nonce) < 20 || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Count(page, `nonce="`+nonce+`"`) != 2 {
		t.Errorf("the policy is %q", policy)
	}
	if strings.Contains(page, "</script><b>") || strings.Count(page, "<script") != 1 || strings.Contains(page, "innerHTML =") || strings.Contains(page, "insertAdjacentHTML") {
		t.Error("data becomes a part of the page")
	}
	for _, elsewhere := range []string{"src=\"http", "href=\"http", "url(http", "@import"} {
		if strings.Contains(page, elsewhere) {
			t.Errorf("the page fetches from elsewhere: %s", elsewhere)
		}
	}
	for _, used := range regexp.MustCompile(`\$\("([a-z0-9-]+)"\)`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(page, `id="`+used[1]+`"`) {
			t.Errorf("the script looks for %s, which is not there", used[1])
		}
	}
	if again, err := http.Get(w.url); err != nil || again.Header.Get("Content-Security-Policy") == policy {
		t.Errorf("the nonce is the same again, %v", err)
	} else {
		again.Body.Close()
	}
}

// TestEvents: who listens is told at once and then every second; the end of the server ends it.
func TestEvents(t *testing.T) {
	server, err := admin.Start("127.0.0.1:0", admin.Source{
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		Status: func() admin.Status {
			return admin.Status{Version: "1.2.3", Memory: []admin.Holding{{Device: admin.Host, Owner: "people", Form: "postings", Bytes: 5}}, Indexes: []admin.IndexStatus{{Name: "people"}}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(server.URL(), "http://")
	seen, enough := 0, errors.New("enough")
	err = admin.Listen(t.Context(), addr, "", func(e *admin.Event) error {
		if text, _ := json.Marshal(e); e.Version != "1.2.3" || len(e.Indexes) != 1 || len(e.Memory) != 1 || e.Memory[0].Where != "host" || e.Figures.Seconds <= 0 {
			t.Errorf("told %s", text)
		}
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 2 {
		t.Errorf("%d events, %v", seen, err)
	}
	ended := make(chan error, 1)
	began := make(chan struct{}, 100)
	go func() {
		ended <- admin.Listen(t.Context(), addr, "", func(*admin.Event) error { began <- struct{}{}; return nil })
	}()
	<-began
	if err := server.Shutdown(t.Context()); err != nil {
		t.Errorf("a listener holds the server: %v", err)
	}
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("listening ended with %v", err)
	}
	if err := admin.Listen(t.Context(), "127.0.0.1:1", "", nil); err == nil {
		t.Error("nobody listens, and there is no error")
	}
}

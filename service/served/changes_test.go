package served_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// patience bounds what would hang otherwise; nothing is measured by it.
const patience = 2 * time.Minute

// start starts a worker of an index "steady" of 100 rows at a server.
func start(t *testing.T, url string, cfg config.Config) *service.Service {
	t.Helper()
	if cfg.Indexes == nil {
		cfg.Indexes = []config.IndexSource{{Path: testkit.RowsFile(t, "steady", 100)}}
	}
	cfg.NATS, cfg.Admin = url, "127.0.0.1:0"
	s, err := service.Start(t.Context(), cfg, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	return s
}

// ask asks directly for row n of an index, and returns the version that answers right.
func ask(nc *nats.Conn, index string, n int) (version string, err error) {
	reply, err := nc.Request("genie.search."+index, []byte(fmt.Sprintf(`{"k":1,"row":{"n":%d}}`, n)), patience)
	if err != nil {
		return "", err
	}
	return right(reply.Data, n)
}

// right checks the answer to a query for row n.
func right(body []byte, n int) (version string, err error) {
	r, err := testkit.DecodeResult(wire.JSON, body)
	switch {
	case err != nil:
		return "", err
	case r.Err != nil:
		return "", r.Err
	case len(r.Hits) != 1 || r.Hits[0].ID != uint32(n):
		return "", fmt.Errorf("row %d is answered %v", n, r.Hits)
	}
	return r.Version, nil
}

// askers ask an index for its rows until they are ended, and count wrong and missing answers as errors.
func askers(t *testing.T, nc *nats.Conn, index string, rows int) (end func() (asked int64)) {
	var stop atomic.Bool
	var asked atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if _, err := ask(nc, index, n%rows); err != nil {
					t.Errorf("direct query %d of %s: %v", n, index, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	return func() int64 {
		stop.Store(true)
		all.Wait()
		return asked.Load()
	}
}

// ledger is what was published and what became of it.
type ledger struct {
	mu      sync.Mutex
	asked   map[string]int // rows, by message id
	answers map[string]int // how many, by message id
}

// publish stores a query for row n under an id.
func (l *ledger) publish(t *testing.T, js jetstream.JetStream, index, id string, n int) {
	t.Helper()
	l.mu.Lock()
	l.asked[id] = n
	l.mu.Unlock()
	m := nats.NewMsg("genie.query." + index)
	m.Data = []byte(fmt.Sprintf(`{"id":%q,"k":1,"row":{"n":%d}}`, id, n))
	m.Header.Set("Nats-Msg-Id", id)
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Error(err)
	}
}

// check reads all answers that are stored and holds them against what was asked; it is an error while some are missing.
func (l *ledger) check(t *testing.T, js jetstream.JetStream) error {
	t.Helper()
	l.answers = make(map[string]int)
	ordered, err := js.OrderedConsumer(t.Context(), "GENIE_RESULTS", jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	results, err := ordered.Messages()
	if err != nil {
		return err
	}
	defer results.Stop()
	stream, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		return err
	}
	for range stream.CachedInfo().State.Msgs {
		m, err := results.Next()
		if err != nil {
			return err
		}
		r, err := testkit.DecodeResult(wire.JSON, m.Data())
		if err != nil {
			return err
		}
		n, ok := l.asked[r.ID]
		if !ok {
			return fmt.Errorf("an answer to %q, which nobody asked", r.ID)
		}
		if _, err := right(m.Data(), n); err != nil {
			return fmt.Errorf("the answer to %s: %w", r.ID, err)
		}
		l.answers[r.ID]++
	}
	for id := range l.asked {
		if l.answers[id] != 1 {
			return fmt.Errorf("%s has %d answers", id, l.answers[id])
		}
	}
	return nil
}

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestIndexesComeAndGoUnderLoad: an index is added and removed again and again, in changing versions, while another one is asked, stored and directly. All that
// was asked is answered once and right; the new index answers as soon as it is added, and nobody does once it is removed; nothing is left of it.
func TestIndexesComeAndGoUnderLoad(t *testing.T) {
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{NoSweep: true})
	nc, js := testkit.Connect(t, broker.URL()), testkit.JetStream(t, broker.URL())
	var files []string
	for i := range 3 {
		files = append(files, testkit.RowsFile(t, "guest", 50+i))
	}
	l := &ledger{asked: make(map[string]int)}
	cycle := func(i int) {
		name, version, err := s.Add(t.Context(), "", files[i%len(files)])
		if err != nil || name != "guest" {
			t.Fatalf("round %d: %s %v", i, name, err)
		}
		if got, err := ask(nc, "guest", i%50); err != nil || got != version {
			t.Fatalf("round %d: version %s answers, not %s: %v", i, got, version, err)
		}
		for j := range 5 {
			l.publish(t, js, "guest", fmt.Sprintf("guest-%d-%d", i, j), (i+j)%50)
		}
		if is, note, err := s.Remove(t.Context(), "guest"); err != nil || note != nil || is != version {
			t.Fatalf("round %d: %s is removed, not %s: %v, %v", i, is, version, note, err)
		}
		if _, err := ask(nc, "guest", 0); !errors.Is(err, nats.ErrNoResponders) {
			t.Fatalf("round %d: a removed index is answered: %v", i, err)
		}
	}
	cycle(0) // what is made once is made
	goroutines, open := runtime.NumGoroutine(), descriptors(t)
	end := askers(t, nc, "steady", 100)
	var publishing sync.WaitGroup
	stop := make(chan struct{})
	publishing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				l.publish(t, js, "steady", fmt.Sprintf("steady-%d", i), i%100)
			}
		}
	})
	for i := 1; i <= rounds && !t.Failed(); i++ {
		cycle(i)
	}
	close(stop)
	publishing.Wait()
	t.Logf("%d rounds, %d direct queries, %d stored ones", rounds, end(), len(l.asked))
	left(t, s)
	testkit.Until(t, "goroutines and descriptors are as many as before", func() bool {
		return runtime.NumGoroutine() <= goroutines+2 && descriptors(t) <= open+2
	})
	if _, _, err := s.Add(t.Context(), "", files[0]); err != nil { // what was not pulled waits for it
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error { return l.check(t, js) })
	if st := s.Status(); !st.Ready || len(st.Indexes) != 2 {
		t.Errorf("%+v", st)
	}
}

// left checks that nothing tells of the index guest any more.
func get(t *testing.T, s *service.Service, path string) string {
	t.Helper()
	resp, err := http.Get(s.AdminURL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %v\n%.3000s", path, resp.Status, err, body)
	}
	return string(body)
}

func left(t *testing.T, s *service.Service) {
	t.Helper()
	for _, path := range []string{"/metrics", "/"} {
		if text := get(t, s, path); strings.Contains(text, `"guest"`) || path == "/" && strings.Contains(text, "guest") {
			t.Errorf("%s tells of a removed index:\n%.2000s", path, text)
		}
	}
	for _, h := range s.Status().Memory {
		if h.Index == "guest" {
			t.Errorf("the engine has %+v of a removed index", h)
		}
	}
}

// TestWhatCannotBeAdded leaves all as it is, and says why.
func TestWhatCannotBeAdded(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{})
	nc := testkit.Connect(t, broker.URL())
	before, goroutines := s.Status().Indexes, runtime.NumGoroutine()
	bad := filepath.Join(t.TempDir(), "bad.gmq")
	if err := os.WriteFile(bad, []byte("no index"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := testkit.RowsFile(t, "steady", 10)
	for _, c := range []struct {
		name, file string
		refused    bool
		says       string
	}{
		{"guest", bad, false, "bad.gmq"},
		{"guest", bad + ".none", false, "no such file"},
		{"", good, true, "is served already"},
		{"steady", good, true, "is served already"},
		{"a.b", good, false, "a.b"},
		{"guest", "nats:guest", true, "pushed"},
	} {
		_, _, err := s.Add(t.Context(), c.name, c.file)
		if err == nil || errors.Is(err, admin.ErrRefused) != c.refused || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s=%s: %v", c.name, c.file, err)
		}
	}
	if _, _, err := s.Remove(t.Context(), "guest"); !errors.Is(err, admin.ErrNoSuchIndex) {
		t.Errorf("removing what is not served: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Add(ended, "guest", good); !errors.Is(err, context.Canceled) {
		t.Errorf("who asked is gone: %v", err)
	}
	testkit.Until(t, "the worker is ready", func() bool { return s.Status().Ready })
	after := s.Status()
	if len(after.Indexes) != 1 || after.Indexes[0].Version != before[0].Version {
		t.Errorf("%+v", after)
	}
	left(t, s)
	if version, err := ask(nc, "steady", 99); err != nil || version != before[0].Version {
		t.Errorf("%s answers, %v", version, err)
	}
	testkit.Until(t, "goroutines are as many as before", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
}

// TestLastIndexIsRemoved: a worker without an index is not ready, says so, and serves what is added.
func TestLastIndexIsRemoved(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{})
	if _, note, err := s.Remove(t.Context(), "steady"); err != nil || note != nil {
		t.Fatal(note, err)
	}
	if st := s.Status(); st.Ready || len(st.NotReady) != 1 || !strings.Contains(st.NotReady[0], "no index is served") {
		t.Errorf("%+v", st)
	}
	if _, version, err := s.Add(t.Context(), "other", testkit.RowsFile(t, "steady", 20)); err != nil {
		t.Fatal(err)
	} else if got, err := ask(testkit.Connect(t, broker.URL()), "other", 19); err != nil || got != version {
		t.Errorf("%s answers, not %s: %v", got, version, err)
	}
	if st := s.Status(); !st.Ready {
		t.Errorf("%+v", st)
	}
}

// TestAnotherWorkerGoesOn: queries of a removed index are answered by the worker that serves it still, in another version, and are not taken for those of an index
// that nobody serves.
func TestAnotherWorkerGoesOn(t *testing.T) {
	broker := testkit.StartBroker(t)
	two := func() []config.IndexSource {
		return []config.IndexSource{{Path: testkit.RowsFile(t, "steady", 100)}, {Path: testkit.RowsFile(t, "guest", 60)}}
	}
	one, other := start(t, broker.URL(), config.Config{Indexes: two()}), start(t, broker.URL(), config.Config{Indexes: two()})
	nc, js := testkit.Connect(t, broker.URL()), testkit.JetStream(t, broker.URL())
	end := askers(t, nc, "guest", 60)
	l := &ledger{asked: make(map[string]int)}
	for i := range 400 {
		if i == 200 {
			if _, note, err := one.Remove(t.Context(), "guest"); err != nil || note != nil {
				t.Fatal(note, err)
			}
		}
		l.publish(t, js, "guest", fmt.Sprint("q", i), i%60)
	}
	end()
	testkit.Eventually(t, func() error { return l.check(t, js) })
	if alive := len(other.Status().Indexes); alive != 2 {
		t.Errorf("the other worker serves %d indexes", alive)
	}
}

// TestRemovedWhileSwapped: an index may go while it is swapped, and comes again with another file; nothing answers by the old one then.
func TestRemovedWhileSwapped(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{})
	nc := testkit.Connect(t, broker.URL())
	files := []string{testkit.RowsFile(t, "guest", 30), testkit.RowsFile(t, "guest", 40), testkit.RowsFile(t, "guest", 50)}
	for i := range 10 {
		if _, _, err := s.Add(t.Context(), "", files[i%3]); err != nil {
			t.Fatal(err)
		}
		var swapping sync.WaitGroup
		for _, file := range files {
			swapping.Go(func() { _, _, _ = s.Swap(t.Context(), "guest", file) }) // done, or ended by the removal
		}
		if _, note, err := s.Remove(t.Context(), "guest"); err != nil || note != nil {
			t.Fatal(note, err)
		}
		swapping.Wait()
		left(t, s)
		_, version, err := s.Add(t.Context(), "", files[(i+1)%3])
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			if got, err := ask(nc, "guest", n); err != nil || got != version {
				t.Fatalf("version %s answers, not %s: %v", got, version, err)
			}
		}
		if _, _, err := s.Remove(t.Context(), "guest"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiscovery: $SRV tells of the indexes that are served, once, and their figures go on.
func TestDiscovery(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{})
	nc := testkit.Connect(t, broker.URL())
	if _, err := ask(nc, "steady", 1); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"search-steady search-guest", "search-steady"} {
		var err error
		if strings.Contains(want, "guest") {
			_, _, err = s.Add(t.Context(), "", testkit.RowsFile(t, "guest", 10))
		} else {
			_, _, err = s.Remove(t.Context(), "guest")
		}
		if err != nil {
			t.Fatal(err)
		}
		reply, err := nc.Request("$SRV.STATS.geniemq", nil, patience)
		if err != nil {
			t.Fatal(err)
		}
		var stats micro.Stats
		if err := json.Unmarshal(reply.Data, &stats); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range stats.Endpoints {
			if strings.HasSuffix(e.Name, "-users") {
				continue
			}
			names = append(names, e.Name)
			if e.Name == "search-steady" && !strings.Contains(string(e.Data), `"requests":1`) {
				t.Errorf("the figures of %s are %s", e.Name, e.Data)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("endpoints %q, not %q", got, want)
		}
	}
}

// TestShutdownWhileIndexesChange: the end of a worker ends what comes and goes, whatever it is at.
func TestShutdownWhileIndexesChange(t *testing.T) {
	for range 5 {
		broker := testkit.StartBroker(t)
		s := start(t, broker.URL(), config.Config{})
		file := testkit.RowsFile(t, "guest", 50)
		begun := make(chan struct{}, 1)
		var changing sync.WaitGroup
		changing.Go(func() {
			for {
				if _, _, err := s.Add(t.Context(), "", file); err != nil {
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
				if _, _, err := s.Remove(t.Context(), "guest"); err != nil {
					return
				}
			}
		})
		<-begun
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		changing.Wait()
	}
}

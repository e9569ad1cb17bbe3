package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/wire"
)

// logText is a log that may be read while it is written.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// fullResults lets the result stream take so many messages, and returns what lets it take all again.
func fullResults(t testing.TB, js jetstream.JetStream, messages int64) (open func()) {
	t.Helper()
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	limits := results.CachedInfo().Config
	set := func(most int64) {
		limits.MaxMsgs = most
		if _, err := js.UpdateStream(context.Background(), limits); err != nil {
			t.Fatal(err)
		}
	}
	set(messages)
	return func() { set(-1) }
}

// TestSwapWhileResultsDoNotGetOut: with a result stream that is full, an index is swapped and direct queries are answered by the new
// version at once; the old one cannot drain, and another swap is refused, saying so. When results get out again everything is
// answered once, by the version that took it in.
func TestSwapWhileResultsDoNotGetOut(t *testing.T) {
	first, version := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	third, thirdVersion := editionFile(t, "c")
	s, nc, js := startService(t, config.Config{BatchSize: 8, Indexes: []config.IndexSource{{Path: first}}}, Options{})
	open := fullResults(t, js, 10)
	const queries = 500
	for range queries {
		if _, err := js.PublishAsync("genie.query.rows", []byte(`{"k":1,"row":{"c":"3"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	testkit.Eventually(t, func() error {
		if err := ready(s)(); err == nil || !strings.Contains(err.Error(), "results do not get out") {
			return fmt.Errorf("ready, although results do not get out: %v", err)
		}
		return nil
	})
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, nc, "b", secondVersion)
	if loaded := s.set.Serving()[0].Index.Loaded(); len(loaded) != 2 {
		t.Fatalf("%d versions are held: the test shows nothing", len(loaded))
	}
	if st := s.Status().Indexes[0]; st.Version != secondVersion || st.Retiring != version {
		t.Errorf("the page says that version %s is served, and %q has queries", st.Version, st.Retiring)
	}
	_, _, err := s.Swap(t.Context(), "rows", third)
	if !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("a swap while the old version drains: %v", err)
	}
	mustAnswer(t, nc, "b", secondVersion)
	open()
	testkit.Eventually(t, func() error {
		if loaded := s.set.Serving()[0].Index.Loaded(); len(loaded) != 1 {
			return fmt.Errorf("%d versions are held", len(loaded))
		}
		return nil
	})
	if _, _, err := s.Swap(t.Context(), "rows", third); err != nil {
		t.Errorf("a swap when the old version has gone: %v", err)
	}
	mustAnswer(t, nc, "c", thirdVersion)
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		info, err := results.Info(t.Context())
		if err != nil || info.State.Msgs != queries {
			return fmt.Errorf("%d of %d results: %v", info.State.Msgs, queries, err)
		}
		return nil
	})
	keys := map[string]string{version: "a-3", secondVersion: "b-3", thirdVersion: "c-3"}
	seen := make(map[string]int)
	for i := range queries {
		m, err := results.GetMsg(t.Context(), uint64(i+1))
		if err != nil {
			t.Fatal(err)
		}
		r, err := testkit.DecodeResult(wire.JSON, m.Data)
		if err != nil || len(r.Hits) != 1 || r.Hits[0].Key != keys[r.Version] {
			t.Fatalf("%v in %s", err, m.Data)
		}
		seen[r.Version]++
	}
	if seen[version] == 0 {
		t.Errorf("results by version: %v; none waited in the old one: the test shows nothing", seen)
	}
	if n := s.set.Serving()[0].Stored()[0].Consumer.Stats().Redelivered; n != 0 {
		t.Errorf("swapping cost %d deliveries", n)
	}
}

// TestShutdownReachesRetiringPipelines: a worker whose old version cannot drain ends in time all the same, and gives back what it could not
// answer; the next one answers it.
func TestShutdownReachesRetiringPipelines(t *testing.T) {
	first, _ := editionFile(t, "a")
	second, _ := editionFile(t, "b")
	b, err := broker.Start(t.Context(), broker.Options{Listen: "127.0.0.1:0", DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Shutdown()
	server := b.URL()
	s, nc, js := startService(t, config.Config{NATS: server, BatchSize: 8, Indexes: []config.IndexSource{{Path: first}}}, Options{})
	open := fullResults(t, js, 10)
	const queries = 200
	for i := range queries {
		if _, err := js.Publish(t.Context(), "genie.query.rows", []byte(`{"k":1,"row":{"c":"3"}}`), jetstream.WithMsgID(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, func() error {
		if err := ready(s)(); err == nil {
			return errors.New("ready, although results do not get out")
		}
		return nil
	})
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("an orderly end, though nothing got out: the test shows nothing")
	}
	if _, _, err := s.Swap(t.Context(), "rows", first); !errors.Is(err, generation.ErrEnding) {
		t.Errorf("a swap after the end: %v", err)
	}
	open()
	nc.Close()
	_, _, js = startService(t, config.Config{NATS: server, Indexes: []config.IndexSource{{Path: second}}}, Options{})
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		info, err := results.Info(t.Context())
		if err != nil || info.State.Msgs != queries {
			return fmt.Errorf("%d of %d results: %v", info.State.Msgs, queries, err)
		}
		return nil
	})
}

// TestShutdownCancelsSwaps: the end of a worker ends a swap that is loading, and nothing of it is left.
func TestShutdownCancelsSwaps(t *testing.T) {
	first, version := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	loading := make(chan struct{})
	engine := &picky{load: func(ctx context.Context, v string) error {
		if v == secondVersion {
			close(loading)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}}
	before := runtime.NumGoroutine()
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{OpenEngine: engine.open})
	swapped := make(chan error, 1)
	go func() {
		_, _, err := s.Swap(context.Background(), "rows", second)
		swapped <- err
	}()
	<-loading
	mustAnswer(t, nc, "a", version)
	shutdown(t, s)
	nc.Close()
	if err := <-swapped; !errors.Is(err, generation.ErrEnding) {
		t.Errorf("the swap ended with %v", err)
	}
	if n := mapped(t, second); n != 0 {
		t.Errorf("the new file is mapped %d times", n)
	}
	testkit.Eventually(t, func() error {
		if n := runtime.NumGoroutine(); n > before {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

// TestSwapIsGivenUp: who asks for a swap and goes away leaves the old version where it is.
func TestSwapIsGivenUp(t *testing.T) {
	first, version := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	ctx, cancel := context.WithCancel(t.Context())
	engine := &picky{load: func(ctx context.Context, v string) error {
		if v == secondVersion && cancel != nil {
			cancel()
			<-ctx.Done()
		}
		return nil // too late, but loaded
	}}
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{OpenEngine: engine.open})
	if _, _, err := s.Swap(ctx, "rows", second); !errors.Is(err, context.Canceled) {
		t.Errorf("the swap ended with %v", err)
	}
	mustAnswer(t, nc, "a", version)
	cancel = nil
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Error(err)
	}
	mustAnswer(t, nc, "b", secondVersion)
}

// TestSwapRegainsForms: a new version that was loaded beside the old one and lies worse for it is loaded once more when the old one is
// gone, once, and only where that is of use.
func TestSwapRegainsForms(t *testing.T) {
	first, version := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	for name, test := range map[string]struct {
		shapes   []string // of the loads of the second version: the form, or the parts of a streamed one
		loads    int
		searched string // the form at the end
	}{
		"as good":       {[]string{"resident: postings, codes"}, 1, "resident: postings, codes"},
		"better":        {[]string{"streamed: postings", "resident: postings, codes"}, 2, "resident: postings, codes"},
		"fewer forms":   {[]string{"resident: postings", "resident: postings, codes"}, 2, "resident: postings, codes"},
		"no better":     {[]string{"streamed: postings", "streamed: postings"}, 2, "streamed: postings"},
		"better by far": {[]string{"resident: postings, codes, texts"}, 1, "resident: postings, codes, texts"},
	} {
		t.Run(name, func(t *testing.T) {
			var loads atomic.Int32
			engine := &picky{shape: func(v string, c *gpuexec.Capacity) {
				c.Form, c.Parts = "resident: postings, codes", 1
				if v == version {
					return
				}
				if c.Form = test.shapes[loads.Add(1)-1]; strings.HasPrefix(c.Form, "streamed") {
					c.Parts = 4
				}
			}}
			s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{OpenEngine: engine.open})
			if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
				t.Fatal(err)
			}
			want := int32(1 + test.loads - 1) // all but the one that answers
			testkit.Eventually(t, func() error {
				mustAnswer(t, nc, "b", secondVersion)
				if f := s.set.Serving()[0].Index.Facts(); f.Capacity.Form != test.searched || engine.closed.Load() != want {
					return fmt.Errorf("searched in the form %q, %d searchers closed", f.Capacity.Form, engine.closed.Load())
				}
				return nil
			})
			if n := loads.Load(); int(n) != test.loads {
				t.Errorf("loaded %d times, want %d", n, test.loads)
			}
			if n := mapped(t, second); n != 1 {
				t.Errorf("the file is mapped %d times", n)
			}
			testkit.Eventually(t, ready(s))
		})
	}
}

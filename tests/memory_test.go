package tests

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// memoryWatch follows what a process has of memory that no file backs, from outside.
type memoryWatch struct {
	mu        sync.Mutex
	now, peak int // MiB
	stop      chan struct{}
}

func watchMemory(t *testing.T, p *process) *memoryWatch {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a process's memory is read from /proc")
	}
	w := &memoryWatch{stop: make(chan struct{})}
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
			if err != nil {
				return // it has ended
			}
			_, line, _ := strings.Cut(string(status), "RssAnon:")
			var kib int
			fmt.Sscan(line, &kib)
			w.mu.Lock()
			w.now, w.peak = kib>>10, max(w.peak, kib>>10)
			w.mu.Unlock()
			select {
			case <-time.After(5 * time.Millisecond):
			case <-w.stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(w.stop)
		watching.Wait()
	})
	return w
}

func (w *memoryWatch) state() (now, peak int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.peak
}

// Small messages that ask for very much: what a worker takes for them is bounded by its budget, whether their answers are
// too large, or get out, or do not.
func TestMemoryIsBounded(t *testing.T) {
	ofProcesses(t)
	const budget = 256 // MiB
	// What is in flight, as much again that is not collected yet, and the rest of the process.
	const most = 2*budget + 100
	dir := t.TempDir()
	var big, many strings.Builder
	big.WriteString("a,text\n")
	for i := range 2000 {
		fmt.Fprintf(&big, "%d,%s\n", i, strings.Repeat("x", 54_000))
	}
	many.WriteString("a\n" + strings.Repeat("1\n", 70_000))
	server := startServer(t)
	worker := run(t, "serve", "--nats", server.url, "--admin", "off", "--engine", "cpu", "--memory", fmt.Sprint(budget, "MiB"),
		"--index", buildFile(t, dir, "big.csv", "name: big\nkind: rows\ncolumns: [{name: a, type: number}, {name: text, type: payload}]\n", big.String()),
		"--index", buildFile(t, dir, "many.csv", "name: many\nkind: rows\ncolumns: [{name: a, type: number, edges: exact}]\n", many.String()))
	worker.says("NATS")
	memory := watchMemory(t, worker)
	nc, js := connect(t, server.url)
	batch := func(query string, n int) string {
		return `{"queries":[` + strings.Repeat(query+",", n-1) + query + `]}`
	}
	bounded := func(t *testing.T) {
		t.Helper()
		if _, peak := memory.state(); peak > most {
			t.Errorf("the worker took %d MiB, of a budget of %d", peak, budget)
		}
	}
	huge := `{"k":2000,"with_payload":true,"row":{"a":{"min":0}}}` // 108 MB

	t.Run("direct", func(t *testing.T) {
		reply, err := nc.Request("genie.search.big", []byte(batch(huge, 16)), patience)
		if err != nil {
			t.Fatal(err)
		}
		if res := result(t, reply.Data); res.Err == nil || res.Err.Code != wire.TooLarge {
			t.Errorf("answered %+v", res.Err)
		}
		bounded(t)
	})
	t.Run("tables", func(t *testing.T) { // of a few bytes and 65,536 queries each, of which 24 at once take a gigabyte
		replies, err := nc.SubscribeSync(nc.NewRespInbox())
		if err != nil {
			t.Fatal(err)
		}
		const tables = 24
		for range tables {
			if err := nc.PublishRequest("genie.search.many", replies.Subject, []byte(`{"table":{"rows":65536}}`)); err != nil {
				t.Fatal(err)
			}
		}
		for range tables {
			reply, err := replies.NextMsgWithContext(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if res := result(t, reply.Data); res.Err == nil || res.Err.Code != wire.TooLarge && res.Err.Code != wire.Overloaded {
				t.Errorf("answered %+v", res.Err)
			}
		}
		bounded(t)
	})
	t.Run("stored", func(t *testing.T) {
		if _, err := js.PublishMsg(within(t), message("genie.query.big", batch(huge, 64))); err != nil {
			t.Fatal(err)
		}
		a, err := wire.DecodeAnswer(wire.JSON, streamMessage(t, js, "GENIE_RESULTS", "genie.result.big", 1).Data)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Results) != 64 || a.Results[63].Err == nil || a.Results[63].Err.Code != wire.TooLarge {
			t.Errorf("answered with %d results, %+v", len(a.Results), a.Results[0].Err)
		}
		bounded(t)
	})
	t.Run("parts", func(t *testing.T) { // of 5.4 MB each
		live, err := nc.SubscribeSync("genie.result.big")
		if err != nil {
			t.Fatal(err)
		}
		if err := live.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := js.PublishMsg(within(t), message("genie.query.big", batch(`{"k":100,"with_payload":true,"row":{"a":{"min":0}}}`, 32))); err != nil {
			t.Fatal(err)
		}
		for results := 0; results < 32; {
			m, err := live.NextMsgWithContext(within(t))
			if err != nil {
				t.Fatal(err)
			}
			a, err := wire.DecodeAnswer(wire.JSON, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range a.Results {
				if len(a.Results[i].Hits) != 100 {
					t.Errorf("query %d has %d hits", results+i, len(a.Results[i].Hits))
				}
			}
			results += len(a.Results)
		}
		bounded(t)
	})
	t.Run("given back", func(t *testing.T) {
		live, err := nc.SubscribeSync("genie.result.many")
		if err != nil {
			t.Fatal(err)
		}
		const messages = 60 // of 1 MB of hits, 5 MB as they are shown, and 3 MB encoded
		for range messages {
			if _, err := js.PublishMsg(within(t), message("genie.query.many", `{"k":65536,"row":{"a":1}}`)); err != nil {
				t.Fatal(err)
			}
		}
		for range messages {
			if _, err := live.NextMsgWithContext(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		_, peak := memory.state()
		if err := live.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, func() error {
			if now, _ := memory.state(); now > max(peak/2, 24) {
				return fmt.Errorf("the worker has %d MiB, at most it had %d", now, peak)
			}
			return nil
		})
		now, _ := memory.state()
		t.Logf("peak %d MiB, then %d", peak, now)
	})
	t.Run("blocked", func(t *testing.T) {
		stream, err := js.Stream(within(t), "GENIE_RESULTS")
		if err != nil {
			t.Fatal(err)
		}
		open := stream.CachedInfo().Config
		full := open
		full.MaxBytes = 1
		if _, err := js.UpdateStream(within(t), full); err != nil {
			t.Fatal(err)
		}
		const messages = 100
		for range messages {
			if _, err := js.PublishMsg(within(t), message("genie.query.many", batch(`{"k":65536,"row":{"a":1}}`, 16))); err != nil {
				t.Fatal(err)
			}
		}
		// Until it is as full as it gets, and meanwhile others are answered.
		settled, last := 0, -1
		testkit.Eventually(t, func() error {
			if _, peak := memory.state(); peak == last {
				settled++
			} else {
				settled, last = 0, peak
			}
			reply, err := nc.Request("genie.search.many", []byte(`{"k":3,"row":{"a":1}}`), patience)
			if err != nil {
				return err
			}
			if res := result(t, reply.Data); res.Err != nil {
				t.Errorf("another query is answered %v", res.Err)
			}
			if settled < 200 {
				return fmt.Errorf("memory still grows")
			}
			return nil
		})
		bounded(t)
		// Then they get out. Not all are waited for: a message has 1,048,576 hits.
		open.MaxBytes = -1
		if _, err := js.UpdateStream(within(t), open); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, func() error {
			info, err := stream.Info(within(t), jetstream.WithSubjectFilter("genie.result.many"))
			if err != nil {
				return err
			}
			if n := info.State.Subjects["genie.result.many"]; n < 10 {
				return fmt.Errorf("%d messages of answers", n)
			}
			return nil
		})
		bounded(t)
	})
}

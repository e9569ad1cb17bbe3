package tests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// alarmed is a worker of which everything goes wrong, one thing after the other, and another beside it.
type alarmed struct {
	*running
	other  *running
	broker *testkit.Broker
	engine *faulty
	ahead  atomic.Int64 // by how many nanoseconds the worker's clock is wrong
}

// fault is what an alert is for.
type fault struct {
	alert, what string
	make        func() error
	again       bool         // it is made until the alert fires
	mend        func() error // nil: it stays
}

// A real Prometheus scrapes two real workers: no alert fires while all is well, and each when what it is for is done to a worker.
func TestAlertsLive(t *testing.T) {
	if testing.Short() {
		t.Skip("Prometheus needs some seconds to see something")
	}
	t.Parallel()
	monitoringTool(t, "prometheus")
	w := startAlarmed(t)
	p := startPrometheus(t, w.srv.AdminURL(), w.other.srv.AdminURL())
	faults := w.faults()
	untried := make(map[string]bool)
	for _, group := range readRules(t, "alerts.yml").Groups {
		for _, rule := range group.Rules {
			untried[rule.Alert] = true
		}
	}
	testkit.Eventually(t, func() error {
		if n, err := p.ask(`up == 1`); err != nil || n != 2 {
			return fmt.Errorf("%d workers are scraped: %w", n, err)
		}
		return nil
	})
	for _, f := range faults {
		firing := `ALERTS{alertname="` + f.alert + `",alertstate="firing"}`
		delete(untried, f.alert)
		testkit.Eventually(t, func() error { // a busy machine is not always ready, and alerts wait for nothing here
			n, err := p.ask(firing)
			if err == nil && n > 0 {
				err = fmt.Errorf("%s fires before its fault", f.alert)
			}
			return err
		})
		began := time.Now()
		if err := f.make(); err != nil {
			t.Fatalf("%s: %v", f.what, err)
		}
		testkit.Eventually(t, func() error {
			n, err := p.ask(firing)
			if err != nil || n > 0 {
				return err
			}
			if f.again {
				err = f.make()
			}
			return errors.Join(fmt.Errorf("%s does not fire: %s", f.alert, f.what), err)
		})
		t.Logf("| %s | %s | %.1f s |", f.alert, f.what, time.Since(began).Seconds())
		if f.mend != nil {
			if err := f.mend(); err != nil {
				t.Fatalf("mending after %s: %v", f.alert, err)
			}
		}
	}
	for alert := range untried {
		t.Errorf("no fault is made for %s", alert)
	}
}

func startAlarmed(t *testing.T) *alarmed {
	w := &alarmed{engine: newFaulty()}
	close(w.engine.gate)
	w.broker = testkit.StartBroker(t)
	indexes := buildAll(t, t.TempDir())
	w.running = start(t, config.Config{NATS: w.broker.URL(), Indexes: indexes, Admin: "127.0.0.1:0", AckWait: time.Second, DirectQueue: 8, Memory: 128 << 20},
		service.Options{OpenEngine: w.engine.open, Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }, Logger: textLogger(&lockedText{})})
	w.other = start(t, config.Config{NATS: w.broker.URL(), Indexes: indexes, Admin: "127.0.0.1:0"}, service.Options{Logger: textLogger(&lockedText{})})
	return w
}

const anybody = `{"row":{"age":30}}`

// ask asks directly, for answers that nobody waits for.
func (w *alarmed) ask(n int) error {
	inbox := nats.NewInbox()
	for range n {
		if err := w.nc.PublishRequest("genie.search.people", inbox, []byte(anybody)); err != nil {
			return err
		}
	}
	return w.nc.Flush()
}

// send publishes queries for the stream.
func (w *alarmed) send(n int, body string) error {
	for range n {
		if _, err := w.js.PublishMsg(within(w.t), message("genie.query.people", body)); err != nil {
			return err
		}
	}
	return nil
}

// set changes the configuration of a stream.
func (w *alarmed) set(name string, change func(*jetstream.StreamConfig, *jetstream.StreamState)) error {
	s, err := w.js.Stream(within(w.t), name)
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	change(&info.Config, &info.State)
	_, err = w.js.UpdateStream(within(w.t), info.Config)
	return err
}

// takes makes searches take so much longer.
func (w *alarmed) takes(d time.Duration) func() error {
	return func() error { w.engine.takes.Store(int64(d)); return nil }
}

func (w *alarmed) faults() []fault {
	t := w.t
	return []fault{
		{alert: "GeniemqDeadLetters", what: "a query that may not be answered where it says", make: func() error {
			w.publish("people", anybody, "Genie-Reply", "no")
			return nil
		}},
		{alert: "GeniemqRepliesDropped", what: "a direct query to be answered to another", make: func() error {
			return errors.Join(w.nc.PublishRequest("genie.search.people", "genie.result.people.bob", []byte(anybody)), w.nc.Flush())
		}},
		{alert: "GeniemqSwapFailed", what: "a swap to a file that is no index", make: func() error {
			if _, _, err := w.srv.Swap(within(t), "people", filepath.Join(deploy, "prometheus", "rules.yml")); err == nil {
				return errors.New("rules are no index")
			}
			return nil
		}},
		{alert: "GeniemqVersionsDiffer", what: "one of two workers has a new file", make: func() error {
			data := peopleData + strings.Replace(strings.SplitAfter(peopleData, "\n")[1], "ann", "zoe", 1)
			_, _, err := w.other.srv.Swap(within(t), "people", buildFile(t, t.TempDir(), "people.csv", peopleSchema, data))
			return err
		}},
		{alert: "GeniemqClockSkew", what: "the host's clock is set by 5 s", make: func() error { w.ahead.Store(int64(5 * time.Second)); return nil },
			mend: func() error { w.ahead.Store(0); return nil }},
		// From here on the other worker is gone, so that all comes to the one that fails.
		{alert: "GeniemqDown", what: "a worker ends", make: func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			return w.other.srv.Shutdown(ctx)
		}},
		{alert: "GeniemqFailing", what: "the engine fails", again: true, make: func() error { w.engine.broken.Store(true); return w.ask(2) },
			mend: func() error { w.engine.broken.Store(false); return nil }},
		{alert: "GeniemqRedeliveries", what: "the engine fails on stored queries", again: true, make: func() error {
			if w.engine.broken.CompareAndSwap(false, true) {
				return w.send(60, anybody)
			}
			return nil
		}, mend: func() error { w.engine.broken.Store(false); return nil }},
		{alert: "GeniemqNotReady", what: "the engine answers nothing", again: true, make: func() error { w.engine.broken.Store(true); return w.ask(1) },
			mend: func() error { w.engine.broken.Store(false); return nil }},
		{alert: "GeniemqSlow", what: "a search takes 2 s", again: true, make: func() error {
			w.engine.takes.Store(int64(2 * time.Second))
			_, err := w.nc.RequestWithContext(within(t), "genie.search.people", []byte(anybody))
			return err
		}},
		{alert: "GeniemqEngineBusy", what: "a search takes longer than is looked at", make: func() error { return errors.Join(w.takes(10*time.Second)(), w.ask(1)) }},
		{alert: "GeniemqOverloaded", what: "fifty ask at once, where eight may wait", again: true, make: func() error { return w.ask(50) }},
		{alert: "GeniemqMemoryShort", what: "messages of thousands of queries", make: func() error {
			return w.send(12, `{"queries":[`+strings.Repeat(anybody+",", 4000)+anybody+`]}`)
		}, mend: w.takes(0)},
		{alert: "GeniemqResultsFull", what: "the stream of results takes no more", make: func() error {
			w.settled()
			return w.set("GENIE_RESULTS", func(c *jetstream.StreamConfig, s *jetstream.StreamState) { c.MaxBytes = int64(s.Bytes) + 100 })
		}},
		{alert: "GeniemqPendingOld", what: "and queries wait", make: func() error { return w.send(20, anybody) }},
		{alert: "GeniemqQueriesFull", what: "the stream of queries has room for a tenth more", make: func() error {
			return w.set("GENIE_QUERIES", func(c *jetstream.StreamConfig, s *jetstream.StreamState) { c.MaxBytes = int64(s.Bytes) * 10 / 9 })
		}},
		{alert: "GeniemqIndexFull", what: "an index may have as many queries as it has", make: func() error {
			return w.set("GENIE_QUERIES", func(c *jetstream.StreamConfig, s *jetstream.StreamState) { c.MaxMsgsPerSubject = int64(s.Msgs) })
		}},
		{alert: "GeniemqDisconnected", what: "the server ends", make: func() error { w.broker.Stop(); return nil }, mend: func() error {
			w.broker.Start(t)
			testkit.Eventually(t, func() error { // what waits can be answered, so that the worker ends well
				return w.set("GENIE_RESULTS", func(c *jetstream.StreamConfig, _ *jetstream.StreamState) { c.MaxBytes = -1 })
			})
			return nil
		}},
	}
}

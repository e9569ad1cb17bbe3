package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Queries with these k make a faulty engine fail in their way, and with them the batch they are in.
const (
	markError  = 60001
	markPanic  = 60002
	markMemory = 60003 // out of memory unless alone
	markHuge   = 60004 // out of memory always
	markSticky = 60005 // the device is lost
)

// faulty is a real engine that fails where it is told to.
type faulty struct {
	gpuexec.Engine
	gate   chan struct{} // searches wait until it is closed
	broken atomic.Bool   // every search fails
	takes  atomic.Int64  // every search takes so many nanoseconds longer

	mu      sync.Mutex
	batches [][]int // the k of the plans of each batch
}

func newFaulty() *faulty { return &faulty{gate: make(chan struct{})} }

func (f *faulty) open(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	f.Engine = engine
	return f, err
}

func (f *faulty) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := f.Engine.Load(ctx, snapshot, later...)
	return &faultySearcher{s, f}, err
}

type faultySearcher struct {
	gpuexec.Searcher
	f *faulty
}

func (s *faultySearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	select {
	case <-s.f.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	var batch []int
	for _, p := range plans {
		batch = append(batch, p.K)
	}
	s.f.mu.Lock()
	s.f.batches = append(s.f.batches, batch)
	s.f.mu.Unlock()
	select {
	case <-time.After(time.Duration(s.f.takes.Load())):
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.f.broken.Load() {
		return errors.New("the engine is out of order")
	}
	for _, k := range batch {
		switch {
		case k == markError:
			return errors.New("marked query")
		case k == markPanic:
			panic("marked query")
		case k == markMemory && len(plans) > 1, k == markHuge:
			return &gpuexec.DeviceError{Op: "allocating", OutOfMemory: true, Err: errors.New("no memory")}
		case k == markSticky:
			return &gpuexec.DeviceError{Op: "launching", Sticky: true, Err: errors.New("the device fell off the bus")}
		}
	}
	return s.Searcher.Search(ctx, plans, answers, t)
}

// alone says how often a query with this k ran alone, and how often it ran with others.
func (f *faulty) alone(k int) (alone, together int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, batch := range f.batches {
		for _, other := range batch {
			if other == k && len(batch) == 1 {
				alone++
			} else if other == k {
				together++
			}
		}
	}
	return alone, together
}

func marked(k int) string { return fmt.Sprintf(`{"k":%d,"row":{"age":30}}`, k) }

// A query that fails its batch: everyone else in the batch is answered without a second delivery, and the one to
// blame is given up in the end, on record.
func TestPoison(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]int{"error": markError, "panic": markPanic} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := newFaulty()
			r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{OpenEngine: engine.open})
			const innocent = 300
			for i := range innocent {
				if i == innocent/2 {
					r.publish("people", marked(mark), "Nats-Msg-Id", "poison", "traceparent", "00-poison-01")
				}
				r.publish("people", `{"row":{"age":52}}`, "Nats-Msg-Id", fmt.Sprint(i))
			}
			close(engine.gate) // now they are in few batches
			r.settled()

			if n := r.count("GENIE_RESULTS", "genie.result.people"); n != innocent+1 {
				t.Errorf("%d results for %d messages", n, innocent+1)
			}
			failed := 0
			for i := range innocent + 1 {
				m := r.stored("genie.result.people", i+1)
				res := result(t, m.Data)
				if m.Header.Get("Nats-Msg-Id") == "people.poison.1" {
					failed++
					if res.Err == nil || res.Err.Code != wire.Internal || m.Header.Get("traceparent") == "" {
						t.Errorf("the marked query got %v %v", res.Err, m.Header)
					}
				} else if keys(res) != "dan:1" {
					t.Errorf("message %s got %s", m.Header.Get("Nats-Msg-Id"), keys(res))
				}
			}
			if failed != 1 {
				t.Errorf("%d answers to the marked query", failed)
			}
			dead := streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.people", 1)
			if string(dead.Data) != marked(mark) || dead.Header.Get("Genie-Dead-Reason") != "engine_failed" ||
				dead.Header.Get("Genie-Dead-Delivered") != "4" || !strings.Contains(dead.Header.Get("Genie-Dead-Detail"), "marked query") {
				t.Errorf("dead letter %v %s", dead.Header, dead.Data)
			}
			if n := r.count("GENIE_DEAD", "genie.dead.>"); n != 1 {
				t.Errorf("%d dead letters", n)
			}
			if _, together := engine.alone(mark); together == 0 {
				t.Error("the marked query never ran in a batch: the test shows nothing")
			}
			scraped := r.scrape()
			if n := scraped.value("geniemq_redelivered_total", "index", "people"); n != 3 {
				t.Errorf("%v deliveries were repeated, only the three of the marked message should", n)
			}
			if n := scraped.value("geniemq_dead_total", "reason", "engine_failed"); n != 1 {
				t.Errorf("geniemq_dead_total is %v", n)
			}
			r.works()
		})
	}
}

// Asked directly, a query on which the engine fails is answered at once, and its neighbours as always.
func TestPoisonDirect(t *testing.T) {
	t.Parallel()
	engine := newFaulty()
	close(engine.gate)
	r := start(t, config.Config{}, service.Options{OpenEngine: engine.open})
	body := `{"queries":[{"row":{"age":52}},` + marked(markError) + `,{"row":{"age":30}},` + marked(markPanic) + `]}`
	reply, err := r.nc.Request("genie.search.people", []byte(body), patience)
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.DecodeAnswer(wire.JSON, reply.Data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"dan:1", "internal: ", "ann:1", "internal: "} {
		if got := keys(&a.Results[i]); !strings.HasPrefix(got, want) {
			t.Errorf("result %d is %s, want %s", i, got, want)
		}
	}
	r.works()
}

// In a stored batch message too, only the query to blame fails.
func TestPoisonInMessage(t *testing.T) {
	t.Parallel()
	engine := newFaulty()
	close(engine.gate)
	r := start(t, config.Config{}, service.Options{OpenEngine: engine.open})
	r.publish("people", `{"queries":[{"row":{"age":52}},`+marked(markError)+`,{"row":{"age":30}}]}`)
	a, err := wire.DecodeAnswer(wire.JSON, r.stored("genie.result.people", 1).Data)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"dan:1", "internal: ", "ann:1"} {
		if got := keys(&a.Results[i]); !strings.HasPrefix(got, want) {
			t.Errorf("result %d is %s, want %s", i, got, want)
		}
	}
	streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.people", 1)
	r.settled()
}

// A batch that does not fit the device is run in halves; a query that does not fit alone fails alone.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	engine := newFaulty()
	r := start(t, config.Config{}, service.Options{OpenEngine: engine.open})
	const queries = 50
	for i := range queries {
		k := 3
		switch i {
		case 10:
			k = markMemory
		case 30:
			k = markHuge
		}
		r.publish("people", marked(k), "Nats-Msg-Id", fmt.Sprint(i))
	}
	close(engine.gate)
	r.settled()
	for i := range queries {
		m := r.stored("genie.result.people", i+1)
		got, want := keys(result(t, m.Data)), "ann:1"
		if m.Header.Get("Nats-Msg-Id") == "people.30.1" {
			want = "too_large"
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", m.Header.Get("Nats-Msg-Id"), got, want)
		}
	}
	if n := r.count("GENIE_DEAD", "genie.dead.>"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

// An engine that fails on everything is to blame itself: no message is given up, and all are answered when it works
// again.
func TestBrokenEngine(t *testing.T) {
	t.Parallel()
	engine := newFaulty()
	close(engine.gate)
	r := start(t, config.Config{}, service.Options{OpenEngine: engine.open})
	testkit.Eventually(t, func() error { return r.ready() })
	engine.broken.Store(true)
	for i := range 20 {
		r.publish("people", `{"row":{"age":52}}`, "Nats-Msg-Id", fmt.Sprint(i))
	}
	testkit.Eventually(t, func() error { // each has been tried more often than it takes to be given up
		alone, _ := engine.alone(10)
		if alone < 20*5 {
			return fmt.Errorf("%d tries", alone)
		}
		return nil
	})
	if err := r.ready(); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("the service says that it is ready: %v", err)
	}
	engine.broken.Store(false)
	r.settled()
	if n := r.count("GENIE_RESULTS", "genie.result.people"); n != 20 {
		t.Errorf("%d results", n)
	}
	if n := r.count("GENIE_DEAD", "genie.dead.>"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
	testkit.Eventually(t, func() error { return r.ready() })
}

// ready is nil when the service says that it is ready.
func (r *running) ready() error {
	if s := r.srv.Status(); !s.Ready {
		return errors.New(strings.Join(s.NotReady, "; "))
	}
	return nil
}

// A device that is lost ends the service, which gives everything back; the next worker answers it.
func TestLostDevice(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	dir := t.TempDir()
	cfg := config.Config{Indexes: buildAll(t, dir), NATS: server.url, Admin: "127.0.0.1:0"}
	engine := newFaulty()
	r := start(t, cfg, service.Options{OpenEngine: engine.open})
	const innocent = 100
	for i := range innocent {
		if i == innocent/2 {
			if err := r.nc.PublishRequest("genie.search.people", nats.NewInbox(), []byte(marked(markSticky))); err != nil {
				t.Fatal(err)
			}
			r.nc.Flush()
		}
		r.publish("people", `{"row":{"age":52}}`, "Nats-Msg-Id", fmt.Sprint(i))
	}
	close(engine.gate)
	select {
	case <-r.srv.Failed():
	case <-within(t).Done():
		t.Fatal("the service goes on with a lost device")
	}
	var device *gpuexec.DeviceError
	if err := r.srv.Err(); !errors.As(err, &device) || !device.Sticky {
		t.Errorf("the reason is %v", err)
	}
	if err := r.ready(); err == nil {
		t.Error("a service with a lost device says that it is ready")
	}
	if got := r.get("/healthz"); !strings.Contains(got, "fell off the bus") {
		t.Errorf("healthz says %q", got)
	}
	next := start(t, cfg, service.Options{})
	next.settled()
	// Beside the next one, which takes its time to start, the lost worker did not keep taking what it gave back.
	for _, w := range []*running{r, next} {
		if n := w.scrape().value("geniemq_redelivered_total", "index", "people"); n > 2*innocent {
			t.Errorf("%v messages of %d were delivered again", n, innocent)
		}
	}
	if n := next.count("GENIE_RESULTS", "genie.result.people"); n != innocent {
		t.Errorf("%d results for %d messages", n, innocent)
	}
	for i := range innocent {
		if got := keys(result(t, next.stored("genie.result.people", i+1).Data)); got != "dan:1" {
			t.Errorf("message %d got %s", i, got)
		}
	}
}

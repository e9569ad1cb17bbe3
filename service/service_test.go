package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/wire"
)

// patience bounds every wait of these tests.
const patience = time.Minute

// executors are those of a pipeline whose engine runs a batch at a time.
const executors = 2

// gated is a real engine whose searches wait until the gate opens.
type gated struct {
	gpuexec.Engine
	gate   chan struct{}
	inside atomic.Int32 // searches that have begun
}

func (g *gated) open(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	g.Engine = engine
	return g, err
}

func (g *gated) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := g.Engine.Load(ctx, snapshot, later...)
	return &gatedSearcher{s, g}, err
}

type gatedSearcher struct {
	gpuexec.Searcher
	g *gated
}

func (s *gatedSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	s.g.inside.Add(1)
	select {
	case <-s.g.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Searcher.Search(ctx, plans, answers, t)
}

func startService(t testing.TB, cfg config.Config, opts Options) (*Service, *nats.Conn, jetstream.JetStream) {
	t.Helper()
	if len(cfg.Indexes) == 0 {
		cfg.Indexes = []config.IndexSource{{Path: testkit.RowsFile(t, "rows", 100)}}
	}
	if cfg.NATS == "" {
		cfg.NATSListen, cfg.DataDir = "127.0.0.1:0", t.TempDir()
	}
	if cfg.Admin == "" {
		cfg.Admin = config.Off
	}
	s, err := Start(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shutdown(t, s) })
	nc, err := nats.Connect(s.NATSURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return s, nc, js
}

func shutdown(t testing.TB, s *Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutting down: %v", err)
	}
}

func ready(s *Service) func() error {
	return func() error {
		if st := s.Status(); !st.Ready {
			return errors.New(strings.Join(st.NotReady, "; "))
		}
		return nil
	}
}

// Shutdown ends every goroutine, in whatever state the service is: idle, under load, out of time, not even started.
func TestNoGoroutineIsLeft(t *testing.T) {
	check := func(name string, use func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			use(t)
			goleak.VerifyNone(t, before, testkit.StoredObject())
		})
	}
	config := func(t *testing.T) config.Config {
		return config.Config{
			Indexes: []config.IndexSource{{Path: testkit.RowsFile(t, "a", 100)}, {Path: testkit.RowsFile(t, "b", 100)}}, NATSListen: "127.0.0.1:0",
			DataDir: t.TempDir(), Admin: "127.0.0.1:0",
		}
	}
	run := func(t *testing.T, opts Options, use func(s *Service, nc *nats.Conn, js jetstream.JetStream)) {
		s, err := Start(t.Context(), config(t), opts)
		if err != nil {
			t.Fatal(err)
		}
		nc, err := nats.Connect(s.NATSURL(), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		closed := nc.StatusChanged(nats.CLOSED)
		use(s, nc, js)
		nc.Close()
		<-closed
	}
	check("idle", func(t *testing.T) {
		run(t, Options{}, func(s *Service, nc *nats.Conn, _ jetstream.JetStream) {
			nc.Close()
			shutdown(t, s)
		})
	})
	check("under load", func(t *testing.T) {
		run(t, Options{}, func(s *Service, nc *nats.Conn, js jetstream.JetStream) {
			for i := range 500 {
				if _, err := js.PublishAsync("genie.query.a", []byte(`{"row":{"c":"3"}}`)); err != nil {
					t.Fatal(err)
				}
				if err := nc.PublishRequest("genie.search.b", "_INBOX.reply", []byte(fmt.Sprintf(`{"row":{"n":%d}}`, i))); err != nil {
					t.Fatal(err)
				}
			}
			<-js.PublishAsyncComplete()
			shutdown(t, s)
			js.CleanupPublisher()
		})
	})
	check("out of time", func(t *testing.T) {
		engine := &gated{gate: make(chan struct{})}
		run(t, Options{OpenEngine: engine.open}, func(s *Service, nc *nats.Conn, js jetstream.JetStream) {
			for range 50 {
				if _, err := js.Publish(t.Context(), "genie.query.a", []byte(`{"row":{"c":"3"}}`)); err != nil {
					t.Fatal(err)
				}
			}
			testkit.Eventually(t, func() error {
				if n := s.set.Serving()[0].Stored()[0].Consumer.Progress().Outstanding; n != 50 {
					return fmt.Errorf("%d are pulled", n)
				}
				return nil
			})
			over, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Shutdown(over); err == nil {
				t.Error("no word about queries that were not answered")
			}
		})
	})
	check("start fails", func(t *testing.T) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		cfg := config(t)
		cfg.NATSListen = taken.Addr().String()
		if _, err := Start(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("starting on an address in use: %v", err)
		}
		cfg = config(t)
		cfg.NATS = "nats://" + taken.Addr().String() // something that is no NATS server
		taken.Close()
		if _, err := Start(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "is a nats-server listening there?") {
			t.Errorf("starting without a server: %v", err)
		}
	})
}

// The NATS service framework finds the service and its own timings.
func TestMicro(t *testing.T) {
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: testkit.RowsFile(t, "rows", 100)}, {Name: "other-name", Path: testkit.RowsFile(t, "o", 5)}}}, Options{})
	for range 3 {
		if _, err := nc.Request("genie.search.rows", []byte(`{"row":{"n":7}}`), patience); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nc.Request("genie.search.rows", []byte(`nonsense`), patience); err != nil {
		t.Fatal(err)
	}
	reply, err := nc.Request("$SRV.INFO.geniemq", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	var info micro.Info
	if err := json.Unmarshal(reply.Data, &info); err != nil {
		t.Fatal(err)
	}
	var endpoints []string
	for _, e := range info.Endpoints {
		endpoints = append(endpoints, e.Name+" "+e.Subject+" "+e.QueueGroup)
	}
	if got, want := strings.Join(endpoints, ", "), "search-rows genie.search.rows q, search-rows-users genie.search.rows.* q, search-other-name genie.search.other-name q, search-other-name-users genie.search.other-name.* q"; got != want {
		t.Errorf("endpoints %s, want %s", got, want)
	}
	if info.Version != Version() {
		t.Errorf("version %s", info.Version)
	}
	testkit.Eventually(t, func() error { // the last answer may be here before it is counted
		reply, err = nc.Request("$SRV.STATS.geniemq", nil, patience)
		if err != nil {
			t.Fatal(err)
		}
		var stats micro.Stats
		if err := json.Unmarshal(reply.Data, &stats); err != nil {
			t.Fatal(err)
		}
		var own intake.DirectStats
		if err := json.Unmarshal(stats.Endpoints[0].Data, &own); err != nil {
			t.Fatal(err)
		}
		if own.Requests != 4 || own.Errors != 1 || own.AverageSeconds <= 0 || own.Waiting != 0 {
			return fmt.Errorf("statistics %+v", own)
		}
		return nil
	})
	testkit.Eventually(t, ready(s))
	if _, err := nc.Request("$SRV.PING.geniemq", nil, patience); err != nil {
		t.Errorf("ping: %v", err)
	}
}

// A direct message of more queries than its user may have in flight is never let in, which it is told; what is not more is, and the stream takes any number.
func TestMoreThanAUserMayHave(t *testing.T) {
	_, nc, _ := startService(t, config.Config{Fairness: config.Fairness{UserInFlight: 20}}, Options{})
	batch := func(n int) []byte {
		return []byte(`{"queries":[` + strings.Repeat(`{"row":{"n":1}},`, n-1) + `{"row":{"n":1}}]}`)
	}
	reply, err := nc.Request("genie.search.rows.bob", batch(30), patience)
	if err != nil {
		t.Fatal(err)
	}
	refused, err := testkit.DecodeResult(wire.JSON, reply.Data)
	if err != nil || refused.Err == nil || refused.Err.Code != wire.TooLarge || !strings.Contains(refused.Err.Message, "30 queries") || !strings.Contains(refused.Err.Message, "have 20 in flight") {
		t.Errorf("30 queries of a user who may have 20: %s %v", reply.Data, err)
	}
	for subject, n := range map[string]int{"genie.search.rows.bob": 20, "genie.search.rows": 30} {
		if reply, err := nc.Request(subject, batch(n), patience); err != nil || reply.Header.Get(wire.HeaderServiceError) != "" || strings.Count(string(reply.Data), `"hits"`) != n {
			t.Errorf("%d queries on %s: %v %s", n, subject, err, reply.Data)
		}
	}
	results, err := nc.SubscribeSync("genie.result.rows.bob.answers")
	if err == nil {
		err = nc.Publish("genie.query.rows.bob", batch(30))
	}
	if err != nil {
		t.Fatal(err)
	}
	if m, err := results.NextMsg(patience); err != nil || strings.Count(string(m.Data), `"hits"`) != 30 {
		t.Errorf("30 queries through the stream: %v", err)
	}
}

// Whoever asks directly does not wait for room.
func TestOverloaded(t *testing.T) {
	engine := &gated{gate: make(chan struct{})}
	_, nc, _ := startService(t, config.Config{DirectQueue: 20, BatchSize: 4}, Options{OpenEngine: engine.open})
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	// A batch message of more queries than there is room for is refused as a whole: when the executors, which take some queries out
	// of the queue, have taken what they can.
	testkit.Eventually(t, func() error {
		for range 100 {
			asked++
			if err := nc.PublishRequest("genie.search.rows", inbox, []byte(`{"row":{"n":7}}`)); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := nc.Request("genie.search.rows", []byte(`{"queries":[`+strings.Repeat(`{"row":{"n":1}},`, 30)+`{"row":{"n":1}}]}`), patience)
		if err != nil {
			t.Fatal(err)
		}
		refused, err := testkit.DecodeResult(wire.JSON, reply.Data)
		if err != nil || refused.Err == nil || refused.Err.Code != wire.Overloaded || reply.Header.Get(wire.HeaderServiceErrorCode) != "overloaded" {
			return fmt.Errorf("a batch that does not fit: %s %v", reply.Data, reply.Header)
		}
		return nil
	})
	close(engine.gate)
	overloaded := 0
	for range asked {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatalf("somebody got no answer: %v", err)
		}
		res, err := testkit.DecodeResult(wire.JSON, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case res.Err == nil && len(res.Hits) == 1 && res.Hits[0].ID == 7:
		case res.Err != nil && res.Err.Code == wire.Overloaded:
			overloaded++
		default:
			t.Errorf("got %s", m.Data)
		}
	}
	// Those that executors hold have left the queue: two batches of at most four.
	if overloaded < asked-20-8 || overloaded == asked {
		t.Errorf("%d of %d were refused with room for 20", overloaded, asked)
	}
	if reply, err := nc.Request("genie.search.rows", []byte(`{"row":{"n":7}}`), patience); err != nil || reply.Header.Get(wire.HeaderServiceError) != "" {
		t.Errorf("the queue does not recover: %v", err)
	}
	// More queries than there ever is room for: trying again is no advice.
	reply, err := nc.Request("genie.search.rows", []byte(`{"queries":[`+strings.Repeat(`{"row":{"n":1}},`, 20)+`{"row":{"n":1}}]}`), patience)
	if err != nil {
		t.Fatal(err)
	}
	if refused, err := testkit.DecodeResult(wire.JSON, reply.Data); err != nil || refused.Err == nil || refused.Err.Code != wire.TooLarge {
		t.Errorf("21 queries with room for 20: %s", reply.Data)
	}
}

// A query whose time is up is answered so, and the engine never sees it.
func TestDeadline(t *testing.T) {
	engine := &gated{gate: make(chan struct{})}
	_, nc, js := startService(t, config.Config{BatchSize: 1}, Options{OpenEngine: engine.open})
	var waiting sync.WaitGroup
	for range executors { // keeps the executors busy
		waiting.Go(func() { nc.Request("genie.search.rows", []byte(`{"row":{"n":1}}`), patience) })
	}
	testkit.Eventually(t, func() error {
		if n := engine.inside.Load(); n != executors {
			return fmt.Errorf("%d batches are with the engine", n)
		}
		return nil
	})
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	expiring := []byte(`{"row":{"n":7},"timeout_ms":1}`)
	if err := nc.PublishRequest("genie.search.rows", inbox, expiring); err != nil {
		t.Fatal(err)
	}
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "genie.query.rows", Data: expiring, Header: nats.Header{wire.HeaderReply: {inbox}}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // their time is up
	close(engine.gate)
	for range 2 {
		m, err := sub.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := testkit.DecodeResult(wire.JSON, m.Data); err != nil || res.Err == nil || res.Err.Code != wire.DeadlineExceeded {
			t.Errorf("got %s", m.Data)
		}
	}
	waiting.Wait()
}

// A result stream that is full holds queries back and costs them nothing; direct search goes on meanwhile.
func TestBackPressure(t *testing.T) {
	s, nc, js := startService(t, config.Config{BatchSize: 8}, Options{})
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	config := results.CachedInfo().Config
	config.MaxMsgs = 10
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	const queries = 2000
	for i := range queries {
		if _, err := js.PublishAsync("genie.query.rows", []byte(fmt.Sprintf(`{"row":{"n":%d}}`, i%100))); err != nil {
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
	for range 20 {
		reply, err := nc.Request("genie.search.rows", []byte(`{"row":{"n":7}}`), patience)
		if err != nil || reply.Header.Get(wire.HeaderServiceError) != "" {
			t.Fatalf("direct search stands still: %v", err)
		}
	}
	config.MaxMsgs = -1
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		info, err := results.Info(t.Context())
		if err != nil || info.State.Msgs != queries {
			return fmt.Errorf("%d of %d results: %v", info.State.Msgs, queries, err)
		}
		return nil
	})
	testkit.Eventually(t, ready(s))
	if n := s.set.Serving()[0].Stored()[0].Consumer.Stats().Redelivered; n != 0 {
		t.Errorf("waiting cost %d deliveries", n)
	}
}

// A server that goes away and comes back: the service is not ready meanwhile, and answers everything afterwards.
func TestServerRestarts(t *testing.T) {
	dir := t.TempDir()
	server, err := broker.Start(t.Context(), broker.Options{Listen: "127.0.0.1:0", DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	url := server.URL()
	s, _, js := startService(t, config.Config{NATS: url}, Options{})
	for i := range 100 {
		if _, err := js.Publish(t.Context(), "genie.query.rows", []byte(fmt.Sprintf(`{"row":{"n":%d}}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, ready(s))
	for range 3 {
		if err := server.Shutdown(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, func() error {
			if ready(s)() == nil {
				return errors.New("ready without a server")
			}
			return nil
		})
		if server, err = broker.Start(t.Context(), broker.Options{Listen: strings.TrimPrefix(url, "nats://"), DataDir: dir}); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, ready(s))
	}
	t.Cleanup(func() { server.Shutdown() }) // after the service
	testkit.Eventually(t, func() error {
		results, err := js.Stream(t.Context(), "GENIE_RESULTS")
		if err != nil {
			return err
		}
		if n := results.CachedInfo().State.Msgs; n != 100 {
			return fmt.Errorf("%d results", n)
		}
		return nil
	})
}

// The example on the admin page can be pasted into a shell, and finds what it names.
func TestExampleQuery(t *testing.T) {
	spec, err := index.Builtin().ParseSchema([]byte("name: x\nkind: rows\ncolumns: [{name: c, type: category}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewBuilder(spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.AddString(0, "O'Brien")
	if err := b.EndObject("", nil, ""); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.gmq")
	if err := b.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: path}}}, Options{})
	example := s.Status().Indexes[0].Example
	if strings.Contains(example, "'") {
		t.Errorf("%s ends a quoted argument", example)
	}
	reply, err := nc.Request("genie.search.x", []byte(example), patience)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := testkit.DecodeResult(wire.JSON, reply.Data); err != nil || len(res.Hits) != 1 {
		t.Errorf("%s gets %s", example, reply.Data)
	}
}

// Another prefix is another deployment on the same server.
func TestPrefix(t *testing.T) {
	s, nc, js := startService(t, config.Config{}, Options{})
	other, _, _ := startService(t, config.Config{NATS: s.NATSURL(), Prefix: "elf", Indexes: []config.IndexSource{{Path: testkit.RowsFile(t, "rows", 8)}}}, Options{})
	defer shutdownEarly(t, other)()
	for subject, want := range map[string]int{"genie.search.rows": 10, "elf.search.rows": 1} {
		reply, err := nc.Request(subject, []byte(`{"row":{"c":"7"},"k":100}`), patience)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := testkit.DecodeResult(wire.JSON, reply.Data); err != nil || len(res.Hits) != want {
			t.Errorf("%s: %s", subject, reply.Data)
		}
	}
	if _, err := js.Publish(t.Context(), "elf.query.rows", []byte(`{"row":{"c":"7"}}`)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		stream, err := js.Stream(t.Context(), "ELF_RESULTS")
		if err != nil {
			return err
		}
		if n := stream.CachedInfo().State.Msgs; n != 1 {
			return fmt.Errorf("%d results", n)
		}
		return nil
	})
}

// shutdownEarly returns a function that ends a service before those started before it.
func shutdownEarly(t testing.TB, s *Service) func() { return func() { shutdown(t, s) } }

package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

func TestMain(m *testing.M) {
	code := m.Run()
	stopDemo()
	if err := goleak.Find(testkit.StoredObject()); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fixture is a broker, a service and a connection of the application's.
type fixture struct {
	broker  *testkit.Broker
	service *standIn // nil where geniemq itself answers
	nc      *nats.Conn
	js      jetstream.JetStream
	ctx     context.Context
}

// setUp starts a broker, with a max_payload unless it is 0, and a stand-in for geniemq, whose answers to stored queries wait for hold.
func setUp(t *testing.T, maxPayload int32, hold chan struct{}) *fixture {
	t.Helper()
	f := setUpBroker(t, maxPayload)
	var err error
	if f.service, err = startStandIn(f.broker.URL(), hold); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.service.stop)
	return f
}

// setUpReal starts a broker and geniemq.
func setUpReal(t *testing.T, maxPayload int32) *fixture {
	t.Helper()
	f := setUpBroker(t, maxPayload)
	stop, err := startGeniemq(f.broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func setUpBroker(t *testing.T, maxPayload int32) *fixture {
	t.Helper()
	b := testkit.StartBroker(t, func(o *server.Options) { o.MaxPayload = maxPayload })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	nc := testkit.Connect(t, b.URL())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{broker: b, nc: nc, js: js, ctx: ctx}
}

func newClient(t *testing.T, nc *nats.Conn, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.New(nc, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// wordQueries asks for each word of the dictionary, in turn.
func wordQueries(n int) []client.Query {
	queries := make([]client.Query, n)
	for i := range queries {
		queries[i] = client.Query{ID: fmt.Sprint("q", i), Text: dictionary[i%len(dictionary)], K: 1 + i%3}
	}
	return queries
}

func checkWords(t *testing.T, results []client.Result, n int) {
	t.Helper()
	if len(results) != n {
		t.Fatalf("%d results, want %d", len(results), n)
	}
	for i, r := range results {
		want := dictionary[i%len(dictionary)]
		if r.Err != nil || r.ID != fmt.Sprint("q", i) || len(r.Hits) != 1+i%3 || r.Hits[0].Key != want || r.Hits[0].Distance != 0 {
			t.Fatalf("result %d: %+v, want %s", i, r, want)
		}
	}
}

func TestBothCodecsAllWays(t *testing.T) {
	t.Parallel()
	f := setUpReal(t, 0)
	for _, json := range []bool{false, true} {
		c := newClient(t, f.nc, client.Options{JSON: json})
		for name, ask := range map[string]func(context.Context, string, client.Query) (*client.Result, error){
			"Search": c.Search, "Request": c.Request,
		} {
			r, err := ask(f.ctx, "words", client.Query{ID: "x", Text: "recipe", K: 1})
			if err != nil || r.ID != "x" || r.Index != "words" || len(r.Hits) != 1 || r.Hits[0].Key != "recipe" {
				t.Errorf("%s, json %v: %+v, %v", name, json, r, err)
			}
			_, err = ask(f.ctx, "words", client.Query{Row: client.Conditions(client.Equal("a", 1))})
			var typed *wire.Error
			if !errors.Is(err, wire.BadRequest) || !errors.As(err, &typed) || !client.IsRefusal(err) {
				t.Errorf("%s, json %v: %v", name, json, err)
			}
		}
		for name, ask := range map[string]func(context.Context, string, []client.Query) ([]client.Result, error){
			"SearchBatch": c.SearchBatch, "RequestBatch": c.RequestBatch,
		} {
			results, err := ask(f.ctx, "words", wordQueries(100))
			if err != nil {
				t.Fatalf("%s, json %v: %v", name, json, err)
			}
			checkWords(t, results, 100)
		}
	}
}

// An answer in many parts comes back whole and in order.
func TestRequestBatchInParts(t *testing.T) {
	t.Parallel()
	f := setUpReal(t, smallPayload)
	for _, json := range []bool{false, true} {
		c := newClient(t, f.nc, client.Options{JSON: json})
		before := results(t, f)
		answer, err := c.RequestBatch(f.ctx, "words", wordQueries(manyQueries))
		if err != nil {
			t.Fatal(err)
		}
		checkWords(t, answer, manyQueries)
		// A subscriber may have a message before the stream has stored it.
		testkit.Until(t, "the answer is in parts", func() bool { return results(t, f)-before > 1 })
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := setUpReal(t, 0)
	c := newClient(t, f.nc, client.Options{})
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			word := dictionary[i%len(dictionary)]
			ask := c.Request
			if i%3 == 0 {
				ask = c.Search
			}
			r, err := ask(f.ctx, "words", client.Query{Text: word, K: 1})
			if err != nil || r.Hits[0].Key != word {
				t.Errorf("%s: %+v, %v", word, r, err)
			}
		})
	}
	wg.Wait()
}

// What would be refused, or cost the connection, is not sent.
func TestRefusedBeforeSending(t *testing.T) {
	f := setUp(t, 256<<10, nil)
	c := newClient(t, f.nc, client.Options{})
	text := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, q client.Query) []client.Query {
		queries := make([]client.Query, n)
		for i := range queries {
			queries[i] = q
		}
		return queries
	}
	big := nats.Header{"X-Large": {text(200 << 10)}}
	tests := []struct {
		name string
		call func() error
		code wire.Code
	}{
		{"index name", func() error { _, err := c.Search(f.ctx, "a.b", client.Query{Text: "x"}); return err }, wire.BadRequest},
		{"no form", func() error { _, err := c.Request(f.ctx, "words", client.Query{}); return err }, wire.BadRequest},
		{"NaN", func() error {
			_, err := c.Request(f.ctx, "words", client.Query{Row: client.Conditions(client.AtLeast("a", math.NaN()))})
			return err
		}, wire.BadRequest},
		{"empty batch", func() error { _, err := c.SearchBatch(f.ctx, "words", nil); return err }, wire.BadRequest},
		{"string", func() error { _, err := c.Search(f.ctx, "words", client.Query{Text: text(65_537)}); return err }, wire.TooLarge},
		{"sum of k", func() error {
			_, err := c.SearchBatch(f.ctx, "words", many(17, client.Query{Text: "x", K: 65_536}))
			return err
		}, wire.TooLarge},
		{"queries", func() error {
			_, err := c.SearchBatch(f.ctx, "words", many(65_537, client.Query{Text: "x", K: 1}))
			return err
		}, wire.TooLarge},
		{"body", func() error {
			_, err := c.PublishBatch(f.ctx, "words", many(4, client.Query{Text: text(60_000)}), client.PublishOptions{})
			return err
		}, wire.TooLarge},
		{"headers", func() error {
			_, err := c.PublishBatch(f.ctx, "words", many(3, client.Query{Text: text(60_000)}), client.PublishOptions{Header: big})
			return err
		}, wire.TooLarge},
		{"reply", func() error {
			_, err := c.Publish(f.ctx, "words", client.Query{Text: "x"}, client.PublishOptions{Reply: "a..b"})
			return err
		}, wire.BadRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.call(); !errors.Is(err, tt.code) || !client.IsRefusal(err) {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	if n := len(f.service.seen()); n != 0 {
		t.Errorf("the service saw %d queries", n)
	}
	if f.nc.Stats().Reconnects != 0 || !f.nc.IsConnected() {
		t.Error("the connection was lost")
	}
	// At the limit, the server takes it.
	limit := wire.LimitsFor(256 << 10).Body
	queries := many(3, client.Query{Text: text(60_000)})
	rest := limit - len(wire.AppendQueries(nil, wire.MessagePack, queries))
	queries = append(queries, client.Query{Text: text(rest - len("\x81\xa4text\xda..")), K: 0})
	if size := len(wire.AppendQueries(nil, wire.MessagePack, queries)); size != limit {
		t.Fatalf("the test's message has %d bytes, not %d", size, limit)
	}
	if _, err := c.PublishBatch(f.ctx, "words", queries, client.PublishOptions{}); err != nil {
		t.Error(err)
	}
}

func TestNobodyThere(t *testing.T) {
	f := setUpBroker(t, 0)
	c, ctx := newClient(t, f.nc, client.Options{}), f.ctx
	if _, err := c.Search(ctx, "words", client.Query{Text: "x"}); !errors.Is(err, client.ErrNotServed) || client.IsRefusal(err) {
		t.Errorf("Search: %v", err)
	}
	if _, err := c.Publish(ctx, "words", client.Query{Text: "x"}, client.PublishOptions{}); !errors.Is(err, client.ErrNoStream) {
		t.Errorf("Publish: %v", err)
	}
	if _, err := c.Request(ctx, "words", client.Query{Text: "x"}); !errors.Is(err, client.ErrNoStream) {
		t.Errorf("Request: %v", err)
	}
	if _, err := c.Subscribe(ctx, "words", func(*client.Answer) error { return nil }, client.SubscribeOptions{}); !errors.Is(err, client.ErrNoStream) {
		t.Errorf("Subscribe: %v", err)
	}
}

func TestQueueFull(t *testing.T) {
	f := setUpBroker(t, 0)
	_, err := f.js.CreateStream(f.ctx, jetstream.StreamConfig{
		Name: "OTHER_QUERIES", Subjects: []string{"other.query.*"}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, f.nc, client.Options{Prefix: "other"})
	if _, err := c.Publish(f.ctx, "words", client.Query{Text: "x"}, client.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(f.ctx, "words", client.Query{Text: "x"}, client.PublishOptions{}); !errors.Is(err, client.ErrQueueFull) {
		t.Errorf("got %v", err)
	}
}

// Errors of direct search are typed by the body, and by the headers where there is no body to speak of.
func TestDirectErrors(t *testing.T) {
	f := setUp(t, 0, nil)
	c := newClient(t, f.nc, client.Options{})
	respond := func(code, message string, body []byte) func(*nats.Msg) bool {
		return func(msg *nats.Msg) bool {
			out := nats.NewMsg(msg.Reply)
			out.Data = body
			out.Header.Set(wire.HeaderServiceError, message)
			out.Header.Set(wire.HeaderServiceErrorCode, code)
			return msg.RespondMsg(out) == nil
		}
	}
	result := wire.Result{Err: wire.Errorf(wire.Overloaded, "no room")}
	tests := []struct {
		name    string
		direct  func(*nats.Msg) bool
		code    wire.Code
		message string
	}{
		{"body and headers", respond("overloaded", "header", wire.AppendResult(nil, wire.JSON, &result)), wire.Overloaded, "no room"},
		{"headers only", respond("overloaded", "busy now", nil), wire.Overloaded, "busy now"},
		{"of the framework", respond("500", "panic", []byte("oops")), wire.Internal, "panic (500)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.service.direct = tt.direct
			for range 2 {
				_, err := c.Search(f.ctx, "words", client.Query{Text: "x"})
				_, batchErr := c.SearchBatch(f.ctx, "words", []client.Query{{Text: "x"}, {Text: "y"}})
				for _, err := range []error{err, batchErr} {
					var typed *wire.Error
					if !errors.As(err, &typed) || typed.Code != tt.code || typed.Message != tt.message || client.IsRefusal(err) && tt.code == wire.Overloaded {
						t.Errorf("got %v", err)
					}
				}
			}
		})
	}
}

// The deadline ends the call, and travels as timeout_ms where there is none.
func TestDeadlines(t *testing.T) {
	hold := make(chan struct{})
	f := setUp(t, 0, hold)
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	f.service.direct = func(*nats.Msg) bool { <-hold; return false }
	c := newClient(t, f.nc, client.Options{Timeout: 200 * time.Millisecond})

	for name, ask := range map[string]func(context.Context, string, client.Query) (*client.Result, error){"Search": c.Search, "Request": c.Request} {
		if _, err := ask(context.Background(), "words", client.Query{Text: "x"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s without a deadline: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		if _, err := ask(ctx, "words", client.Query{Text: "x", TimeoutMS: 77}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with a deadline: %v", name, err)
		}
		cancel()
		if _, err := ask(ctx, "words", client.Query{Text: "x"}); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s with a context that is done: %v", name, err)
		}
	}
	if _, err := c.Publish(context.Background(), "words", client.Query{Text: "published"}, client.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	release()
	for start := time.Now(); f.service.answered.Load() < 3 && time.Since(start) < 20*time.Second; {
		time.Sleep(5 * time.Millisecond)
	}
	for _, q := range f.service.seen() {
		switch {
		case q.Text == "published" && q.TimeoutMS != 0:
			t.Errorf("Publish sent a timeout: %+v", q)
		case q.Text == "x" && q.TimeoutMS != 77 && (q.TimeoutMS == 0 || q.TimeoutMS > 200):
			t.Errorf("timeout_ms %d", q.TimeoutMS)
		}
	}
}

func TestInjectAndHeaders(t *testing.T) {
	f := setUp(t, 0, nil)
	got := make(chan nats.Header, 1)
	f.service.direct = func(m *nats.Msg) bool { got <- m.Header; return false }
	c := newClient(t, f.nc, client.Options{Inject: func(_ context.Context, h nats.Header) { h.Set(wire.HeaderTraceParent, "00-ab-cd-01") }})
	if _, err := c.Search(f.ctx, "words", client.Query{Text: "x"}); err != nil {
		t.Fatal(err)
	}
	if h := <-got; h.Get(wire.HeaderTraceParent) != "00-ab-cd-01" || h.Get(wire.HeaderContentType) != "application/msgpack" {
		t.Errorf("got %v", h)
	}
}

func TestClose(t *testing.T) {
	hold := make(chan struct{})
	f := setUp(t, 0, hold)
	t.Cleanup(func() { close(hold) })
	c := newClient(t, f.nc, client.Options{})
	errs := make(chan error)
	go func() {
		_, err := c.Request(f.ctx, "words", client.Query{Text: "x"})
		errs <- err
	}()
	testkit.Until(t, "it waits", func() bool { return c.Waiting() == 1 })
	c.Close()
	c.Close()
	if err := <-errs; !errors.Is(err, client.ErrClosed) {
		t.Errorf("the waiting request: %v", err)
	}
	if _, err := c.Search(f.ctx, "words", client.Query{Text: "x"}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a later call: %v", err)
	}
	if !f.nc.IsConnected() {
		t.Error("the connection is closed too")
	}

	c = newClient(t, f.nc, client.Options{})
	go func() {
		_, err := c.Request(f.ctx, "words", client.Query{Text: "x"})
		errs <- err
	}()
	testkit.Until(t, "it waits", func() bool { return c.Waiting() == 1 })
	f.nc.Close()
	if err := <-errs; !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("the connection was closed: %v", err)
	}
	if _, err := client.New(f.nc, client.Options{}); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("a client on a closed connection: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	f := setUpBroker(t, 0)
	if _, err := client.New(f.nc, client.Options{Prefix: "a.b"}); err == nil {
		t.Error("a prefix of two tokens was accepted")
	}
}

package tests

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

const danQuery = `{"row":{"age":52},"k":1}`

// Queries of each class are answered, each where its kind of subject says; and their answers' ids name their streams.
func TestClassesAreAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for _, c := range []struct{ subject, stream, reply, id string }{
		{"genie.query.people", "GENIE_QUERIES", "genie.result.people", "people.a.1"},
		{"genie.query.people.bob", "GENIE_USERS", "genie.result.people.bob.answers", "GENIE_USERS/people.bob.a.1"},
		{"genie.bulk.people", "GENIE_BULK", "genie.result.people", "GENIE_BULK/people..a.1"},
		{"genie.bulk.people.bob", "GENIE_BULK", "genie.result.people.bob.answers", "GENIE_BULK/people.bob.b.1"},
	} {
		msgID := strings.Split(c.id, ".")
		ack, err := r.js.PublishMsg(within(t), message(c.subject, danQuery, "Nats-Msg-Id", msgID[len(msgID)-2]))
		if err != nil || ack.Stream != c.stream {
			t.Fatalf("%s goes to %v: %v", c.subject, ack, err)
		}
		testkit.Eventually(t, func() error {
			stream, err := r.js.Stream(within(t), "GENIE_RESULTS")
			if err != nil {
				return err
			}
			for seq := uint64(1); ; seq++ {
				m, err := stream.GetMsg(within(t), seq)
				if err != nil {
					return fmt.Errorf("%s: no answer %s: %w", c.subject, c.id, err)
				}
				if m.Header.Get("Nats-Msg-Id") != c.id {
					continue
				}
				if got := keys(result(t, m.Data)); got != "dan:1" || m.Subject != c.reply {
					return fmt.Errorf("%s is answered %s on %s", c.subject, got, m.Subject)
				}
				if in := m.Header.Get("Genie-Query-Stream"); (in == "") != (c.stream == "GENIE_QUERIES") || in != "" && in != c.stream {
					return fmt.Errorf("%s: the answer says that it is to a query of stream %q", c.subject, in)
				}
				return nil
			}
		})
	}
	for stream, filter := range map[string]string{"GENIE_USERS": "genie.query.people.*", "GENIE_BULK": "genie.bulk.people genie.bulk.people.*"} {
		info, err := r.js.Consumer(within(t), stream, "geniemq-people")
		if err != nil {
			t.Fatal(err)
		}
		c := info.CachedInfo().Config
		if got := strings.TrimSpace(c.FilterSubject + " " + strings.Join(c.FilterSubjects, " ")); got != filter {
			t.Errorf("the durable of %s takes %s", stream, got)
		}
	}
	testkit.Eventually(t, r.ready)
}

// The Go client asks as a user and in bulk, directly and through the stream.
func TestClientOfAClass(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for _, o := range []client.Options{{User: "bob"}, {Class: client.ClassBulk}, {User: "bob", Class: client.ClassBulk}} {
		c, err := client.New(r.nc, o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		query := client.Query{K: 1, Row: client.Conditions(client.Equal("age", 52))}
		if res, err := c.Request(within(t), "people", query); err != nil || keys(res) != "dan:1" {
			t.Errorf("%+v: request: %v %v", o, res, err)
		}
		if res, err := c.Search(within(t), "people", query); err != nil || keys(res) != "dan:1" {
			t.Errorf("%+v: search: %v %v", o, res, err)
		}
		if receipt, err := c.Publish(within(t), "people", query, client.PublishOptions{}); err != nil || (o.Class == client.ClassBulk) != (receipt.Stream == "GENIE_BULK") {
			t.Errorf("%+v: publish: %+v %v", o, receipt, err)
		}
	}
	for _, o := range []client.Options{{User: "a.b"}, {User: ">"}, {Class: "other"}} {
		if _, err := client.New(r.nc, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// A user's query is answered on that user's subjects and on inboxes, whatever it names, and nobody is answered on another's; with a server that lets each
// publish and read on his own subjects, no answer is forged or read by another.
func TestUsersAreAnsweredAsThemselves(t *testing.T) {
	t.Parallel()
	user := func(name string) string {
		return fmt.Sprintf(`{ user: %[1]s, password: x, permissions: { publish: { allow: ["genie.query.*.%[1]s", "genie.search.*.%[1]s", "genie.bulk.*.%[1]s"] },
			subscribe: { allow: ["genie.result.*.%[1]s.>", "_INBOX.%[1]s.>"] } } }`, name)
	}
	server := startServer(t, `authorization { users: [ { user: admin, password: x }, `+user("alice")+`, `+user("bob")+` ] }`)
	as := func(user string) string { return strings.Replace(server.url, "//", "//"+user+":x@", 1) }
	r := start(t, config.Config{NATS: as("admin"), Fairness: config.Fairness{UserReplyAllow: []string{"_INBOX.{user}.>", "genie.result.{index}.{user}.>"}}}, service.Options{})
	var denied sync.Map
	dial := func(name string) *nats.Conn {
		nc, err := nats.Connect(as(name), nats.CustomInboxPrefix("_INBOX."+name), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied.Store(name+": "+err.Error(), true) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	alice, bob := dial("alice"), dial("bob")
	spy, err := r.nc.SubscribeSync("genie.result.>")
	if err != nil {
		t.Fatal(err)
	}
	inboxes, err := r.nc.SubscribeSync("_INBOX.alice.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"genie.query.people.bob", "genie.bulk.people.bob"} {
		for _, reply := range []string{"genie.result.people.alice.1", "genie.result.people.alice.answers", "genie.result.people", "genie.result.people.bob", "genie.result.words.bob.1",
			"genie.result.people.bobby.1", "_INBOX.alice.1", "genie.query.people.alice", "genie.dead.people"} {
			if _, err := bob.RequestMsg(message(subject, danQuery, "Genie-Reply", reply), patience); err != nil {
				t.Fatal(err)
			}
			m, err := spy.NextMsg(patience)
			if err != nil {
				t.Fatalf("%s is not answered: %v", reply, err)
			}
			if res := result(t, m.Data); m.Subject != "genie.result.people.bob.answers" || res.Err == nil || res.Err.Code != wire.BadRequest {
				t.Errorf("a query of bob's with the reply subject %s is answered on %s: %s", reply, m.Subject, m.Data)
			}
		}
		for _, reply := range []string{"genie.result.people.bob.1", "genie.result.people.bob.a.b"} {
			if _, err := bob.RequestMsg(message(subject, danQuery, "Genie-Reply", reply), patience); err != nil {
				t.Fatal(err)
			}
			if m, err := spy.NextMsg(patience); err != nil || m.Subject != reply || keys(result(t, m.Data)) != "dan:1" {
				t.Errorf("his own subject %s: %v %v", reply, m, err)
			}
		}
	}
	// Direct search: requests with the subjects of others are dropped.
	for _, reply := range []string{"_INBOX.alice.1", "genie.result.people.alice.1", "genie.result.people", "$JS.API.STREAM.PURGE.GENIE_RESULTS"} {
		if err := bob.PublishRequest("genie.search.people.bob", reply, []byte(danQuery)); err != nil {
			t.Fatal(err)
		}
	}
	own, err := client.New(bob, client.Options{User: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	query := client.Query{K: 1, Row: client.Conditions(client.Equal("age", 52))}
	if res, err := own.Search(within(t), "people", query); err != nil || keys(res) != "dan:1" {
		t.Errorf("bob's search: %v %v", res, err)
	}
	if res, err := own.Request(within(t), "people", query); err != nil || keys(res) != "dan:1" {
		t.Errorf("bob's request: %v %v", res, err)
	}
	if m, err := spy.NextMsg(patience); err != nil || !strings.HasPrefix(m.Subject, "genie.result.people.bob.") {
		t.Errorf("bob's request is answered on %v %v", m, err)
	}
	if m, err := spy.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("published on %s: %s", m.Subject, m.Data)
	}
	if m, err := inboxes.NextMsg(50 * time.Millisecond); err == nil {
		t.Errorf("published on %s: %s", m.Subject, m.Data)
	}
	// And the server keeps them from asking as another, or as nobody, and from reading what is another's.
	for _, subject := range []string{"genie.query.people", "genie.query.people.alice", "genie.search.people", "genie.search.people.alice", "genie.bulk.people", "genie.result.people.alice.1"} {
		if err := bob.Publish(subject, []byte(danQuery)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := alice.SubscribeSync("genie.result.people.bob.>"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		n := 0
		denied.Range(func(any, any) bool { n++; return true })
		if n != 7 {
			return fmt.Errorf("%d of 7 are denied", n)
		}
		return nil
	})
}

// Whoever is over the quota is told so, alone, and all others are served.
func TestQuotasOfUsers(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{Fairness: config.Fairness{UserRate: 0.0001, UserBurst: 3}}, service.Options{})
	ask := func(subject string, headers ...string) error {
		m, err := r.nc.RequestMsg(message(subject, danQuery, headers...), patience)
		if err != nil {
			t.Fatal(err)
		}
		if res := result(t, m.Data); res.Err != nil {
			return res.Err
		}
		return nil
	}
	overloaded := func(err error) bool {
		var e *wire.Error
		return errors.As(err, &e) && e.Code == wire.Overloaded && strings.Contains(e.Message, "quota")
	}
	for i := range 5 {
		if err := ask("genie.search.people.bob"); (i < 3) != (err == nil) || err != nil && !overloaded(err) {
			t.Errorf("bob's search %d: %v", i+1, err)
		}
		if err := ask("genie.search.people"); err != nil {
			t.Errorf("a search of nobody in particular: %v", err)
		}
		if err := ask("genie.search.people", "Genie-User", "bob"); err != nil {
			t.Errorf("the header is heeded: %v", err)
		}
	}
	// In the stream a query over the quota is answered too, at once, and does not keep others waiting.
	for _, user := range []string{"bob", "ann"} {
		if _, err := r.js.PublishMsg(within(t), message("genie.query.people."+user, danQuery)); err != nil {
			t.Fatal(err)
		}
		res := result(t, r.stored("genie.result.people."+user+".answers", 1).Data)
		if (user == "bob") != (res.Err != nil && overloaded(res.Err)) {
			t.Errorf("%s's stored query: %+v", user, res)
		}
	}
	trusting := start(t, config.Config{Fairness: config.Fairness{UserRate: 0.0001, UserBurst: 1, TrustUserHeader: true}}, service.Options{})
	r = trusting
	if err := ask("genie.search.people", "Genie-User", "bob"); err != nil {
		t.Error(err)
	}
	if err := ask("genie.search.people", "Genie-User", "bob"); !overloaded(err) {
		t.Errorf("with trust in the header: %v", err)
	}
	if err := ask("genie.search.people.bob"); !overloaded(err) {
		t.Errorf("as the user of the subject: %v", err)
	}
}

// counting is an engine that notes whose batches it has, and holds them until it is told to go on.
type counting struct {
	gpuexec.Engine
	mu      sync.Mutex
	batches [][]uint32 // the k of each query, which tells whose it is
	hold    chan struct{}
}

func (e *counting) Load(ctx context.Context, x gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := e.Engine.Load(ctx, x, later...)
	return &countingSearcher{s, e}, err
}

type countingSearcher struct {
	gpuexec.Searcher
	engine *counting
}

func (s *countingSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, trace *gpuexec.Trace) error {
	var ks []uint32
	for i := range plans {
		ks = append(ks, uint32(plans[i].K))
	}
	s.engine.mu.Lock()
	s.engine.batches = append(s.engine.batches, ks)
	s.engine.mu.Unlock()
	select {
	case <-s.engine.hold:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.Searcher.Search(ctx, plans, answers, trace)
}

// Bulk queries that fill all there is for them do not keep an interactive query waiting that comes after them, and no batch is of both.
func TestBulkLetsOthersPass(t *testing.T) {
	t.Parallel()
	engine := &counting{hold: make(chan struct{})}
	r := start(t, config.Config{Engine: "cpu", BatchSize: 64, Workers: 2}, service.Options{OpenEngine: func(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
		e, err := open.Engine(kind, opts)
		engine.Engine = e
		return engine, err
	}})
	const bulkK, ownK = 2, 3
	const messages, each = 40, 100
	body := `{"queries":[` + strings.Repeat(fmt.Sprintf(`{"row":{"age":52},"k":%d},`, bulkK), each-1) + fmt.Sprintf(`{"row":{"age":52},"k":%d}]}`, bulkK)
	for range messages {
		if _, err := r.js.PublishAsync("genie.bulk.people.carl", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	<-r.js.PublishAsyncComplete()
	batches := func(k uint32) (all, of int) {
		engine.mu.Lock()
		defer engine.mu.Unlock()
		for _, ks := range engine.batches {
			for _, other := range ks {
				if other == k {
					of++
				}
			}
		}
		return len(engine.batches), of
	}
	testkit.Eventually(t, func() error { // both executors have something, a probe of the service itself at most beside bulk, and nothing moves
		if all, n := batches(bulkK); all < 2 || n < 64 {
			return fmt.Errorf("%d bulk queries are with the engine, in one of %d batches", n, all)
		}
		return nil
	})
	asked := make(chan *nats.Msg, 1)
	sub, err := r.nc.ChanSubscribe("genie.result.people.ann.>", asked)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Unsubscribe()
	if _, err := r.js.PublishMsg(within(t), message("genie.query.people.ann", fmt.Sprintf(`{"row":{"age":52},"k":%d}`, ownK))); err != nil {
		t.Fatal(err)
	}
	// Batch by batch, with time for the query to be pulled and decoded meanwhile: it is with the engine long before the bulk that was there before it.
	for range messages * each / 64 / 2 {
		if _, n := batches(ownK); n > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
		engine.hold <- struct{}{}
	}
	if _, n := batches(ownK); n != 1 {
		t.Errorf("the query is behind half of the bulk at least")
	}
	close(engine.hold)
	select {
	case m := <-asked:
		if got := keys(result(t, m.Data)); !strings.HasPrefix(got, "dan:1") {
			t.Errorf("the answer is %s", got)
		}
	case <-time.After(patience):
		t.Fatal("the query is not answered")
	}
	engine.mu.Lock()
	mixed := 0
	for _, ks := range engine.batches {
		own, bulk := 0, 0
		for _, k := range ks {
			switch k {
			case ownK:
				own++
			case bulkK:
				bulk++
			}
		}
		if own > 0 && bulk > 0 {
			mixed++
		}
	}
	engine.mu.Unlock()
	if mixed > 0 {
		t.Errorf("%d batches are of bulk and of another class", mixed)
	}
	testkit.Eventually(t, func() error { // and bulk is answered in the end
		if n := r.count("GENIE_BULK", "genie.bulk.>"); n > 0 {
			return fmt.Errorf("%d bulk messages are left", n)
		}
		return nil
	})
	if n := r.count("GENIE_RESULTS", "genie.result.people.carl.answers"); n != messages {
		t.Errorf("%d answers to %d messages", n, messages)
	}
}

// A worker that serves no classes beside the first, as those of earlier versions do, works beside one that does: each stored query is answered once.
func TestClassesBesideAnEarlierWorker(t *testing.T) {
	t.Parallel()
	server := startServer(t, "")
	old := start(t, config.Config{NATS: server.url, Fairness: config.Fairness{Classes: []string{config.NoClasses}}}, service.Options{})
	if _, err := old.js.Stream(within(t), "GENIE_BULK"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("a worker without classes makes their streams: %v", err)
	}
	r := start(t, config.Config{NATS: server.url}, service.Options{})
	const n = 50
	for i := range n {
		for _, subject := range []string{"genie.query.people", "genie.query.people.bob", "genie.bulk.people"} {
			if _, err := r.js.PublishMsg(within(t), message(subject, danQuery, "Nats-Msg-Id", fmt.Sprint(i), "Genie-Reply", map[bool]string{true: "genie.result.people.bob.all", false: "genie.result.people.x"}[strings.HasSuffix(subject, "bob")])); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, func() error {
		if got := r.count("GENIE_RESULTS", ">"); got != 3*n {
			return fmt.Errorf("%d answers to %d queries", got, 3*n)
		}
		return nil
	})
	if got := r.count("GENIE_RESULTS", "genie.result.people.bob.all"); got != n {
		t.Errorf("%d answers to bob", got)
	}
}

// Queries of a class for an index that nobody serves are told so, on the standard subject of their user.
func TestUnservedClasses(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for _, subject := range []string{"genie.query.nothing.bob", "genie.bulk.nothing"} {
		if _, err := r.js.PublishMsg(within(t), message(subject, danQuery)); err != nil {
			t.Fatal(err)
		}
	}
	for _, reply := range []string{"genie.result.nothing.bob.answers", "genie.result.nothing"} {
		if res := result(t, r.stored(reply, 1).Data); res.Err == nil || res.Err.Code != wire.UnknownIndex {
			t.Errorf("%s: %+v", reply, res)
		}
	}
	for _, stream := range []string{"GENIE_USERS", "GENIE_BULK"} {
		testkit.Eventually(t, func() error {
			if n := r.count(stream, ">"); n > 0 {
				return fmt.Errorf("%d messages are left in %s", n, stream)
			}
			return nil
		})
	}
}

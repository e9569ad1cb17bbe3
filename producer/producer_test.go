package producer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/producer"
)

func newProducer(t testing.TB, nc *nats.Conn, l producer.Limits, opts ...producer.Options) *producer.Producer {
	t.Helper()
	p, err := producer.NewLimited(nc, append(opts, producer.Options{})[0], l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Close(ctx)
	})
	return p
}

func stored(i int, body string) producer.Outgoing {
	return producer.Outgoing{
		Subject: "genie.result.adult", MsgID: fmt.Sprintf("adult.%d", i), Body: []byte(body),
		Header: nats.Header{"Genie-Query-Seq": {fmt.Sprint(i)}},
	}
}

func TestStoredResultsAreConfirmedByTheStream(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	s := b.results(nc, 1<<20)
	p := newProducer(t, nc, producer.Limits{})
	f := newFates(t)
	for i := range 500 {
		p.Publish(t.Context(), stored(i%400, "x"), f.done(i)) // the last 100 are duplicates, which is success
	}
	f.allGood(500)
	for i := range 500 {
		if how := f.confirmation(i); how != (producer.Confirmation{Sequence: uint64(i%400) + 1, Duplicate: i >= 400}) {
			t.Errorf("message %d is confirmed as %+v", i, how)
		}
	}
	if n := streamMessages(t, s); n != 400 {
		t.Errorf("%d messages are stored, want 400", n)
	}
	m, err := s.GetLastMsgForSubject(t.Context(), "genie.result.adult")
	if err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("Nats-Msg-Id") != "adult.399" || m.Header.Get("Genie-Query-Seq") != "399" || string(m.Data) != "x" {
		t.Errorf("stored: %v %q", m.Header, m.Data)
	}
	if s := p.State(); s.Blocked || s.InFlight != 0 || p.InFlightBytes() != 0 {
		t.Errorf("state at rest: %+v", s)
	}
}

func TestInboxesAreConfirmedByFlush(t *testing.T) {
	b := startBroker(t)
	nc, other := b.connect(), b.connect()
	inbox := other.NewInbox()
	sub, err := other.SubscribeSync(inbox + ".*")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	p := newProducer(t, nc, producer.Limits{})
	f := newFates(t)
	for i := range 300 {
		p.Publish(t.Context(), producer.Outgoing{Subject: fmt.Sprintf("%s.%d", inbox, i), Body: []byte("y")}, f.done(i))
	}
	f.allGood(300)
	for i := range 300 {
		m, err := sub.NextMsgWithContext(t.Context())
		if err != nil || string(m.Data) != "y" {
			t.Fatalf("message %d: %v %v", i, m, err)
		}
	}
}

func TestFullStreamHoldsResultsAndBlocks(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	s := b.results(nc, 20_000)
	var blocked atomic.Int32
	p := newProducer(t, nc, producer.Limits{MinBackoff: 10 * time.Millisecond}, producer.Options{
		OnState: func(s producer.State) {
			if s.Blocked {
				blocked.Add(1)
			} else {
				blocked.Add(-1)
			}
		},
	})
	f := newFates(t)
	const n = 100
	body := strings.Repeat("r", 1000)
	for i := range n {
		p.Publish(t.Context(), stored(i, body), f.done(i))
	}
	testkit.Until(t, "blocked", func() bool { return blocked.Load() == 1 })
	state := p.State()
	if !state.Blocked || state.Reason == nil || !strings.Contains(state.Reason.Error(), "maximum bytes exceeded") {
		t.Errorf("state of a full stream: %+v", state)
	}

	// A full stream is no reason to hold up those who wait at an inbox.
	p.Publish(t.Context(), producer.Outgoing{Subject: nc.NewInbox()}, f.done(n))
	testkit.Until(t, "the inbox is served", func() bool { _, ok := f.fate(n); return ok })
	if !p.State().Blocked {
		t.Error("an inbox message unblocked the stream")
	}

	var received uint64
	testkit.Until(t, "all are stored although the stream is emptied ever so often", func() bool {
		received += streamMessages(t, s)
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f.count() == n+1
	})
	f.allGood(n + 1)
	testkit.Until(t, "unblocked", func() bool { return blocked.Load() == 0 && !p.State().Blocked })
}

func TestBoundedInFlightBlocks(t *testing.T) {
	b := startBroker(t)
	nc := b.connect() // no stream: nothing is ever confirmed
	p := newProducer(t, nc, producer.Limits{MaxInFlight: 3, MaxInFlightBytes: 4000})
	f := newFates(t)
	publish := func(i, size int) chan struct{} {
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			p.Publish(t.Context(), stored(i, strings.Repeat("z", size)), f.done(i))
		}()
		return returned
	}
	<-publish(0, 10_000) // larger than the limit: goes alone
	second := publish(1, 10)
	testkit.Until(t, "the reason is known", func() bool { return p.State().Blocked })
	if s := p.State(); s.InFlight != 1 || p.InFlightBytes() < 10_000 {
		t.Errorf("state: %+v", s)
	}
	b.results(nc, 1<<20)
	<-second
	f.allGood(2)
}

func TestContextEndsTheWait(t *testing.T) {
	b := startBroker(t)
	nc := b.connect() // no stream
	p := newProducer(t, nc, producer.Limits{MaxInFlight: 1, MinBackoff: 10 * time.Millisecond})
	f := newFates(t)
	ctx, cancel := context.WithCancel(t.Context())
	p.Publish(ctx, stored(0, "x"), f.done(0))
	go func() {
		for !p.State().Blocked {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	p.Publish(ctx, stored(1, "x"), f.done(1)) // no room: blocks
	testkit.Until(t, "both ended", func() bool { return f.count() == 2 })
	for i := range 2 {
		if err, _ := f.fate(i); !errors.Is(err, context.Canceled) {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	b := startBroker(t, func(o *server.Options) { o.MaxPayload = 10_000 })
	nc := b.connect()
	b.results(nc, 1<<30)
	p := newProducer(t, nc, producer.Limits{})
	for name, out := range map[string]producer.Outgoing{
		"stored": stored(0, strings.Repeat("x", 10_000)), // headers count
		"inbox":  {Subject: nc.NewInbox(), Body: make([]byte, 10_001)},
	} {
		f := newFates(t)
		p.Publish(t.Context(), out, f.done(0))
		testkit.Until(t, "refused", func() bool { return f.count() == 1 })
		err, _ := f.fate(0)
		if e := (*producer.TooLargeError)(nil); !errors.As(err, &e) || e.Limit != 10_000 || e.Size <= 10_000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if nc.Status() != nats.CONNECTED || nc.Stats().Reconnects != 0 {
		t.Error("the connection suffered")
	}
	f := newFates(t)
	p.Publish(t.Context(), stored(1, strings.Repeat("x", 9_000)), f.done(0))
	f.allGood(1)
}

func TestHeadersTooLargeForJetStream(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	b.results(nc, 1<<30)
	p := newProducer(t, nc, producer.Limits{})
	f := newFates(t)
	out := stored(0, "x")
	out.Header.Set("Filler", strings.Repeat("h", 1<<16))
	p.Publish(t.Context(), out, f.done(0))
	testkit.Until(t, "refused", func() bool { return f.count() == 1 })
	if err, _ := f.fate(0); !errors.As(err, new(*producer.TooLargeError)) {
		t.Errorf("got %v", err)
	}
}

// One forbidden publish after the other, so that each is the last error of its connection when its flush is over: none counts as
// delivered, however the goroutines that hear of it take turns.
func TestForbiddenOneByOne(t *testing.T) {
	b := startBroker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "genie", Password: "g", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"_INBOX.forbidden.*"}}}},
		}
	})
	p := newProducer(t, b.connect(nats.UserInfo("genie", "g")), producer.Limits{})
	for n := range 3000 {
		outcome := make(chan error, 1)
		p.Publish(t.Context(), producer.Outgoing{Subject: fmt.Sprint("_INBOX.forbidden.", n)}, func(_ producer.Confirmation, err error) { outcome <- err })
		var e *producer.ForbiddenError
		if err := <-outcome; !errors.As(err, &e) {
			t.Fatalf("publish %d: %v, want a ForbiddenError", n, err)
		}
	}
}

// A forbidden publish succeeds at first, also its flush. It must end as an error all the same, those published
// around it must not, and the connection's own error handler must still hear of it.
func TestForbidden(t *testing.T) {
	b := startBroker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "root", Password: "r"},
			{Username: "genie", Password: "g", Permissions: &server.Permissions{Publish: &server.SubjectPermission{
				Deny: []string{"_INBOX.forbidden.*", "genie.result.forbidden"},
			}}},
		}
	})
	b.results(b.connect(nats.UserInfo("root", "r")), 1<<30)
	var heard atomic.Int32
	nc := b.connect(nats.UserInfo("genie", "g"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { heard.Add(1) }))
	p := newProducer(t, nc, producer.Limits{})
	subjects := []string{"_INBOX.forbidden.", "_INBOX.allowed.", "genie.result.forbidden", "genie.result.allowed"}
	f, rng := newFates(t), seeded.Rand(t)
	const n = 400
	want := int32(0)
	for i := range n {
		subject := subjects[rng.IntN(len(subjects))]
		if subject[0] == '_' {
			subject += fmt.Sprint(i)
		}
		forbidden := strings.Contains(subject, "forbidden")
		if forbidden {
			want++
		}
		done := f.done(i)
		p.Publish(t.Context(), producer.Outgoing{Subject: subject, MsgID: fmt.Sprint(i)}, func(how producer.Confirmation, err error) {
			var e *producer.ForbiddenError
			switch {
			case forbidden && (!errors.As(err, &e) || e.Subject != subject || !errors.Is(err, nats.ErrPermissionViolation)):
				t.Errorf("%s: %v, want a ForbiddenError", subject, err)
			case !forbidden && err != nil:
				t.Errorf("%s: %v", subject, err)
			}
			done(how, err)
		})
	}
	testkit.Until(t, "all have a fate", func() bool { return f.count() == n })
	testkit.Until(t, "the connection's handler hears of each", func() bool { return heard.Load() >= want })
}

// Without permission to receive acknowledgements nothing can be confirmed, and the state says why.
func TestForbiddenAcknowledgements(t *testing.T) {
	b := startBroker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "root", Password: "r"},
			{Username: "genie", Password: "g", Permissions: &server.Permissions{
				Subscribe: &server.SubjectPermission{Deny: []string{"_INBOX.>"}}}},
		}
	})
	b.results(b.connect(nats.UserInfo("root", "r")), 1<<30)
	nc := b.connect(nats.UserInfo("genie", "g"))
	p := newProducer(t, nc, producer.Limits{AckTimeout: 50 * time.Millisecond})
	f := newFates(t)
	p.Publish(t.Context(), stored(0, "x"), f.done(0))
	testkit.Until(t, "the state names the subscription", func() bool {
		s := p.State()
		return s.Blocked && strings.Contains(s.Reason.Error(), "Subscription to")
	})
}

func TestInvalidSubjectIsFinal(t *testing.T) {
	b := startBroker(t)
	p := newProducer(t, b.connect(), producer.Limits{})
	f := newFates(t)
	p.Publish(t.Context(), producer.Outgoing{Subject: "a b"}, f.done(0))
	p.Publish(t.Context(), producer.Outgoing{Subject: ""}, f.done(1))
	testkit.Until(t, "refused", func() bool { return f.count() == 2 })
	for i := range 2 {
		if err, _ := f.fate(i); !errors.Is(err, nats.ErrBadSubject) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// The broker goes away and comes back again and again, with its store, in the middle of a flow of both kinds.
// Every stored result is there exactly once, every message for an inbox at least once.
func TestBrokerRestarts(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	b.results(nc, 1<<30)
	inbox := nc.NewInbox()
	got := make(map[string]bool)
	seen := make(chan string, 10_000)
	if _, err := nc.Subscribe(inbox+".*", func(m *nats.Msg) { seen <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	p := newProducer(t, nc, producer.Limits{MaxInFlight: 64, MinBackoff: 5 * time.Millisecond, AckTimeout: 2 * time.Second})
	f := newFates(t)
	const n = 2000
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range n {
			if i%2 == 0 {
				p.Publish(t.Context(), stored(i, fmt.Sprint(i)), f.done(i))
			} else {
				p.Publish(t.Context(), producer.Outgoing{Subject: inbox + ".a", Body: fmt.Append(nil, i)}, f.done(i))
			}
		}
	}()
	for round := range 4 {
		testkit.Until(t, "some are confirmed", func() bool { return f.count() >= (round+1)*n/5 })
		b.Stop()
		testkit.Until(t, "the loss is noticed", func() bool { return p.State().Blocked })
		b.Start(t)
	}
	<-published
	f.allGood(n)
	testkit.Until(t, "not blocked", func() bool { return !p.State().Blocked })
	for len(got) < n/2 { // confirmed messages arrive; doubles are allowed here
		got[<-seen] = true
	}

	nc2 := b.connect()
	sub, err := nc2.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	info, err := sub.StreamInfo("GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	if info.State.Msgs != n/2 {
		t.Errorf("%d results are stored, want %d", info.State.Msgs, n/2)
	}
}

// A connection that is lost without the server knowing: what the socket had taken is gone, and a flush on the new
// connection must not confirm it.
func TestConnectionLossRepublishes(t *testing.T) {
	b := startBroker(t)
	nc, other := b.connect(), b.connect()
	s := b.results(nc, 1<<30)
	inbox := other.NewInbox()
	seen := make(chan string, 100_000)
	if _, err := other.Subscribe(inbox, func(m *nats.Msg) { seen <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := other.Flush(); err != nil {
		t.Fatal(err)
	}
	p := newProducer(t, nc, producer.Limits{MaxInFlight: 200, MinBackoff: 5 * time.Millisecond})
	f := newFates(t)
	const n = 3000
	for i := range n {
		if i%300 == 150 {
			if err := nc.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
		if i%2 == 0 {
			p.Publish(t.Context(), stored(i, fmt.Sprint(i)), f.done(i))
		} else {
			p.Publish(t.Context(), producer.Outgoing{Subject: inbox, Body: fmt.Append(nil, i)}, f.done(i))
		}
	}
	f.allGood(n)
	got := make(map[string]bool)
	for len(got) < n/2 {
		got[<-seen] = true
	}
	if msgs := streamMessages(t, s); msgs != n/2 {
		t.Errorf("%d results are stored, want %d", msgs, n/2)
	}
}

// brokenSocket is a connection to a server that, once broken, takes nothing any more, which whoever reads from it does not notice.
type brokenSocket struct {
	net.Conn
	broken atomic.Bool
	writes atomic.Int64 // since then
}

func (s *brokenSocket) Write(data []byte) (int, error) {
	if s.broken.Load() {
		s.writes.Add(1)
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return s.Conn.Write(data)
}

// socketDialer keeps the connection that it made last.
type socketDialer struct{ last atomic.Pointer[brokenSocket] }

func (d *socketDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	s := &brokenSocket{Conn: conn}
	d.last.Store(s)
	return s, nil
}

// A large message is written to the socket where it is published, which may be broken before anybody else knows. It is not the message that is at fault, and it is
// published again.
func TestBrokenSocket(t *testing.T) {
	b := startBroker(t)
	var d socketDialer
	nc := b.connect(nats.SetCustomDialer(&d))
	s := b.results(nc, 1<<30)
	p := newProducer(t, nc, producer.Limits{MinBackoff: 5 * time.Millisecond})
	f := newFates(t)
	socket := d.last.Load()
	socket.broken.Store(true)
	p.Publish(t.Context(), stored(0, strings.Repeat("x", 200_000)), f.done(0))
	testkit.Until(t, "the socket has refused it", func() bool { return socket.writes.Load() > 0 })
	if err := socket.Close(); err != nil { // now it is noticed
		t.Fatal(err)
	}
	f.allGood(1)
	if msgs := streamMessages(t, s); msgs != 1 {
		t.Errorf("%d results are stored", msgs)
	}
}

func TestCloseWaitsForConfirmations(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	s := b.results(nc, 1<<30)
	p := newProducer(t, nc, producer.Limits{})
	f := newFates(t)
	for i := range 1000 {
		p.Publish(t.Context(), stored(i, "x"), f.done(i))
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.allGood(1000)
	if n := streamMessages(t, s); n != 1000 {
		t.Errorf("%d stored", n)
	}
	p.Publish(t.Context(), stored(0, "x"), f.done(-1))
	if err, _ := f.fate(-1); !errors.Is(err, producer.ErrClosed) {
		t.Errorf("publish after close: %v", err)
	}
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	b := startBroker(t)
	p := newProducer(t, b.connect(), producer.Limits{MaxInFlight: 2}) // no stream
	f := newFates(t)
	for i := range 2 {
		p.Publish(t.Context(), stored(i, "x"), f.done(i))
	}
	blocked := make(chan struct{})
	go func() {
		defer close(blocked)
		p.Publish(t.Context(), stored(2, "x"), f.done(2))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 messages") {
		t.Errorf("Close: %v", err)
	}
	<-blocked
	for i := range 3 {
		if err, _ := f.fate(i); !errors.Is(err, producer.ErrClosed) {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestClosedConnection(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	p := newProducer(t, nc, producer.Limits{})
	f := newFates(t)
	p.Publish(t.Context(), stored(0, "x"), f.done(0)) // no stream: it waits
	testkit.Until(t, "blocked", func() bool { return p.State().Blocked })
	nc.Close()
	testkit.Until(t, "told", func() bool { return f.count() == 1 })
	if err, _ := f.fate(0); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

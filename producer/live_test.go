package producer_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/producer"
)

// live counts how often a plain subscriber of result subjects sees each message.
type live struct {
	mu   sync.Mutex
	seen map[string]int
}

func watchLive(t testing.TB, nc *nats.Conn) *live {
	t.Helper()
	l := &live{seen: make(map[string]int)}
	if _, err := nc.Subscribe("genie.result.>", func(m *nats.Msg) {
		l.mu.Lock()
		l.seen[m.Header.Get("Nats-Msg-Id")]++
		l.mu.Unlock()
	}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) times(i int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[fmt.Sprintf("adult.%d", i)]
}

func (l *live) total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, times := range l.seen {
		n += times
	}
	return n
}

// However long a stream is full, a subscriber sees a message twice if it was on its way when the stream became full, and once
// if it came later.
func TestLiveSubscribersOfAFullStream(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	s := b.results(nc, 20_000)
	seen := watchLive(t, b.connect())
	p := newProducer(t, nc, producer.Limits{MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, AckTimeout: time.Minute})
	f := newFates(t)
	body := strings.Repeat("r", 1000)
	const early, n = 50, 100
	for i := range early {
		p.Publish(t.Context(), stored(i, body), f.done(i))
	}
	testkit.Until(t, "blocked", func() bool { return p.State().Blocked })
	for i := early; i < n; i++ {
		p.Publish(t.Context(), stored(i, body), f.done(i))
	}
	// Hundreds of pauses between attempts go by.
	time.Sleep(time.Second)
	// On a busy machine it may be known earlier, and then fewer have been on their way.
	if got := seen.total(); got == 0 || got > early {
		t.Errorf("%d live messages for at most %d that were published before it was known that the stream is full", got, early)
	}
	if s := p.State(); !s.Blocked || !strings.Contains(s.Reason.Error(), "full") {
		t.Errorf("state of a full stream: %+v", s)
	}
	var received uint64
	testkit.Until(t, "all are stored although the stream is emptied ever so often", func() bool {
		received += streamMessages(t, s)
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f.count() == n
	})
	f.allGood(n)
	testkit.Until(t, "unblocked", func() bool { return !p.State().Blocked })
	testkit.Until(t, "every message is seen", func() bool { return seen.times(n-1) > 0 })
	for i := range n {
		most := 1
		if i < early {
			most = 2
		}
		if got := seen.times(i); got < 1 || got > most {
			t.Errorf("message %d was seen %d times, at most %d is promised", i, got, most)
		}
	}
}

// A message that a bound of its subject keeps out waits alone, unseen, while others get through.
func TestLiveSubscribersOfAFullSubject(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}, MaxMsgsPerSubject: 1,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := watchLive(t, b.connect())
	p := newProducer(t, nc, producer.Limits{MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, AckTimeout: time.Minute})
	f := newFates(t)
	on := func(subject string, i int) producer.Outgoing {
		out := stored(i, "x")
		out.Subject = "genie.result." + subject
		return out
	}
	p.Publish(t.Context(), on("a", 0), f.done(0))
	f.allGood(1)
	p.Publish(t.Context(), on("a", 1), f.done(1)) // kept out
	for i := 2; i < 200; i++ {
		p.Publish(t.Context(), on(fmt.Sprint(i), i), f.done(i))
		time.Sleep(time.Millisecond)
	}
	testkit.Until(t, "the others are through", func() bool { return f.count() == 199 })
	if n := seen.times(1); n != 1 {
		t.Errorf("the message that is kept out was seen %d times", n)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSubject("genie.result.a")); err != nil {
		t.Fatal(err)
	}
	f.allGood(200)
	testkit.Until(t, "it is seen again", func() bool { return seen.times(1) > 1 })
	if n := seen.times(1); n != 2 {
		t.Errorf("the message that was kept out was seen %d times", n)
	}
}

// A stream that refuses a message for a reason that its state does not show is tried with growing pauses.
func TestLiveSubscribersOfAnUnexplainedRefusal(t *testing.T) {
	b := startBroker(t)
	nc := b.connect()
	b.results(nc, 1<<20)
	seen := watchLive(t, b.connect())
	const least, most = time.Millisecond, 20 * time.Millisecond
	p := newProducer(t, nc, producer.Limits{MinBackoff: least, MaxBackoff: most, AckTimeout: time.Minute})
	f := newFates(t)
	start := time.Now()
	out := stored(0, "x")
	out.Header.Set("Nats-Expected-Stream", "ANOTHER")
	p.Publish(t.Context(), out, f.done(0))
	time.Sleep(2 * time.Second)
	got, took := seen.times(0), time.Since(start)
	// The pauses double from 1 ms to 300.
	if bound := 2 + 10 + int(took/(15*most)); got < 2 || got > bound {
		t.Errorf("seen %d times in %v, want 2 to %d", got, took, bound)
	}
	p.Publish(t.Context(), stored(1, "x"), f.done(1)) // not held up for longer than a pause
	testkit.Until(t, "the next one is through", func() bool { _, ok := f.fate(1); return ok })
}

// Without the permission to ask the stream for its state, messages are probes, one at a time.
func TestForbiddenQuestion(t *testing.T) {
	b := startBroker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "root", Password: "r"},
			{Username: "genie", Password: "g", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"$JS.API.>"}}}},
		}
	})
	s := b.results(b.connect(nats.UserInfo("root", "r")), 20_000)
	p := newProducer(t, b.connect(nats.UserInfo("genie", "g")), producer.Limits{MinBackoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, AckTimeout: time.Minute})
	f := newFates(t)
	const n = 100
	for i := range n {
		p.Publish(t.Context(), stored(i, strings.Repeat("r", 1000)), f.done(i))
	}
	testkit.Until(t, "blocked", func() bool { return p.State().Blocked })
	testkit.Until(t, "all are stored although the stream is emptied ever so often", func() bool {
		if err := s.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		return f.count() == n
	})
	f.allGood(n)
	testkit.Until(t, "unblocked", func() bool { return !p.State().Blocked })
}

package producer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/producer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a server that can be stopped and started again on the same port and store.
type broker struct {
	*testkit.Broker
	t testing.TB
}

func startBroker(t testing.TB, change ...func(*server.Options)) *broker {
	t.Helper()
	return &broker{testkit.StartBroker(t, change...), t}
}

func (b *broker) connect(opts ...nats.Option) *nats.Conn {
	b.t.Helper()
	return testkit.Connect(b.t, b.URL(), opts...)
}

func (b *broker) results(nc *nats.Conn, maxBytes int64) jetstream.Stream {
	b.t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := js.CreateStream(b.t.Context(), jetstream.StreamConfig{
		Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}, Storage: jetstream.FileStorage,
		MaxBytes: maxBytes, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// fates collects what done functions are called with, and fails the test when one is called twice.
type fates struct {
	t    testing.TB
	mu   sync.Mutex
	errs map[int]error
	hows map[int]producer.Confirmation
}

func newFates(t testing.TB) *fates {
	return &fates{t: t, errs: make(map[int]error), hows: make(map[int]producer.Confirmation)}
}

func (f *fates) done(i int) func(producer.Confirmation, error) {
	return func(how producer.Confirmation, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, twice := f.errs[i]; twice {
			f.t.Errorf("done of message %d was called twice", i)
		}
		f.errs[i], f.hows[i] = err, how
	}
}

func (f *fates) confirmation(i int) producer.Confirmation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hows[i]
}

func (f *fates) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs)
}

func (f *fates) fate(i int) (error, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err, ok := f.errs[i]
	return err, ok
}

func (f *fates) allGood(n int) {
	f.t.Helper()
	testkit.Until(f.t, "every message has its fate", func() bool { return f.count() == n })
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, err := range f.errs {
		if err != nil {
			f.t.Errorf("message %d: %v", i, err)
		}
	}
}

func streamMessages(t testing.TB, s jetstream.Stream) uint64 {
	t.Helper()
	info, err := s.Info(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

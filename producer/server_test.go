package producer_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/producer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a real nats-server that can be stopped and started again on the same port and store.
type broker struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
}

func startBroker(t testing.TB, change ...func(*server.Options)) *broker {
	t.Helper()
	b := &broker{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true,
	}}
	for _, c := range change {
		c(&b.opts)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	opts := b.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		b.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		b.t.Fatal("the nats-server does not start")
	}
	b.srv = srv
	b.opts.Port = srv.Addr().(*net.TCPAddr).Port
}

func (b *broker) stop() {
	b.srv.Shutdown()
	b.srv.WaitForShutdown()
}

func (b *broker) connect(opts ...nats.Option) *nats.Conn {
	b.t.Helper()
	url := "nats://127.0.0.1:" + strconv.Itoa(b.opts.Port)
	nc, err := nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
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

// until waits for a condition; the test's own deadline is the only one.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for !cond() {
		select {
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
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
	until(f.t, "every message has its fate", func() bool { return f.count() == n })
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

package consumer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(workerEnv); url != "" { // the process that TestKilledWorker kills
		runWorker(url)
		return
	}
	goleak.VerifyTestMain(m)
}

// broker is a server that can be stopped and started again on the same port and store.
type broker struct {
	*testkit.Broker
	t testing.TB
}

func startBroker(t testing.TB, change ...func(*server.Options)) *broker {
	t.Helper()
	return &broker{testkit.StartBroker(t, change...), t}
}

func (b *broker) connect(opts ...nats.Option) jetstream.JetStream {
	b.t.Helper()
	return testkit.JetStream(b.t, b.URL(), opts...)
}

// withStreams also makes the streams.
func (b *broker) withStreams() jetstream.JetStream {
	b.t.Helper()
	js := b.connect()
	if _, err := streams.Ensure(b.t.Context(), js, new(streams.Settings).Configs(wire.Subjects{})); err != nil {
		b.t.Fatal(err)
	}
	return js
}

func publish(t testing.TB, js jetstream.JetStream, index string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		msg := &nats.Msg{Subject: "genie.query." + index, Data: fmt.Append(nil, i), Header: nats.Header{
			"N": {fmt.Sprint(i)}, nats.MsgIdHdr: {nats.NewInbox()},
		}}
		// What is sent while the connection comes back after a restart may be lost; with an id it can be sent again.
		var err error
		for range 20 {
			if _, err = js.PublishMsg(t.Context(), msg); !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func queryStream(t testing.TB, js jetstream.JetStream) *jetstream.StreamInfo {
	t.Helper()
	s, err := js.Stream(context.WithoutCancel(t.Context()), "GENIE_QUERIES")
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo()
}

func durable(t testing.TB, js jetstream.JetStream) *jetstream.ConsumerInfo {
	t.Helper()
	c, err := js.Consumer(context.WithoutCancel(t.Context()), "GENIE_QUERIES", "geniemq-adult")
	if err != nil {
		t.Fatal(err)
	}
	return c.CachedInfo()
}

// worker runs a consumer and collects what it delivers.
type worker struct {
	*consumer.Consumer
	t        testing.TB
	mu       sync.Mutex
	got      []*consumer.Message
	settle   func(*consumer.Message) error
	returned chan struct{}
}

// startWorker starts a consumer of index adult whose messages are settled by settle, or only collected if that is nil.
func startWorker(t testing.TB, js jetstream.JetStream, opts consumer.Options, settle func(*consumer.Message) error, limits ...consumer.Limits) *worker {
	t.Helper()
	w := &worker{t: t, settle: settle, returned: make(chan struct{})}
	if opts.Index == "" {
		opts.Index = "adult"
	}
	c, err := consumer.New(js, opts, w.deliver)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range limits {
		c.Limit(l)
	}
	w.Consumer = c
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(w.returned)
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-w.returned
	})
	return w
}

func (w *worker) deliver(_ context.Context, m *consumer.Message) {
	w.mu.Lock()
	w.got = append(w.got, m)
	w.mu.Unlock()
	if w.settle != nil {
		if err := w.settle(m); err != nil {
			w.t.Errorf("settle message %d: %v", m.Sequence, err)
		}
	}
}

func (w *worker) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

func (w *worker) message(i int) *consumer.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got[i]
}

func (w *worker) waitFor(n int) {
	w.t.Helper()
	testkit.Until(w.t, fmt.Sprintf("%d messages arrive", n), func() bool { return w.count() >= n })
}

func ack(m *consumer.Message) error { return m.Ack() }

// proxy is a TCP proxy between client and server that can be cut.
type proxy struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	down     bool
	silent   bool
	lost     []byte // what was sent through it while it was silent
	conns    []net.Conn
	wg       sync.WaitGroup
}

func startProxy(t testing.TB, b *broker) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: b.Address()}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		out, err := net.Dial("tcp", p.target)
		if p.down || err != nil {
			in.Close()
			if err == nil {
				out.Close()
			}
			p.mu.Unlock()
			continue
		}
		p.conns = append(p.conns, in, out)
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			p.wg.Go(func() {
				io.Copy(muted{p, pair[0]}, pair[1])
				pair[0].Close()
				pair[1].Close()
			})
		}
		p.mu.Unlock()
	}
}

// cut breaks all connections and refuses new ones until mended.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.silent = false, false
}

// mute loses what is sent, without anyone noticing, until mended.
func (p *proxy) mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

func (p *proxy) hasLost(s string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Contains(p.lost, []byte(s))
}

type muted struct {
	p *proxy
	w io.Writer
}

func (m muted) Write(b []byte) (int, error) {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	if m.p.silent {
		m.p.lost = append(m.p.lost, b...)
		return len(b), nil
	}
	return m.w.Write(b)
}

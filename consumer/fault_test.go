package consumer_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// The broker goes away and comes back, with its store, while messages are outstanding and more wait. Nothing is lost,
// and what is outstanding stays so: it is not delivered to the owner again.
func TestBrokerRestarts(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 90)
	var states atomic.Int32
	w := startWorker(t, js, consumer.Options{
		OnState: func(error) { states.Add(1) },
	}, nil, consumer.Limits{Messages: 30, PullExpiry: 200 * time.Millisecond})
	for round := range 3 {
		w.waitFor(30 * (round + 1))
		b.Stop()
		testkit.Until(t, "the loss shows", func() bool { return w.Progress().Err != nil })
		b.Start(t)
		testkit.Until(t, "it recovers", func() bool { return w.Progress().Err == nil })
		for i := 30 * round; i < 30*(round+1); i++ {
			if err := w.message(i).Ack(); err != nil {
				t.Error(err)
			}
		}
		// A server that stops forgets the acks that it has only queued, and delivers their messages again.
		left := uint64(90 - 30*(round+1))
		testkit.Until(t, "what was acked is gone", func() bool { return queryStream(t, js).State.Msgs == left })
	}
	if s := w.Stats(); w.count() != 90 || s.Redelivered != 0 {
		t.Errorf("%d deliveries of 90 messages, %+v", w.count(), s)
	}
	if states.Load() < 6 {
		t.Errorf("%d changes of state were announced, want 6 at least", states.Load())
	}
}

// The server goes away while a request to it, whose answer never comes, is under way, and while a pull is open. After the
// restart neither is waited for.
func TestRestartDuringARequest(t *testing.T) {
	b := startBroker(t)
	p := startProxy(t, b)
	js := b.withStreams()
	w := startWorker(t, testkit.JetStream(t, p.url()), consumer.Options{
		InfoInterval: 10 * time.Millisecond,
	}, ack, consumer.Limits{PullExpiry: 24 * time.Hour, RequestTimeout: 24 * time.Hour})
	publish(t, js, "adult", 0, 1)
	w.waitFor(1)
	p.mute()
	testkit.Until(t, "a request or its answer is lost", func() bool { return p.hasLost("CONSUMER.INFO") || p.hasLost("consumer_info") })
	b.Stop()
	p.cut()
	b.Start(t)
	p.mend()
	publish(t, js, "adult", 1, 2)
	w.waitFor(2)
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// A request of which nothing comes is made again, and only several in a row are a fault: a server on a busy host may stand still for a moment.
func TestRequestIsLost(t *testing.T) {
	b := startBroker(t)
	p := startProxy(t, b)
	js := b.withStreams()
	var faults atomic.Int32
	w := startWorker(t, testkit.JetStream(t, p.url()), consumer.Options{
		InfoInterval: time.Hour,
		OnState: func(err error) {
			if err != nil {
				faults.Add(1)
			}
		},
	}, ack, consumer.Limits{PullExpiry: 2 * time.Second})
	publish(t, js, "adult", 0, 1)
	w.waitFor(1)
	p.mute()
	testkit.Until(t, "a request or its end is lost", func() bool { return p.hasLost("CONSUMER.MSG.NEXT") || p.hasLost("NATS/1.0 408") })
	p.mend()
	publish(t, js, "adult", 1, 6)
	w.waitFor(6)
	if n := faults.Load(); n != 0 {
		t.Errorf("%d faults of a lost request", n)
	}
	p.mute()
	testkit.Until(t, "that nothing comes any more is a fault", func() bool { return w.Progress().Err != nil })
	p.mend()
	testkit.Until(t, "it recovers", func() bool { return w.Progress().Err == nil })
	publish(t, js, "adult", 6, 7)
	w.waitFor(7)
}

// The connection is gone for longer than AckWait. The server delivers the messages again, to the same worker; its
// owner, who still has them, must not see them twice, and its acks must count.
func TestRedeliveryOfOutstandingMessages(t *testing.T) {
	b := startBroker(t)
	p := startProxy(t, b)
	js := b.withStreams()
	publish(t, js, "adult", 0, 20)
	w := startWorker(t, testkit.JetStream(t, p.url()), consumer.Options{AckWait: time.Second}, nil, consumer.Limits{PullExpiry: 300 * time.Millisecond})
	w.waitFor(20)
	p.cut()
	time.Sleep(2 * time.Second)
	p.mend()
	testkit.Until(t, "the server delivers them again", func() bool { return w.Stats().Redelivered >= 20 })
	if w.count() != 20 {
		t.Errorf("%d deliveries to the owner of 20 messages", w.count())
	}
	for i := range 20 {
		if err := w.message(i).Ack(); err != nil {
			t.Error(err)
		}
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

func TestDurableIsMadeAnew(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 10)
	w := startWorker(t, js, consumer.Options{InfoInterval: 100 * time.Millisecond}, nil, consumer.Limits{Messages: 20})
	w.waitFor(10)
	if err := js.DeleteConsumer(t.Context(), "GENIE_QUERIES", "geniemq-adult"); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "adult", 10, 15)
	w.waitFor(15)
	// The new durable delivers the first ten again, which are here already.
	testkit.Until(t, "the new durable has delivered all", func() bool { return durable(t, js).NumAckPending == 15 })
	for i := range 15 {
		if err := w.message(i).Ack(); err != nil {
			t.Error(err)
		}
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	if w.count() != 15 {
		t.Errorf("%d deliveries to the owner of 15 messages", w.count())
	}
	testkit.Until(t, "no trouble is left", func() bool { return w.Progress().Err == nil })
}

// The stream is deleted and made anew, and counts from 1 again. An ack for an old message must not delete the new one
// of that number, and new messages must not carry the old stream's time, on which the identity of answers rests.
func TestStreamIsMadeAnew(t *testing.T) {
	for _, how := range []string{"at once", "after the consumer has noticed", "by a server that lost its store"} {
		t.Run(how, func(t *testing.T) {
			b := startBroker(t)
			js := b.withStreams()
			publish(t, js, "adult", 0, 10)
			old := queryStream(t, js).Created
			w := startWorker(t, js, consumer.Options{InfoInterval: 50 * time.Millisecond}, nil, consumer.Limits{MaxBackoff: 50 * time.Millisecond})
			w.waitFor(10)
			if strings.HasPrefix(how, "by a server") {
				b.Stop()
				b.Options.StoreDir = t.TempDir()
				b.Start(t)
			} else if err := js.DeleteStream(t.Context(), "GENIE_QUERIES"); err != nil {
				t.Fatal(err)
			}
			if how != "at once" {
				testkit.Until(t, "the error is clear", func() bool {
					err := w.Progress().Err
					return err != nil && strings.Contains(err.Error(), "stream GENIE_QUERIES does not exist")
				})
			}
			b.withStreams()
			publish(t, js, "adult", 100, 110)
			w.waitFor(20)
			created := queryStream(t, js).Created
			for i := range 20 {
				m := w.message(i)
				if i < 10 {
					if err := m.Ack(); !errors.Is(err, consumer.ErrGone) {
						t.Errorf("Ack of a message of the old stream: %v", err)
					}
				} else if !m.StreamCreated.Equal(created) || m.StreamCreated.Equal(old) || string(m.Body) != fmt.Sprint(90+i) {
					t.Errorf("message %d: %q of %v", i, m.Body, m.StreamCreated)
				}
			}
			if n := queryStream(t, js).State.Msgs; n != 10 {
				t.Errorf("%d new messages are left, want all 10", n)
			}
			for i := range 10 {
				w.message(10 + i).Ack()
			}
			testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
		})
	}
}

// Another worker makes stream and durable anew while this one holds back and so asks the server for nothing.
func TestStreamIsMadeAnewWhileHolding(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 5)
	w := startWorker(t, js, consumer.Options{InfoInterval: time.Hour}, nil, consumer.Limits{PullExpiry: 100 * time.Millisecond})
	w.waitFor(5)
	w.Hold(true)
	testkit.Until(t, "nothing is asked for", func() bool { return durable(t, js).NumWaiting == 0 })
	if err := js.DeleteStream(t.Context(), "GENIE_QUERIES"); err != nil {
		t.Fatal(err)
	}
	b.withStreams()
	other := startWorker(t, b.connect(), consumer.Options{}, ack)
	testkit.Until(t, "the other has made the durable", func() bool { return other.Progress().Err == nil })
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "adult", 100, 105)
	w.Hold(false)
	w.waitFor(10)
	created := queryStream(t, js).Created
	for i := 5; i < 10; i++ {
		if m := w.message(i); !m.StreamCreated.Equal(created) {
			t.Errorf("a message of the new stream says it is of one of %v, not %v", m.StreamCreated, created)
		}
	}
}

// The end of the connection is not the end of Run, which has an owner, but shows.
func TestClosedConnection(t *testing.T) {
	b := startBroker(t)
	b.withStreams()
	js := b.connect()
	w := startWorker(t, js, consumer.Options{}, nil)
	publish(t, js, "adult", 0, 2)
	w.waitFor(2)
	js.Conn().Close()
	testkit.Until(t, "it shows", func() bool {
		err := w.Progress().Err
		return err != nil && strings.Contains(err.Error(), "closed")
	})
	if err := w.message(0).Ack(); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("Ack: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Stop(ctx); err == nil {
		t.Error("Stop says that nothing was given back")
	}
}

const workerEnv = "GENIEMQ_TEST_CONSUMER_URL"

// runWorker is a worker process that holds its messages until it is killed.
func runWorker(url string) {
	nc, err := nats.Connect(url)
	if err == nil {
		var js jetstream.JetStream
		if js, err = jetstream.New(nc); err == nil {
			var c *consumer.Consumer
			c, err = consumer.New(js, consumer.Options{Index: "adult", AckWait: time.Second}, func(_ context.Context, m *consumer.Message) {
				if m.Sequence%2 == 0 {
					m.Ack()
					nc.Flush()
				}
				fmt.Println(m.Sequence)
			})
			if err == nil {
				err = c.Run(context.Background())
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Worker processes are killed with signal 9 while they hold messages. What they had acked is gone, everything else
// comes to the next one, with its deliveries counted.
func TestKilledWorker(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 20)
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), workerEnv+"="+b.URL())
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		want := 20
		if round > 0 {
			want = 10
		}
		lines := bufio.NewScanner(out)
		for i := range want {
			if !lines.Scan() {
				t.Fatalf("round %d: the worker ended after %d messages: %v", round, i, lines.Err())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		// The server has the acks, but takes them from a queue of its own.
		testkit.Until(t, "what was acked is gone", func() bool { return queryStream(t, js).State.Msgs <= 10 })
		if n := queryStream(t, js).State.Msgs; n != 10 {
			t.Fatalf("round %d: %d messages are left, want 10", round, n)
		}
	}
	w := startWorker(t, js, consumer.Options{AckWait: time.Second}, nil)
	w.waitFor(10)
	for i := range 10 {
		m := w.message(i)
		if m.Delivered != 4 || m.Sequence%2 != 1 {
			t.Errorf("message %d: delivery %d, want 4", m.Sequence, m.Delivered)
		}
		m.Ack()
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// Dead letters are confirmed before the message is termed: without their stream the message stays.
func TestDeadLetter(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	msg := &nats.Msg{Subject: "genie.query.adult", Data: []byte("poison"), Header: nats.Header{
		"Nats-Msg-Id": {"q-1"}, "Genie-Reply": {"genie.result.adult.x"}, "Nats-Expected-Stream": {"GENIE_QUERIES"},
		"Genie-Dead-Reason": {"a lie"},
	}}
	if _, err := js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "GENIE_DEAD"); err != nil {
		t.Fatal(err)
	}
	w := startWorker(t, js, consumer.Options{}, nil)
	w.waitFor(1)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := w.message(0).Dead(ctx, "internal", "the engine\ngave up"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dead without a stream: %v", err)
	}
	if w.Progress().Outstanding != 1 || queryStream(t, js).State.Msgs != 1 {
		t.Error("the message did not stay")
	}
	b.withStreams()
	if err := w.message(0).Dead(t.Context(), "internal", "the engine\ngave up"); err != nil {
		t.Fatal(err)
	}
	if err := w.message(0).Dead(t.Context(), "internal", ""); !errors.Is(err, consumer.ErrSettled) {
		t.Errorf("Dead twice: %v", err)
	}
	testkit.Until(t, "it is gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	dead := deadLetters(t, js, "adult")
	if len(dead) != 1 {
		t.Fatalf("%d dead letters", len(dead))
	}
	for name, want := range map[string]string{
		"Genie-Dead-Reason": "internal", "Genie-Dead-Detail": "the engine gave up", "Genie-Dead-Subject": "genie.query.adult",
		"Genie-Dead-Sequence": "1", "Genie-Dead-Delivered": "1", "Genie-Dead-Msg-Id": "q-1", "Genie-Dead-Size": "",
		"Genie-Reply": "genie.result.adult.x", "Nats-Expected-Stream": "",
	} {
		if got := dead[0].Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if string(dead[0].Data) != "poison" {
		t.Errorf("body %q", dead[0].Data)
	}
}

// A message may have as many bytes as the server takes, and as many headers as JetStream takes. Its dead letter has
// more headers and must fit too.
func TestDeadLetterFits(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	if _, err := js.UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: "GENIE_DEAD", Subjects: []string{"genie.dead.*"}, MaxMsgSize: 200_000,
	}); err != nil {
		t.Fatal(err)
	}
	huge := &nats.Msg{Subject: "genie.query.adult", Data: make([]byte, 1<<20-100), Header: nats.Header{"A": {"1"}}}
	headers := &nats.Msg{Subject: "genie.query.adult", Data: []byte("h"), Header: nats.Header{"A": {strings.Repeat("a", 60_000)}, "B": {"2"}}}
	for _, m := range []*nats.Msg{huge, headers} {
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorker(t, js, consumer.Options{}, func(m *consumer.Message) error {
		return m.Dead(context.Background(), "too_large", strings.Repeat("é", 70_000))
	})
	w.waitFor(2)
	testkit.Until(t, "both are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	dead := deadLetters(t, js, "adult")
	if len(dead) != 2 {
		t.Fatalf("%d dead letters", len(dead))
	}
	if d := dead[0]; d.Header.Get("Genie-Dead-Size") != fmt.Sprint(1<<20-100) || len(d.Data) < 50_000 || d.Header.Get("A") != "1" {
		t.Errorf("copy of the huge one: %d bytes, size %q", len(d.Data), d.Header.Get("Genie-Dead-Size"))
	}
	if d := dead[1]; string(d.Data) != "h" || d.Header.Get("A") != "" || d.Header.Get("B") != "2" {
		t.Errorf("copy of the one with many headers: %v", d.Header)
	}
}

func deadLetters(t *testing.T, js jetstream.JetStream, index string) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	s, err := js.Stream(t.Context(), wire.Subjects{}.DeadStream())
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); ; seq++ {
		m, err := s.GetMsg(t.Context(), seq, jetstream.WithGetMsgSubject("genie.dead."+index))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
		seq = m.Sequence
	}
}

package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
)

func TestMessagesAreDeliveredAndAcked(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 300)
	publish(t, js, "other", 0, 3) // of no concern here
	w := startWorker(t, js, consumer.Options{}, ack)
	w.waitFor(300)
	testkit.Until(t, "the server has deleted them", func() bool { return queryStream(t, js).State.Msgs == 3 })
	created := queryStream(t, js).Created
	for i := range 300 {
		m := w.message(i)
		if string(m.Body) != fmt.Sprint(i) || m.Header.Get("N") != fmt.Sprint(i) || m.Subject != "genie.query.adult" ||
			m.Sequence != uint64(i+1) || m.Delivered != 1 || !m.StreamCreated.Equal(created) || m.Timestamp.Before(created) {
			t.Fatalf("message %d: %+v", i, m)
		}
	}
	if err := w.message(0).Ack(); !errors.Is(err, consumer.ErrSettled) {
		t.Errorf("second Ack: %v", err)
	}
	if s := w.Stats(); s.Redelivered != 0 {
		t.Errorf("stats: %+v", s)
	}
	if p := w.Progress(); p.Err != nil || p.LastPull.IsZero() || p.Outstanding != 0 || p.Bytes != 0 {
		t.Errorf("progress: %+v", p)
	}
	want := durable(t, js).Config
	if want.AckWait != 30*time.Second || want.MaxAckPending != 8192 || want.MaxDeliver != -1 || want.FilterSubject != "genie.query.adult" {
		t.Errorf("durable: %+v", want)
	}
}

// heldLong is an AckWait that a busy machine does not let pass between two signs of life, which come every sixth of it.
const heldLong = 4 * time.Second

// Messages are held for longer than AckWait: those that the owner has, and those that wait because the owner's
// deliver function blocks. None is delivered again.
func TestSlowOwnerKeepsItsMessages(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 50)
	release := make(chan struct{})
	var delivered atomic.Int32
	w := startWorker(t, js, consumer.Options{AckWait: heldLong}, func(m *consumer.Message) error {
		if delivered.Add(1) == 10 {
			<-release
		}
		return nil
	})
	testkit.Until(t, "all are outstanding", func() bool { return w.Progress().Outstanding == 50 })
	time.Sleep(5 * heldLong / 2)
	close(release)
	w.waitFor(50)
	for i := range 50 {
		if m := w.message(i); m.Delivered != 1 || m.Ack() != nil {
			t.Errorf("message %d was delivered %d times", i, m.Delivered)
		}
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	if s := w.Stats(); s.Redelivered != 0 {
		t.Errorf("stats: %+v", s)
	}
}

func TestWindowBoundsWhatIsPulled(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 100)
	w := startWorker(t, js, consumer.Options{}, nil, consumer.Limits{Messages: 10})
	w.waitFor(10)
	settled := 0
	for ; settled < 5; settled++ {
		if err := w.message(settled).Ack(); err != nil {
			t.Fatal(err)
		}
		w.waitFor(10 + settled + 1)
	}
	if n := durable(t, js).NumAckPending; n > 10 {
		t.Errorf("%d messages are with a consumer that may have 10", n)
	}
	testkit.Until(t, "the window is full again", func() bool { return durable(t, js).NumAckPending == 10 })
	if n := w.count(); n != 15 {
		t.Errorf("%d messages were delivered, want 15", n)
	}
	w.Hold(true)
	for ; settled < 15; settled++ {
		w.message(settled).Ack()
	}
	testkit.Until(t, "nothing is outstanding", func() bool { return w.Progress().Outstanding == 0 })
	w.Hold(false)
	for ; settled < 100; settled++ {
		w.waitFor(settled + 1)
		w.message(settled).Ack()
	}
}

// A window in bytes that is smaller than a message must not stop everything, and holds otherwise.
func TestWindowInBytes(t *testing.T) {
	for _, tt := range []struct {
		window, limit int64
		first         int // how many messages come before any is settled
	}{{10, 110_000, 1}, {500_000, 500_000, 4}} { // in the first, one message of the largest size
		b := startBroker(t, func(o *server.Options) { o.MaxPayload = 100_000 })
		js := b.withStreams()
		body := []byte(strings.Repeat("b", 90_000))
		for range 20 {
			if _, err := js.Publish(t.Context(), "genie.query.adult", body); err != nil {
				t.Fatal(err)
			}
		}
		w := startWorker(t, js, consumer.Options{Bytes: tt.window}, nil)
		w.waitFor(tt.first)
		for i := range 20 {
			w.waitFor(i + 1)
			if p := w.Progress(); p.Bytes > tt.limit {
				t.Errorf("%d bytes are outstanding", p.Bytes)
			}
			w.message(i).Ack()
		}
		testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	}
}

// A window that is granted anew holds for what is asked for next: a wider one lets more come, a narrower one waits until less is outstanding.
func TestGrant(t *testing.T) {
	b := startBroker(t, func(o *server.Options) { o.MaxPayload = 100_000 })
	js := b.withStreams()
	body := []byte(strings.Repeat("b", 90_000))
	for range 20 {
		if _, err := js.Publish(t.Context(), "genie.query.adult", body); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorker(t, js, consumer.Options{Bytes: 10}, nil)
	w.waitFor(1)
	if p := w.Progress(); p.Outstanding != 1 {
		t.Errorf("%d messages are outstanding in a window of one", p.Outstanding)
	}
	w.Grant(500_000, 500_000)
	w.waitFor(4)
	w.Grant(10, 10)
	for i := range 20 {
		w.waitFor(i + 1)
		if p := w.Progress(); i >= 6 && p.Outstanding > 1 {
			t.Errorf("%d messages are outstanding after message %d in a window of one", p.Outstanding, i)
		}
		w.message(i).Ack()
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// slowly is a connection that takes 64 KiB a millisecond from the server.
type slowly struct{ net.Conn }

func (c slowly) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return c.Conn.Read(b[:min(len(b), 64<<10)])
}

type slowDialer struct{}

func (slowDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return slowly{conn}, err
}

// A backlog that the window has room for, but that is more than the server keeps for a client, comes whole: the server does not
// cut the connection off, and no delivery is spent.
func TestBacklogIsPulledInPieces(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	const messages = 80
	body := make([]byte, 1<<20-100)
	for range messages {
		if _, err := js.Publish(t.Context(), "genie.query.adult", body); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorker(t, b.connect(nats.SetCustomDialer(slowDialer{})), consumer.Options{}, nil)
	w.waitFor(messages)
	if n, s := b.Server().NumSlowConsumers(), w.Stats(); n != 0 || s.Redelivered != 0 {
		t.Errorf("cut off %d times, %d messages came again", n, s.Redelivered)
	}
}

// A request for more than MaxAckPending allows must neither wait for its time-out nor stop: with an expiry of an hour,
// waiting for it would be waiting for ever.
func TestTinyMaxAckPending(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 200)
	w := startWorker(t, js, consumer.Options{MaxAckPending: 2}, nil, consumer.Limits{Messages: 100, PullExpiry: time.Hour})
	for i := range 200 {
		w.waitFor(i + 1)
		if err := w.message(i).Ack(); err != nil {
			t.Fatal(err)
		}
	}
	if c := durable(t, js).Config; c.MaxAckPending != 2 {
		t.Errorf("max_ack_pending %d", c.MaxAckPending)
	}
}

func TestMaxAckPendingIsFourBatches(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	w := startWorker(t, js, consumer.Options{BatchMessages: 5000}, ack)
	testkit.Until(t, "running", func() bool { return w.Progress().Err == nil })
	if c := durable(t, js).Config; c.MaxAckPending != 20_000 {
		t.Errorf("max_ack_pending %d", c.MaxAckPending)
	}
}

func TestNakCountsDeliveries(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 3)
	w := startWorker(t, js, consumer.Options{}, func(m *consumer.Message) error {
		switch {
		case m.Delivered < 4 && m.Sequence == 1:
			return m.Nak(0)
		case m.Delivered < 2 && m.Sequence == 2:
			return m.Nak(20 * time.Millisecond)
		}
		return m.Ack()
	})
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	deliveries := map[uint64]int{}
	for i := range w.count() {
		m := w.message(i)
		if deliveries[m.Sequence]++; m.Delivered != deliveries[m.Sequence] {
			t.Errorf("message %d says delivery %d at delivery %d", m.Sequence, m.Delivered, deliveries[m.Sequence])
		}
	}
	if deliveries[1] != 4 || deliveries[2] != 2 || deliveries[3] != 1 {
		t.Errorf("deliveries %v", deliveries)
	}
	if s := w.Stats(); s.Redelivered != 4 {
		t.Errorf("stats %+v", s)
	}
}

func TestTermIsNeverDeliveredAgain(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 1)
	w := startWorker(t, js, consumer.Options{}, func(m *consumer.Message) error { return m.Term("bad\r\nrequest") })
	w.waitFor(1)
	testkit.Until(t, "it is gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// Who waits for the server's word on a settlement finds the message gone; without a server it is not confirmed.
func TestConfirmedSettlements(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 2)
	left := make(chan uint64, 2)
	w := startWorker(t, js, consumer.Options{}, func(m *consumer.Message) error {
		settle := m.AckSync
		if m.Sequence == 2 {
			settle = func(ctx context.Context) error { return m.TermSync(ctx, "bad\r\nrequest") }
		}
		err := settle(t.Context())
		left <- queryStream(t, js).State.Msgs
		if again := m.AckSync(t.Context()); !errors.Is(again, consumer.ErrSettled) {
			t.Errorf("a second time: %v", again)
		}
		return err
	})
	w.waitFor(2)
	if first, second := <-left, <-left; first != 1 || second != 0 {
		t.Errorf("%d and %d messages are left after each was confirmed to be gone", first, second)
	}

	held := make(chan *consumer.Message, 1)
	publish(t, js, "other", 0, 1)
	startWorker(t, js, consumer.Options{Index: "other"}, func(m *consumer.Message) error {
		held <- m
		return nil
	}, consumer.Limits{RequestTimeout: 200 * time.Millisecond})
	m := <-held
	b.Stop()
	if err := m.AckSync(t.Context()); err == nil {
		t.Error("confirmed without a server")
	}
}

// A user chooses headers and body. The library takes an empty body with a header "Status" for the server's word.
func TestMessageThatLooksLikeAControlMessage(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	for _, status := range []string{"404", "408", "409", "503"} {
		msg := &nats.Msg{Subject: "genie.query.adult", Header: nats.Header{"Status": {status}, "Description": {"Consumer Deleted"}}}
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	w := startWorker(t, js, consumer.Options{}, ack)
	w.waitFor(4)
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// The server is started again with a max_payload below the size of a message that it has stored.
func TestStoredMessageLargerThanMaxPayload(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	if _, err := js.Publish(t.Context(), "genie.query.adult", make([]byte, 900_000)); err != nil {
		t.Fatal(err)
	}
	b.Stop()
	b.Options.MaxPayload = 10_000
	b.Start(t)
	w := startWorker(t, b.connect(), consumer.Options{Bytes: 1}, ack)
	w.waitFor(1)
	testkit.Until(t, "it is gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

func TestWorkersShareTheDurable(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	var workers []*worker
	var mu sync.Mutex
	seen := map[uint64]int{}
	for range 3 {
		workers = append(workers, startWorker(t, b.connect(), consumer.Options{}, func(m *consumer.Message) error {
			mu.Lock()
			seen[m.Sequence]++
			mu.Unlock()
			return m.Ack()
		}, consumer.Limits{Messages: 16}))
	}
	publish(t, js, "adult", 0, 2000)
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	if len(seen) != 2000 {
		t.Errorf("%d of 2000 messages were delivered", len(seen))
	}
	for seq, n := range seen {
		if n != 1 {
			t.Errorf("message %d was delivered %d times", seq, n)
		}
	}
	for i, w := range workers {
		if w.count() == 0 {
			t.Errorf("worker %d got nothing", i)
		}
	}
}

func TestStopFinishesWhatIsThere(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 100)
	w := startWorker(t, js, consumer.Options{}, nil, consumer.Limits{Messages: 10, PullExpiry: 100 * time.Millisecond})
	w.waitFor(10)
	stopped := make(chan error)
	go func() { stopped <- w.Stop(t.Context()) }()
	testkit.Until(t, "it is stopping", func() bool { return w.Progress().Err != nil })
	for i := 1; i < 10; i++ {
		w.message(i).Ack()
	}
	time.Sleep(200 * time.Millisecond)
	select {
	case err := <-stopped:
		t.Fatalf("Stop returned (%v) although a message is outstanding", err)
	default:
	}
	w.message(0).Ack()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	<-w.returned
	testkit.Until(t, "none is with no one", func() bool { return durable(t, js).NumAckPending == 0 })
	testkit.Until(t, "what was acked is gone", func() bool { return queryStream(t, js).State.Msgs <= 90 })
	if n := queryStream(t, js).State.Msgs; n != 90 || w.count() != 10 {
		t.Errorf("%d messages are left, %d were delivered", n, w.count())
	}
}

// Stop does not wait for the end of a request that nothing comes of.
func TestStopIsPrompt(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	w := startWorker(t, js, consumer.Options{}, ack, consumer.Limits{PullExpiry: 24 * time.Hour})
	publish(t, js, "adult", 0, 3)
	w.waitFor(3)
	testkit.Until(t, "it pulls", func() bool { return durable(t, js).NumWaiting == 1 })
	if err := w.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// Messages that are sent to workers as they stop are not lost, which would show after an hour only.
func TestStopWhileMessagesCome(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	const messages = 1000
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range messages {
			publish(t, js, "adult", i, i+1)
			if i%10 == 0 { // long enough for a request to be withdrawn, now and then
				time.Sleep(time.Duration(i%40) * time.Millisecond)
			}
		}
	}()
	conn := b.connect()
	opts := consumer.Options{AckWait: time.Hour}
	brief := consumer.Limits{PullExpiry: 100 * time.Millisecond}
	for stopping := true; stopping; {
		select {
		case <-published:
			stopping = false
		default:
		}
		w := startWorker(t, conn, opts, ack, brief)
		testkit.Until(t, "it pulls", func() bool { return w.Progress().Err == nil })
		if err := w.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	startWorker(t, conn, opts, ack, brief)
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

// While an idle consumer stops, what still arrives is delivered like anything else.
func TestStopOfAnIdleConsumer(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	opts := consumer.Options{AckWait: time.Hour} // what is nobody's would come back too late for this test
	w := startWorker(t, js, opts, ack, consumer.Limits{PullExpiry: 300 * time.Millisecond})
	testkit.Until(t, "it runs", func() bool { return w.Progress().Err == nil })
	testkit.Until(t, "it pulls", func() bool { return durable(t, js).NumWaiting == 1 })
	stopped := make(chan error)
	go func() { stopped <- w.Stop(t.Context()) }()
	publish(t, js, "adult", 0, 5)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	// The server may have sent one to the inbox while that was closed: it counts as unacknowledged until another worker has it.
	second := startWorker(t, b.connect(), opts, ack)
	second.waitFor(5 - w.count())
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
	if n := w.count() + second.count(); n != 5 {
		t.Errorf("%d messages of 5 were delivered", n)
	}
}

func TestStopGivesBackTheRest(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "adult", 0, 30)
	w := startWorker(t, js, consumer.Options{}, nil) // AckWait is 30 s: without the naks this test takes that long
	w.waitFor(30)
	for i := range 10 {
		w.message(i).Ack()
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := w.Stop(ctx); err == nil || !strings.Contains(err.Error(), "20 messages") || !strings.Contains(err.Error(), "enough") {
		t.Errorf("Stop: %v", err)
	}
	if err := w.message(20).Ack(); !errors.Is(err, consumer.ErrSettled) {
		t.Errorf("Ack of a message that was given back: %v", err)
	}
	second := startWorker(t, b.connect(), consumer.Options{}, ack)
	second.waitFor(20)
	if m := second.message(0); m.Delivered != 2 {
		t.Errorf("delivered %d", m.Delivered)
	}
	testkit.Until(t, "all are gone", func() bool { return queryStream(t, js).State.Msgs == 0 })
}

func TestStopBeforeRun(t *testing.T) {
	b := startBroker(t)
	c, err := consumer.New(b.withStreams(), consumer.Options{Index: "adult"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Run(t.Context()); err == nil {
		t.Error("Run twice")
	}
}

func TestInvalidIndexName(t *testing.T) {
	b := startBroker(t)
	if _, err := consumer.New(b.connect(), consumer.Options{Index: "a.b"}, nil); err == nil {
		t.Error("accepted")
	}
}

// A catch-all consumer leaves nothing for ours, and the server refuses ours without saying why.
func TestCatchAllConsumerIsExplained(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	s, err := js.Stream(t.Context(), "GENIE_QUERIES")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "all", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	states := make(chan error, 100)
	w := startWorker(t, js, consumer.Options{OnState: func(err error) { states <- err }}, ack, consumer.Limits{MaxBackoff: 50 * time.Millisecond})
	if err := <-states; err == nil || !strings.Contains(err.Error(), "another consumer of the work queue GENIE_QUERIES") {
		t.Errorf("state: %v", err)
	}
	if w.Progress().Err == nil {
		t.Error("progress shows no error")
	}
	if err := s.DeleteConsumer(t.Context(), "all"); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "adult", 0, 1)
	w.waitFor(1)
	testkit.Until(t, "the state is good", func() bool { return w.Progress().Err == nil })
	if err := <-states; err != nil {
		t.Errorf("state after the repair: %v", err)
	}
}

func TestExistingDurableIsUsedAsItIs(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	s, err := js.Stream(t.Context(), "GENIE_QUERIES")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
		Durable: "geniemq-adult", FilterSubject: "genie.query.adult", AckPolicy: jetstream.AckExplicitPolicy, AckWait: heldLong,
		MaxAckPending: 7, MaxRequestBatch: 3, MaxRequestExpires: 2 * time.Second, MaxRequestMaxBytes: 2 << 20,
	}); err != nil {
		t.Fatal(err)
	}
	differences := make(chan string, 10)
	publish(t, js, "adult", 0, 20)
	w := startWorker(t, js, consumer.Options{
		OnDifference: func(d streams.Difference) { differences <- d.String() },
	}, nil, consumer.Limits{PullExpiry: time.Minute})
	w.waitFor(7)
	time.Sleep(3 * heldLong / 2)
	for i := range 20 {
		w.waitFor(i + 1)
		w.message(i).Ack()
	}
	if s := w.Stats(); s.Redelivered != 0 {
		t.Errorf("%d redeliveries: the durable's own AckWait was not respected", s.Redelivered)
	}
	if len(differences) != 2 {
		t.Errorf("%d differences, want those of ack_wait and max_ack_pending", len(differences))
	}
	if d := <-differences; d != fmt.Sprintf("durable geniemq-adult: ack_wait is %s instead of 30s", heldLong) {
		t.Error(d)
	}
}

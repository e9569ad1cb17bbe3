package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
)

func TestSweepAnswersWhatNobodyServes(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "nobody", 0, 3)
	publish(t, js, "no!name", 0, 1)
	w := startWorker(t, js, consumer.Options{}, nil, consumer.Limits{Messages: 1})
	publish(t, js, "adult", 0, 3)
	w.waitFor(1)

	var answered []string
	refuse := errors.New("no result stream")
	s := consumer.SweeperOf(time.Nanosecond, time.Nanosecond, js, consumer.SweeperOptions{Answer: func(_ context.Context, u *consumer.Stored) error {
		if u.Sequence == 2 && refuse != nil {
			return refuse
		}
		answered = append(answered, u.Index+" "+string(u.Body)+" "+u.Header.Get("N"))
		return nil
	}})
	n, err := s.Sweep(t.Context())
	if !errors.Is(err, refuse) || n != 3 { // a message that cannot be answered does not stand in others' way
		t.Fatalf("swept %d, %v", n, err)
	}
	refuse = nil
	if n, err = s.Sweep(t.Context()); err != nil || n != 1 {
		t.Fatalf("swept %d, %v", n, err)
	}
	if got := strings.Join(answered, ", "); got != "no!name 0 0, nobody 0 0, nobody 2 2, nobody 1 1" {
		t.Errorf("answered %s", got)
	}
	if state := queryStream(t, js).State; state.Msgs != 3 {
		t.Errorf("%d messages are left, want the 3 of the index that is served", state.Msgs)
	}
	dead := deadLetters(t, js, "nobody")
	if len(dead) != 3 || dead[0].Header.Get("Genie-Dead-Reason") != "unknown_index" || string(dead[1].Data) != "2" {
		t.Errorf("%d dead letters", len(dead))
	}
	if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("third sweep: %d, %v", n, err)
	}
}

// An index whose durable is gone for a while, and which a worker serves all the same, keeps its messages.
func TestSweepLeavesWhatIsServed(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "people", 0, 3)
	publish(t, js, "nobody", 0, 2)
	unknown := errors.New("no answer")
	alive := func(index string) (bool, error) { return index == "people", nil }
	s := consumer.SweeperOf(time.Nanosecond, time.Nanosecond, js, consumer.SweeperOptions{
		Answer: func(context.Context, *consumer.Stored) error { return nil },
		Alive:  func(_ context.Context, index string) (bool, error) { return alive(index) },
	})
	if n, err := s.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	alive = func(string) (bool, error) { return false, unknown }
	if n, err := s.Sweep(t.Context()); n != 0 || !errors.Is(err, unknown) { // nobody knows: they wait
		t.Errorf("swept %d, %v", n, err)
	}
	if state := queryStream(t, js).State; state.Msgs != 3 {
		t.Errorf("%d messages are left, not the 3 of the index that is served", state.Msgs)
	}
}

// What waits for a durable that no worker pulls from is left for one that comes back, until somebody deletes the durable.
func TestSweepLeavesWhatHasADurable(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	if _, err := js.CreateConsumer(t.Context(), "GENIE_QUERIES", jetstream.ConsumerConfig{
		Durable: "geniemq-people", FilterSubject: "genie.query.people", AckPolicy: jetstream.AckExplicitPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	publish(t, js, "people", 0, 3)
	publish(t, js, "nobody", 0, 2)
	s := consumer.SweeperOf(time.Nanosecond, time.Nanosecond, js, consumer.SweeperOptions{
		Answer: func(context.Context, *consumer.Stored) error { return nil },
		Alive:  func(context.Context, string) (bool, error) { return false, nil },
	})
	if n, err := s.Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("swept %d, %v; want the 2 without a durable", n, err)
	}
	if err := js.DeleteConsumer(t.Context(), "GENIE_QUERIES", "geniemq-people"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Sweep(t.Context()); n != 3 || err != nil {
		t.Errorf("swept %d, %v without the durable; want the 3 that waited for it", n, err)
	}
}

func TestSweepLeavesYoungMessages(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "nobody", 0, 1)
	s := consumer.SweeperOf(time.Hour, time.Hour, js, consumer.SweeperOptions{Answer: func(context.Context, *consumer.Stored) error {
		t.Error("answered")
		return nil
	}})
	if n, err := s.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// Several workers sweep the same messages at once. Each message is answered at least once and copied exactly once.
func TestSweepersAtTheSameTime(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	const messages, sweepers = 100, 4
	publish(t, js, "nobody", 0, messages)
	var mu sync.Mutex
	answered := map[uint64]int{}
	var wg sync.WaitGroup
	for range sweepers {
		s := consumer.SweeperOf(time.Nanosecond, time.Nanosecond, b.connect(), consumer.SweeperOptions{Answer: func(_ context.Context, u *consumer.Stored) error {
			mu.Lock()
			defer mu.Unlock()
			answered[u.Sequence]++
			return nil
		}})
		wg.Go(func() {
			if _, err := s.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(answered) != messages || queryStream(t, js).State.Msgs != 0 {
		t.Errorf("%d messages were answered, %d are left", len(answered), queryStream(t, js).State.Msgs)
	}
	if n := len(deadLetters(t, js, "nobody")); n != messages {
		t.Errorf("%d dead letters of %d messages", n, messages)
	}
}

// A dead letter's headers must not carry over what means something to a stream.
func TestSweepOfAwkwardHeaders(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	msg := &nats.Msg{Subject: "genie.query.nobody", Header: nats.Header{
		"Nats-Expected-Stream": {"GENIE_QUERIES"}, "Nats-Msg-Id": {"id"}, "Traceparent": {"00-1"},
	}}
	if _, err := js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
	s := consumer.SweeperOf(time.Nanosecond, time.Nanosecond, js, consumer.SweeperOptions{Answer: func(context.Context, *consumer.Stored) error { return nil }})
	if n, err := s.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatalf("swept %d, %v", n, err)
	}
	if d := deadLetters(t, js, "nobody"); len(d) != 1 || d[0].Header.Get("Traceparent") != "00-1" || d[0].Header.Get("Genie-Dead-Msg-Id") != "id" {
		t.Errorf("dead letters %v", d)
	}
}

func TestSweeperRuns(t *testing.T) {
	b := startBroker(t)
	js := b.withStreams()
	publish(t, js, "nobody", 0, 5)
	total := make(chan int, 1000)
	s := consumer.SweeperOf(time.Nanosecond, 10*time.Millisecond, js, consumer.SweeperOptions{
		Answer:  func(context.Context, *consumer.Stored) error { return nil },
		OnSweep: func(n int, err error) { total <- n },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	for sum := 0; sum < 5; sum += <-total {
	}
	cancel()
	<-done
}

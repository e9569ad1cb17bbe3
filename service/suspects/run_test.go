package suspects

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// While a lone run waits for room in the result stream, the others go on, and it is not on record as one that may kill: a worker
// may be killed at that time. Then it has its turn again. Its message is settled when it has ended.
func TestLoneRunThatWaits(t *testing.T) {
	ctx := t.Context()
	js := testkit.JetStream(t, testkit.StartBroker(t).URL())
	subjects, err := wire.NewSubjects("genie")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := streams.Ensure(ctx, js, new(streams.Settings).Configs(subjects)); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "genie.query.other", nil); err != nil {
		t.Fatal(err)
	}
	m := pulledMessage(t, js)
	other := func() *consumer.Record { return consumer.NewSuspects(js, subjects, 1).Of(m) }
	lost := func(want int) {
		t.Helper()
		r := other()
		if err := r.Read(ctx); err != nil || r.Lost() != want {
			t.Errorf("%d lone runs are on record (%v), want %d", r.Lost(), err, want)
		}
	}
	all := New(new(exclusion.Lock), consumer.NewSuspects(js, subjects, 1), slog.New(slog.DiscardHandler))
	l := &Run{exclusion: all.exclusion, record: all.records.Of(m), log: all.log}
	l.enter = func() bool { return all.enter(ctx, l) }
	if !l.enter() {
		t.Fatal("no turn")
	}
	lost(1)
	shared := make(chan struct{})
	var sharing sync.WaitGroup
	sharing.Go(func() {
		all.exclusion.Share()
		lost(0)
		close(shared)
		all.exclusion.Done()
	})
	settled := false
	l.Then(func() { settled = true })
	select {
	case <-shared:
		t.Fatal("others go on during a lone run")
	case <-time.After(2 * pipeline.LoneHold):
	}
	l.Wait(func() { <-shared }) // as if for room; others that wait for the run would wait for ever
	sharing.Wait()
	lost(1)
	if settled {
		t.Error("the message was settled before the run ended")
	}
	if !l.end() || !settled {
		t.Error("the run has not ended")
	}
	lost(0)
	if rest := l.rest(); rest < pipeline.LoneHold {
		t.Errorf("others waited for more than %v and get %v", pipeline.LoneHold, rest)
	}
	all.exclusion.Share()
	all.exclusion.Done()
}

// pulledMessage is a message of the query stream that a consumer of the test has pulled.
func pulledMessage(t *testing.T, js jetstream.JetStream) *consumer.Message {
	t.Helper()
	got := make(chan *consumer.Message, 1)
	c, err := consumer.New(js, consumer.Options{Index: "other"}, func(_ context.Context, m *consumer.Message) { got <- m })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	return <-got
}

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/pipeline"
)

// While a lone run waits for room in the result stream, the others go on, and it is not on record as one that may kill: a worker
// may be killed at that time. Then it has its turn again. Its message is settled when it has ended.
func TestLoneRunThatWaits(t *testing.T) {
	s, nc, js := startService(t, config.Config{}, Options{})
	ctx := t.Context()
	if err := nc.Publish("genie.query.other", nil); err != nil {
		t.Fatal(err)
	}
	m := pulledMessage(t, js)
	other := func() *consumer.Record { return consumer.NewSuspects(js, s.subjects, consumer.StreamLimits{}).Of(m) }
	lost := func(want int) {
		t.Helper()
		r := other()
		if err := r.Read(ctx); err != nil || r.Lost() != want {
			t.Errorf("%d lone runs are on record (%v), want %d", r.Lost(), err, want)
		}
	}
	all := newSuspects(new(exclusion.Lock), consumer.NewSuspects(js, s.subjects, consumer.StreamLimits{}), slog.New(slog.DiscardHandler))
	l := &loneRun{exclusion: all.exclusion, record: all.records.Of(m), log: all.log}
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
	l.then(func() { settled = true })
	select {
	case <-shared:
		t.Fatal("others go on during a lone run")
	case <-time.After(2 * pipeline.LoneHold):
	}
	l.Wait(func() { // as if for room
		select {
		case <-shared:
		case <-time.After(patience):
			t.Error("others wait for a lone run that waits for them")
		}
	})
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
	select {
	case m := <-got:
		return m
	case <-time.After(patience):
		t.Fatal("no message")
		return nil
	}
}

// Lone runs and everything else take turns: one at a time or all of the others, and neither side is kept out by the other.
func TestExclusion(t *testing.T) {
	var e exclusion.Lock
	var mu sync.Mutex
	alone, others := 0, 0
	look := func(a, o int) error {
		mu.Lock()
		defer mu.Unlock()
		alone, others = alone+a, others+o
		if alone > 1 || alone == 1 && others > 0 {
			return fmt.Errorf("%d lone runs beside %d others", alone, others)
		}
		return nil
	}
	const rounds = 300
	var working sync.WaitGroup
	faults := make(chan error, 8)
	for range 4 { // they do nothing else, so that one of them always works
		working.Go(func() {
			for range rounds {
				e.Share()
				err := look(0, 1)
				time.Sleep(100 * time.Microsecond)
				err = errors.Join(err, look(0, -1))
				e.Done()
				if err != nil {
					faults <- err
					return
				}
			}
		})
	}
	for range rounds {
		e.TakeAll()
		err := errors.Join(look(1, 0), look(-1, 0))
		e.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	working.Wait()
	select {
	case err := <-faults:
		t.Fatal(err)
	default:
	}
}

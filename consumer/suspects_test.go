package consumer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/wire"
)

// pulled is a message that a consumer has pulled and keeps.
func pulled(t *testing.T, js jetstream.JetStream) *consumer.Message {
	t.Helper()
	publish(t, js, "adult", 0, 1)
	w := startWorker(t, js, consumer.Options{}, nil)
	w.waitFor(1)
	return w.message(0)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lost(t *testing.T, r *consumer.Record, want int) {
	t.Helper()
	check(t, r.Read(t.Context()))
	if r.Lost() != want {
		t.Fatalf("%d lone runs did not end, want %d", r.Lost(), want)
	}
}

// A run is on record from Begin to End, for everyone but the worker that is at it.
func TestRecord(t *testing.T) {
	js := startBroker(t).withStreams()
	m := pulled(t, js)
	ctx := t.Context()
	worker := func() *consumer.Record {
		return consumer.NewSuspects(js, wire.Subjects{}, 1).Of(m)
	}
	first, other := worker(), worker()
	check(t, first.Begin(ctx))
	lost(t, worker(), 1)
	check(t, first.Pause(ctx))
	lost(t, worker(), 0)
	check(t, first.Begin(ctx))
	check(t, first.End(ctx))
	lost(t, worker(), 0)
	check(t, first.Begin(ctx)) // over the trace of the one that was taken away

	// The first has ended without a word. Two more do, the second only after it has read what there is.
	if err := other.Begin(ctx); !errors.Is(err, consumer.ErrRecordChanged) {
		t.Fatalf("%v", err)
	}
	lost(t, other, 1)
	check(t, other.Begin(ctx))
	third := worker()
	lost(t, third, 2)
	check(t, third.Confirm(ctx))
	lost(t, worker(), 2)
	check(t, third.End(ctx))
	lost(t, worker(), 0)

	kv, err := js.KeyValue(ctx, "genie-suspects")
	check(t, err)
	status, err := kv.Status(ctx)
	check(t, err)
	if status.TTL() != 24*time.Hour || status.History() != 1 {
		t.Errorf("the bucket keeps records for %v, %d of each", status.TTL(), status.History())
	}
}

// A worker that was too slow for AckWait does not write over the one that has its message now.
func TestRecordOfTwo(t *testing.T) {
	js := startBroker(t).withStreams()
	m := pulled(t, js)
	ctx := t.Context()
	slow := consumer.NewSuspects(js, wire.Subjects{}, 1).Of(m)
	now := consumer.NewSuspects(js, wire.Subjects{}, 1).Of(m)
	check(t, slow.Begin(ctx))
	lost(t, now, 1)
	check(t, now.Begin(ctx))
	if err := slow.Pause(ctx); !errors.Is(err, consumer.ErrRecordChanged) {
		t.Errorf("the slow one writes over the other: %v", err)
	}
	check(t, slow.End(ctx)) // and leaves it alone
	lost(t, consumer.NewSuspects(js, wire.Subjects{}, 1).Of(m), 2)
	check(t, now.End(ctx))
	lost(t, slow, 0)
}

// What a process wrote without learning of it, or could not take away, does not speak against the message: it is alive.
func TestRecordOfOneself(t *testing.T) {
	js := startBroker(t).withStreams()
	m := pulled(t, js)
	ctx := t.Context()
	s := consumer.NewSuspects(js, wire.Subjects{}, 1)
	check(t, s.Of(m).Begin(ctx))
	again := s.Of(m)
	if err := again.Begin(ctx); !errors.Is(err, consumer.ErrRecordChanged) {
		t.Fatalf("%v", err)
	}
	lost(t, again, 0)
	check(t, again.Begin(ctx))
	lost(t, consumer.NewSuspects(js, wire.Subjects{}, 1).Of(m), 1)
}

// Where there is little room the bucket is small, and where there is none the error says so at once.
func TestRecordsWithoutRoom(t *testing.T) {
	for room, fits := range map[int64]bool{maxStore: true, maxStore - 16<<20: true, 256 << 10: false} {
		t.Run(fmt.Sprint(room), func(t *testing.T) {
			js := startBroker(t, func(o *server.Options) { o.JetStreamMaxStore = room }).connect()
			s := consumer.NewSuspects(js, wire.Subjects{}, 1)
			var unrecorded *consumer.UnrecordedError
			switch err := s.Ensure(t.Context()); {
			case fits:
				check(t, err)
			case !errors.As(err, &unrecorded) || unrecorded.Kind != consumer.RefusedRecord || !strings.Contains(err.Error(), "give JetStream room"):
				t.Errorf("%v", err)
			}
		})
	}
}

const maxStore = 20 << 20

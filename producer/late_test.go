package producer_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/producer"
)

// TestLateConfirmation: a stream confirms a message after the producer has stopped waiting for that, and before it asks again. What else waits still gets out.
func TestLateConfirmation(t *testing.T) {
	b := startBroker(t, func(o *server.Options) { o.JetStream = false })
	nc := b.connect()
	var mu sync.Mutex
	var late *nats.Msg // that is confirmed late
	published := make(map[string]int)
	on := func(subject string, answer func(m *nats.Msg)) {
		if _, err := nc.Subscribe(subject, answer); err != nil {
			t.Fatal(err)
		}
	}
	respond := func(m *nats.Msg, text string) {
		if err := m.Respond([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	// A stream that refuses the first attempt, confirms no second one, and takes the rest.
	on("genie.result.*", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		published[string(m.Data)]++
		switch n := published[string(m.Data)]; {
		case n == 1:
			respond(m, `{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`)
		case n == 2 && string(m.Data) == "late":
			late = m
		case n > 2:
			respond(m, `{"stream":"GENIE_RESULTS","seq":2}`)
		}
	})
	on("$JS.API.STREAM.INFO.GENIE_RESULTS", func(m *nats.Msg) {
		respond(m, `{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"GENIE_RESULTS","subjects":["genie.result.>"],"discard":"new"},"state":{}}`)
	})
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// Between the failure and the next question are MinBackoff or more.
	p := newProducer(t, b.connect(), producer.Limits{AckTimeout: 200 * time.Millisecond, MinBackoff: 2 * time.Second, MaxBackoff: 2 * time.Second})
	f := newFates(t)
	p.Publish(t.Context(), stored(0, "late"), f.done(0))
	p.Publish(t.Context(), stored(1, "other"), f.done(1))
	testkit.Until(t, "both are given up for now", func() bool {
		mu.Lock()
		defer mu.Unlock()
		reason := p.State().Reason
		return late != nil && published["other"] == 2 && reason != nil && strings.Contains(reason.Error(), "does not confirm in time")
	})
	respond(late, `{"stream":"GENIE_RESULTS","seq":1}`)
	f.allGood(2)
	testkit.Until(t, "results get out", func() bool { return !p.State().Blocked })
}

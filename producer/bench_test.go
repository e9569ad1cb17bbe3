package producer_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/producer"
)

// BenchmarkPublish measures confirmed messages through a real server in the same process, so most of the time is
// the server's. "library" is jetstream.PublishMsgAsync with a handler for each acknowledgement, without retries,
// which is the least that one could do instead.
func BenchmarkPublish(bench *testing.B) {
	body := make([]byte, 256)
	header := func(i int) nats.Header {
		return nats.Header{"Genie-Query-Seq": {fmt.Sprint(i)}, "Content-Type": {"application/json"}}
	}
	bench.Run("stored", func(bench *testing.B) {
		b := startBroker(bench)
		nc := b.connect()
		b.results(nc, 1<<33)
		benchProducer(bench, nc, func(i int) producer.Outgoing {
			return producer.Outgoing{Subject: "genie.result.adult", MsgID: fmt.Sprint("adult.", i), Header: header(i), Body: body}
		})
	})
	bench.Run("inbox", func(bench *testing.B) {
		nc := startBroker(bench).connect()
		subject := nc.NewInbox()
		benchProducer(bench, nc, func(i int) producer.Outgoing {
			return producer.Outgoing{Subject: subject, Header: header(i), Body: body}
		})
	})
	bench.Run("library", func(bench *testing.B) {
		b := startBroker(bench)
		nc := b.connect()
		b.results(nc, 1<<33)
		var wg sync.WaitGroup
		js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096),
			jetstream.WithPublishAsyncAckHandler(func(jetstream.JetStream, *nats.Msg, *jetstream.PubAck) { wg.Done() }),
			jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { bench.Error(err) }))
		if err != nil {
			bench.Fatal(err)
		}
		bench.ReportAllocs()
		bench.ResetTimer()
		for i := range bench.N {
			wg.Add(1)
			msg := &nats.Msg{Subject: "genie.result.adult", Header: header(i), Data: body}
			if _, err := js.PublishMsgAsync(msg, jetstream.WithMsgID(fmt.Sprint("adult.", i))); err != nil {
				bench.Fatal(err)
			}
		}
		wg.Wait()
		js.CleanupPublisher()
	})
}

func benchProducer(bench *testing.B, nc *nats.Conn, out func(int) producer.Outgoing) {
	p := newProducer(bench, nc, producer.Limits{})
	var wg sync.WaitGroup
	done := func(_ producer.Confirmation, err error) {
		if err != nil {
			bench.Error(err)
		}
		wg.Done()
	}
	bench.ReportAllocs()
	bench.ResetTimer()
	for i := range bench.N {
		wg.Add(1)
		p.Publish(bench.Context(), out(i), done)
	}
	wg.Wait()
}

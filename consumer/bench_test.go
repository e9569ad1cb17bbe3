package consumer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
)

// BenchmarkConsume measures pulling and acking through a real server in the same process. "library" is
// jetstream's Consume with the same amount of messages under way.
func BenchmarkConsume(bench *testing.B) {
	bench.Run("ours", func(bench *testing.B) {
		js := filledStream(bench)
		done := make(chan struct{})
		n := 0
		c, err := consumer.New(js, consumer.Options{Index: "adult"}, func(_ context.Context, m *consumer.Message) {
			if err := m.Ack(); err != nil {
				bench.Error(err)
			}
			if n++; n == bench.N {
				close(done)
			}
		})
		if err != nil {
			bench.Fatal(err)
		}
		bench.ReportAllocs()
		bench.ResetTimer()
		ctx, cancel := context.WithCancel(bench.Context())
		var wg sync.WaitGroup
		wg.Go(func() { c.Run(ctx) })
		<-done
		bench.StopTimer()
		cancel()
		wg.Wait()
	})
	bench.Run("library", func(bench *testing.B) {
		js := filledStream(bench)
		cons := libraryConsumer(bench, js, 8192)
		done := make(chan struct{})
		n := 0
		bench.ReportAllocs()
		bench.ResetTimer()
		cc, err := cons.Consume(func(m jetstream.Msg) {
			if _, err := m.Metadata(); err != nil {
				bench.Error(err)
			}
			if err := m.Ack(); err != nil {
				bench.Error(err)
			}
			if n++; n == bench.N {
				close(done)
			}
		}, jetstream.PullMaxMessages(8192))
		if err != nil {
			bench.Fatal(err)
		}
		<-done
		bench.StopTimer()
		cc.Stop()
		<-cc.Closed()
	})
}

// BenchmarkAck compares acks that are only sent with acks whose receipt the server confirms, many at a time.
func BenchmarkAck(bench *testing.B) {
	for _, confirmed := range []bool{false, true} {
		name := "plain"
		if confirmed {
			name = "confirmed"
		}
		bench.Run(name, func(bench *testing.B) {
			js := filledStream(bench)
			cons := libraryConsumer(bench, js, bench.N)
			var msgs []jetstream.Msg
			for len(msgs) < bench.N {
				batch, err := cons.Fetch(bench.N-len(msgs), jetstream.FetchMaxWait(time.Second))
				if err != nil {
					bench.Fatal(err)
				}
				for m := range batch.Messages() {
					msgs = append(msgs, m)
				}
			}
			bench.ReportAllocs()
			bench.ResetTimer()
			var wg sync.WaitGroup
			const parallel = 256
			for g := range parallel {
				wg.Go(func() {
					for i := g; i < len(msgs); i += parallel {
						err := error(nil)
						if confirmed {
							err = msgs[i].DoubleAck(bench.Context())
						} else {
							err = msgs[i].Ack()
						}
						if err != nil {
							bench.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if err := js.Conn().Flush(); err != nil {
				bench.Fatal(err)
			}
		})
	}
}

func filledStream(bench *testing.B) jetstream.JetStream {
	bench.Helper()
	js := startBroker(bench).withStreams()
	body := make([]byte, 256)
	for range bench.N {
		if _, err := js.PublishAsync("genie.query.adult", body, jetstream.WithStallWait(time.Minute)); err != nil {
			bench.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	js.CleanupPublisher()
	return js
}

func libraryConsumer(bench *testing.B, js jetstream.JetStream, maxAckPending int) jetstream.Consumer {
	bench.Helper()
	cons, err := js.CreateConsumer(bench.Context(), "GENIE_QUERIES", jetstream.ConsumerConfig{
		Durable: "library", FilterSubject: "genie.query.adult", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: maxAckPending,
	})
	if err != nil {
		bench.Fatal(err)
	}
	return cons
}

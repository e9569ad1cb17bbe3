package consumer_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/wire"
)

// BenchmarkBesideBulk measures how long single messages take from the stream to their owner while another consumer pulls large messages of bulk: over
// that one's connection, and over another. Both are measured in turns in the same run, so that what else the machine does is in both.
func BenchmarkBesideBulk(bench *testing.B) {
	b := startBroker(bench)
	shared, own := b.withStreams(), b.connect()
	body := make([]byte, 25_000)
	publish := func(js jetstream.JetStream, subject string, body []byte) {
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: body}, jetstream.WithStallWait(time.Minute)); err != nil {
			bench.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(bench.Context())
	var wg sync.WaitGroup
	run := func(js jetstream.JetStream, opts consumer.Options, deliver func(*consumer.Message)) {
		c, err := consumer.New(js, opts, func(_ context.Context, m *consumer.Message) {
			deliver(m)
			if err := m.Ack(); err != nil {
				bench.Error(err)
			}
		})
		if err != nil {
			bench.Fatal(err)
		}
		wg.Go(func() {
			if err := c.Run(ctx); err != nil {
				bench.Error(err)
			}
		})
	}
	begun := time.Now()
	n := 0
	run(shared, consumer.Options{Index: "bulk", Class: wire.ClassBulk, Bytes: 64 << 20, PullBytes: 16 << 20}, func(*consumer.Message) {
		n++
		publish(shared, "genie.bulk.bulk", body)
		time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Millisecond)))
	})
	took := map[string][]time.Duration{}
	answered := make(chan struct{})
	for index, js := range map[string]jetstream.JetStream{"shared": shared, "own": own} {
		run(js, consumer.Options{Index: index}, func(m *consumer.Message) {
			took[index] = append(took[index], time.Since(m.Timestamp))
			answered <- struct{}{}
		})
	}
	asker := b.connect()
	for range 6000 {
		publish(asker, "genie.bulk.bulk", body)
	}
	<-asker.PublishAsyncComplete()
	bench.ResetTimer()
	for range bench.N {
		for _, index := range []string{"shared", "own"} {
			publish(asker, "genie.query."+index, []byte("{}"))
			<-answered
			time.Sleep(time.Millisecond)
		}
	}
	bench.StopTimer()
	bench.Logf("%d of bulk in %v", n, time.Since(begun))
	cancel()
	wg.Wait()
	for index, all := range took {
		slices.Sort(all)
		bench.ReportMetric(all[len(all)/2].Seconds()*1e3, index+"-p50-ms")
		bench.ReportMetric(all[len(all)*99/100].Seconds()*1e3, index+"-p99-ms")
		bench.ReportMetric(all[len(all)*9/10].Seconds()*1e3, index+"-p90-ms")
	}
}

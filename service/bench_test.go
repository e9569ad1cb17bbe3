package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// What a message of 256 queries with 14 conditions and 100 hits each costs the service outside broker and engine.
func BenchmarkMessage(b *testing.B) {
	const queries, items, k = 256, 14, 100
	ix, err := index.Open(rowsFile(b, "rows", 2000))
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	e, err := newEncoder("rows", ix)
	if err != nil {
		b.Fatal(err)
	}
	engine := gpuexec.NewCPU(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	searcher, err := engine.Load(b.Context(), &gpuexec.Snapshot{Segments: []gpuexec.Segment{{Index: ix}}})
	if err != nil {
		b.Fatal(err)
	}
	defer searcher.Close()
	p := &pipeline{name: "rows", encoder: e, searcher: searcher, metrics: newMetrics().forIndex("rows")}
	asked := make([]wire.Query, queries)
	for i := range asked {
		asked[i].K = k
		for j := range items / 2 {
			asked[i].Items = append(asked[i].Items, wire.Condition{Attr: "c", Value: wire.String(fmt.Sprint(j))},
				wire.Condition{Attr: "n", Min: wire.Number(float64(i)), Max: wire.Number(float64(i + 100))})
		}
	}
	body := wire.AppendQueries(nil, wire.MessagePack, asked)
	decoded := func() *request {
		r := &request{header: nats.Header{wire.HeaderContentType: {wire.MessagePack.String()}}, body: body, arrived: time.Now()}
		if err := p.decode(r); err != nil || r.queries != queries {
			b.Fatal(err, r.queries)
		}
		return r
	}
	done := decoded()
	hits := make([][]gpuexec.Hit, queries)
	for i := range hits {
		for j := range k {
			hits[i] = append(hits[i], gpuexec.Hit{ID: uint32(1_000_000 + 1000*i + j), Count: uint32(k - j), Distance: gpuexec.NoDistance})
		}
		t := &done.tasks[i]
		t.queued, t.started, t.engine = done.arrived.Add(time.Millisecond), done.arrived.Add(2*time.Millisecond), time.Millisecond
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.memory.release(decoded())
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i := range hits {
				done.tasks[i].answer.Hits = hits[i]
			}
			p.memory.answer(done)
			answer := e.answer(done, done.arrived)
			parts := wire.SplitAnswerInto(wire.MessagePack, answer, 8<<20, p.memory.body)
			if len(parts) != 1 {
				b.Fatal(len(parts))
			}
			p.memory.encoded(done, answer)
			p.memory.sent(parts[0].Body)
		}
	})
	b.Run("observe", func(b *testing.B) {
		p.memory.answer(done)
		answer := e.answer(done, done.arrived)
		for b.Loop() {
			p.metrics.observe(done, answer, 0, time.Millisecond, 4*time.Millisecond)
		}
	})
}

package pipeline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/wire"
)

// What a message of 256 queries with 14 conditions and 100 hits each costs the service outside broker and engine.
func BenchmarkMessage(b *testing.B) {
	const queries, items, k = 256, 14, 100
	ix, err := index.Open(testkit.RowsFile(b, "rows", 2000))
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	p := idlePipeline(b, ix)
	asked := make([]wire.Query, queries)
	for i := range asked {
		asked[i].K = k
		for j := range items / 2 {
			asked[i].Items = append(asked[i].Items, wire.Condition{Attr: "c", Value: wire.String(fmt.Sprint(j))},
				wire.Condition{Attr: "n", Min: wire.Number(float64(i)), Max: wire.Number(float64(i + 100)), Bucket: true})
		}
	}
	body := wire.AppendQueries(nil, wire.MessagePack, asked)
	var l lane
	l.set(p, wire.ClassQuery, 0, 0, 0, 0)
	decoded := func() *Request { return benchDecoded(b, p, wire.MessagePack, body, queries, &l) }
	done := decoded()
	hits := make([][]gpuexec.Hit, queries)
	for i := range hits {
		for j := range k {
			hits[i] = append(hits[i], gpuexec.Hit{ID: uint32(1_000_000 + 1000*i + j), Count: uint32(k - j)})
		}
		t := &done.tasks[i]
		t.Queued, t.Started, t.Engine = done.Arrived.Add(time.Millisecond), done.Arrived.Add(2*time.Millisecond), time.Millisecond
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
				done.tasks[i].Answer.Hits = hits[i]
			}
			answer := done.Answer(nil, 8<<20)
			part := wire.AppendPart(p.memory.bodies.Make(answer.RoughSize(wire.Position{}, 8<<20)), wire.MessagePack, answer.Results, wire.Position{}, 8<<20)
			if part.Count != queries {
				b.Fatal(part.Count)
			}
			answer.Encoded()
			p.memory.bodies.Keep(part.Body)
		}
	})
}

// What decoding and planning costs for a message of 256 signatures of 237 hash values, in both forms: nearly all of what
// such a message costs the service.
func BenchmarkSignatures(b *testing.B) {
	const queries, functions, buckets = 256, 237, 67
	random := rand.New(rand.NewPCG(1, 0))
	spec := &schema.Schema{Name: "signatures", Kind: schema.Rows}
	for i := range functions {
		spec.Columns = append(spec.Columns, schema.Column{Name: fmt.Sprintf("h%03d", i), Type: schema.NumberColumn, Edges: schema.Exact})
	}
	builder, err := onebyone.NewBuilder(spec, index.Builtin().Attributes(spec), index.BuilderOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for range 2000 {
		for attr := range functions {
			if err := builder.AddNumber(attr, float64(random.IntN(buckets))); err != nil {
				b.Fatal(err)
			}
		}
		if err := builder.EndObject("", nil, ""); err != nil {
			b.Fatal(err)
		}
	}
	file, err := builder.Bytes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	ix, err := index.OpenBytes(file)
	if err != nil {
		b.Fatal(err)
	}
	defer ix.Close()
	p := idlePipeline(b, ix)
	for _, form := range []string{"row", "items"} {
		asked := make([]wire.Query, queries)
		for i := range asked {
			conditions := make([]wire.Condition, functions)
			for attr := range conditions {
				conditions[attr] = wire.Condition{Attr: spec.Columns[attr].Name, Value: wire.Number(float64(random.IntN(buckets)))}
			}
			asked[i].K = 100
			if form == "row" {
				asked[i].Row = conditions
			} else {
				asked[i].Items = conditions
			}
		}
		for _, codec := range []wire.ContentType{wire.JSON, wire.MessagePack} {
			list := wire.AppendQueries(nil, codec, asked)
			table, _ := wire.AppendTable(nil, codec, asked)
			for at := range 4 {
				workers, body, written := 1+at/2, list, "list"
				if at%2 == 1 {
					body, written = table, "table"
				}
				b.Run(fmt.Sprintf("%s/%s/%s/workers=%d", strings.TrimPrefix(codec.String(), "application/"), form, written, workers), func(b *testing.B) {
					p.options.Workers = workers
					var l lane
					l.set(p, wire.ClassQuery, workers-1, 0, 0, 0)
					b.ReportAllocs()
					b.SetBytes(int64(len(body)))
					for b.Loop() {
						p.memory.release(benchDecoded(b, p, codec, body, queries, &l))
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(queries*functions), "ns/condition")
					l.decoders.Drain()
				})
			}
		}
	}
}

// What decoding and planning costs for messages of 256 queries of the workloads, in both forms, and the estimate of it that says how a message is shared.
func BenchmarkWorkloads(b *testing.B) {
	const queries = 256
	for name, objects := range map[string]int{"w1": 20_000, "w2": 50_000, "w3": 200_000, "w4": 50_000, "w5": 5_000} {
		w, err := workload.New(b.Context(), name, workload.Options{Objects: objects, Data: os.Getenv("GENIEMQ_DATA")})
		if err != nil {
			b.Fatal(err)
		}
		p := idlePipeline(b, w.Index)
		for _, form := range []string{"list", "table"} {
			var bodies [][]byte
			for some := range slices.Chunk(w.Queries, queries) {
				body := wire.AppendQueries(nil, wire.MessagePack, some)
				if form == "table" {
					body, _ = wire.AppendTable(nil, wire.MessagePack, some)
				}
				bodies = append(bodies, body)
			}
			var decoder wire.Decoder
			batch, ok := decoder.Scan(wire.MessagePack, bodies[0], wire.Limits{})
			if !ok {
				b.Fatal("not scanned")
			}
			for workers := 1; workers <= 2; workers++ {
				b.Run(fmt.Sprintf("%s/%s/workers=%d", name, form, workers), func(b *testing.B) {
					p.options.Workers = workers
					var l lane
					l.set(p, wire.ClassQuery, workers-1, 0, 0, 0)
					for i := 0; b.Loop(); i++ {
						p.memory.release(benchDecoded(b, p, wire.MessagePack, bodies[i%len(bodies)], queries, &l))
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/queries, "ns/query")
					b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(estimate(batch)), "of-estimate")
					l.decoders.Drain()
				})
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDecoded(b *testing.B, p *Pipeline, codec wire.ContentType, body []byte, queries int, l *lane) *Request {
	r := &Request{pipeline: p, Message: Message{ContentType: codec.String(), Body: body, Arrived: time.Now()}, lane: l}
	if err := p.decode(r); err != nil || r.queries != queries {
		b.Fatal(err, r.queries)
	}
	return r
}

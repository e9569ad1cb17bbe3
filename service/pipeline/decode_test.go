package pipeline

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/value"
)

// randomQueries are many queries of all forms, some of them wrong in all stages.
func randomQueries(random *rand.Rand) []wire.Query {
	queries := make([]wire.Query, 100+random.IntN(300))
	for i := range queries {
		q := &queries[i]
		q.ID, q.K, q.WithPayload, q.TimeoutMS = fmt.Sprint("query ", i), 1+random.IntN(50), i%3 == 0, uint32(random.IntN(3))
		conds := make([]wire.Condition, 1+random.IntN(60))
		for j := range conds {
			c := &conds[j]
			switch c.Attr = "n"; random.IntN(8) {
			case 0:
				c.Attr, c.Value = "c", wire.String(fmt.Sprint(random.IntN(12)))
			case 1:
				c.Min, c.Weight = wire.Number(float64(random.IntN(3000))), uint32(random.IntN(3))
			case 2:
				c.In = []wire.Value{wire.Number(3), wire.Number(float64(random.IntN(9))), wire.Number(7)}
			default:
				c.Value = wire.Number(float64(random.IntN(3000)))
			}
		}
		q.Items = conds
		switch random.IntN(30) {
		case 0:
			conds[random.IntN(len(conds))].Attr = "unknown"
		case 1:
			conds[random.IntN(len(conds))].Value = wire.String("not a number")
		case 2:
			q.Items, q.Text = nil, "no text here"
		case 3:
			q.Items, q.Row = nil, conds // which names attributes twice
		case 4:
			q.Items, q.Row = nil, conds[:1]
		case 5:
			q.Items = nil
		case 6:
			q.Items, q.Vector = nil, make([]float32, 30)
		}
	}
	return queries
}

// randomTable is many queries of one shape, some of them wrong, of which only some are worth the help of others.
func randomTable(t *testing.T, random *rand.Rand, codec wire.ContentType) []byte {
	t.Helper()
	queries := make([]wire.Query, 2+random.IntN(300))
	conditions := 1 + random.IntN(40)
	for i := range queries {
		q := &queries[i]
		q.ID, q.K = fmt.Sprint("query ", i), 1+random.IntN(40)
		for j := range conditions {
			c := wire.Condition{Attr: "n", Value: wire.Number(float64(random.IntN(3000)))}
			if j%3 == 1 {
				c = wire.Condition{Attr: "c", Value: wire.String(fmt.Sprint(random.IntN(12)))}
			}
			if random.IntN(1000) == 0 {
				c.Value = wire.String("not a number")
			}
			q.Items = append(q.Items, c)
		}
	}
	body, ok := wire.AppendTable(nil, codec, queries)
	if !ok {
		t.Error("they have no shape")
	}
	return body
}

// unmeasured is what a pipeline tells when nobody listens.
type unmeasured struct{}

func (unmeasured) Batch(int, string)     {}
func (unmeasured) Begun()                {}
func (unmeasured) Ended()                {}
func (unmeasured) Worked(uint64, uint64) {}

func (unmeasured) Measured(string, uint64, uint64, time.Duration, time.Duration) {}

// idlePipeline is a pipeline of which no stage runs.
func idlePipeline(t testing.TB, ix *index.Index) *Pipeline {
	e, err := translate.New(ix.Schema().Name, ix, 0)
	if err != nil {
		t.Fatal(err)
	}
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	t.Cleanup(func() { engine.Close() })
	searcher, err := engine.Load(t.Context(), ix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { searcher.Close() })
	budget := memory.NewBudget(1 << 50)
	return &Pipeline{
		index: ix, translator: e, searcher: searcher, metrics: unmeasured{}, options: Options{Budget: budget, Exclusion: new(exclusion.Lock)},
		batchMemory: budget.Batches.Holder(), aborted: t.Context(),
	}
}

func decodingPipeline(t testing.TB, workers int, limits wire.Limits) *Pipeline {
	ix, err := index.Open(testkit.RowsFile(t, "rows", 2000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	p := idlePipeline(t, ix)
	p.options.Workers, p.options.Limits = workers, limits
	return p
}

func message(p *Pipeline, codec wire.ContentType, body []byte, l *lane) *Request {
	return &Request{pipeline: p, Message: Message{ContentType: codec.String(), Body: body, Arrived: time.Unix(1, 0)}, lane: l}
}

// compressed is the message with its body compressed, if that shrinks.
func compressed(r *Request) *Request {
	if packed, ok := wire.Compress(make([]byte, 0, wire.CompressRoom(len(r.Body))), r.Body); ok {
		codec, _ := wire.ParseContentType(r.ContentType)
		r.Body, r.ContentType = packed, codec.Compressed()
	}
	return r
}

// wantDecoded checks a request against its message, decoded query by query in fresh memory.
func wantDecoded(t *testing.T, p *Pipeline, r *Request, body []byte, refusal error) {
	t.Helper()
	m, err := wire.DecodeMessage(r.codec, body, p.options.Limits)
	if err != nil {
		if !reflect.DeepEqual(refusal, err) || r.tasks != nil || r.queries != 0 {
			t.Errorf("refused with %v and %d tasks, not %v", refusal, len(r.tasks), err)
		}
		return
	}
	if refusal != nil || r.batch != m.Batch || len(r.tasks) != len(m.Queries) {
		t.Errorf("refused with %v, batch %v, %d tasks of %d", refusal, r.batch, len(r.tasks), len(m.Queries))
		return
	}
	var memory pools
	want := &Request{Message: r.Message}
	memory.request(want, len(m.Queries), 1<<16)
	runs := 0
	for i := range m.Queries {
		runs += p.fill(want, i, 0, conditionsOf(&m.Queries[i]), &m.Queries[i])
		want.tasks[i].request = r
		if got := r.tasks[i]; !reflect.DeepEqual(got, want.tasks[i]) {
			t.Errorf("query %d became\n%+v\nnot\n%+v", i, got, want.tasks[i])
			return
		}
	}
	if r.queries != runs || r.open.Load() != int64(runs) {
		t.Errorf("%d queries to run, %d open, not %d", r.queries, r.open.Load(), runs)
	}
}

// However many decoders there are and whoever takes which part, a message, a list or a table, becomes what it is query by query,
// and the same errors.
func TestDecodersHelp(t *testing.T) {
	seed := seeded.Seed(t)
	p := decodingPipeline(t, 4, wire.Limits{SumK: 8_000}) // which about one in five exceeds
	l := new(lane)
	l.set(p, wire.ClassQuery, 3, 1, 0, 0)
	var owners sync.WaitGroup
	for owner := range 2 {
		owners.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(owner)))
			for range 60 {
				codec := []wire.ContentType{wire.JSON, wire.MessagePack}[random.IntN(2)]
				body := wire.AppendQueries(nil, codec, randomQueries(random))
				if random.IntN(2) == 0 {
					body = randomTable(t, random, codec)
				}
				switch random.IntN(8) {
				case 0:
					body = body[:len(body)-1-random.IntN(100)]
				case 1:
					// Where this is in JSON shows when it is decoded in parts.
					at := 1 + random.IntN(len(body)/2)
					body[at+bytes.IndexByte(body[at:], ':')] = ';'
				}
				r := message(p, codec, body, l)
				if random.IntN(2) == 0 {
					r = compressed(r)
				}
				wantDecoded(t, p, r, body, p.decode(r))
				p.memory.release(r)
			}
		})
	}
	owners.Wait()
	l.decoders.Drain()
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// A helper that has a message of its own to decode leaves after the part that it is at, and one who comes when nothing is
// left touches nothing.
func TestHelperLeaves(t *testing.T) {
	seed := seeded.Seed(t)
	p := decodingPipeline(t, 2, wire.Limits{})
	body := wire.AppendQueries(nil, wire.MessagePack, randomQueries(rand.New(rand.NewPCG(seed, 0))))
	var own, other wire.Decoder
	batch, ok := own.Scan(wire.MessagePack, body, p.options.Limits)
	if !ok {
		t.Fatal("not scanned")
	}
	r := message(p, wire.MessagePack, body, new(lane))
	s := p.newShare(r, batch)
	if s.step < 1 || s.step > s.queries/4 || s.helpers() != 1 {
		t.Fatalf("%d of %d queries at a time, with %d helpers", s.step, s.queries, s.helpers())
	}
	p.decodeParts(s, &other, func() bool { return true })
	if taken := s.taken.Load(); taken != int64(s.step) {
		t.Fatalf("%d of %d are taken, want %d", taken, s.queries, s.step)
	}
	p.decodeParts(s, &own, func() bool { return false })
	s.left.Wait()
	r.codec, r.batch, r.queries = wire.MessagePack, true, int(s.runs.Load())
	r.open.Store(s.runs.Load())
	wantDecoded(t, p, r, body, nil)
	s.request, s.batch = nil, nil
	p.decodeParts(s, &other, func() bool { return false })
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// What counts is how many queries there are, not how few bytes a table has: one of hundreds is shared, one of few is not, and nobody
// helps where each would hold thousands of conditions.
func TestWorthHelp(t *testing.T) {
	p := decodingPipeline(t, 9, wire.Limits{})
	for _, c := range []struct{ queries, conditions, helpers int }{{4, 1, 0}, {100, 14, 1}, {256, 14, 4}, {256, 237, 8}, {4, 40_000, 0}} {
		queries := make([]wire.Query, c.queries)
		for i := range queries {
			for j := range c.conditions {
				queries[i].Items = append(queries[i].Items, wire.Condition{Attr: fmt.Sprint("n", j), Value: wire.Number(float64(i))})
			}
		}
		body, ok := wire.AppendTable(nil, wire.MessagePack, queries)
		if !ok {
			t.Fatal("no table")
		}
		var decoder wire.Decoder
		m, err := decoder.Decode(wire.MessagePack, body, wire.Limits{Body: 8 << 20})
		if err != nil {
			t.Fatal(err)
		}
		s := p.newShare(message(p, wire.MessagePack, body, new(lane)), m.Table)
		if got := s.helpers(); got != c.helpers || s.step < 1 || c.helpers > 0 && s.step > c.queries/(c.helpers+1) {
			t.Errorf("%d queries of %d conditions, %d bytes: %d at a time with %d helpers, not %d", c.queries, c.conditions, len(body), s.step, got, c.helpers)
		}
	}
}

// vectorsFile is an index of vectors of 30 elements in two columns, of which one is asked by rows alone.
func vectorsFile(t testing.TB) *index.Index {
	t.Helper()
	text := "name: v\ncolumns:\n- {name: a, type: vector, similarity: l2, dims: 30, functions: 20, width: 2, reach: 1}\n" +
		"- {name: n, type: number}\n- {name: c, type: category}"
	spec, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	random, left := rand.New(rand.NewPCG(1, 1)), 200
	next, err := index.Builtin().Learn(spec, func(rec *schema.Record) error {
		if left--; left < 0 {
			return io.EOF
		}
		*rec = schema.Record{Cells: []schema.Cell{{}, {Values: []string{fmt.Sprint(left)}}, {Values: []string{fmt.Sprint(left % 10)}}}}
		for range 30 {
			rec.Cells[0].Vector = append(rec.Cells[0].Vector, float32(random.NormFloat64()))
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.AddAll(t.Context(), index.Source{Next: next}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v.gmq")
	if err := objects.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// list is numbers as a value of a shape that wire does not know.
func list(t testing.TB, numbers []float32) value.Tree {
	t.Helper()
	b := new(value.Builder).Array()
	for _, x := range numbers {
		b.Float(float64(x))
	}
	tree, err := b.End().Tree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestVectorsTogether: vectors of a message, as such and in rows beside other conditions and faults, are hashed together and become what they are one by
// one, in long messages and in short ones.
func TestVectorsTogether(t *testing.T) {
	random := seeded.Rand(t)
	p := idlePipeline(t, vectorsFile(t))
	p.options.Workers = 2
	l := new(lane)
	l.set(p, wire.ClassQuery, 0, 1, 0, 0)
	for round := range 30 {
		queries := randomQueries(random)[:1+random.IntN(100)]
		for i := range queries {
			floats := make([]float32, 30-random.IntN(20)/19)
			for j := range floats {
				floats[j] = float32(random.NormFloat64())
			}
			switch q := &queries[i]; random.IntN(4) {
			case 0:
				q.Row, q.Items, q.Vector, q.Text = nil, nil, floats, ""
			case 1, 2:
				q.Row, q.Items, q.Vector, q.Text = []wire.Condition{{Attr: "c", Value: wire.String("3")}, {Attr: "a", Other: &wire.Other{Value: list(t, floats)}}}, nil, nil, ""
			}
		}
		codec := []wire.ContentType{wire.JSON, wire.MessagePack}[round%2]
		body := wire.AppendQueries(nil, codec, queries)
		r := message(p, codec, body, l)
		wantDecoded(t, p, r, body, p.decode(r))
		p.memory.release(r)
	}
}

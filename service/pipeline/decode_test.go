package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
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

// unmeasured is what a pipeline tells when nobody listens.
type unmeasured struct{}

func (unmeasured) Batch(int, string)     {}
func (unmeasured) Begun()                {}
func (unmeasured) Ended()                {}
func (unmeasured) Worked(uint64, uint64) {}

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
	return &Pipeline{name: ix.Schema().Name, version: ix.Version(), index: ix, translator: e, searcher: searcher, metrics: unmeasured{}}
}

func decodingPipeline(t testing.TB, workers int, limits wire.Limits) *Pipeline {
	ix, err := index.Open(rowsFile(t, "rows", 2000))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	p := idlePipeline(t, ix)
	p.options = Options{Workers: workers, Limits: limits}
	return p
}

func message(p *Pipeline, codec wire.ContentType, body []byte, l *lane) *Request {
	return &Request{pipeline: p, contentType: codec.String(), body: body, arrived: time.Unix(1, 0), lane: l}
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
	want := &Request{arrived: r.arrived}
	memory.request(want, len(m.Queries), 1<<16)
	runs := 0
	for i := range m.Queries {
		runs += p.fill(want, i, 0, &m.Queries[i])
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

// However many decoders there are and whoever takes which part, a message becomes what it is query by query, and the
// same errors.
func TestDecodersHelp(t *testing.T) {
	seed := rand.Uint64()
	p := decodingPipeline(t, 4, wire.Limits{SumK: 8_000}) // which about one in five exceeds
	l := newLane(1, 0, 0)
	var helpers, owners sync.WaitGroup
	for range 3 {
		helpers.Go(l.decode(p))
	}
	for owner := range 2 {
		owners.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(owner)))
			for range 60 {
				codec := []wire.ContentType{wire.JSON, wire.MessagePack}[random.IntN(2)]
				body := wire.AppendQueries(nil, codec, randomQueries(random))
				switch random.IntN(8) {
				case 0:
					body = body[:len(body)-1-random.IntN(100)]
				case 1:
					// Where this is in JSON shows when it is decoded in parts.
					at := 1 + random.IntN(len(body)/2)
					body[at+bytes.IndexByte(body[at:], ':')] = ';'
				}
				r := message(p, codec, body, &l)
				wantDecoded(t, p, r, body, p.decode(r))
				p.memory.release(r)
			}
		})
	}
	owners.Wait()
	close(l.in)
	helpers.Wait()
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// A helper that has a message of its own to decode leaves after the part that it is at, and one who comes when nothing is
// left touches nothing.
func TestHelperLeaves(t *testing.T) {
	seed := rand.Uint64()
	p := decodingPipeline(t, 2, wire.Limits{})
	body := wire.AppendQueries(nil, wire.MessagePack, randomQueries(rand.New(rand.NewPCG(seed, 0))))
	var own, other wire.Decoder
	batch, ok := own.Scan(wire.MessagePack, body, p.options.Limits)
	if !ok {
		t.Fatal("not scanned")
	}
	r := message(p, wire.MessagePack, body, new(lane))
	s := p.newShare(r, batch, len(body))
	if s.step < 1 || s.step > s.queries/4 {
		t.Fatalf("%d of %d queries at a time", s.step, s.queries)
	}
	p.decodeParts(s, &other, func() bool { return true })
	if left := s.left.Load(); left != int64(s.queries-s.step) {
		t.Fatalf("%d of %d are left", left, s.queries)
	}
	p.decodeParts(s, &own, func() bool { return false })
	<-s.done
	r.codec, r.batch, r.queries = wire.MessagePack, true, int(s.runs.Load())
	r.open.Store(s.runs.Load())
	wantDecoded(t, p, r, body, nil)
	s.request, s.batch = nil, nil
	p.decodeParts(s, &other, func() bool { return false })
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

package pipeline

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// payloadIndex has 100 objects with keys and payloads.
func payloadIndex(t testing.TB) *index.Index {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: keyed\nkind: rows\nkey: id\ncolumns: [{name: c, type: category}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := index.NewBuilder(spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		b.AddString(0, fmt.Sprint(i%10))
		if err := b.EndObject(fmt.Sprintf("key %d", i), []byte(fmt.Sprintf(`{"c":"%d"}`, i%10)), ""); err != nil {
			t.Fatal(err)
		}
	}
	file, err := b.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Answers made in memory that was used before are those made in fresh memory: no key, payload or distance of an earlier
// message is in a later one, whatever sizes follow each other.
func TestMemoryIsUsedAgain(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	keyed := payloadIndex(t)
	defer keyed.Close()
	plain, err := index.Open(rowsFile(t, "plain", 100))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	now := time.Now()
	var pipelines [2]Pipeline // the first one's memory is used again, and of both indexes, which a pipeline's is not
	used := &pipelines[0].memory
	for round := range 300 {
		x := []*index.Index{keyed, plain}[random.IntN(2)]
		e, err := translate.New("x", x, 0)
		if err != nil {
			t.Fatal(err)
		}
		hits := make([][]gpuexec.Hit, 1+random.IntN(20))
		payload := random.IntN(2) == 0
		for i := range hits {
			for range random.IntN(60) {
				h := gpuexec.Hit{ID: random.Uint32N(100), Count: random.Uint32N(1000)}
				if random.IntN(3) == 0 {
					h.Score = float64(random.Int32N(9))
				}
				hits[i] = append(hits[i], h)
			}
		}
		var bodies [2][]byte
		pipelines[1].memory = pools{}
		for i := range pipelines {
			m := &pipelines[i].memory
			r := &Request{pipeline: &pipelines[i], batch: true, codec: wire.MessagePack, arrived: now}
			m.request(r, len(hits), 3*len(hits))
			if !reflect.DeepEqual(r.tasks, make([]task, len(hits))) {
				t.Fatalf("seed %d, round %d: tasks are not empty: %+v", seed, round, r.tasks)
			}
			for j := range r.tasks {
				items, spans := r.memory.query(3*j, 3)
				if len(items) != 0 || cap(items) != 3 || cap(spans) != 3 {
					t.Fatalf("seed %d, round %d: room for %d items and %d spans", seed, round, cap(items), cap(spans))
				}
				r.tasks[j].payload = payload
				r.tasks[j].answer.Hits = append([]gpuexec.Hit(nil), hits[j]...)
			}
			p := &pipelines[i]
			p.index, p.translator = x, e
			answer := r.Answer(nil, 1<<20)
			answer.now = now
			part := wire.AppendPart(m.bodies.Make(answer.RoughSize(0, 1<<20)), wire.MessagePack, answer.Results, 0, 1<<20)
			answer.Encoded()
			bodies[i] = bytes.Clone(part.Body)
			m.bodies.Keep(part.Body)
			m.release(r)
		}
		if !bytes.Equal(bodies[0], bodies[1]) {
			t.Fatalf("seed %d, round %d: used memory gives\n%q\nfresh memory\n%q", seed, round, bodies[0], bodies[1])
		}
	}
	answers := make([]gpuexec.Answer, 1000)
	used.hits.give(answers)
	given := 0
	for i := range answers {
		if len(answers[i].Hits) != 0 {
			t.Fatalf("answer %d has hits: %v", i, answers[i].Hits)
		}
		given += cap(answers[i].Hits)
	}
	if given == 0 || used.hits.hits < 0 || len(used.hits.spares) == 0 != (used.hits.hits == 0) {
		t.Errorf("gave room for %d hits, %d are left in %d", given, used.hits.hits, len(used.hits.spares))
	}
}

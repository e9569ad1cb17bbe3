package pipeline

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
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
	b, err := onebyone.NewBuilder(spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text}}, index.BuilderOptions{})
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
	random := seeded.Rand(t)
	keyed := payloadIndex(t)
	defer keyed.Close()
	plain, err := index.Open(testkit.RowsFile(t, "plain", 100))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	arrived := time.Now().Add(time.Hour) // so that no time has passed, in any answer
	translator := func(x *index.Index) *translate.Translator {
		e, err := translate.New("x", x, 0)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	var pipelines [2]Pipeline // the first one's memory is used again, and of both indexes, which a pipeline's is not
	used := map[*index.Index]*translate.Translator{keyed: translator(keyed), plain: translator(plain)}
	for round := range 300 {
		x := []*index.Index{keyed, plain}[random.IntN(2)]
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
			r := &Request{pipeline: &pipelines[i], batch: true, codec: wire.MessagePack, Message: Message{Arrived: arrived}}
			m.request(r, len(hits), 3*len(hits))
			if !reflect.DeepEqual(r.tasks, make([]task, len(hits))) {
				t.Fatalf("round %d: tasks are not empty: %+v", round, r.tasks)
			}
			for j := range r.tasks {
				q := r.memory.query(3*j, 3)
				if len(q.Items) != 0 || cap(q.Items) != 3 || cap(q.Spans) != 3 {
					t.Fatalf("round %d: room for %d items and %d spans", round, cap(q.Items), cap(q.Spans))
				}
				r.tasks[j].Payload = payload
				r.tasks[j].Answer.Hits = append([]gpuexec.Hit(nil), hits[j]...)
			}
			p := &pipelines[i]
			if p.index, p.translator = x, used[x]; i > 0 {
				p.translator = translator(x)
			}
			answer := r.Answer(nil, 1<<20)
			part := wire.AppendPart(m.bodies.Make(answer.RoughSize(wire.Position{}, 1<<20)), wire.MessagePack, answer.Results, wire.Position{}, 1<<20)
			answer.Encoded()
			bodies[i] = bytes.Clone(part.Body)
			m.bodies.Keep(part.Body)
			m.release(r)
		}
		if !bytes.Equal(bodies[0], bodies[1]) {
			t.Fatalf("round %d: used memory gives\n%q\nfresh memory\n%q", round, bodies[0], bodies[1])
		}
	}
	answers := make([]gpuexec.Answer, 1000)
	used[keyed].Room(answers)
	for i := range answers {
		if len(answers[i].Hits) != 0 {
			t.Fatalf("answer %d has hits: %v", i, answers[i].Hits)
		}
	}
}

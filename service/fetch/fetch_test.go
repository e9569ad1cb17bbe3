package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testkit.StoredObject()) }

func bucket(t *testing.T, js jetstream.JetStream) *bodystore.Store {
	t.Helper()
	config, err := new(streams.Settings).Bucket(wire.Subjects{}, "")
	if err == nil {
		_, err = js.CreateStream(t.Context(), config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bodystore.Of(js, wire.Subjects{})
}

func put(t *testing.T, bodies *bodystore.Store, body []byte) *consumer.Stored {
	t.Helper()
	b, err := bodies.Put(t.Context(), "", body)
	if err != nil {
		t.Fatal(err)
	}
	return named(b)
}

func named(b wire.StoredBody) *consumer.Stored {
	return &consumer.Stored{Index: "people", Header: nats.Header{wire.HeaderQueryObject: {b.String()}}}
}

// Bodies that are asked for at once come all, never more of them than there is memory for, and each gives its own back.
func TestBodiesWaitForMemory(t *testing.T) {
	bodies := bucket(t, testkit.JetStream(t, testkit.StartBroker(t).URL()))
	budget := memory.NewBudget(8 << 20) // of which bodies have 1 MiB
	f := fetch.New(t.Context(), bodies, fetch.Options{Memory: budget})
	defer f.Close()
	holder := f.Holder()
	const size, n = 400 << 10, 12
	body := bytes.Repeat([]byte("x"), size)
	var mu sync.Mutex
	held, most := 0, 0
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		m := put(t, bodies, body)
		f.Fetch(m, &holder, func(_ context.Context, out fetch.Outcome) {
			defer all.Done()
			if out.Body == nil || !bytes.Equal(out.Body.Bytes, body) {
				t.Errorf("got %+v", out)
				return
			}
			mu.Lock()
			held++
			most = max(most, held)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond) // so that they meet
			mu.Lock()
			held--
			mu.Unlock()
			out.Body.Release()
			out.Body.Release() // no more than once
			out.Body.Remove()
		})
	}
	all.Wait()
	if most*size > 1<<20 {
		t.Errorf("%d bodies of %d bytes were held at a time", most, size)
	}
	if !holder.Try(1 << 20) {
		t.Error("not all memory was given back")
	}
	refused := make(chan fetch.Outcome, 1)
	f.Fetch(put(t, bodies, make([]byte, 1<<20+1)), &holder, func(_ context.Context, out fetch.Outcome) { refused <- out })
	if out := <-refused; !errors.Is(out.Refusal, wire.TooLarge) || out.Wrong {
		t.Errorf("more than there is: %+v", out)
	}
}

// An object that cannot be seen is waited for, for a while; one that is wrong is told to be.
func TestWhatIsWrong(t *testing.T) {
	js := testkit.JetStream(t, testkit.StartBroker(t).URL())
	outcome := func(f *fetch.Fetcher, m *consumer.Stored) fetch.Outcome {
		got := make(chan fetch.Outcome, 1)
		holder := f.Holder()
		f.Fetch(m, &holder, func(_ context.Context, out fetch.Outcome) { got <- out })
		return <-got
	}
	budget := memory.NewBudget(8 << 20)
	hasty := fetch.New(t.Context(), bodystore.Of(js, wire.Subjects{}), fetch.Options{Memory: budget, Patience: time.Millisecond, Limits: wire.Limits{Body: 100}})
	defer hasty.Close()
	b := wire.StoredBodyOf("x", []byte("abc"))
	if out := outcome(hasty, named(b)); !errors.Is(out.Refusal, wire.ObjectMissing) || out.Wrong {
		t.Errorf("without a bucket: %+v", out)
	}
	bodies := bucket(t, js)
	if out := outcome(hasty, named(b)); !errors.Is(out.Refusal, wire.ObjectMissing) || out.Wrong {
		t.Errorf("without an object: %+v", out)
	}
	if out := outcome(hasty, put(t, bodies, make([]byte, 101))); !errors.Is(out.Refusal, wire.TooLarge) || out.Wrong {
		t.Errorf("beyond the limit: %+v", out)
	}
	m := put(t, bodies, []byte("abc"))
	lie, err := wire.ParseStoredBody(m.Header.Get(wire.HeaderQueryObject))
	if err != nil {
		t.Fatal(err)
	}
	lie.Digest[0] ^= 1
	if out := outcome(hasty, named(lie)); !errors.Is(out.Refusal, wire.BadRequest) || !out.Wrong {
		t.Errorf("with another digest: %+v", out)
	}
	m.User = "b.ob"
	if out := outcome(hasty, m); !errors.Is(out.Refusal, wire.BadRequest) || out.Wrong {
		t.Errorf("of nobody who can have a bucket: %+v", out)
	}

	patient := fetch.New(t.Context(), bodies, fetch.Options{Memory: budget, Patience: time.Hour})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if out := outcome(patient, named(b)); out.Body != nil || out.Refusal != nil {
			t.Errorf("of a fetcher that is closed: %+v", out)
		}
	})
	later, err := bodies.Put(t.Context(), "", []byte("later"))
	if err != nil {
		t.Fatal(err)
	}
	hidden := later
	if err := bodies.Remove(t.Context(), "", later.Name); err != nil {
		t.Fatal(err)
	}
	got := make(chan fetch.Outcome, 1)
	holder := patient.Holder()
	patient.Fetch(named(hidden), &holder, func(_ context.Context, out fetch.Outcome) { got <- out })
	objects, err := js.ObjectStore(t.Context(), "GENIE_OBJECTS")
	if err == nil {
		_, err = objects.Put(t.Context(), jetstream.ObjectMeta{Name: later.Name}, bytes.NewReader([]byte("later")))
	}
	if err != nil {
		t.Fatal(err)
	}
	if out := <-got; out.Body == nil || string(out.Body.Bytes) != "later" {
		t.Errorf("what comes a moment later: %+v", out)
	}
	patient.Close()
	waiting.Wait()
}

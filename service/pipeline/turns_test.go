package pipeline

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/wire"
)

// plainOrigin is an origin of requests that come from nowhere.
type plainOrigin struct{}

func (o *plainOrigin) Admit(int) *wire.Error        { return nil }
func (o *plainOrigin) Leave(int)                    {}
func (o *plainOrigin) Refuse(*Request, *wire.Error) {}
func (o *plainOrigin) Respond(*Request)             {}
func (o *plainOrigin) Abandon(*Request)             {}

// idleTurns gives turns of two cores to nobody.
func idleTurns(t *testing.T) *turns {
	ix, err := index.Open(testkit.RowsFile(t, "rows", 10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	p := idlePipeline(t, ix)
	p.options.BatchSize, p.batchBytes = 64, 1<<40
	p.stored.set(p, wire.ClassQuery, 1, 0, 0, 100)
	p.stored.backlog = 1
	p.look = make(chan struct{}, 1)
	p.slices = admission.NewSlices(time.Hour, 64)
	p.options.Weights = admission.DefaultWeights()
	p.aborted, p.abort = context.WithCancel(t.Context())
	p.estimates = newWorkEstimates()
	p.background = newTurns(p, 2)
	p.background.running = true // by the test
	return p.background
}

// waitingRequest is a stored request of n queries, each estimated at work.
func waitingRequest(b *turns, n int, work time.Duration) *Request {
	r := &Request{pipeline: b.Pipeline, origin: &plainOrigin{}, lane: &b.stored, queries: n, tasks: make([]task, n)}
	r.open.Store(int64(n))
	b.stored.open.Add(int64(n))
	var tasks []*task
	for i := range r.tasks {
		r.tasks[i] = task{request: r, formula: work, cost: 1}
		r.tasks[i].Plan.Rescore = &verify.Nearest{}
		tasks = append(tasks, &r.tasks[i])
	}
	b.add(r, tasks)
	return r
}

// TestTurnsAreFair: messages get the same time of the executor, whatever their number of queries and how wrong the estimates of
// these are, as long as they have something to do.
func TestTurnsAreFair(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := idleTurns(t)
	// What a query really takes, in time of a core.
	really := make(map[*Request]time.Duration)
	really[waitingRequest(b, 60_000, 20*time.Millisecond)] = 20 * time.Millisecond
	really[waitingRequest(b, 20_000, time.Microsecond)] = 30 * time.Millisecond
	really[waitingRequest(b, 5_000, time.Second)] = 3 * time.Second
	really[waitingRequest(b, 8_000, 50*time.Millisecond)] = 100 * time.Millisecond
	if b.stored.open.Load() != 0 || b.stored.held.Load() != 93_000 || b.stored.heldReqs.Load() != 4 {
		t.Fatalf("counts %d %d %d", b.stored.open.Load(), b.stored.held.Load(), b.stored.heldReqs.Load())
	}
	left := make(map[*task]time.Duration) // of what is begun
	got := make(map[*Request]time.Duration)
	for range 2000 {
		b.mu.Lock()
		tasks, places := b.choose()
		b.mu.Unlock()
		if len(tasks) == 0 || len(tasks) > 64 {
			t.Fatalf("%d tasks", len(tasks))
		}
		x := &executor{Pipeline: b.Pipeline, turns: places}
		allowance := turnTime * 2
		var longest time.Duration
		begun := false
		for i, own := range tasks {
			need, started := left[own]
			if !started {
				need = really[own.request]/2 + time.Duration(rng.Int64N(int64(really[own.request])))
				begun = true
			} else if begun && own.request == tasks[i-1].request {
				t.Fatal("a query was begun before one that was begun already")
			}
			took := max(0, min(need, allowance))
			allowance -= took
			longest = max(longest, took)
			got[own.request] += took
			x.spend(own, took)
			if left[own] = need - took; left[own] > 0 {
				b.put(own)
			}
		}
		b.charge(places, max(longest, (turnTime*2-allowance)/2))
	}
	for r, time := range got {
		share := time.Seconds()
		t.Logf("%d queries: %.1f s", r.queries, share)
		if share < 60 || share > 140 { // of 4 x 100 s
			t.Errorf("a message of %d queries got %.1f s of 400", r.queries, share)
		}
	}
}

// TestTurnsEndEarly: when the process ends, messages that cannot be answered until then are given back at once, whole, and the
// others are not.
func TestTurnsEndEarly(t *testing.T) {
	b := idleTurns(t)
	short, long := waitingRequest(b, 10, 100*time.Millisecond), waitingRequest(b, 1000, time.Second)
	middle := waitingRequest(b, 10, 900*time.Millisecond)
	b.Hurry(time.Now().Add(10*time.Second), 1)
	tasks, _, ok := b.next()
	if !ok || len(tasks) == 0 || tasks[0].request != short {
		t.Fatalf("%d tasks", len(tasks))
	}
	b.stored.responders.Drain()
	if !long.abandoned.Load() || long.open.Load() != 0 || b.stored.held.Load() != 20 || b.stored.heldReqs.Load() != 2 {
		t.Error("what takes 500 s was not given back")
	}
	if short.abandoned.Load() || middle.abandoned.Load() || middle.open.Load() != 10 {
		t.Error("what takes 5 s was given back")
	}
	// One that was running meanwhile comes back.
	b.put(&long.tasks[0])
	if long.open.Load() != -1 {
		t.Error("a query of a message that was given back waits")
	}
}

// TestTurnsExpire: queries that wait for a turn end when their time is up.
func TestTurnsExpire(t *testing.T) {
	b := idleTurns(t)
	r := waitingRequest(b, 1, time.Hour)
	other := waitingRequest(b, 1, time.Hour)
	b.mu.Lock()
	r.tasks[0].expires = time.Now()
	r.turn.expect([]*task{&r.tasks[0]})
	b.mu.Unlock()
	tasks, _, _ := b.next()
	if len(tasks) != 1 || tasks[0].request != other || r.tasks[0].Err == nil || r.tasks[0].Err.Code != wire.DeadlineExceeded {
		t.Errorf("%d tasks, refusal %v", len(tasks), r.tasks[0].Err)
	}
}

// fewTexts are 1,000 texts of 10 letters.
type fewTexts struct{}

func (fewTexts) Objects() uint32    { return 1000 }
func (fewTexts) Text(uint32) string { return "ten symbol" }
func (fewTexts) TextBytes() int64   { return 10_000 }

// TestEstimatesLearn: the estimates come near to what queries really take, up and down, and those with certify on their own.
func TestEstimatesLearn(t *testing.T) {
	e := newWorkEstimates()
	of := func(certify bool) *task {
		own := &task{}
		own.Plan = gpuexec.Plan{K: 80, Certify: certify, Rescore: &verify.Nearest{Texts: fewTexts{}, Text: []rune("ten letter"), K: 10}}
		own.formula = e.formula(&own.Plan)
		return own
	}
	before := e.of([]*task{of(false)})
	for range 10 {
		var s seen
		for range 100 {
			own := of(true)
			own.spent = 20 * time.Millisecond
			s.add(own)
		}
		e.learn(&s)
	}
	if got := e.of([]*task{of(true), of(true)}); got < 39*time.Millisecond || got > 41*time.Millisecond {
		t.Errorf("two queries of 20 ms are estimated at %v", got)
	}
	if got := e.of([]*task{of(false)}); got != before {
		t.Errorf("queries without certify are estimated at %v, %v before", got, before)
	}
}

// TestLargeMessagesShareBatches: messages of more queries than a batch holds fill batches in turn, and a small one that comes later
// is in the next batch but one.
func TestLargeMessagesShareBatches(t *testing.T) {
	b := idleTurns(t)
	d := b.newDispatcher(batcher.Options{MaxItems: 64})
	message := func(n int) *Request {
		r := &Request{origin: &plainOrigin{}, lane: &b.stored, queries: n, tasks: make([]task, n)}
		for i := range r.tasks {
			r.tasks[i].request = r
		}
		b.stored.open.Add(int64(n))
		d.add(r)
		return r
	}
	first, second, small := message(1000), message(900), message(10)
	if b.stored.open.Load() != 10 || b.stored.held.Load() != 1900 {
		t.Errorf("%d queries are open, %d are held", b.stored.open.Load(), b.stored.held.Load())
	}
	count, order := make(map[*Request]int), []*Request{}
	for batches := 0; ; batches++ {
		d.feed(time.Now())
		batch, ok := d.batcher.Cut(time.Now(), true)
		if !ok {
			break
		}
		for _, own := range batch.Items {
			if own != &own.request.tasks[count[own.request]] {
				t.Fatal("the queries of a message are out of order")
			}
			if count[own.request]++; count[own.request] == own.request.queries {
				order = append(order, own.request)
			}
		}
		if batches == 1 && count[small] != 10 {
			t.Errorf("of the small message %d queries are in the first two batches", count[small])
		}
		if difference := count[first] - count[second]; batches < 20 && (difference < -128 || difference > 128) {
			t.Errorf("after %d batches: %d and %d queries", batches+1, count[first], count[second])
		}
	}
	if len(order) != 3 || order[0] != small {
		t.Errorf("%d messages are done", len(order))
	}
}

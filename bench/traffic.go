package bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// traffic sends the queries of a workload through the stream and takes the answers, as an application would: one
// connection to publish, one to listen.
type traffic struct {
	server   *config.Config
	subjects wire.Subjects
	workload *workload.Workload
	answers  []gpuexec.Answer // the engine's own, to compare with
	form     wire.HitsForm    // of the answers
	tables   bool             // messages of many queries are
	pub, sub *nats.Conn
	js       jetstream.JetStream
	runs     int
	messages map[int][][]byte // encoded, by queries per message
	refused  chan error       // why a message was not stored: its answer never comes
}

// checkEvery is how many answers one is compared for; comparing all would measure the load.
const checkEvery = 61

// answerPatience is how long the load waits for the next answer before it gives up.
const answerPatience = 2 * time.Minute

func newTraffic(ctx context.Context, server *config.Config, w *workload.Workload, answers []gpuexec.Answer, form wire.HitsForm) (*traffic, error) {
	subjects, err := wire.NewSubjects(wire.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	l := &traffic{server: server, subjects: subjects, workload: w, answers: answers, form: form, messages: map[int][][]byte{}, refused: make(chan error, 1)}
	if l.pub, _, err = connection.Connect(server, "geniemq bench"); err != nil {
		return nil, err
	}
	if l.sub, _, err = connection.Connect(server, "geniemq bench"); err != nil {
		l.pub.Close()
		return nil, err
	}
	refuse := func(_ jetstream.JetStream, _ *nats.Msg, err error) {
		select {
		case l.refused <- err:
		default: // the first one says enough
		}
	}
	if l.js, err = connection.JetStreamOf(l.pub, server, jetstream.WithPublishAsyncMaxPending(65536), jetstream.WithPublishAsyncErrHandler(refuse)); err != nil {
		l.close()
		return nil, err
	}
	return l, ctx.Err()
}

// withTraffic measures the engine alone, for the answers to compare with, and has a service and traffic for as long as do runs.
func withTraffic(ctx context.Context, w *workload.Workload, cfg config.Config, form wire.HitsForm, say func(string, ...any),
	do func(*traffic, *service.Service, *alone) error) error {
	say("measuring the engine alone")
	a, err := measureAlone(ctx, w, &cfg)
	if err != nil {
		return err
	}
	return serving(ctx, w, cfg, func(svc *service.Service, cfg *config.Config) error {
		l, err := newTraffic(ctx, cfg, w, a.answers, form)
		if err != nil {
			return err
		}
		defer l.close()
		return do(l, svc, a)
	})
}

func (l *traffic) close() {
	l.pub.Close()
	l.sub.Close()
}

// bodies are the distinct messages of a mode: consecutive queries of the workload.
func (l *traffic) bodies(size int) [][]byte {
	if b := l.messages[size]; b != nil {
		return b
	}
	queries := l.workload.Queries
	distinct := max(1, len(queries)/size)
	bodies := make([][]byte, distinct)
	for i := range bodies {
		batch := make([]wire.Query, size)
		for j := range batch {
			batch[j] = queries[(i*size+j)%len(queries)]
			batch[j].HitsForm = l.form
		}
		switch {
		case size == 1:
			bodies[i] = wire.AppendQuery(nil, wire.MessagePack, &batch[0])
		case l.tables:
			bodies[i], _ = wire.AppendTable(nil, wire.MessagePack, batch) // they have one shape: see Service
		default:
			bodies[i] = wire.AppendQueries(nil, wire.MessagePack, batch)
		}
	}
	l.messages[size] = bodies
	return bodies
}

// stint is one uninterrupted load.
type stint struct {
	index    string
	size     int // queries per message
	messages int
	window   int     // messages sent and not answered, when there is no rate
	rate     float64 // queries per second, sent at fixed times whatever comes back
}

// on is the same load for another index.
func (s stint) on(index string) stint {
	s.index = index
	return s
}

// round is what a stint measured.
type round struct {
	rate      float64           // queries per second, first publish to last answer
	latencies []float64         // milliseconds, one per message, from the time it was due
	late      []float64         // by how much of that it was sent late
	stages    [stages][]float64 // of the latencies, where answers say so
	wrong     int
	sample    []byte // the first answer's body
}

// The stages of StageLatencies.
const (
	queueStage = iota
	batchStage
	engineStage
	respondStage
	outsideStage
	stages
)

// latencies gathers those of several rounds.
type latencies struct{ round }

func (l *latencies) add(r *round) {
	l.latencies, l.late = append(l.latencies, r.latencies...), append(l.late, r.late...)
	for i := range r.stages {
		l.stages[i] = append(l.stages[i], r.stages[i]...)
	}
}

func (l *latencies) result() LatencyResult {
	r := LatencyResult{
		Messages: len(l.latencies), P50: median(l.latencies), P99: percentile(l.latencies, 99), Max: percentile(l.latencies, 100),
		LateP99: percentile(l.late, 99),
	}
	if len(l.stages[queueStage]) == 0 {
		return r
	}
	slow := make([]int, len(l.latencies)) // the slowest hundredth
	for i := range slow {
		slow[i] = i
	}
	slices.SortFunc(slow, func(a, b int) int { return cmp.Compare(l.latencies[b], l.latencies[a]) })
	slow = slow[:(len(slow)+99)/100]
	of := func(stage int) StageLatency {
		s := StageLatency{P50: median(l.stages[stage]), P99: percentile(l.stages[stage], 99)}
		for _, i := range slow {
			s.Slowest += l.stages[stage][i] / float64(len(slow))
		}
		return s
	}
	r.Stages = &StageLatencies{
		Queue: of(queueStage), Batch: of(batchStage), Engine: of(engineStage), Respond: of(respondStage), Outside: of(outsideStage),
	}
	return r
}

// run sends messages to an index and waits for all answers.
func (l *traffic) run(ctx context.Context, s stint) (*round, error) {
	l.runs++
	f := newFlow(l, s)
	sub, err := l.sub.Subscribe(f.prefix+".*", f.receive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection is closed after the last one
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	if err := l.sub.Flush(); err != nil {
		return nil, err
	}
	if err := f.send(); err != nil {
		return nil, err
	}
	if err := f.wait(ctx); err != nil {
		return nil, err
	}
	// The stored copies of the answers have served; do not let rounds fill the stream.
	results, err := l.js.Stream(ctx, l.subjects.ResultStream())
	if err != nil {
		return nil, err
	}
	return f.result(), results.Purge(ctx)
}

// flow is a stint under way. One goroutine sends and another, the subscription's, receives: the fields are the sender's, the
// receiver's, or of both under mu. When done is closed the receiver's are the sender's.
type flow struct {
	stint
	load     *traffic
	prefix   string // of the answers' subjects
	bodies   [][]byte
	start    time.Time
	late     []float64
	slots    chan struct{} // taken by what is sent and not answered; nil when there is a rate
	progress bell.Bell
	done     chan struct{} // closed by the last answer

	mu  sync.Mutex
	due []time.Time

	latencies []float64 // 0: no answer yet
	tooks     []wire.Took
	checked   map[int][]byte
	sample    []byte
	last      time.Time
	answered  atomic.Int64
}

func newFlow(l *traffic, s stint) *flow {
	f := &flow{
		stint: s, load: l, prefix: l.subjects.Reply(s.index, "run"+strconv.Itoa(l.runs)), bodies: l.bodies(s.size),
		late: make([]float64, s.messages), progress: bell.New(), done: make(chan struct{}), due: make([]time.Time, s.messages),
		latencies: make([]float64, s.messages), tooks: make([]wire.Took, s.messages), checked: map[int][]byte{},
	}
	if s.rate == 0 {
		f.slots = make(chan struct{}, s.window)
	}
	return f
}

// receive takes an answer.
func (f *flow) receive(msg *nats.Msg) {
	i, err := strconv.Atoi(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:])
	if err != nil || i < 0 || i >= f.messages || f.latencies[i] != 0 {
		return
	}
	now := time.Now()
	f.mu.Lock()
	f.latencies[i] = milliseconds(now.Sub(f.due[i]))
	f.mu.Unlock()
	if f.sample == nil {
		f.sample = msg.Data
	}
	f.tooks[i] = lastTook(msg.Data) // also of the echo worker's, which are copies: the load does the same for both
	if f.index == benchIndex && i%checkEvery == 0 {
		f.checked[i] = msg.Data
	}
	if f.slots != nil {
		<-f.slots
	}
	f.last = now
	f.progress.Ring()
	if f.answered.Add(1) == int64(f.messages) {
		close(f.done)
	}
}

// send sends all messages, each when it is due.
func (f *flow) send() error {
	f.start = time.Now()
	for i := range f.messages {
		at, err := f.turn(i)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.due[i] = at
		f.mu.Unlock()
		msg := nats.NewMsg(f.load.subjects.Query(f.index))
		msg.Header.Set(wire.HeaderReply, f.prefix+"."+strconv.Itoa(i))
		msg.Header.Set(wire.HeaderMsgID, f.prefix+"."+strconv.Itoa(i)+"."+strconv.FormatInt(f.start.UnixNano(), 36))
		msg.Header.Set(wire.HeaderContentType, wire.MessagePack.String())
		msg.Data = f.bodies[i%len(f.bodies)]
		if _, err := f.load.js.PublishMsgAsync(msg); err != nil {
			return fmt.Errorf("publishing message %d: %w", i, err)
		}
	}
	return nil
}

// turn waits for the turn of the i-th message and returns when that was: by the rate whenever it was noticed, else when there was a slot.
func (f *flow) turn(i int) (time.Time, error) {
	if f.rate > 0 {
		at := f.start.Add(time.Duration(float64(i*f.size) / f.rate * float64(time.Second)))
		time.Sleep(time.Until(at))
		f.late[i] = milliseconds(time.Since(at))
		return at, nil
	}
	select {
	case f.slots <- struct{}{}:
	case err := <-f.load.refused:
		return time.Time{}, fmt.Errorf("a message of %d queries was not stored: %w", f.size, err)
	case <-time.After(answerPatience):
		return time.Time{}, fmt.Errorf("no answer for %v with %d of %d messages sent", answerPatience, i, f.messages)
	}
	return time.Now(), nil
}

// wait waits for the last answer.
func (f *flow) wait(ctx context.Context) error {
	for {
		select {
		case <-f.done:
			return nil
		case <-f.progress:
		case err := <-f.load.refused:
			return fmt.Errorf("a message of %d queries was not stored: %w", f.size, err)
		case <-time.After(answerPatience):
			return fmt.Errorf("%d of %d messages were not answered", int64(f.messages)-f.answered.Load(), f.messages)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *flow) result() *round {
	r := &round{rate: float64(f.messages*f.size) / f.last.Sub(f.start).Seconds(), latencies: f.latencies, late: f.late, sample: f.sample}
	for i, body := range f.checked {
		r.wrong += f.load.wrong(body, i%len(f.bodies), f.size)
	}
	if f.index != benchIndex {
		return r
	}
	for i := range f.tooks {
		t := &f.tooks[i]
		inside := t.Queue + t.Batch + t.Engine
		for stage, d := range [...]time.Duration{t.Queue, t.Batch, t.Engine, t.Total - inside} { // as the constants count
			r.stages[stage] = append(r.stages[stage], milliseconds(d))
		}
		r.stages[outsideStage] = append(r.stages[outsideStage], f.latencies[i]-milliseconds(t.Total))
	}
	return r
}

// lastTook is what the last result of an answer says of its time, read from the end of the body: decoding all answers
// would be more work than the service has with them.
func lastTook(body []byte) wire.Took {
	tail := body[max(0, len(body)-100):]
	at := bytes.LastIndex(tail, []byte("\xa7took_us"))
	if at < 0 {
		return wire.Took{}
	}
	answer, err := wire.DecodeAnswer(wire.MessagePack, append([]byte("\x82\xa4hits\x90"), tail[at:]...)) // a result with this and no hits
	if err != nil {
		return wire.Took{}
	}
	return answer.Results[0].Took
}

// wrong counts the results of an answer that are not the engine's own.
func (l *traffic) wrong(body []byte, message, size int) int {
	answer, err := wire.DecodeAnswer(wire.MessagePack, body)
	if err != nil || len(answer.Results) != size {
		return size
	}
	wrong := 0
	for j := range answer.Results {
		if !sameAnswer(&answer.Results[j], &l.answers[(message*size+j)%len(l.answers)]) {
			wrong++
		}
	}
	return wrong
}

// sameAnswer compares a result with the engine's own answer to the same query.
func sameAnswer(r *wire.Result, want *gpuexec.Answer) bool {
	return r.Err == nil && slices.EqualFunc(r.Hits, want.Hits, func(got wire.Hit, want gpuexec.Hit) bool {
		return got.ID == want.ID && got.Count == want.Count
	})
}

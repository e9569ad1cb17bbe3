package pipeline

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// Messages of many large queries take milliseconds to decode, longer than the engine takes to answer them. Their queries are decoded in parts, each query
// planned before the next is read, so that only plans are ever written at length; and the lane's decoders that have no message of their own take parts as well.
// Where none is idle, none helps: then the throughput is what counts, and it is that of one message a decoder.
const (
	// minShared is the least body of a list that is worth being looked through before it is decoded: of words it costs a tenth. A table is read
	// before its queries in any case, and shared if those are worth it.
	minShared = 32 << 10
	// queryTime and byteTime say about how long decoding and planning take: for each query, and for each byte that the queries have as a list
	// (wire.Batch.Size). BenchmarkWorkloads compares.
	queryTime = time.Microsecond
	byteTime  = 5 * time.Nanosecond
	// partTime is about how much is decoded at once: for so long a helper keeps those waiting whose message comes in meanwhile.
	partTime = 50 * time.Microsecond
	// helperParts is how many parts there must be for one more helper, who needs some microseconds to come.
	helperParts = 2
	// helpTime is for how long a decoder helps with a message. Those that applications send as a matter of course are done then;
	// one that takes seconds must not take all cores.
	helpTime = 10 * time.Millisecond
)

// decoded decodes a request and hands it on.
func (l *lane) decoded(p *Pipeline, r *Request) {
	debug.SetPanicOnFault(true) // as executors do
	r.lane = l
	var err error
	r.Sharing(func() { err = p.decode(r) })
	l.memory.Give(r.reserved)
	r.reserved = 0
	err = p.admit(r, err)
	l.pass(p)
	if err == nil {
		err = p.reserve(r)
	}
	if p.runs(r, err) {
		l.ready <- r
		return
	}
	p.look.Ring()
}

// admit asks the origin to let the queries of a request in whose decoding has come to err.
func (p *Pipeline) admit(r *Request, err error) error {
	if full := r.origin.Admit(r.queries); err == nil && full != nil {
		return full
	}
	return err
}

// runs says whether there are queries to run. Otherwise the request is answered, or given back.
func (p *Pipeline) runs(r *Request, err error) bool {
	switch {
	case err == nil && r.queries > 0:
		return true
	case err == nil:
		r.answer() // each query has an error of its own
		return false
	}
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		r.origin.Refuse(r, refusal)
	} else { // the pipeline is aborted, or its index's file was changed
		r.origin.Abandon(r)
	}
	return false
}

// decode fills in the tasks of a request. The error, a *wire.Error, concerns the message as a whole, or it is that of an aborted
// pipeline or of a file that was changed.
func (p *Pipeline) decode(r *Request) error {
	body := r.Body
	r.Body = nil
	decoder := p.memory.decoders.Get()
	defer p.memory.forget(decoder)
	if err := p.decodeMessage(r, body, decoder); err != nil {
		if changed := (*store.ChangedError)(nil); errors.As(err, &changed) {
			r.epoch, r.queries = 0, 0
			return err
		}
		if p.aborted.Err() != nil {
			return err
		}
		return wire.AsError(fmt.Errorf("decoding the message: %w", err))
	}
	r.open.Store(int64(r.queries))
	return nil
}

func (p *Pipeline) decodeMessage(r *Request, sent []byte, decoder *wire.Decoder) (err error) {
	b, err := p.bodyOf(r, sent)
	if err != nil {
		return err
	}
	room, size := &r.lane.decoding, int64(b.size)
	n := smallFactor * size
	if b.size >= minShared {
		n = scanFactor*size + partsBytes
	}
	n = room.Most(n + b.room())
	if err := room.Wait(p.aborted, n); err != nil {
		return err
	}
	defer func() { room.Give(n) }()
	defer b.close(&p.memory)
	body, err := b.open(&p.memory)
	if err != nil {
		return err
	}
	x := p.index
	if r.epoch = x.Epoch(); r.epoch == 0 {
		return x.Unchanged(0)
	}
	defer x.Recover(r.epoch, &err)
	if len(body) >= minShared {
		if batch, ok := decoder.Scan(r.codec, body, p.options.Limits); ok {
			if ok, err := p.decodeBatch(r, batch, decoder, 0); ok {
				return err
			}
		}
		decoder.Forget()
		b.close(&p.memory)
		room.Give(n)
		n = 0 // before more is waited for: who waits holds nothing
		more := room.Most(wholeFactor*size + wholeBytes + b.room())
		if err := room.Wait(p.aborted, more); err != nil {
			return err
		}
		n = more
		if body, err = b.open(&p.memory); err != nil {
			return err
		}
	}
	return p.decodeWhole(r, body, decoder)
}

// decodeWhole decodes a message of which all queries are decoded at once.
func (p *Pipeline) decodeWhole(r *Request, body []byte, decoder *wire.Decoder) error {
	message, err := decoder.Decode(r.codec, body, p.options.Limits)
	if err != nil {
		return err
	}
	if message.Table != nil {
		helping := int64(0)
		if len(body) < minShared {
			helping = partsBytes
		}
		_, err = p.decodeBatch(r, message.Table, decoder, helping)
		return err
	}
	r.batch = message.Batch
	conditions := 0
	for i := range message.Queries {
		conditions += conditionsOf(&message.Queries[i])
	}
	p.memory.request(r, len(message.Queries), conditions)
	conditions = 0
	for rest := message.Queries; len(rest) > 0; {
		some, first := rest[:min(groupQueries, len(rest))], len(message.Queries)-len(rest)
		rest = rest[len(some):]
		p.prepare(r, first, some)
		for i := range some {
			n := conditionsOf(&some[i])
			r.queries += p.fill(r, first+i, conditions, n, &some[i])
			conditions += n
		}
	}
	if first := &r.tasks[0]; !r.batch && first.ID == "" {
		first.ID = r.ID
	}
	return nil
}

// groupQueries is how many queries are prepared together: enough for what that saves, and few enough for what it takes.
const groupQueries = 64

// prepare prepares tasks together, from the first on, for fill.
func (p *Pipeline) prepare(r *Request, first int, queries []wire.QueryOrError) {
	for i, prepared := range p.translator.Prepare(queries) {
		r.tasks[first+i].Prepared = prepared
	}
}

func conditionsOf(q *wire.QueryOrError) int { return len(q.Query.Row) + len(q.Query.Items) }

// fill makes the i-th task of a request, with the memory of n conditions that follow the first ones, and returns how many queries it
// is to be run: 1 or 0. It keeps nothing of the query but its id.
func (p *Pipeline) fill(r *Request, i, first, n int, q *wire.QueryOrError) int {
	t := &r.tasks[i]
	t.request, t.ID, t.Err = r, q.Query.ID, q.Err
	if t.Err == nil {
		t.Match = r.memory.query(first, n)
		p.translator.Plan(&t.Query, &q.Query)
		t.Prepared = nil
	}
	if t.Err != nil {
		return 0
	}
	t.cost = p.searcher.Cost(&t.Plan)
	if most := p.batchMemory.Most(t.cost); p.costOnHost && t.cost > most {
		t.Err = wire.Errorf(wire.TooLarge, "the query asks for too much: %v: lower k or candidates, or ask for fewer common words", &memory.TooMuch{Need: t.cost, Limit: most})
		return 0
	}
	if ms := q.Query.TimeoutMS; ms > 0 {
		t.expires = r.Arrived.Add(time.Duration(ms) * time.Millisecond)
	}
	return 1
}

// share is a message that several decoders decode, each taking a part, some queries, at a time. Whoever is late finds none left and looks at nothing else: by
// then the request may be answered and its memory another's.
type share struct {
	request *Request
	batch   *wire.Batch
	queries int // of the batch
	step    int // queries of a part

	taken atomic.Int64   // queries
	left  sync.WaitGroup // queries that are not decoded yet

	runs, sumK atomic.Int64          // of those that are decoded
	malformed  atomic.Bool           // the message, so that it is not decoded any further
	changed    atomic.Pointer[error] // the index's file, with the same effect
}

// decodeBatch decodes a batch together with those who have nothing to do, and for whom there is so much memory at once beside what is reserved. It is false
// when the message is malformed, which it is to be decoded as a whole for.
func (p *Pipeline) decodeBatch(r *Request, batch *wire.Batch, decoder *wire.Decoder, helping int64) (ok bool, err error) {
	s := p.newShare(r, batch)
	if room, n := &r.lane.decoding, s.helpers(); n > 0 && room.Try(helping) {
		defer room.Give(helping)
		r.lane.offer(p, s, n)
	}
	p.decodeParts(s, decoder, func() bool { return false })
	s.left.Wait()
	if changed := s.changed.Load(); changed != nil {
		return true, *changed
	}
	if s.malformed.Load() {
		p.memory.release(r)
		return false, nil
	}
	if err := batch.CheckSumK(int(s.sumK.Load())); err != nil {
		p.memory.release(r)
		return true, err
	}
	r.batch, r.queries = true, int(s.runs.Load())
	return true, nil
}

// newShare prepares a batch for being decoded in parts.
func (p *Pipeline) newShare(r *Request, batch *wire.Batch) *share {
	n := batch.Len()
	p.memory.request(r, n, batch.Conditions(n))
	step := max(1, int(time.Duration(n)*partTime/estimate(batch)))
	s := &share{request: r, batch: batch, queries: n, step: step}
	s.left.Add(n)
	return s
}

// estimate is how long a batch takes one decoder.
func estimate(b *wire.Batch) time.Duration {
	return time.Duration(b.Len())*queryTime + time.Duration(b.Size())*byteTime
}

// helpers is how many decoders are worth to be asked for help. Each holds the conditions of a query, together no more than is reserved for that.
func (s *share) helpers() int {
	most := partsBytes / (1 + s.request.conditions/s.queries*conditionBytes)
	return min(s.queries/s.step/helperParts, most, s.request.pipeline.options.Workers-1)
}

// offer has up to so many decoders help that have no message of their own.
func (l *lane) offer(p *Pipeline, s *share, helpers int) {
	for range helpers {
		if !l.decoders.Help(func() { l.help(p, s) }) {
			return
		}
	}
}

// help decodes parts of a message until one comes that nobody decodes.
func (l *lane) help(p *Pipeline, s *share) {
	debug.SetPanicOnFault(true) // as executors do
	decoder := p.memory.decoders.Get()
	until := time.Now().Add(helpTime)
	p.decodeParts(s, decoder, func() bool { return l.decoders.Waiting() > 0 || time.Now().After(until) })
	p.memory.forget(decoder)
}

// decodeParts decodes parts of a message until none is left or leave says so.
func (p *Pipeline) decodeParts(s *share, decoder *wire.Decoder, leave func() bool) {
	runs := 0
	fill := func(i int, q *wire.QueryOrError) {
		first := s.batch.Conditions(i)
		runs += p.fill(s.request, i, first, s.batch.Conditions(i+1)-first, q)
	}
	for {
		first := int(s.taken.Add(int64(s.step))) - s.step
		if first >= s.queries {
			return
		}
		end := min(first+s.step, s.queries)
		if !s.malformed.Load() {
			runs = 0
			sumK, ok, err := p.decodePart(s, decoder, first, end, fill)
			if err != nil {
				s.changed.Store(&err)
			}
			if !ok {
				s.malformed.Store(true)
			}
			s.sumK.Add(int64(sumK))
			s.runs.Add(int64(runs))
		}
		s.left.Add(first - end)
		if leave() {
			return
		}
	}
}

// decodePart decodes some queries of a share. The error is that of a file that was changed; the decoder is good for nothing then but
// to be forgotten.
func (p *Pipeline) decodePart(s *share, decoder *wire.Decoder, first, end int, fill func(int, *wire.QueryOrError)) (sumK int, ok bool, err error) {
	defer p.index.Recover(s.request.epoch, &err)
	if !p.translator.Prepares() {
		sumK, ok = decoder.Queries(s.batch, first, end, fill)
		return sumK, ok, nil
	}
	for ; first < end; first += groupQueries {
		queries, k, ok := decoder.Group(s.batch, first, min(first+groupQueries, end))
		if sumK += k; !ok {
			return sumK, false, nil
		}
		p.prepare(s.request, first, queries)
		for i := range queries {
			fill(first+i, &queries[i])
		}
	}
	return sumK, true, nil
}

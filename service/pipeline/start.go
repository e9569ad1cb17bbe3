package pipeline

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/translate"
)

const (
	// minExecutors keeps one batch ready while another runs, even where the engine runs one at a time.
	minExecutors = 2
	// backlogBatches is how many batches of stored queries there may be beside those that executors hold.
	backlogBatches = 2
	// maxBurst is how many stored messages may wait to be decoded, and to be batched.
	maxBurst = 256
	// gatherWait is how long a free executor waits at most for what is being decoded. Small messages need less; of messages
	// of hundreds of queries there is always one that is being decoded, and waiting a millisecond for it made the median
	// latency of W4 longer than not waiting did, while this little keeps batches as large.
	gatherWait = 300 * time.Microsecond
)

// New starts a pipeline. Drain ends it.
func New(x *index.Index, enc *translate.Translator, searcher gpuexec.Searcher, opts Options, m Metrics, log *slog.Logger) *Pipeline {
	capacity := searcher.Capacity()
	if opts.BatchSize <= 0 || opts.BatchSize > capacity.BatchPlans {
		opts.BatchSize = capacity.BatchPlans
	}
	opts.BatchSize = max(1, opts.BatchSize)
	if opts.Exclusion == nil {
		opts.Exclusion = new(exclusion.Lock)
	}
	executors := max(minExecutors, capacity.InFlight)
	backlog := (backlogBatches + executors) * opts.BatchSize
	burst := min(maxBurst, opts.BatchSize)
	p := &Pipeline{
		index: x, translator: enc, searcher: searcher, probe: translate.Probe(x), options: opts, metrics: m, log: log, form: capacity.Form,
		stored:  newLane(burst, burst, backlog+heldRequests),
		direct:  newLane(opts.DirectQueue, burst, executors),
		lone:    newLane(0, 0, 1),
		look:    bell.New(),
		idle:    make(chan struct{}, executors),
		batches: make(chan batcher.Batch[*task], executors),
		doubts:  bell.New(),
	}
	p.batchMemory = opts.Budget.Batches.Holder()
	if capacity.OnHost {
		p.costOnHost = true
		capacity.BatchBytes = min(capacity.BatchBytes, p.batchMemory.Limit()/2)
	}
	for _, l := range []*lane{&p.stored, &p.direct, &p.lone} {
		l.memory, l.decoding = opts.Budget.Requests.Holder(), opts.Budget.Decoding.Holder()
	}
	p.aborted, p.abort = context.WithCancel(context.Background())
	p.batchBytes = capacity.BatchBytes
	p.estimates = newWorkEstimates()
	p.background = newTurns(p, opts.Cores)

	p.start(opts.Workers, p.stored.decode(p), func() { close(p.stored.ready) })
	p.start(opts.Workers, p.direct.decode(p), func() { close(p.direct.ready) })
	p.start(1, p.dispatch(batcher.Options{MaxItems: opts.BatchSize, MaxCost: capacity.BatchBytes, Linger: opts.Linger}, int64(backlog)),
		func() { close(p.batches) })
	p.start(executors, p.execute, p.background.end)
	p.start(1, p.background.run, func() {
		close(p.stored.finished)
		close(p.direct.finished)
	})
	p.start(opts.Workers, func() {
		for r := range p.stored.finished {
			r.Reading(r.answer)
			p.answered(r) // its queries count as answered when the producer has taken the answer
		}
	}, nil)
	p.start(opts.Workers, func() {
		for r := range p.direct.finished {
			r.Reading(func() { r.Sharing(r.answer) })
		}
	}, nil)
	return p
}

// start runs a stage in n goroutines and calls end when all have returned.
func (p *Pipeline) start(n int, stage func(), end func()) {
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			debug.SetPanicOnFault(true) // of reading an index whose file was cut off; see fileWatch
			stage()
		})
	}
	p.ended.Go(func() {
		running.Wait()
		if end != nil {
			end()
		}
	})
}

// Give puts a stored request into the pipeline, and waits for room. It is false, and the request is done, when ctx ends before.
func (p *Pipeline) Give(ctx context.Context, r *Request) bool {
	defer r.entered()
	p.entered.Add(1)
	select {
	case p.stored.in <- r:
		return true
	case <-ctx.Done():
		p.passed.Add(1)
		r.Done()
		return false
	}
}

// Offer puts a direct request into the pipeline if there is room.
func (p *Pipeline) Offer(r *Request) bool {
	defer r.entered()
	size := int64(len(r.Body)) // until it is decoded
	if !p.direct.memory.Try(size) {
		return false
	}
	r.lane, r.reserved = &p.direct, size
	p.entered.Add(1)
	select {
	case p.direct.in <- r:
		return true
	default:
		p.passed.Add(1)
		r.lane.memory.Give(size)
		r.reserved = 0
		return false
	}
}

// Drain finishes everything that was taken in and ends the pipeline. No requests are made any longer; those that are made may be on
// their way in.
func (p *Pipeline) Drain() {
	p.outside.Wait()
	close(p.stored.in)
	close(p.direct.in)
	p.ended.Wait()
	p.requests.Wait() // parts of answers are encoded when those before them are out
	p.abort()         // frees the context
}

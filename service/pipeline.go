package service

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// pipeline takes the messages of one index from intake to answer. Its stages run in goroutines of their own and
// hand requests on through channels, so that while the engine runs batch n, batch n+1 is decoded and gathered
// and the answers of n-1 are encoded and published:
//
//	stored ─► decoders ─┐                            ┌─► executor ─┐   ┌─► responders ─► stream
//	                    ├─► dispatcher ─► batches ───┼─► executor ─┼───┤
//	direct ─► decoders ─┘   (owns the batcher)       └─► ...      ─┤   └─► responders ─► inbox
//	                             │                                 │
//	                             └─────── much work ─► turns ──────┘
//
// # Back-pressure
//
// Stored and direct messages share batches and executors and nothing else: each have a lane, with its own decoders
// and responders, so that a result stream that is full does not hold up those who ask directly. The lanes differ in
// how they are bounded. Direct queries are counted where they come in, and refused. Stored ones wait: the dispatcher
// takes no more of them while too many are between it and the stream, whether the engine is slow or the producer is
// blocked; then the decoders stand still, then the intake, which stops pulling. The consumer keeps alive what it has
// pulled, so waiting costs no deliveries. Since the dispatcher counts, executors never wait for a stored lane.
//
// # Batches
//
// A batch is cut when it is full or an executor is free, but not before what is being decoded at that moment has
// joined it. Messages come in bursts, a pull at a time, and a free executor that took the first of a burst and left
// the rest would run many small batches, each with the cost of a large one. What comes in later is not waited for, nor
// is anything for longer than gatherWait, so this costs latency only when there are too many for latency to matter.
//
// # Turns
//
// What is estimated to take long, and what turned out to, leaves the batches for turns, which have an executor of their own
// (file turns.go). A message of more queries than a batch holds fills batches in turn with others of that kind.
//
// # Failures
//
// A batch that fails as a whole is run again in parts, here and at once, so that the innocent neither fail nor
// spend a delivery: message by message, then query by query. A query that fails alone is what failed the batch.
// Before it is blamed, a query known to be sound is run: an engine that fails on that as well is the one to blame.
// When memory was short the batch is halved instead, and only a query that does not fit alone fails. A device
// that is lost for good ends the service: fatal is called, and from then on everything is abandoned.
//
// # The end
//
// drain ends the stages in order: once the intakes have stopped, each stage finishes what it was handed and then
// closes the next one's channel. abort makes executors abandon what they are handed instead of running it, and
// origins give back what they cannot publish, so that the same order comes to its end fast. A request that was taken in
// is answered, refused or abandoned, always.
type pipeline struct {
	name     string
	encoder  *encoder
	searcher gpuexec.Searcher
	probe    gpuexec.Plan // a query that the engine must be able to answer
	options  pipelineOptions
	metrics  *indexMetrics
	memory   pools
	log      *slog.Logger

	batchMemory    memory.Holder
	costOnHost     bool // tasks' costs are of this host's memory
	stored, direct lane
	lone           lane         // of the one suspect that is run: it has no stages
	storedOpen     atomic.Int64 // stored queries between dispatcher and stream, without those of requests that are held
	heldQueries    atomic.Int64 // stored queries of requests that wait for turns
	heldRequests   atomic.Int64 // and these
	background     *turns
	estimates      *workEstimates
	batchBytes     int64
	entered        atomic.Int64  // requests that decoders were given, or are about to be
	passed         atomic.Int64  // and those that have left decoding, one way or the other
	look           chan struct{} // wakes the dispatcher when storedOpen fell or a request will not come; has room for one
	idle           chan struct{} // one for each executor that waits for a batch
	batches        chan batcher.Batch[*task]
	ended          sync.WaitGroup

	aborted context.Context
	abort   context.CancelFunc

	doubts chan struct{} // wakes the fileWatch; has room for one

	lastAnswer atomic.Int64 // when the engine last answered a batch, Unix nanoseconds
}

// lane is what stored and direct messages do not share.
type lane struct {
	in       chan *request // from the intake
	memory   memory.Holder // of requests, until they are answered
	decoding memory.Holder
	help     chan *share   // messages that decoders without one of their own may help with; never has any waiting
	ready    chan *request // decoded, at least one query can be run
	finished chan *request // nothing is left to be run
}

// newLane makes a lane of which so many requests may wait for each stage.
func newLane(in, ready, finished int) lane {
	return lane{
		in: make(chan *request, in), help: make(chan *share),
		ready: make(chan *request, ready), finished: make(chan *request, finished),
	}
}

// pipelineOptions bound a pipeline.
type pipelineOptions struct {
	// batchSize is the most queries of a batch. Default and upper bound: the searcher's capacity.
	batchSize int
	// linger is batcher.Options.Linger.
	linger time.Duration
	// workers is the number of decoders and of responders of each lane.
	workers int
	// directQueue is how many direct requests may wait to be decoded.
	directQueue int
	// limits bound a message.
	limits wire.Limits
	// exclusion keeps all pipelines of the process apart from lone runs. Default: of its own.
	exclusion *exclusion
	// maxMessage is the most bytes of an answer's message.
	maxMessage int64
	// budget is the worker's, which bounds what is in flight. Required.
	budget *memory.Budget
	// cores is how many the engine has. Default: all.
	cores int
	// engineTimeout bounds the time that comparing the texts of a query may take. 0: no bound.
	engineTimeout time.Duration
	// fatal is called when the engine is lost for good.
	fatal func(error)
}

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

// newPipeline starts a pipeline. drain ends it.
func newPipeline(name string, enc *encoder, searcher gpuexec.Searcher, opts pipelineOptions, m *indexMetrics, log *slog.Logger) *pipeline {
	capacity := searcher.Capacity()
	if opts.batchSize <= 0 || opts.batchSize > capacity.BatchPlans {
		opts.batchSize = capacity.BatchPlans
	}
	opts.batchSize = max(1, opts.batchSize)
	if opts.exclusion == nil {
		opts.exclusion = new(exclusion)
	}
	executors := max(minExecutors, capacity.InFlight)
	backlog := (backlogBatches + executors) * opts.batchSize
	burst := min(maxBurst, opts.batchSize)
	p := &pipeline{
		name: name, encoder: enc, searcher: searcher, probe: probePlan(enc.index), options: opts, metrics: m, log: log,
		stored:  newLane(burst, burst, backlog+heldRequests),
		direct:  newLane(opts.directQueue, burst, executors),
		lone:    newLane(0, 0, 1),
		look:    make(chan struct{}, 1),
		idle:    make(chan struct{}, executors),
		batches: make(chan batcher.Batch[*task], executors),
		doubts:  make(chan struct{}, 1),
	}
	p.batchMemory = opts.budget.Batches.Holder()
	if capacity.OnHost {
		p.costOnHost = true
		capacity.BatchBytes = min(capacity.BatchBytes, p.batchMemory.Limit()/2)
	}
	for _, l := range []*lane{&p.stored, &p.direct, &p.lone} {
		l.memory, l.decoding = opts.budget.Requests.Holder(), opts.budget.Decoding.Holder()
	}
	p.aborted, p.abort = context.WithCancel(context.Background())
	p.batchBytes = capacity.BatchBytes
	p.estimates = newWorkEstimates(enc.index.Objects(), enc.index.TextBytes())
	p.background = newTurns(p, opts.cores)

	p.start(opts.workers, p.stored.decode(p), func() { close(p.stored.ready) })
	p.start(opts.workers, p.direct.decode(p), func() { close(p.direct.ready) })
	p.start(1, p.dispatch(batcher.Options{MaxItems: opts.batchSize, MaxCost: capacity.BatchBytes, Linger: opts.linger}, int64(backlog)),
		func() { close(p.batches) })
	p.start(executors, p.execute, p.background.end)
	p.start(1, p.background.run, func() {
		close(p.stored.finished)
		close(p.direct.finished)
	})
	p.start(opts.workers, p.respondStored, nil)
	p.start(opts.workers, p.respondDirect, nil)
	return p
}

// enter tells of a request that is about to be given to a lane's decoders; if it is not after all, it has passed.
func (p *pipeline) enter() { p.entered.Add(1) }
func (p *pipeline) pass()  { p.passed.Add(1) }

// share waits for the end of a lone run, unless that is the request's own, and shared is the end of what was to be done. See exclusion.
func (p *pipeline) share(r *request) {
	if !r.alone {
		p.options.exclusion.share()
	}
}

func (p *pipeline) shared(r *request) {
	if !r.alone {
		p.options.exclusion.done()
	}
}

// start runs a stage in n goroutines and calls end when all have returned.
func (p *pipeline) start(n int, stage func(), end func()) {
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

// drain finishes everything that was taken in and ends the pipeline. The intakes must have stopped.
func (p *pipeline) drain() {
	close(p.stored.in)
	close(p.direct.in)
	p.ended.Wait()
	p.abort() // frees the context
}

// wakeDispatcher makes the dispatcher look again at what other goroutines count.
func (p *pipeline) wakeDispatcher() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}

// respondStored answers stored requests. Their queries count as answered when the producer has taken the answer.
func (p *pipeline) respondStored() {
	for r := range p.stored.finished {
		p.reading(r, r.answer)
		p.answered(r)
	}
}

// respondDirect answers direct requests.
func (p *pipeline) respondDirect() {
	for r := range p.direct.finished {
		p.reading(r, func() {
			p.share(r)
			defer p.shared(r)
			r.answer()
		})
	}
}

// Package pipeline takes messages of one index from their bodies to their answers: it decodes, encodes, gathers batches, runs them
// on one searcher and makes the results. Where messages come from and where answers go it does not know: an Origin stands for each.
package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/internal/crew"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// Pipeline takes the messages of one index from intake to answer. Its stages run in goroutines of their own and
// hand requests on through queues, so that while the engine runs batch n, batch n+1 is decoded and gathered
// and the answers of n-1 are encoded and published. A stage has goroutines while it is used (crew.Crew); only the
// dispatcher has one always, so that an index that nobody asks costs next to nothing:
//
//	stored ─► decoders ─┐                            ┌─► executor ─┐   ┌─► responders ─► stream
//	users  ─► decoders ─┤                            │             │   │
//	bulk   ─► decoders ─┼─► dispatcher ──────────────┼─► executor ─┼───┤
//	direct ─► decoders ─┘   (queue and batcher)      └─► ...      ─┤   └─► responders ─► inbox
//	                             │                                 │
//	                             └─────── much work ─► turns ──────┘
//
// # Back-pressure
//
// Messages of different classes share executors and nothing else: each class has a lane, with its own decoders and responders, so that a result stream that is
// full does not hold up those who ask directly, and bulk holds up nobody. The lanes differ in how they are bounded. Direct queries are counted where they come
// in, and refused. Stored ones wait: the dispatcher takes no more of them while too many are between it and the stream, whether the engine is slow or the
// producer is blocked; then the decoders stand still, then the intake, which stops pulling. The consumer keeps alive what it has pulled, so waiting costs no
// deliveries. Since the dispatcher counts, executors never wait for a stored lane.
//
// # Batches
//
// A batch is cut when it is full or an executor is free, but not before what is being decoded at that moment has joined it. Messages come in bursts, a pull at
// a time, and a free executor that took the first of a burst and left the rest would run many small batches, each with the cost of a large one. What comes in
// later is not waited for, nor is anything for longer than gatherWait, so this costs latency only when there are too many for latency to matter.
//
// # Classes
//
// What is decoded waits in an admission.Queue, which says whose queries are next, by class and by user. They go into the batcher only when an executor is free:
// who comes meanwhile may still be before them. A batch is of bulk or of the others, never of both. While others ask, one bulk batch is out at a time and takes
// about a slice of time (admission.Slices), so that nobody waits for more than that.
//
// # Turns
//
// What is estimated to take long, and what turned out to, leaves the batches for turns, which have an executor of their own (file turns.go). A message of more
// queries than a batch holds leaves its place in the queue to others between two batches.
//
// # Failures
//
// A batch that fails as a whole is run again in parts, here and at once, so that the innocent neither fail nor spend a delivery: message by message, then query
// by query. A query that fails alone is what failed the batch. Before it is blamed, a query known to be sound is run: an engine that fails on that as well is
// the one to blame. When memory was short the batch is halved instead, and only a query that does not fit alone fails. A device that is lost for good ends the
// service: Options.Fatal is called, and from then on everything is abandoned.
//
// # The end
//
// Drain ends the stages in order: once no requests are made any longer and those that are made are in, each stage finishes what it was handed before the next
// one is told that no more comes. Abort makes executors abandon what they are handed instead of running it, and origins give back what they cannot publish, so
// that the same order comes to its end fast. A request that was taken in is answered, refused or abandoned, always, and the pipeline has ended when the last is
// Done.
type Pipeline struct {
	index      *index.Index
	translator *translate.Translator
	form       string // how the index lies on its engine, for people
	searcher   gpuexec.Searcher
	probe      gpuexec.Plan // a query that the engine must be able to answer
	options    Options
	metrics    Metrics
	memory     pools
	log        *slog.Logger

	batchMemory    memory.Holder
	costOnHost     bool // tasks' costs are of this host's memory
	stored, direct lane
	users, bulk    lane
	lone           lane // of the one suspect that is run: it has no stages
	slices         *admission.Slices
	background     *turns
	estimates      *workEstimates
	batchBytes     int64
	entered        atomic.Int64   // requests that decoders were given, or are about to be, but for bulk
	passed         atomic.Int64   // and those that have left decoding, one way or the other, or were not given after all
	look           bell.Bell      // wakes the dispatcher when a lane has room again or a request will not come
	idle           chan *executor // those that have no batch; has room for all
	executing      *crew.Crew[*executor]
	dispatching    sync.WaitGroup // the dispatcher
	turning        sync.WaitGroup // turns
	requests       sync.WaitGroup // that are not done
	outside        sync.WaitGroup // requests that are made and not in the pipeline yet

	aborted context.Context
	abort   context.CancelFunc

	doubts bell.Bell // wakes the fileWatch

	prober     *prober
	lastAnswer atomic.Pointer[time.Time] // when the engine last answered a batch; with its monotonic reading, since clocks are set
}

// lane is what stored and direct messages do not share.
type lane struct {
	memory   memory.Holder // of requests, until they are answered
	decoding memory.Holder
	class    wire.Class
	backlog  int64        // of open; 0: direct queries are counted where they come in
	open     atomic.Int64 // queries between dispatcher and stream, without those of requests that are held
	held     atomic.Int64 // queries of requests that wait for turns
	heldReqs atomic.Int64 // and these
	// The stages: requests come from the intake, are decoded so that at least one query can be run, and then nothing is left to be run.
	decoders   *crew.Crew[*Request]
	ready      chan *Request
	responders *crew.Crew[*Request]
}

// set makes a lane of a class of which so many requests may wait for each stage, and whose stages have so many goroutines each at most.
func (l *lane) set(p *Pipeline, class wire.Class, workers, in, ready, finished int) {
	l.class, l.ready = class, make(chan *Request, ready)
	l.memory, l.decoding = p.options.Budget.Requests.Holder(), p.options.Budget.Decoding.Holder()
	l.decoders = crew.New(in, workers, func(r *Request) { l.decoded(p, r) })
	l.responders = crew.New(finished, workers, (*Request).respond)
}

// Metrics take note of what a pipeline does. They are called from many goroutines.
type Metrics interface {
	// Batch is called for each batch that an executor has, with why it was cut.
	Batch(queries int, reason string)
	// Begun and Ended are around each call of the engine.
	Begun()
	Ended()
	// Worked tells what the engine looked at for a batch.
	Worked(postings, candidates uint64)
	// Measured tells what the engine did for a search by distance, and what time of a core that took and was expected to take, 0 where nothing was.
	Measured(method string, distances, blocks uint64, took, predicted time.Duration)
}

// Options bound a pipeline.
type Options struct {
	// BatchSize is the most queries of a batch. Default and upper bound: the searcher's capacity.
	BatchSize int
	// Linger is batcher.Options.Linger.
	Linger time.Duration
	// Workers is the number of decoders and of responders of each lane.
	Workers int
	// DirectQueue is how many direct requests may wait to be decoded.
	DirectQueue int
	// Limits bound a message.
	Limits wire.Limits
	// Exclusion keeps all pipelines of the process apart from lone runs. Required.
	Exclusion *exclusion.Lock
	// MaxMessage is the most bytes of an answer's message.
	MaxMessage int64
	// Budget is the worker's, which bounds what is in flight. Required.
	Budget *memory.Budget
	// Cores is how many the engine has. Default: all.
	Cores int
	// Weights are the classes' shares where there is more work than time. Default: admission.DefaultWeights.
	Weights admission.Weights
	// Most is how many queries of a stored class may be between dispatcher and stream. Default: some batches.
	Most map[wire.Class]int
	// Quotas bound users. Default: none are bounded.
	Quotas *admission.Quotas
	// BulkSlice is about how long a batch of bulk may take while others ask. Default 2ms.
	BulkSlice time.Duration
	// EngineTimeout bounds the time that comparing the texts of a query may take. 0: no bound.
	EngineTimeout time.Duration
	// Answered says that the searcher has answered a query already.
	Answered bool
	// Fatal is called when the engine is lost for good.
	Fatal func(error)
}

// BatchSize is the most queries of a batch.
func (p *Pipeline) BatchSize() int { return p.options.BatchSize }

// Abort makes the pipeline give up what it has.
func (p *Pipeline) Abort() { p.abort() }

// Busy says whether there is work that waits for turns.
func (p *Pipeline) Busy() bool {
	b := p.background
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ring) > 0
}

// Hurry says until when the process lives, and which part of the cores there is: messages that cannot be answered until then are
// given back now, and not then.
func (p *Pipeline) Hurry(deadline time.Time, part float64) {
	b := p.background
	b.mu.Lock()
	b.deadline, b.part = deadline, part
	b.mu.Unlock()
}

// Doubts has a value when the index's file should be looked at.
func (p *Pipeline) Doubts() <-chan struct{} { return p.doubts }

package pipeline

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/internal/crew"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
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
	executors := max(minExecutors, capacity.InFlight)
	backlog := (backlogBatches + executors) * opts.BatchSize
	burst := min(maxBurst, opts.BatchSize)
	p := &Pipeline{
		index: x, translator: enc, searcher: searcher, probe: translate.Probe(x), options: opts, metrics: m, log: log, form: capacity.Form,
		look:   bell.New(),
		idle:   make(chan *executor, executors),
		doubts: bell.New(),
	}
	for i, l := range p.storedLanes() {
		class := wire.StoredClasses()[i]
		l.set(p, class, workers(class, opts.Workers), burst, burst, backlog+heldRequests)
		l.backlog = min(int64(backlog), int64(cmp.Or(opts.Most[class], backlog)))
	}
	p.direct.set(p, wire.ClassDirect, opts.Workers, opts.DirectQueue, burst, executors)
	p.lone.set(p, "", 0, 0, 0, 0)
	p.slices = admission.NewSlices(opts.BulkSlice, opts.BatchSize)
	p.batchMemory = opts.Budget.Batches.Holder()
	if capacity.OnHost {
		p.costOnHost = true
		capacity.BatchBytes = min(capacity.BatchBytes, p.batchMemory.Limit()/2)
	}
	p.aborted, p.abort = context.WithCancel(context.Background())
	p.batchBytes = capacity.BatchBytes
	p.estimates = newWorkEstimates()
	p.background = newTurns(p, opts.Cores)
	p.prober = newProber(p, opts.Answered)
	p.executing = crew.New(executors, executors, (*executor).execute)
	for range executors {
		p.idle <- &executor{Pipeline: p, later: p.background.put}
	}
	d := p.newDispatcher(batcher.Options{MaxItems: opts.BatchSize, MaxCost: capacity.BatchBytes, Linger: opts.Linger})
	p.dispatching.Go(d.run)
	return p
}

// storedLanes are the lanes of the stored classes, in the order of these.
func (p *Pipeline) storedLanes() []*lane { return []*lane{&p.stored, &p.users, &p.bulk} }

// lane is the lane of a class.
func (p *Pipeline) lane(class wire.Class) *lane {
	switch class {
	case wire.ClassDirect:
		return &p.direct
	case wire.ClassUsers:
		return &p.users
	case wire.ClassBulk:
		return &p.bulk
	}
	return &p.stored
}

// workers is how many goroutines the lane of a class may have for each of its stages. Bulk has half: the cores are for those who wait.
func workers(class wire.Class, all int) int {
	if class == wire.ClassBulk {
		return (all + 1) / 2
	}
	return all
}

// Give puts a stored request into the pipeline, and waits for room. It is false, and the request is done, when ctx ends before.
func (p *Pipeline) Give(ctx context.Context, r *Request) bool {
	defer r.entered()
	l := p.lane(r.Class)
	l.expect(p)
	if l.decoders.Give(ctx, r) {
		return true
	}
	l.pass(p)
	r.Done()
	return false
}

// expect and pass count what is being decoded, which a free executor waits for a moment. Nobody waits for bulk.
func (l *lane) expect(p *Pipeline) {
	if l.class != wire.ClassBulk {
		p.entered.Add(1)
	}
}

func (l *lane) pass(p *Pipeline) {
	if l.class != wire.ClassBulk {
		p.passed.Add(1)
	}
}

// Offer puts a direct request into the pipeline if there is room. Else it is to be refused.
func (p *Pipeline) Offer(r *Request) bool {
	defer r.entered()
	size := int64(len(r.Body)) // until it is decoded
	if !p.direct.memory.Try(size) {
		return false
	}
	r.lane, r.reserved = &p.direct, size
	p.entered.Add(1)
	if p.direct.decoders.Offer(r) {
		return true
	}
	p.passed.Add(1)
	return false
}

// Drain finishes everything that was taken in and ends the pipeline. No requests are made any longer; those that are made may be on
// their way in.
func (p *Pipeline) Drain() {
	p.outside.Wait()
	all := append(p.storedLanes(), &p.direct)
	for _, l := range all {
		l.decoders.Drain()
		close(l.ready)
	}
	p.dispatching.Wait()
	p.executing.Drain()
	p.turning.Wait()
	for _, l := range all {
		l.responders.Drain()
	}
	p.requests.Wait() // parts of answers are encoded when those before them are out
	p.abort()         // frees the context
}

package pipeline

import (
	"runtime/debug"
	"time"

	"github.com/geniemq/geniemq/batcher"
)

// Lone is the run of a request while nothing else of the process is decoded, executed or encoded. See exclusion.
type Lone interface {
	// Held is for how long it has kept the others waiting.
	Held() time.Duration
	// Yield lets them go on for as long as they waited. It is false when the process ends.
	Yield() bool
	// Wait waits for something that others do, and lets them do it.
	Wait(func())
}

const (
	// LoneHold is how long a lone run keeps all others waiting at a time.
	LoneHold = 100 * time.Millisecond
	// Queries of a lone run are executed in batches that grow while they take less than shortBatch and shrink when they take
	// more than longBatch: between two of them the run may let others go on.
	shortBatch = 5 * time.Millisecond
	longBatch  = 20 * time.Millisecond
)

// RunAlone takes a request from its body to its answer. It says whether the engine was lost by it, and had answered before.
func (p *Pipeline) RunAlone(r *Request, l Lone) (lost bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	r.lane, r.alone = &p.lone, true
	r.entered() // no stage of the pipeline is needed
	err := p.admit(r, p.decode(r))
	if err == nil {
		l.Wait(func() { err = p.reserve(r) })
	}
	if p.runs(r, err) {
		lost = p.searchAlone(r, l)
		r.Reading(r.answer)
	}
	return lost
}

// searchAlone runs the queries of a request on the engine.
func (p *Pipeline) searchAlone(r *Request, l Lone) (lost bool) {
	var unfinished []*task
	x := &executor{Pipeline: p, alone: true, later: func(t *task) { unfinished = append(unfinished, t) }}
	x.pace.Call = LoneHold * time.Duration(p.background.cores)
	works := p.lastAnswer.Load() != nil // and so may not be to blame when it is lost
	tasks := make([]*task, 0, r.queries)
	now := time.Now()
	for i := range r.tasks {
		if t := &r.tasks[i]; t.Err == nil {
			t.Queued = now
			tasks = append(tasks, t)
		}
	}
	for size := 1; len(tasks) > 0; {
		n := p.fit(tasks, size)
		batch := tasks[:n]
		tasks = tasks[n:]
		start := time.Now()
		p.metrics.Batch(n, batcher.Full.String())
		x.run(x.live(batch))
		lost = lost || x.lost && works
		tasks, unfinished = append(unfinished, tasks...), nil // what is begun is ended first
		switch took := time.Since(start); {
		case took < shortBatch:
			size *= 2
		case took > longBatch:
			size = max(1, size/2)
		}
		if len(tasks) > 0 && l.Held() > LoneHold && !l.Yield() {
			x.abandon(tasks)
			break
		}
	}
	return lost
}

// fit is how many of the tasks make a batch of at most size queries.
func (p *Pipeline) fit(tasks []*task, size int) int {
	room := p.searcher.Capacity().BatchBytes
	n := 0
	for cost := int64(0); n < min(size, len(tasks), p.options.BatchSize); n++ {
		if cost += tasks[n].cost; n > 0 && room > 0 && cost > room {
			break
		}
	}
	return n
}

package service

import (
	"time"

	"github.com/geniemq/geniemq/batcher"
)

// dispatcher gathers tasks into batches for the executors until both lanes have ended. It alone touches the batcher,
// from the one goroutine that it runs in.
type dispatcher struct {
	*pipeline
	batcher  *batcher.Batcher[*task]
	maxItems int
	backlog  int64 // of storedOpen

	stored, direct <-chan *request // nil when ended
	idle           int             // executors that wait for a batch

	// A free executor waits for what was being decoded when it became free: until passed has come to expected, but
	// not after patience.
	gathering bool
	expected  int64
	patience  time.Time
}

// dispatch returns the dispatcher's stage.
func (p *pipeline) dispatch(opts batcher.Options, backlog int64) func() {
	d := &dispatcher{
		pipeline: p, batcher: batcher.New[*task](opts), maxItems: opts.MaxItems, backlog: backlog,
		stored: p.stored.ready, direct: p.direct.ready,
	}
	return d.run
}

func (d *dispatcher) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		ended := d.stored == nil && d.direct == nil
		if ended {
			d.batcher.Drain()
		}
		stored := d.stored
		if d.storedOpen.Load() >= d.backlog {
			stored = nil
		}
		wake := d.cut(stored != nil)
		if ended && d.batcher.Len() == 0 {
			return
		}
		var alarm <-chan time.Time
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
			alarm = timer.C
		}
		select {
		case r, ok := <-stored:
			if ok {
				d.storedOpen.Add(int64(r.queries))
				d.add(r)
			} else {
				d.stored = nil
			}
		case r, ok := <-d.direct:
			if ok {
				d.add(r)
			} else {
				d.direct = nil
			}
		case <-d.look:
		case <-d.pipeline.idle:
			d.idle++
		case <-alarm:
		}
	}
}

// add puts the tasks of a request into the batcher.
func (d *dispatcher) add(r *request) {
	now := time.Now()
	suspect := r.origin.suspect()
	for i := range r.tasks {
		if t := &r.tasks[i]; t.refusal == nil {
			t.queued = now
			d.batcher.Add(now, t, t.cost, suspect)
		}
	}
}

// cut gives batches to free executors, and returns when to look again though nothing happens, or zero. open says that
// stored requests are let in: what is not let in is not waited for.
func (d *dispatcher) cut(open bool) (wake time.Time) {
	for d.idle > 0 && d.batcher.Len() > 0 {
		now := time.Now()
		if open && d.batcher.Len() < d.maxItems {
			if !d.gathering {
				d.gathering, d.expected, d.patience = true, d.entered.Load(), now.Add(gatherWait)
			}
			if d.passed.Load() < d.expected && now.Before(d.patience) {
				return d.patience
			}
		}
		batch, ok := d.batcher.Cut(now, true)
		if !ok {
			wake, _ = d.batcher.Wake()
			return wake
		}
		d.gathering = false
		d.idle--
		d.batches <- batch // has room for every executor
	}
	return time.Time{}
}

package pipeline

import (
	"slices"
	"time"

	"github.com/geniemq/geniemq/batcher"
)

// dispatcher gathers tasks into batches for the executors until both lanes have ended. It alone touches the batcher,
// from the one goroutine that it runs in.
type dispatcher struct {
	*Pipeline
	batcher  *batcher.Batcher[*task]
	maxItems int
	backlog  int64   // of storedOpen
	tasks    []*task // of the request at hand

	stored, direct <-chan *Request // nil when ended
	idle           int             // executors that wait for a batch
	large          []*largeRequest // whose queries do not fit a batch; they take turns

	// A free executor waits for what was being decoded when it became free: until passed has come to expected, but
	// not after patience.
	gathering bool
	expected  int64
	patience  time.Time
}

// dispatch returns the dispatcher's stage.
func (p *Pipeline) dispatch(opts batcher.Options, backlog int64) func() {
	d := &dispatcher{
		Pipeline: p, batcher: batcher.New[*task](opts), maxItems: opts.MaxItems, backlog: backlog,
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
		if d.full(d.backlog) {
			stored = nil
		}
		d.feed()
		wake := d.cut(stored != nil)
		if ended && d.batcher.Len() == 0 && len(d.large) == 0 {
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
		case <-d.Pipeline.idle:
			d.idle++
		case <-alarm:
		}
	}
}

// add puts the tasks of a request into the batcher, unless they are too many or too much work for one batch.
func (d *dispatcher) add(r *Request) {
	now := time.Now()
	d.tasks = d.tasks[:0]
	for i := range r.tasks {
		if t := &r.tasks[i]; t.Err == nil {
			t.Queued, t.formula = now, d.estimates.formula(&t.Plan)
			d.tasks = append(d.tasks, t)
		}
	}
	defer func() { clear(d.tasks) }()
	switch {
	case !d.background.whole(d.tasks):
		d.background.add(r, d.tasks)
		return
	case len(d.tasks) > d.maxItems:
		d.hold(r)
		d.large = append(d.large, &largeRequest{r, slices.Clone(d.tasks)})
		return
	}
	for _, t := range d.tasks {
		d.batcher.Add(now, t, t.cost)
	}
}

// A largeRequest has more queries than a batch holds.
type largeRequest struct {
	request *Request
	tasks   []*task // not in the batcher yet
}

// feed lets large requests fill the batcher up to a batch, a batch each in turn, so that whoever comes later joins the next one.
func (d *dispatcher) feed() {
	for len(d.large) > 0 && d.batcher.Len() < d.maxItems {
		l := d.large[0]
		d.large[0] = nil
		d.large = d.large[1:]
		if !d.background.whole(l.tasks) { // which was learnt from its first ones
			d.background.add(l.request, l.tasks)
			continue
		}
		now := time.Now()
		n := min(len(l.tasks), d.maxItems)
		for _, t := range l.tasks[:n] {
			d.batcher.Add(now, t, t.cost)
		}
		clear(l.tasks[:n])
		if l.tasks = l.tasks[n:]; len(l.tasks) > 0 {
			d.large = append(d.large, l)
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

package pipeline

import (
	"runtime/debug"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/wire"
)

// dispatcher gathers tasks into batches for the executors until all lanes have ended. It alone touches queue and batcher,
// from the one goroutine that it runs in.
type dispatcher struct {
	*Pipeline
	queue    *admission.Queue[*Request]
	gate     admission.Gate
	batcher  *batcher.Batcher[*task]
	maxItems int
	eager    bool    // the batcher lingers, so that it must know early what there is
	tasks    []*task // of the request at hand

	// nil when ended
	direct, stored, users, bulk <-chan *Request
	free                        []*executor // that have no batch
	ofBulk                      bool        // what the batcher has

	// A free executor waits for what was being decoded when it became free: until passed has come to expected, but
	// not after patience.
	gathering bool
	expected  int64
	patience  time.Time
}

func (p *Pipeline) newDispatcher(opts batcher.Options) *dispatcher {
	return &dispatcher{
		Pipeline: p, queue: admission.NewQueue[*Request](p.options.Weights, opts.MaxItems), gate: admission.Gate{Slices: p.slices, Quotas: p.options.Quotas}, batcher: batcher.New[*task](opts), maxItems: opts.MaxItems, eager: opts.Linger > 0,
		direct: p.direct.ready, stored: p.stored.ready, users: p.users.ready, bulk: p.bulk.ready,
	}
}

func (d *dispatcher) run() {
	debug.SetPanicOnFault(true) // as executors do
	timer, probes := time.NewTimer(time.Hour), time.NewTicker(probeInterval)
	defer timer.Stop()
	defer probes.Stop()
	d.ask()
	for {
		ended := d.stored == nil && d.direct == nil && d.users == nil && d.bulk == nil
		if ended {
			d.batcher.Drain()
		}
		stored, users, bulk := unlessFull(d.stored, &d.Pipeline.stored), unlessFull(d.users, &d.Pipeline.users), unlessFull(d.bulk, &d.Pipeline.bulk)
		wake := d.cut(stored != nil && users != nil)
		if ended && d.batcher.Len() == 0 && d.queue.Len() == 0 {
			return
		}
		var alarm <-chan time.Time
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
			alarm = timer.C
		}
		select {
		case r, ok := <-d.direct:
			d.take(r, ok, &d.direct)
		case r, ok := <-stored:
			d.take(r, ok, &d.stored)
		case r, ok := <-users:
			d.take(r, ok, &d.users)
		case r, ok := <-bulk:
			d.take(r, ok, &d.bulk)
		case <-d.look:
		case x := <-d.idle:
			d.free = append(d.free, x)
		case <-probes.C:
			d.ask()
		case <-alarm:
		}
	}
}

// unlessFull is what comes of a lane, or nil while no more of it is let in.
func unlessFull(ready <-chan *Request, l *lane) <-chan *Request {
	if l.full() {
		return nil
	}
	return ready
}

// take takes a request in, or notes that no more come.
func (d *dispatcher) take(r *Request, ok bool, from *<-chan *Request) {
	if !ok {
		*from = nil
		return
	}
	if r.lane.backlog > 0 {
		r.lane.open.Add(int64(r.queries))
	}
	d.add(r)
}

// add puts a request into the queue, unless it is too much work for batches.
func (d *dispatcher) add(r *Request) {
	now := time.Now()
	work := time.Duration(0)
	tasks := d.rest(r, len(r.tasks))
	for _, t := range tasks {
		t.Queued, t.formula = now, d.estimates.formula(&t.Plan)
		work += t.formula
	}
	if r.lane != &d.Pipeline.bulk && !r.probe {
		d.slices.Others(now)
	}
	if !d.background.whole(tasks) {
		d.background.add(r, d.begin(r, len(tasks)))
		return
	}
	if len(tasks) > d.maxItems {
		d.hold(r)
	}
	d.queue.Push(admission.Flow{Class: r.lane.class, User: r.User}, r, len(tasks), admission.Cost(work/time.Duration(len(tasks))))
}

// rest are up to n tasks of a request that are to be run and in no batch yet. They are good until it is called again.
func (d *dispatcher) rest(r *Request, n int) []*task {
	d.tasks = d.tasks[:0]
	for i := r.next; i < len(r.tasks) && len(d.tasks) < n; i++ {
		if t := &r.tasks[i]; t.Err == nil {
			d.tasks = append(d.tasks, t)
		}
	}
	return d.tasks
}

// begin hands out the next n tasks of a request. It is not to be touched afterwards, if these are its last.
func (d *dispatcher) begin(r *Request, n int) []*task {
	tasks := d.rest(r, n)
	if r.lane.backlog > 0 && r.User != "" {
		d.options.Quotas.Enter(r.User, n, time.Now())
	}
	for left := n; left > 0; r.next++ {
		if r.tasks[r.next].Err == nil {
			left--
		}
	}
	return tasks
}

// feed moves tasks from the queue to the batcher, as many as make a batch, and returns when to look again if there are some that may not leave now. It
// is done when an executor is free and not before: until then somebody may come who goes before them.
func (d *dispatcher) feed(now time.Time) (wake time.Time) {
	d.gate.Ending = d.aborted.Err() != nil
	d.gate.Begin(now, d.maxItems, d.batcher.Len(), d.ofBulk)
	for d.queue.Len() > 0 && d.gate.Left() > 0 {
		r, f, n, last, ok := d.queue.Take(d.gate.Left(), d.gate.Allow)
		if !ok {
			break
		}
		if r.next > 0 && !d.background.whole(d.rest(r, len(r.tasks))) { // which was learnt from its first ones
			if !last {
				d.queue.Drop(f)
			}
			d.background.add(r, d.begin(r, len(d.tasks)))
			continue
		}
		d.gate.Took(f, n)
		d.ofBulk = f.Class == wire.ClassBulk
		for _, t := range d.begin(r, n) {
			d.batcher.Add(t.Queued, t, t.cost)
		}
		clear(d.tasks)
	}
	return d.gate.Wake
}

// cut gives batches to free executors, and returns when to look again though nothing happens, or zero. open says that
// stored requests are let in: what is not let in is not waited for.
func (d *dispatcher) cut(open bool) (wake time.Time) {
	for len(d.free) > 0 || d.eager {
		now := time.Now()
		wake = d.feed(now)
		if len(d.free) == 0 || d.batcher.Len() == 0 {
			return wake
		}
		if open && d.batcher.Len() < d.maxItems && !d.ofBulk {
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
		if d.ofBulk {
			d.slices.Begin()
		}
		x := d.free[len(d.free)-1] // whose memory was used last
		d.free = d.free[:len(d.free)-1]
		x.batch = batch
		d.executing.Put(x)
	}
	return wake
}

package pipeline

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/wire"
)

// Some queries are a thousand times the work of others, because texts have to be compared: a message of a few KB can ask for hours. They must not keep the
// others waiting, and must be answered all the same.
//
// A message whose queries are estimated at no more than wholeWork is ordinary. Its queries join batches as they come, and a batch has an allowance of work
// (gpuexec.Pace). What is not done then, and all queries of a message that is estimated at more, is done in turns: each message has one in turn, as long as
// turnTime, on an executor of its own whose calls leave half of the cores to others while there are any. So ordinary queries meet executors that are never held
// for long, and a message that asks for much waits only for others that do.
//
// Within a message the queries are done one after the other: what is begun is ended first.
//
// Turns are dealt out by time that was really taken (deficit round robin): who took more than a turn waits for more than a round.
const (
	// wholeWork, times the cores, is the work of messages that are ordinary: the largest that applications send as a matter of
	// course, 256 certified queries to a list of words, have a third of it.
	wholeWork = time.Second
	// turnTime is how long a turn takes. It is long beside what a batch costs whatever its size, and short beside the times that
	// people wait.
	turnTime = 100 * time.Millisecond
	// planSlice is what an ordinary batch spends on one query at most, and batchSlice, times the cores, on all of them beside twice
	// what they are expected to take. It does not spend more than two messages of wholeWork.
	planSlice  = 30 * time.Millisecond
	batchSlice = 50 * time.Millisecond
	// heldQueries and heldRequests bound the stored messages that wait for turns: beyond, no more are let in.
	heldQueries  = 1 << 18
	heldRequests = 1 << 10
)

// turns does what takes long, message by message. It is the owner of the tasks that it was given until they are done. While there are some, one goroutine
// gives turns.
type turns struct {
	*Pipeline
	cores    int
	executor executor // of that goroutine

	mu       sync.Mutex
	ring     []*turn
	running  bool      // there is that goroutine; it is whenever the ring is not empty
	deadline time.Time // the process ends then; zero: it does not
	part     float64   // of the cores that are for this index until then
}

// A turn is the place of a message in the round.
type turn struct {
	request *Request
	tasks   []*task // that wait, those that are begun first
	begun   int     // so many
	running int     // tasks that are out
	credit  time.Duration
	gone    bool          // the message is given back
	expires time.Time     // when the first of the tasks does; zero: never
	spent   time.Duration // of the last turn
}

func newTurns(p *Pipeline, cores int) *turns {
	if cores <= 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	b := &turns{Pipeline: p, cores: cores}
	b.executor = executor{Pipeline: p, later: b.put}
	return b
}

// whole says whether tasks of a message are so little work that they go into batches as they are.
func (b *turns) whole(tasks []*task) bool {
	return b.estimates.of(tasks) <= wholeWork*time.Duration(b.cores)
}

// add takes tasks that nobody has begun with.
func (b *turns) add(r *Request, tasks []*task) {
	b.hold(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.turnOf(r)
	t.tasks = append(t.tasks, tasks...)
	t.expect(tasks)
	b.begin()
}

// begin has turns given. b.mu is held.
func (b *turns) begin() {
	if !b.running {
		b.running = true
		b.turning.Go(b.run) // by dispatcher or executors, which end before these are waited for
	}
}

// put takes a task that is unfinished.
func (b *turns) put(t *task) {
	b.hold(t.request)
	b.mu.Lock()
	place := b.turnOf(t.request)
	gone := place.gone
	if !gone {
		place.tasks = slices.Insert(place.tasks, place.begun, t)
		place.begun++
		place.expect([]*task{t})
		b.begin()
	}
	b.mu.Unlock()
	if gone {
		b.abandon([]*task{t})
	}
}

// turnOf is the place of a request, which has one from now on.
func (b *turns) turnOf(r *Request) *turn {
	if r.turn == nil {
		r.turn = &turn{request: r}
	}
	if !slices.Contains(b.ring, r.turn) {
		b.ring = append(b.ring, r.turn)
	}
	return r.turn
}

// expect takes notice of the timeouts of tasks.
func (t *turn) expect(tasks []*task) {
	for _, own := range tasks {
		if !own.expires.IsZero() && (t.expires.IsZero() || own.expires.Before(t.expires)) {
			t.expires = own.expires
		}
	}
}

// run gives turns until there are no more tasks.
func (b *turns) run() {
	debug.SetPanicOnFault(true) // as executors do
	x := &b.executor
	for {
		tasks, places, ok := b.next()
		if !ok {
			return
		}
		b.metrics.Batch(len(tasks), "turn")
		x.pace = gpuexec.Pace{Call: turnTime * time.Duration(b.cores), Background: true}
		x.turns = places
		start := time.Now()
		x.run(tasks)
		x.turns = nil
		b.charge(places, time.Since(start))
	}
}

// next takes the tasks of the next turn; it is false, and turns are given no longer, when there are none. It ends tasks whose time is up, and gives back
// messages for which there is no time.
func (b *turns) next() (tasks []*task, places []*turn, ok bool) {
	for {
		b.mu.Lock()
		late := b.late(time.Now())
		back := b.hopeless(time.Now())
		if len(late) == 0 && len(back) == 0 {
			if len(b.ring) == 0 {
				b.running = false
				b.mu.Unlock()
				return nil, nil, false
			}
			tasks, places = b.choose()
		}
		b.mu.Unlock()
		now := time.Now()
		for _, some := range [][]*task{late, tasks, back} {
			for _, t := range some {
				t.begin(now)
			}
		}
		for _, t := range late {
			t.Err = expired()
			b.complete(t)
		}
		b.abandon(back)
		if len(tasks) > 0 {
			return tasks, places, true
		}
	}
}

// late removes the tasks whose time is up.
func (b *turns) late(now time.Time) (late []*task) {
	for _, t := range b.ring {
		if t.expires.IsZero() || now.Before(t.expires) {
			continue
		}
		t.expires = time.Time{}
		left, begun := t.tasks[:0], 0
		for i, own := range t.tasks {
			if !own.expires.IsZero() && !now.Before(own.expires) {
				late = append(late, own)
				continue
			}
			if i < t.begun {
				begun++
			}
			left = append(left, own)
		}
		clear(t.tasks[len(left):])
		t.tasks, t.begun = left, begun
		t.expect(left)
	}
	b.sweep()
	return late
}

// sweep takes those out of the round who have nothing to do in it.
func (b *turns) sweep() {
	b.ring = slices.DeleteFunc(b.ring, func(t *turn) bool { return len(t.tasks) == 0 })
}

// choose takes tasks for a turn from who is next, and from those after it if these do not employ the cores.
func (b *turns) choose() (tasks []*task, places []*turn) {
	for len(tasks) == 0 {
		for i := 0; i < len(b.ring) && len(tasks) < b.cores; i++ {
			t := b.ring[i]
			if len(tasks) == 0 {
				if t.credit = min(t.credit+turnTime, turnTime); t.credit <= 0 {
					continue
				}
			}
			own := b.take(t, b.options.BatchSize-len(tasks))
			tasks, places = append(tasks, own...), append(places, t)
		}
	}
	// Who had a turn goes behind the others.
	for _, t := range places {
		i := slices.Index(b.ring, t)
		b.ring = append(slices.Delete(b.ring, i, i+1), t)
	}
	b.sweep()
	return tasks, places
}

// take takes the first tasks of a message: as many as are expected to be done in a turn, at least one, and one per core.
func (b *turns) take(t *turn, most int) []*task {
	n := min(len(t.tasks), most, b.cores)
	work := b.estimates.of(t.tasks[:n])
	cost := int64(0)
	for _, own := range t.tasks[:n] {
		cost += own.cost
	}
	for n < min(len(t.tasks), most) {
		work += b.estimates.of(t.tasks[n : n+1])
		if cost += t.tasks[n].cost; work > turnTime*time.Duration(b.cores) || cost > b.batchBytes {
			break
		}
		n++
	}
	tasks := slices.Clone(t.tasks[:n])
	clear(t.tasks[:n])
	t.tasks, t.begun = t.tasks[n:], max(0, t.begun-n)
	t.running = n
	return tasks
}

// spend takes notice of what a task took in the turn that runs.
func (x *executor) spend(t *task, took time.Duration) {
	for _, place := range x.turns {
		if place.request == t.request {
			place.spent += max(0, took)
		}
	}
}

// charge divides the time of a turn among those who had it, by what their texts took, else by their queries.
func (b *turns) charge(places []*turn, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var spent time.Duration
	running := 0
	for _, t := range places {
		spent += t.spent
		running += t.running
	}
	for _, t := range places {
		part := float64(t.running) / float64(max(1, running))
		if spent > 0 {
			part = float64(t.spent) / float64(spent)
		}
		t.credit -= time.Duration(part * float64(took))
		t.spent, t.running = 0, 0
	}
}

// hopeless removes the tasks of messages that will not be answered before the deadline: what takes least is kept first.
func (b *turns) hopeless(now time.Time) (back []*task) {
	if b.deadline.IsZero() || len(b.ring) == 0 {
		return nil
	}
	const margin = 0.8 // estimates are what they are, and answers have to get out
	left := time.Duration(float64(b.deadline.Sub(now)) * float64(b.cores) * b.part * margin)
	work := make(map[*turn]time.Duration, len(b.ring))
	for _, t := range b.ring {
		work[t] = b.estimates.of(t.tasks)
	}
	if b.aborted.Err() != nil {
		left = -1
	}
	ring := slices.Clone(b.ring)
	slices.SortStableFunc(ring, func(x, y *turn) int { return int(work[x]/1000) - int(work[y]/1000) })
	for _, t := range ring {
		if left -= work[t]; left >= 0 {
			continue
		}
		t.gone = true
		back = append(back, t.tasks...)
		t.tasks, t.begun = nil, 0
	}
	b.sweep()
	return back
}

// hold moves a stored request from those that are on their way to those that wait for turns, for which there is more room.
func (p *Pipeline) hold(r *Request) {
	l := r.lane
	if l.backlog == 0 || !r.held.CompareAndSwap(false, true) {
		return
	}
	l.open.Add(int64(-r.queries))
	l.held.Add(int64(r.queries))
	l.heldReqs.Add(1)
	p.look.Ring()
}

// full says whether no more requests of a lane are to be let in.
func (l *lane) full() bool {
	return l.backlog > 0 && (l.open.Load() >= l.backlog || l.held.Load() >= heldQueries || l.heldReqs.Load() >= heldRequests)
}

// answered takes a stored request out of the count.
func (p *Pipeline) answered(r *Request) {
	if l := r.lane; r.held.Load() {
		l.held.Add(int64(-r.queries))
		l.heldReqs.Add(-1)
	} else {
		l.open.Add(int64(-r.queries))
	}
	p.look.Ring()
}

func expired() *wire.Error {
	return wire.Errorf(wire.DeadlineExceeded, "timeout_ms ran out before the query could be answered")
}

package pipeline

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

const (
	// probeInterval is how often each index is asked a probe query.
	probeInterval = 2 * time.Second
	// silentAfter is after how long without an answer the engine counts as stuck.
	silentAfter = 30 * time.Second
)

// prober is where the small queries come from that the dispatcher asks its own index from time to time. They go through the whole pipeline but for
// decoding, as a user's would.
type prober struct {
	cost    int64 // of the probe
	pending atomic.Bool
	err     atomic.Pointer[error] // of the last probe
}

// newProber makes a prober that has not asked yet. answered says that the searcher has answered a probe already.
func newProber(p *Pipeline, answered bool) *prober {
	own := &prober{cost: p.searcher.Cost(&p.probe)}
	own.done(errors.New("no probe query has been answered yet"))
	if answered {
		own.done(nil)
		p.lastAnswer.Store(new(time.Now()))
	}
	return own
}

// ask puts a probe query in front of the batcher, unless one is under way.
func (d *dispatcher) ask() {
	p := d.prober
	if d.direct == nil || d.InDoubt() || !p.pending.CompareAndSwap(false, true) {
		return
	}
	r := &Request{pipeline: d.Pipeline, origin: p, probe: true, Message: Message{Arrived: time.Now()}, lane: &d.Pipeline.direct, queries: 1, epoch: d.index.Epoch()}
	r.tasks = []task{{request: r, Query: translate.Query{Plan: d.probe}, cost: p.cost}}
	r.open.Store(1)
	d.add(r)
}

// Fault says why the index does not answer, or nil.
func (p *Pipeline) Fault(now time.Time) error {
	switch err, answered := *p.prober.err.Load(), p.lastAnswer.Load(); {
	case err != nil:
		return err
	case answered == nil || now.Sub(*answered) > silentAfter:
		return fmt.Errorf("no query was answered for more than %v", silentAfter)
	}
	return nil
}

func (p *prober) done(err error) {
	p.err.Store(&err)
	p.pending.Store(false)
}

// The prober is the origin of its probes.

func (p *prober) Admit(int) *wire.Error            { return nil }
func (p *prober) Leave(int)                        {}
func (p *prober) Refuse(_ *Request, e *wire.Error) { p.done(e) }
func (p *prober) Abandon(*Request)                 { p.done(errors.New("the probe query was given up")) }
func (p *prober) Respond(r *Request) {
	t := &r.tasks[0]
	switch {
	case t.failure != nil:
		p.done(fmt.Errorf("the probe query failed: %w", t.failure))
	case t.Err != nil:
		p.done(fmt.Errorf("the probe query failed: %w", t.Err))
	default:
		p.done(nil)
	}
}

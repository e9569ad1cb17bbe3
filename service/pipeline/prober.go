package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

const (
	// probeInterval is how often each index is asked a probe query.
	probeInterval = 2 * time.Second
	// silentAfter is after how long without an answer the engine counts as stuck.
	silentAfter = 30 * time.Second
)

// Prober asks an index a small query from time to time, through the whole pipeline, as a user's would go.
type Prober struct {
	pipe    *Pipeline
	cost    int64 // of the probe
	pending atomic.Bool

	mu  sync.Mutex
	err error // of the last probe
}

// NewProber makes a prober that has not asked yet. answered says that the searcher has answered a probe already.
func NewProber(p *Pipeline, answered bool) *Prober {
	own := &Prober{pipe: p, cost: p.searcher.Cost(&p.probe), err: errors.New("no probe query has been answered yet")}
	if answered {
		own.err = nil
		p.lastAnswer.Store(new(time.Now()))
	}
	return own
}

// Run probes until ctx ends, which must be before the pipeline is drained.
func (p *Prober) Run(ctx context.Context) {
	for ok := true; ok; ok = bell.Sleep(ctx, probeInterval) {
		p.probe(ctx)
	}
}

// probe sends a probe query into the pipeline, unless one is under way.
func (p *Prober) probe(ctx context.Context) {
	if p.pipe.InDoubt() || !p.pending.CompareAndSwap(false, true) {
		return
	}
	r := &Request{pipeline: p.pipe, origin: p, probe: true, Message: Message{Arrived: time.Now()}, lane: &p.pipe.direct, queries: 1, epoch: p.pipe.index.Epoch()}
	r.tasks = []task{{request: r, Query: translate.Query{Plan: p.pipe.probe}, cost: p.cost}}
	r.open.Store(1)
	select {
	case p.pipe.direct.ready <- r:
	case <-ctx.Done():
	}
}

// Fault says why the index does not answer, or nil.
func (p *Prober) Fault(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch answered := p.pipe.lastAnswer.Load(); {
	case p.err != nil:
		return p.err
	case answered == nil || now.Sub(*answered) > silentAfter:
		return fmt.Errorf("no query was answered for more than %v", silentAfter)
	}
	return nil
}

func (p *Prober) done(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.pending.Store(false)
}

// The prober is the origin of its probes.

func (p *Prober) Admit(int) *wire.Error            { return nil }
func (p *Prober) Leave(int)                        {}
func (p *Prober) Refuse(_ *Request, e *wire.Error) { p.done(e) }
func (p *Prober) Abandon(*Request)                 { p.done(errors.New("the probe query was given up")) }
func (p *Prober) Respond(r *Request) {
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

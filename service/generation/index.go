// Package generation serves an index while its file is replaced: each version is a generation, with a pipeline of its own.
package generation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/service/pipeline"
)

// Index is an index as its users know it: a name behind which one generation answers, and another one later.
//
// # A swap
//
// Swap opens a file, has the engine load it, asks it a query, and then puts its generation in the place of the one that answers.
// From that moment on requests are made of the new pipeline, and the old one drains. So no batch mixes two generations, a request
// is decoded, searched and answered by the one that it was made of, and the versions of the answers ascend in the order in which
// a worker took the messages in. When the old pipeline has answered its last request, the old searcher and the old file are
// closed, and their memory goes back to the system.
//
// Whatever goes wrong before the place is taken leaves the old generation where it is. There are two generations at most: while
// the old one cannot drain, because its answers do not get out, no other swap begins.
//
// # The device
//
// The new generation is loaded beside the old one, with what is free, which may be little: then it is streamed, or lacks the forms
// that make it fast. Forms are not given back while they are in use, so when the old one is gone the new one is loaded once more,
// and swapped with itself if that made it better.
//
// # Ownership
//
// The Index owns its generations and the goroutines that retire them. Cancel ends swaps; Drain returns when all pipelines have
// ended; Close closes what remains. Abort and Hurry reach all generations, and those that begin later too.
type Index struct {
	name         string
	kinds        index.Kinds
	certifyLimit int64 // translate.New's
	settings     Settings
	options      pipeline.Options
	hold         func(bool)
	tried        bool // it has answered a query before it was started

	turn   chan struct{} // a swap's
	swaps  context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup // of generations that retire, and of swaps

	mu       sync.RWMutex // guards the rest
	serving  *generation
	retiring *generation
	gone     chan struct{} // closed when there is none that retires
	ended    bool          // no swap begins any more
	aborted  bool
	hurry    func(*pipeline.Pipeline)
}

// ErrEnding is why a swap is not begun, or not ended, when the worker or the index ends.
var ErrEnding = errors.New("the worker is shutting down, or the index is being removed")

// RefusedError says why a file does not take another's place although nothing is wrong with it as such.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// drainWait is how long a swap waits for the generation before the one that answers to end.
const drainWait = 5 * time.Second

// Open opens the file of an index. name is "" where it is to be the one in the file; kinds are what it may be made of; certifyLimit is translate.New's. The index is to be
// loaded, started and watched then, and must be closed in any case.
func Open(path, name string, kinds index.Kinds, certifyLimit int64) (*Index, error) {
	return openWith(path, name, kinds, certifyLimit, store.Effort{})
}

// OpenAside is Open while others are served: it takes few of the cores, and no longer than ctx.
func OpenAside(ctx context.Context, path, name string, kinds index.Kinds, certifyLimit int64) (*Index, error) {
	return openWith(path, name, kinds, certifyLimit, aside(ctx))
}

func openWith(path, name string, kinds index.Kinds, certifyLimit int64, effort store.Effort) (*Index, error) {
	g, err := open(path, name, kinds, certifyLimit, effort)
	if err != nil {
		return nil, err
	}
	x := &Index{name: g.name, kinds: kinds, certifyLimit: certifyLimit, turn: make(chan struct{}, 1), gone: make(chan struct{}), serving: g}
	close(x.gone)
	x.swaps, x.cancel = context.WithCancel(context.Background())
	return x, nil
}

// Name is the index's.
func (x *Index) Name() string { return x.name }

// Load has the engine load the index, and leave room for others that will be loaded.
func (x *Index) Load(ctx context.Context, s Settings, later []*Index) error {
	x.settings = s
	x.serving.settings = &x.settings
	sources := make([]gpuexec.Source, len(later))
	for i, other := range later {
		sources[i] = other.serving.source()
	}
	if err := x.serving.load(ctx, sources...); err != nil {
		return err
	}
	x.settings.Changed(x.serving.facts)
	return nil
}

// Try asks a loaded index a query, past the pipeline that it will have, and in turn with the others who share the process. An index that has answered is
// ready as soon as it is started.
func (x *Index) Try(ctx context.Context, opts pipeline.Options) error {
	x.options = opts
	err := x.probe(ctx, x.serving)
	x.tried = err == nil
	return err
}

// Start starts the pipeline. Later generations have the same options.
func (x *Index) Start(opts pipeline.Options) {
	x.options = opts
	x.mu.Lock()
	defer x.mu.Unlock()
	x.begin(x.serving, x.tried)
}

// begin starts a generation's pipeline. x.mu is held.
func (x *Index) begin(g *generation, probed bool) {
	g.start(x.options, probed)
	if x.hurry != nil {
		x.hurry(g.pipe)
	}
	if x.aborted {
		g.pipe.Abort()
	}
}

// Watch begins to look at the file. hold holds back stored messages while it is in doubt.
func (x *Index) Watch(hold func(bool)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hold = hold
	x.serving.watchFile(hold)
}

// Request makes a request of the generation that answers now, whose pipeline it is to be given to.
func (x *Index) Request(o pipeline.Origin, m pipeline.Message) (*pipeline.Pipeline, *pipeline.Request) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	pipe := x.serving.pipe
	return pipe, pipe.NewRequest(o, m)
}

// Replaced says whether another file has the name of the one that is served, and what that name is.
func (x *Index) Replaced() (bool, string) {
	g := x.current()
	same, err := g.file.Named()
	return err == nil && !same, g.facts.Path
}

// Facts are those of the generation that answers.
func (x *Index) Facts() Facts {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.serving.facts
}

// Loaded are the facts of the generation that answers and, while there is one, of that which retires.
func (x *Index) Loaded() []Facts {
	var loaded []Facts
	for _, g := range x.generations() {
		loaded = append(loaded, g.facts)
	}
	return loaded
}

// FileFault says why nothing can be answered from the file, and Fault why the engine does not answer, or nil.
func (x *Index) FileFault() error          { return x.current().pipe.FileFault() }
func (x *Index) Fault(now time.Time) error { return x.current().pipe.Fault(now) }

// BatchSize is the most queries of a batch.
func (x *Index) BatchSize() int { return x.current().pipe.BatchSize() }

func (x *Index) current() *generation {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.serving
}

// generations are the one that answers and the one that retires, if any.
func (x *Index) generations() []*generation {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := []*generation{x.serving}
	if x.retiring != nil {
		all = append(all, x.retiring)
	}
	return all
}

// Busy says whether there is work that waits for turns.
func (x *Index) Busy() bool {
	for _, g := range x.generations() {
		if g.pipe != nil && g.pipe.Busy() {
			return true
		}
	}
	return false
}

// Hurry is the pipelines' Hurry.
func (x *Index) Hurry(deadline time.Time, part float64) {
	x.all(func() { x.hurry = func(p *pipeline.Pipeline) { p.Hurry(deadline, part) } }, func(p *pipeline.Pipeline) { p.Hurry(deadline, part) })
}

// Abort makes all pipelines give up what they have.
func (x *Index) Abort() {
	x.all(func() { x.aborted = true }, (*pipeline.Pipeline).Abort)
}

// all notes what later generations have to know, and does something to the pipelines of those that there are.
func (x *Index) all(note func(), do func(*pipeline.Pipeline)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	note()
	for _, g := range []*generation{x.serving, x.retiring} {
		if g != nil && g.pipe != nil {
			do(g.pipe)
		}
	}
}

// Swap puts the index in a file in the place of the one that answers, and returns what answered before and what answers now. Swaps take
// turns. A *RefusedError says that the file is not of a kind with what is served, or that the last swap has not ended.
func (x *Index) Swap(ctx context.Context, path string) (was, is Facts, err error) {
	x.mu.Lock()
	if x.ended {
		x.mu.Unlock()
		return was, is, ErrEnding
	}
	x.ending.Add(1)
	x.mu.Unlock()
	defer x.ending.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.swaps, func() { cancel(ErrEnding) })()
	start := time.Now()
	old, err := x.takeTurn(ctx)
	if err == nil {
		was, is = old.facts, old.facts
		defer func() { <-x.turn }()
		var newer *generation
		if newer, err = x.prepare(ctx, path, old); err == nil {
			is = newer.facts
			x.settings.Log.Info("another index answers", "file", path, "version", is.Version, "was", was.Version, "after", time.Since(start).Round(time.Millisecond))
			x.replace(old, newer)
		}
	}
	if err != nil {
		x.settings.Log.Error("an index's file does not take the place of the one that is served", "file", path, "error", err, "serving", x.Facts().Version)
		return was, is, err
	}
	return was, is, nil
}

// takeTurn returns the generation that answers when no other swap is going on and no generation retires.
func (x *Index) takeTurn(ctx context.Context) (*generation, error) {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	x.mu.RLock()
	gone, old := x.gone, x.serving
	x.mu.RUnlock()
	var err error
	select {
	case <-gone:
		return old, nil
	case <-time.After(drainWait):
		err = refused("the version before %s has not answered all it was asked yet, and two at most are held at a time: "+
			"try again when its answers get out", old.facts.Version)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	<-x.turn
	return nil, err
}

// prepare opens a file, loads it and tries it.
func (x *Index) prepare(ctx context.Context, path string, old *generation) (_ *generation, err error) {
	newer, err := open(path, x.name, x.kinds, x.certifyLimit, aside(ctx))
	if err != nil {
		return nil, err
	}
	newer.settings = &x.settings
	if err = old.fits(newer); err == nil {
		if err = newer.load(Beside(ctx)); err == nil {
			err = x.probe(ctx, newer)
		}
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, newer.close())
	}
	return newer, nil
}

// probe asks a generation's searcher a query, in turn with the others who share the process.
func (x *Index) probe(ctx context.Context, g *generation) error {
	if lock := x.options.Exclusion; lock != nil {
		lock.Share()
		defer lock.Done()
	}
	return g.probe(ctx)
}

// aside is what opening a file takes while queries are answered: few of the cores, and no longer than the swap may.
func aside(ctx context.Context) store.Effort {
	return store.Effort{Workers: few(), Given: func() error { return context.Cause(ctx) }}
}

// Beside is the context of loading an index while queries are answered, which takes as few.
func Beside(ctx context.Context) context.Context {
	return gpuexec.WithPace(ctx, gpuexec.Pace{Background: true, Cores: few()})
}

// few is how many cores a swap works on: one in eight, since two workers of a host may swap at the same time, and the runtime looks at
// the network late where all cores are at work.
func few() int { return max(1, runtime.GOMAXPROCS(0)/8) }

// replace puts a generation in the place of the one that answers, which retires.
func (x *Index) replace(old, newer *generation) {
	x.mu.Lock()
	x.begin(newer, true)
	x.serving, x.retiring, x.gone = newer, old, make(chan struct{})
	x.mu.Unlock()
	old.unwatch() // before the new one is watched, which may have the messages held back
	if x.hold != nil {
		old.watch.release()
		newer.watchFile(x.hold)
	}
	x.settings.Changed(newer.facts)
	x.ending.Add(1) // by a swap, which is counted itself
	go x.retire(old, newer)
}

// retire ends a generation when it has answered what it was asked.
func (x *Index) retire(old, newer *generation) {
	defer x.ending.Done()
	old.drain()
	if err := old.close(); err != nil {
		x.settings.Log.Warn("the index that was served before could not be closed", "file", old.facts.Path, "error", err)
	}
	x.mu.Lock()
	x.retiring = nil
	close(x.gone)
	x.mu.Unlock()
	x.settings.Log.Info("the index that was served before has answered all it was asked", "file", old.facts.Path, "version", old.facts.Version)
	improvable := worse(newer.facts.Capacity, old.facts.Capacity)
	debug.FreeOSMemory() // the old one, which nothing refers to now: the runtime would keep its room, for garbage to come
	if improvable {
		x.improve(newer)
	}
}

// improve loads a generation once more, now that the one before it is gone, and has that answer if it is better for it.
func (x *Index) improve(g *generation) {
	now, err := x.takeTurn(x.swaps)
	if err != nil {
		return
	}
	defer func() { <-x.turn }()
	if now != g {
		return // another swap was faster
	}
	better := g.again()
	if err = better.load(Beside(x.swaps)); err == nil && worse(g.facts.Capacity, better.facts.Capacity) {
		if err = x.probe(x.swaps, better); err == nil && x.swaps.Err() == nil {
			x.settings.Log.Info("the index lies better on its device now that the one before it is gone", "form", better.facts.Capacity.Form,
				"was", g.facts.Capacity.Form)
			x.replace(g, better)
			return
		}
	}
	if err != nil && x.swaps.Err() == nil {
		x.settings.Log.Warn("the index could not be loaded once more in a better form: swap it again when there is room", "error", err)
	}
	if err := better.close(); err != nil {
		x.settings.Log.Warn("what was loaded of the index a second time could not be closed", "error", err)
	}
}

// worse says whether an index lies on its device worse than another: streamed in more parts, or in fewer forms.
func worse(a, b gpuexec.Capacity) bool {
	forms := func(c gpuexec.Capacity) int { return strings.Count(c.Form, ",") }
	return a.Parts > b.Parts || a.Parts == b.Parts && forms(a) < forms(b)
}

// Cancel ends swaps that are going on, and has none begin. It returns when they have ended; generations may still retire.
func (x *Index) Cancel() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.cancel()
	x.turn <- struct{}{}
	<-x.turn
}

// Unwatch ends what looks at the file that answers.
func (x *Index) Unwatch() { x.current().unwatch() }

// Drain returns when all pipelines have answered what they were given. No requests are made any longer.
func (x *Index) Drain() {
	x.Cancel()
	x.ending.Wait()
	x.current().drain()
}

// Close gives up what the engine has and the file.
func (x *Index) Close() error {
	x.cancel()
	return x.current().close()
}

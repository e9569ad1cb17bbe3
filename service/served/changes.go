package served

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/wire"
)

// ErrNotServed says that no index of a name is served.
var ErrNotServed = errors.New("this worker does not serve it")

func refused(format string, args ...any) error {
	return &generation.RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// Swap puts the index in a file in the place of the one that answers, and returns the versions of both. See generation.Index.Swap.
func (e *Entry) Swap(ctx context.Context, file string) (was, is string, err error) {
	before, after, err := e.Index.Swap(ctx, file)
	outcome := metrics.SwapDone
	var why *generation.RefusedError
	switch {
	case errors.As(err, &why):
		outcome = metrics.SwapRefused
	case err != nil:
		outcome = metrics.SwapFailed
	}
	e.Metrics.Swapped(outcome)
	return before.Version, after.Version, err
}

// Source is where an index comes from that is added.
type Source struct {
	Name string // "": the one in the file
	File string
	// Fetch brings the file if it is elsewhere, and says what follows the index for as long as it is served. What follows is called once; with a context
	// that has ended, if nothing comes of the index.
	Fetch func(ctx context.Context) (file string, follow func(context.Context), err error)
}

// Add serves the index in a file beside the others. When it returns without an error, queries are answered. Whatever
// goes wrong, the end of ctx too, leaves what is served as it is; a *generation.RefusedError says that nothing is wrong with the file.
func (s *Set) Add(ctx context.Context, from Source) (*Entry, error) {
	ctx, done, err := s.change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	start := time.Now()
	e, err := s.come(ctx, from)
	if err != nil {
		s.options.Log.Error("an index is not served", "index", from.Name, "file", from.File, "error", err)
		return nil, err
	}
	s.options.Log.Info("an index is served", "index", e.Name, "file", from.File, "version", e.Index.Facts().Version, "after", time.Since(start).Round(time.Millisecond))
	return e, nil
}

// change begins a change, whose context ends with the worker. done is to be called at its end.
func (s *Set) change(ctx context.Context) (_ context.Context, done func(), err error) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return nil, nil, generation.ErrEnding
	}
	s.changes.Add(1)
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(s.changing, func() { cancel(generation.ErrEnding) })
	return ctx, func() {
		release()
		cancel(nil)
		s.changes.Done()
	}, nil
}

// come opens, loads and tries a file and begins to serve it.
func (s *Set) come(ctx context.Context, from Source) (_ *Entry, err error) {
	if err = s.free(from.Name); err != nil { // before anything is read
		return nil, err
	}
	file, follow := from.File, (func(context.Context))(nil)
	if from.Fetch != nil {
		if file, follow, err = from.Fetch(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				follow(ended)
			}
		}()
	}
	x, err := generation.OpenAside(ctx, file, from.Name, s.options.Kinds, int64(s.options.Config.CertifyLimit))
	if err != nil {
		return nil, err
	}
	e := s.entry(x)
	if err := s.reserve(e); err != nil {
		return nil, errors.Join(err, e.close())
	}
	if err = e.load(generation.Beside(ctx), nil); err == nil {
		err = x.Try(ctx, e.pipelines())
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = errors.Join(err, e.close())
		s.forget(e)
		return nil, err
	}
	x.Start(e.pipelines())
	e.listen()
	if err = s.begin(ctx, e); err != nil {
		ctx, cancel := context.WithTimeout(ctx, s.options.Config.DrainTimeout)
		defer cancel()
		return nil, errors.Join(err, s.leave(ctx, e))
	}
	e.watch()
	s.mu.Lock()
	e.state = serving
	if from.Fetch != nil { // not before: what it finds is swapped; and not after: the index may be removed from now on
		s.follow(e.Name, follow)
	}
	s.mu.Unlock()
	return e, nil
}

// free says why a name cannot be taken, or nil.
func (s *Set) free(name string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.taken(name)
}

// taken says why a name cannot be taken, or nil. s.mu is held.
func (s *Set) taken(name string) error {
	i := slices.IndexFunc(s.entries, func(e *Entry) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	switch s.entries[i].state {
	case coming:
		return refused("an index %s is being added already", name)
	case going:
		return refused("the index %s is being removed: add it again when that is done", name)
	}
	return refused("an index %s is served already: swap it for another file, or add the file under another name", name)
}

// reserve takes the entry's name.
func (s *Set) reserve(e *Entry) error {
	if err := wire.CheckIndexName(e.Name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.taken(e.Name); err != nil {
		return err
	}
	s.entries = append(s.entries, e)
	return nil
}

// begin lets queries in.
func (s *Set) begin(ctx context.Context, e *Entry) error {
	err := s.awaitDurables(ctx, func() error {
		s.sharing.Lock()
		defer s.sharing.Unlock()
		e.listens = true
		if err := s.renew(ctx); err != nil {
			return err
		}
		return e.pull(s.grant(1), time.Now())
	}, e)
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// Remove ends an index, and returns the version that was served last. What was taken in is answered before ctx ends, or given back then, as note tells: that
// is no error, and nothing is lost. Stored queries that were not pulled stay in their streams.
func (s *Set) Remove(ctx context.Context, name string) (version string, note, err error) {
	_, done, err := s.change(ctx) // whose end the removal is not cut short by: it has its time
	if err != nil {
		return "", nil, err
	}
	defer done()
	s.mu.Lock()
	i := slices.IndexFunc(s.entries, func(e *Entry) bool { return e.Name == name })
	switch {
	case i < 0:
		err = fmt.Errorf("%w: %q", ErrNotServed, name)
	case s.entries[i].state != serving:
		err = s.taken(name)
	}
	if err != nil {
		s.mu.Unlock()
		return "", nil, err
	}
	e := s.entries[i]
	e.state = going
	s.mu.Unlock()
	start := time.Now()
	note = s.leave(ctx, e)
	version = e.Index.Facts().Version
	s.options.Log.Info("an index is served no longer", "index", name, "version", version, "after", time.Since(start).Round(time.Millisecond), "note", note)
	return version, note, nil
}

// leave ends an index in the order in which messages pass through it. What was taken in is given back when ctx ends.
func (s *Set) leave(ctx context.Context, e *Entry) error {
	s.mu.Lock()
	e.state = going
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.aborted, func() { cancel(context.Cause(e.aborted)) })() // the worker has no time left
	defer context.AfterFunc(ctx, e.abandon)()
	e.stopReplacing()
	if deadline, ok := ctx.Deadline(); ok {
		e.Index.Hurry(deadline, 1)
	}
	faults := []error{e.stopPulling(ctx)}
	s.sharing.Lock()
	if e.listens {
		e.listens = false
		faults = append(faults, s.renew(context.WithoutCancel(ctx)))
	}
	s.sharing.Unlock()
	e.Direct.Close()
	e.drain()
	faults = append(faults, e.close())
	s.forget(e)
	return errors.Join(faults...)
}

// drain returns when nothing uses the file any longer. No messages come in.
func (e *Entry) drain() {
	for _, stored := range e.Stored() {
		stored.Close()
	}
	e.Index.Drain()
	for _, stored := range e.Stored() {
		stored.Settle()
	}
}

// close gives up what the engine has and the file.
func (e *Entry) close() error {
	err := e.Index.Close()
	e.abandon()
	return err
}

// forget takes an entry out, and what is told of it, and grants its share to the others.
func (s *Set) forget(e *Entry) {
	s.options.Metrics.Forget(e.Name)
	s.mu.Lock()
	s.entries = slices.DeleteFunc(s.entries, func(other *Entry) bool { return other == e })
	s.mu.Unlock()
	s.sharing.Lock()
	defer s.sharing.Unlock()
	s.grant(0)
}

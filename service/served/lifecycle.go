package served

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/geniemq/geniemq/service/connection"
)

// Start starts the pipelines of the indexes that are open. Drain is to be called at the end.
func (s *Set) Start(link Link) {
	s.link = link
	for _, e := range s.all() {
		e.Index.Start(e.pipelines())
	}
}

// Listen makes the indexes reachable by request and reply.
func (s *Set) Listen(ctx context.Context) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	for _, e := range s.all() {
		e.listen()
		e.listens = true
	}
	return s.renew(ctx)
}

// Pull begins to pull.
func (s *Set) Pull(ctx context.Context) error {
	all := s.all()
	part := s.shares(len(all))
	return s.awaitDurables(ctx, func() error {
		for _, e := range all {
			if err := e.pull(part, time.Time{}); err != nil {
				return err
			}
		}
		return nil
	}, all...)
}

// Watch begins to look at the files, and to let indexes come and go.
func (s *Set) Watch() {
	all := s.all()
	for _, e := range all {
		e.watch()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range all {
		e.state = serving
	}
}

// Alive says whether a worker serves an index: this one, or any that hears what is asked directly.
func (s *Set) Alive(ctx context.Context, name string) (bool, error) {
	if s.Has(name) {
		return true, nil
	}
	return connection.Heard(ctx, s.link.NC, s.link.Subjects.Search(name))
}

// The end of the worker, in this order, with other parts of it in between.

// Hurry makes the pipelines give back early what they cannot answer before a deadline.
func (s *Set) Hurry(deadline time.Time) {
	busy, all := 0, s.in(serving, going) // what comes goes at once
	for _, e := range all {
		if e.Index.Busy() {
			busy++
		}
	}
	for _, e := range all {
		e.Index.Hurry(deadline, 1/float64(max(1, busy)))
	}
}

// GiveBack stops the intakes of stored messages at once and gives back what they have. Pipelines that are aborted give back all that
// comes in: with intakes still pulling, the same messages would come and go until the owner shuts down, thousands of times, each
// a delivery of which a message has few before it is suspected.
func (s *Set) GiveBack() {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = stopAll(ended, s.stored()) // that messages went back is what is wanted
}

// End has nothing come, go or be replaced any more: what ends need not be followed by what begins. What is coming goes again, what is going goes.
func (s *Set) End() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.end()
	s.changes.Wait()
	for _, e := range s.all() {
		e.stopReplacing()
	}
}

// StopPulling pulls no more and returns when all that was pulled is settled, or given back because ctx ended.
func (s *Set) StopPulling(ctx context.Context) error { return stopAll(ctx, s.stored()) }

// StopSearch ends the endpoints and takes in what the server had sent to them before it knew of that: nobody else would answer it. What comes later is refused.
func (s *Set) StopSearch(ctx context.Context) {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.micro != nil {
		ctx, cancel := context.WithTimeout(ctx, endpointsWait)
		defer cancel()
		if err := s.retire(ctx, s.micro); err != nil {
			s.options.Log.Warn("direct requests that are on their way here are refused", "error", err)
		}
	}
	for _, e := range s.all() {
		if e.Direct != nil {
			e.Direct.Close()
		}
	}
}

// Drain returns when all pipelines have answered what they were given. No requests are made any longer.
func (s *Set) Drain() {
	var draining sync.WaitGroup
	for _, e := range s.all() {
		draining.Go(e.Index.Drain)
	}
	draining.Wait()
}

// Settle returns when no settlement waits for a dead letter. No answer is confirmed any longer.
func (s *Set) Settle() {
	for _, stored := range s.stored() {
		stored.Settle()
	}
}

// Close gives up what the engine has and the files.
func (s *Set) Close() error {
	var faults []error
	for _, e := range s.all() {
		faults = append(faults, e.close())
	}
	return errors.Join(faults...)
}

// Package exclusion keeps lone runs apart from everything else that the process does.
package exclusion

import (
	"sync"
	"sync/atomic"
)

// Lock lets the process work either on any number of ordinary messages or on one suspect. Decoding a message, a batch on
// the engine and encoding an answer are done in turn with the others who share, so that whatever ends the process during a
// lone run is that run's doing, and what ends it otherwise takes no suspect with it.
//
// Neither side starves: once a lone run waits nothing new is begun, and at its end all who waited have their turn before the next.
//
// Who shares must not wait for anything that others do between Share and Done (room in a channel, in the producer, memory): the
// others may be waiting for a lone run, and that for this one.
type Lock struct {
	mu     sync.RWMutex
	waited atomic.Bool // someone had to, since the last lone run began
}

// Share waits for the end of a lone run.
func (e *Lock) Share() {
	if !e.mu.TryRLock() {
		e.waited.Store(true)
		e.mu.RLock()
	}
}

// Done ends what Share began.
func (e *Lock) Done() { e.mu.RUnlock() }

// TakeAll waits until nothing else is done.
func (e *Lock) TakeAll() {
	e.waited.Store(false)
	if !e.mu.TryLock() {
		e.waited.Store(true)
		e.mu.Lock()
	}
}

// Release ends a lone run and says whether anyone had to wait for it.
func (e *Lock) Release() (waited bool) {
	waited = e.waited.Load()
	e.mu.Unlock()
	return waited
}

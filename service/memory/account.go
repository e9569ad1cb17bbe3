package memory

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/geniemq/geniemq/internal/human"
)

// account is a part of the budget that many draw on, each through a holder of its own.
//
// A holder may have at most twice what the account has left. A holder is stuck when its answers do not get out or its engine is
// slow. By that rule it ends at two thirds of the account, two such holders at two fifths each, and there is always room for
// another one: a holder that has nothing gets whatever is left. Those who wait are served in the order of arrival, but for
// holders whose own share is used up.
type account struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	peak    int64     // of used, since trim last looked
	waiting list.List // of *waiter
}

// Holder draws on an account: the stored or the direct messages of an index, or its executors. It must not be copied once it is in use.
type Holder struct {
	account *account
	held    int64
}

type waiter struct {
	holder *Holder
	bytes  int64
	ready  chan struct{}
}

// TooMuch says that something needs more than the whole account.
type TooMuch struct{ Need, Limit int64 }

func (e *TooMuch) Error() string {
	return fmt.Sprintf("it needs %s of memory, and this worker has %s for it", human.Bytes(e.Need), human.Bytes(e.Limit))
}

// Holder is one more that draws on the account.
func (a *account) Holder() Holder { return Holder{account: a} }

// Limit is the most that it may ever have.
func (h *Holder) Limit() int64 { return h.account.limit }

func (h *Holder) fits(n int64) bool {
	left := h.account.limit - h.account.used
	return n <= left && (h.held == 0 || h.held+n <= 2*(left-n))
}

func (h *Holder) take(n int64) {
	a := h.account
	h.held += n
	a.used += n
	a.peak = max(a.peak, a.used)
}

// Most is n, or all of the account if that is less.
func (h *Holder) Most(n int64) int64 {
	return min(n, h.Limit())
}

// Try takes n bytes if they are there.
func (h *Holder) Try(n int64) bool {
	h.account.mu.Lock()
	defer h.account.mu.Unlock()
	if !h.fits(n) {
		return false
	}
	h.take(n)
	return true
}

// Wait takes n bytes when they are there. The error is a *TooMuch when they never will be, or that of ctx.
func (h *Holder) Wait(ctx context.Context, n int64) error {
	a := h.account
	a.mu.Lock()
	switch {
	case n > a.limit:
		a.mu.Unlock()
		return &TooMuch{Need: n, Limit: a.limit}
	case h.fits(n) && a.waiting.Len() == 0 || n == 0:
		h.take(n)
		a.mu.Unlock()
		return nil
	}
	w := &waiter{h, n, make(chan struct{})}
	place := a.waiting.PushBack(w)
	a.serve() // its own share may be what those in front wait for
	a.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-w.ready:
		h.put(n)
	default:
		a.waiting.Remove(place)
		a.serve()
	}
	return context.Cause(ctx)
}

// Give gives n bytes back.
func (h *Holder) Give(n int64) {
	if n == 0 {
		return
	}
	h.account.mu.Lock()
	h.put(n)
	h.account.mu.Unlock()
}

func (h *Holder) put(n int64) {
	h.held -= n
	h.account.used -= n
	h.account.serve()
}

// serve lets those in who can be. a.mu is held.
func (a *account) serve() {
	for place := a.waiting.Front(); place != nil; {
		w, next := place.Value.(*waiter), place.Next()
		switch {
		case w.holder.fits(w.bytes):
			w.holder.take(w.bytes)
			a.waiting.Remove(place)
			close(w.ready)
		case w.bytes > a.limit-a.used:
			return // or those behind it would keep it from ever being served
		}
		place = next
	}
}

func (a *account) state() (used int64, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used, a.waiting.Len()
}

// Package memory bounds what is in flight in a worker.
package memory

import (
	"container/list"
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/internal/human"
)

// Budget bounds the memory of what is in flight in a worker, over all its indexes: it admits, makes stored messages wait, and
// refuses direct ones. Each of its accounts has a quarter:
//
//   - bodies: messages that were pulled, from the moment they are asked for until they are settled. The consumers' windows
//     keep to it, one message for each index at least.
//   - decoding: what it takes to decode messages, beside what remains of them.
//   - requests: decoded messages with all that becomes of them: plans, hits, and the message of the answer that is being
//     published (an answer holds one at a time, see delivery), at their largest.
//   - batches: what the engine takes of this host's memory while batches run. The memory of a GPU is the engine's own affair.
//
// So a message is bounded before anything is done for it, by what it asks for: however it is composed, and whether its answer
// gets out or not. What it needs is reserved once for each account and never added to, and an account is waited for only with
// what its own waiting frees: first decoding, which is given back; then requests; then batches. So no two wait for each other.
//
// Memory that is free but not yet collected comes on top, as much again by Go's defaults; GOMEMLIMIT bounds it.
type Budget struct {
	Decoding, Requests, Batches account
	bodies                      int64
	Pulled                      func() int64 // bytes of messages that consumers hold; nil: none
}

// NewBudget divides so many bytes.
func NewBudget(total int64) *Budget {
	b := &Budget{bodies: total / 4}
	for _, a := range []*account{&b.Decoding, &b.Requests, &b.Batches} {
		a.limit = total / 4
	}
	return b
}

// MinMemory is the smallest budget. With less than about 512 MiB some messages of the largest size are refused.
const MinMemory = 128 << 20

// Window is how many bytes of messages the consumer of one of so many indexes may hold.
func (b *Budget) Window(indexes int) int64 { return b.bodies / int64(max(indexes, 1)) }

// account is a part of the budget that many draw on, each through a holder of its own.
//
// A holder may have twice what the account has left, at most. So one that is stuck, since its answers do not get out or its
// engine is slow, ends at two thirds, two of them at two fifths each, and there is always room for another: a holder
// that has nothing gets whatever is left. Who waits is served in the order of arrival, except those whose own share is used up.
type account struct {
	mu      sync.Mutex
	limit   int64
	used    int64
	peak    int64     // of used, since trim last looked
	waiting list.List // of *waiter
}

// Holder draws on an account: the stored or the direct messages of an index, or its executors. Its zero value has no account and
// so no bounds. It must not be copied once it is in use.
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

// Limit is the most that it may ever have; without an account, all there is.
func (h *Holder) Limit() int64 {
	if h.account == nil {
		return math.MaxInt64
	}
	return h.account.limit
}

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
	a := h.account
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !h.fits(n) {
		return false
	}
	h.take(n)
	return true
}

// Wait takes n bytes when they are there. The error is a *TooMuch when they never will be, or that of ctx.
func (h *Holder) Wait(ctx context.Context, n int64) error {
	a := h.account
	if a == nil {
		return nil
	}
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
	if n == 0 || h.account == nil {
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

// Describe and Collect make a budget a Prometheus collector.

var (
	memoryLimitDesc = prometheus.NewDesc("geniemq_memory_limit_bytes", "Most memory that may be reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryUsedDesc  = prometheus.NewDesc("geniemq_memory_used_bytes", "Memory that is reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryWaitDesc  = prometheus.NewDesc("geniemq_memory_waiting", "Messages, or batches, that wait for memory, by account: decoding, requests or batches.", []string{"account"}, nil)
)

func (b *Budget) accounts() map[string]*account {
	return map[string]*account{"decoding": &b.Decoding, "requests": &b.Requests, "batches": &b.Batches}
}

func (b *Budget) Describe(to chan<- *prometheus.Desc) {
	to <- memoryLimitDesc
	to <- memoryUsedDesc
	to <- memoryWaitDesc
}

func (b *Budget) Collect(to chan<- prometheus.Metric) {
	pulled := int64(0)
	if b.Pulled != nil {
		pulled = b.Pulled()
	}
	to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(b.bodies), "bodies")
	to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(pulled), "bodies")
	for name, a := range b.accounts() {
		used, waiting := a.state()
		to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(a.limit), name)
		to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(used), name)
		to <- prometheus.MustNewConstMetric(memoryWaitDesc, prometheus.GaugeValue, float64(waiting), name)
	}
}

const (
	// trimInterval is how often trim looks.
	trimInterval = 5 * time.Second
	// burst is the share of an account that must have been in use, and quiet that of the peak that may still be, for the
	// collector to be called: it has the better part of a burst to give back, and little to mark.
	burst, quiet = 8, 4
)

// Trim gives memory back to the system after a burst, until ctx ends: what was used lies in pools and free spans, which an idle
// process would keep for minutes.
func (b *Budget) Trim(ctx context.Context, pools func()) {
	ticker := time.NewTicker(trimInterval)
	defer ticker.Stop()
	var peak int64
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		var used, limit int64
		for _, a := range b.accounts() {
			a.mu.Lock()
			peak = max(peak, a.peak)
			a.peak = a.used
			used, limit = max(used, a.used), a.limit
			a.mu.Unlock()
		}
		if peak > limit/burst && used < peak/quiet {
			peak = 0
			pools()
			runtime.GC() // a pool keeps for one cycle more what it drops
			debug.FreeOSMemory()
		}
	}
}

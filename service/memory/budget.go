// Package memory bounds what is in flight in a worker.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/internal/bell"
)

// Budget bounds the memory of what is in flight in a worker, over all its indexes. A stored message waits until there is room
// for it; a direct one is refused. The budget has five accounts, each with a quarter of the bytes but for the first two, which share one:
//
//   - bodies: messages that were pulled, from the moment they are asked for until they are settled. The consumers' windows
//     keep to it, with one message per index at least.
//   - objects: bodies that are too large for a message and were fetched from the object store, from before the first byte until their messages are settled,
//     and what is beside them while they are fetched.
//   - decoding: what it takes to decode messages, beside what remains of them.
//   - requests: decoded messages with all that becomes of them, at its largest: plans, hits, and the message of the answer that is
//     being published. An answer holds one message at a time.
//   - batches: what the engine takes of this host's memory while batches run. A GPU's own memory is the engine's affair.
//
// So a message is bounded by what it asks for, before anything is done for it. That holds however it is composed, and whether
// its answer gets out or not. What it needs is reserved once per account and never added to. Accounts are taken in one order:
// objects; decoding, which is given back before the next; then requests; then batches. So no two messages wait for each other.
//
// Memory that is free but not yet collected comes on top: as much again at most, and half as much as the budget where less is in use (Spare). GOMEMLIMIT bounds it.
type Budget struct {
	Objects, Decoding, Requests, Batches account
	bodies, spare                        int64
	Pulled                               func() int64 // bytes of messages that consumers hold
}

// NewBudget divides so many bytes.
func NewBudget(total int64) *Budget {
	b := &Budget{bodies: total / 8, spare: total / 2, Objects: account{limit: total / 8}}
	for _, a := range []*account{&b.Decoding, &b.Requests, &b.Batches} {
		a.limit = total / 4
	}
	return b
}

// MinMemory is the smallest budget. With less than about 512 MiB some messages of the largest size are refused.
const MinMemory = 128 << 20

// Window is how many bytes of messages one consumer may hold, where there are so many indexes with a consumer each.
func (b *Budget) Window(indexes int) int64 { return b.bodies / int64(max(indexes, 1)) }

const (
	// trimInterval is how often trim looks.
	trimInterval = 5 * time.Second
	// The collector is called when more than a burst-th of an account was in use, and less than a quiet-th of that peak still
	// is. It has most of the burst to give back then, and little to mark.
	burst, quiet = 8, 4
)

// Trim gives memory back to the system after each burst, and when nothing has been in flight for a while, until ctx ends. An idle
// process would keep it for minutes, in pools, as garbage and in free spans.
func (b *Budget) Trim(ctx context.Context) {
	var peak int64
	for bell.Sleep(ctx, trimInterval) {
		var recent, used, limit int64
		for _, a := range b.accounts() {
			a.mu.Lock()
			recent = max(recent, a.peak)
			a.peak = a.used
			used, limit = max(used, a.used), a.limit
			a.mu.Unlock()
		}
		peak = max(peak, recent)
		if due(peak, recent, used, limit) {
			peak = 0
			runtime.GC() // a sync.Pool keeps for one cycle more what it drops
			debug.FreeOSMemory()
		}
	}
}

// due says whether memory is to be given back, when of an account of so many bytes used are used, at most recent were since the last look, and peak since it was given back.
func due(peak, recent, used, limit int64) bool {
	return peak > limit/burst && used < peak/quiet || peak > 0 && recent == 0
}

// Describe and Collect make a Budget a Prometheus collector.

var (
	memoryLimitDesc = prometheus.NewDesc("geniemq_memory_limit_bytes", "Most memory that may be reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryUsedDesc  = prometheus.NewDesc("geniemq_memory_used_bytes", "Memory that is reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryWaitDesc  = prometheus.NewDesc("geniemq_memory_waiting", "Messages, or batches, that wait for memory, by account: objects, decoding, requests or batches.", []string{"account"}, nil)
)

func (b *Budget) accounts() map[string]*account {
	return map[string]*account{"objects": &b.Objects, "decoding": &b.Decoding, "requests": &b.Requests, "batches": &b.Batches}
}

func (b *Budget) Describe(to chan<- *prometheus.Desc) {
	to <- memoryLimitDesc
	to <- memoryUsedDesc
	to <- memoryWaitDesc
}

func (b *Budget) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(b.bodies), "bodies")
	to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(b.Pulled()), "bodies")
	for name, a := range b.accounts() {
		used, waiting := a.state()
		to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(a.limit), name)
		to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(used), name)
		to <- prometheus.MustNewConstMetric(memoryWaitDesc, prometheus.GaugeValue, float64(waiting), name)
	}
}

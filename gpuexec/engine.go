// Package gpuexec executes batches of planned queries against an index.
//
// # Stages
//
// A batch passes three stages:
//
//	plans -> check -> match -> verify -> answers
//
// Match is what engines differ in: for each query the top k objects by match count (file match.go says what an engine
// must return). Check and verify, that is the validation of plans, the verification of sequences and the doubling of
// candidates until an answer is certified, are the same for every engine and stand in files of their own. So a new
// engine is a matcher and a loader. A matcher that holds texts may compare them for verify, which decides what follows.
//
// # Guarantees
//
//   - Two engines return the same hits to the byte: the order (count descending, object id ascending) is total, and
//     verified hits have a total order too (package verify).
//   - The hits of a plan depend on the plan and the snapshot only: not on the other plans of the batch, on the number of
//     workers, on scheduling or on memory.
//   - A plan that cannot be executed, or whose execution panics, fails alone: its Answer has the error.
//   - A Searcher holds its snapshot until it is closed. The index must stay open until then.
package gpuexec

import (
	"context"

	"github.com/geniemq/geniemq/index"
)

// Engine is a device that searches indexes: the CPU or a GPU. It is safe for concurrent use.
type Engine interface {
	// Info says what the engine runs on.
	Info() Info
	// Load makes a snapshot resident. It fails with a *DeviceError when the device has no room for it. later are snapshots that
	// will be loaded after it: what only makes this one faster leaves room for them.
	Load(ctx context.Context, snapshot *Snapshot, later ...*Snapshot) (Searcher, error)
	// Close releases the device. All searchers must be closed before.
	Close() error
}

// Searcher is one snapshot resident on one engine. Search may be called concurrently; Close must come after the last
// call has returned.
type Searcher interface {
	// Search executes one batch and blocks until it is done. answers has one element a plan, which is overwritten;
	// the memory of its Hits is reused. The plans must not change meanwhile. t may be nil.
	//
	// An error means that the batch failed as a whole and the answers are void: the context ended, or the device
	// failed (*DeviceError). What is wrong with one plan is in its Answer.Err.
	Search(ctx context.Context, plans []Plan, answers []Answer, t *Trace) error
	// Capacity says how large batches should be.
	Capacity() Capacity
	// Cost is the memory in bytes that a plan needs while its batch runs: a device's, or with Capacity.OnHost this host's.
	Cost(p *Plan) int64
	// Close gives the snapshot's memory back.
	Close() error
}

// Info describes an engine to people.
type Info struct {
	Kind    string // "cpu" or "cuda"
	Device  string // for example "NVIDIA H200" or "2 cores"
	Workers int    // host threads that execute or verify plans at a time
	// Note says why the engine is not the one that "auto" prefers; empty otherwise.
	Note string
}

// Snapshot is the state of an index that queries see: segments in ascending order of their base. Today a snapshot has
// exactly one segment, with base 0.
type Snapshot struct {
	Segments []Segment
}

// Segment is an immutable index whose object ids count from Base.
type Segment struct {
	Index *index.Index
	Base  uint32
}

// Capacity bounds the batches of a Searcher, and says what its index takes.
type Capacity struct {
	BatchPlans int   // more plans at a time bring no more throughput
	BatchBytes int64 // bound of the sum of Cost over a batch
	OnHost     bool  // Cost is memory of this host, not of a device of its own
	InFlight   int   // concurrent Search calls that keep the engine busy
	// IndexBytes is the size of the resident index, DeviceBytes the memory that the engine allocated on its device, SharedBytes
	// how much of that all its searchers share.
	IndexBytes, DeviceBytes, SharedBytes int64
	// Parts is 1 where the index stays on its device. Else it is streamed: every batch copies so many parts into the device's
	// memory, one after another. Of several devices it is the largest number.
	Parts int
	// Form says to people how the index lies on its device, like "resident: postings, byte codes".
	Form string
}

// CPUOptions are the options of the CPU engine. The zero value is ready to use.
type CPUOptions struct {
	// Workers is the number of cores that all searchers of the engine share. Default runtime.GOMAXPROCS(0).
	Workers int
	// BatchPlans is Capacity.BatchPlans. Default 1024: within a tile a batch of that size reads the postings from
	// memory once, and more gains nothing.
	BatchPlans int
	// BatchBytes is Capacity.BatchBytes. Default 256 MiB.
	BatchBytes int64
	// NibbleCounters uses 4-bit counters for queries whose count bound is at most 15. They take half the cache of
	// 8-bit ones, but two more instructions a posting, which measures slower (see counters). Default false.
	NibbleCounters bool
}

// Options are the options of every engine that Open may choose. The zero value is ready to use.
type Options struct {
	CPU  CPUOptions
	CUDA CUDAOptions
}

// The kinds of engine.
const (
	Auto = "auto" // CUDA where a device can be used, else the CPU
	CPU  = "cpu"
	CUDA = "cuda"
)

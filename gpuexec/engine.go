// Package gpuexec is the contract of engines, which execute batches of planned queries against indexes.
//
//	Source  an index: structures by family        (index.Index is one)
//	Engine  a device that makes sources resident  (gpuexec/cpu, gpuexec/cuda, gpuexec/group; gpuexec/open opens one)
//	Searcher  a source on an engine: plans in, answers out
//
// # Guarantees
//
//   - Two engines return the same hits to the byte: the order (count descending, object id ascending) is total, and so is that of
//     every rescorer (package verify).
//   - The hits of a plan depend on the plan and the source only: not on the other plans of the batch, on the number of
//     workers, on scheduling or on memory.
//   - A plan that cannot be executed, or whose execution panics, fails alone: its Answer has the error.
//   - A Searcher holds its source until it is closed. The source must stay open until then.
//
// What engines have in common is package run; a new kind of structure is a Matcher there and a loader for each engine.
package gpuexec

import "context"

// Source is an index, as engines see it: structures that can be searched, each of a family.
type Source interface {
	// Name and Version say to people what it is. Two states of an index have one name and different versions.
	Name() string
	Version() string
	// Objects is the number of objects. Their ids count from 0.
	Objects() uint32
	// Structure is the structure of a family; nil where the index has none. What it is, the engines' loaders of the family know.
	Structure(family string) any
}

// Engine is a device that searches indexes: the CPU or a GPU. It is safe for concurrent use.
type Engine interface {
	// Info says what the engine runs on.
	Info() Info
	// Load makes resident what the engine can search of a source. It fails with a *DeviceError when the device has no room for
	// it. later are sources that will be loaded after it: what only makes this one faster leaves room for them.
	Load(ctx context.Context, x Source, later ...Source) (Searcher, error)
	// Memory says who holds what of the engine's memory.
	Memory() []Holding
	// Close releases the device. All searchers must be closed before.
	Close() error
}

// Holding is memory of a device that somebody holds.
type Holding struct {
	Device int    // the ordinal of the device; 0 of an engine that has one
	Owner  string // "engine", or the name and version of an index
	Form   string // what the memory is, like "postings" or "batches in flight"
	Bytes  int64
	// Needed: the owner cannot do without. Else it only makes searches faster.
	Needed bool
}

// Searcher is one source resident on one engine. Search may be called concurrently; Close must come after the last
// call has returned.
type Searcher interface {
	// Search executes one batch and blocks until it is done. answers has one element per plan, which is overwritten;
	// the memory of its Hits and its Value is reused. The plans must not change meanwhile. t may be nil.
	//
	// An error means that the batch failed as a whole and the answers are void: the context ended, or the device
	// failed (*DeviceError). What is wrong with one plan is in its Answer.Err.
	Search(ctx context.Context, plans []Plan, answers []Answer, t *Trace) error
	// Capacity says how large batches should be.
	Capacity() Capacity
	// Cost is the memory in bytes that a plan needs while its batch runs: a device's, or with Capacity.OnHost this host's.
	Cost(p *Plan) int64
	// Close gives the memory back.
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

// Capacity bounds the batches of a Searcher, and says what its index takes.
type Capacity struct {
	BatchPlans int   // more plans at a time bring no more throughput
	BatchBytes int64 // bound of the sum of Cost over a batch
	OnHost     bool  // Cost is memory of this host, not of a device of its own
	InFlight   int   // concurrent Search calls that keep the engine busy, those that wait for their turn too
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

//go:build cuda

// Package device is the CUDA engine on its device: the driver, memory and what lies there, lanes and launches. What is
// executed how, and where everything comes to lie, package plan decides.
package device

import (
	"errors"
	"sync"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/turns"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// An Engine searches on a GPU. Who owns what:
//
//   - The engine owns the device's primary context, the kernels (loaded), the memory budget and the lanes. It
//     loads and frees one thing at a time.
//   - A lane is what one batch in flight needs: a stream, and an arena of device memory and
//     pinned host memory, all allocated when the engine is opened. While a batch runs nothing is allocated on the device. Who
//     gets one says turns.Pool.
//   - A searcher owns the resident form of one index (resident).
//
// # Execution of a batch
//
// The host flattens the queries into spans of keywords and sends these, not where their postings lie: the directories of the
// index are on the device, so a block finds the postings of its (query, tile) itself. Where attributes have other forms than
// postings of all their keywords, a kernel first makes of the spans what these want (kernels/resolve.cu). What must be known
// before, so that all is bounded and the kernels chosen, the host derives from tables by attribute and keyword (plan.Index),
// before the batch takes a lane. Tiles run in waves of ascending ids.
// A wave is one launch per width of counters that occurs in the batch (kernels/match.cu), then a compaction that cuts every
// query's candidates to its best k and raises its threshold (kernels/select.cu). All launches and copies of a piece of a batch
// are recorded first and cross into C once.
//
// # Memory
//
// Every buffer is bounded before anything is launched: a query's candidates by k + w x blocks x min(k, objects of a
// block) for waves of w tiles, which is proven where the entries are appended (match.cu). Cost is the need with w = 1; the
// memory that the batch leaves makes the waves wider (plan.PieceSizes). A batch whose sum does not fit is executed in pieces
// (plan.Piece); a query that does not fit alone fails alone.
//
// # Three kernels
//
// Attributes that are bit-sliced in the file lie on the device as bit planes, where there is room as postings too
// (plan.Resident), and where there is room yet and they are many and narrow, as bytes (plan.Codes). A policy decides by cost
// where the queries of a batch go (plan.Policy):
//
//   - The (query, tile) kernel can execute every query: it reads postings, rare lists, and planes where there is nothing
//     else.
//   - The shared-decode kernel (kernels/sliced.cuh) takes queries that ask for bit-sliced attributes only:
//     large batches on dense lists.
//   - The bound (kernels/bound.cuh) takes those of them that ask for many narrow attributes by one value or
//     range each, as signatures for nearest-neighbour search do. Tensor cores find the few objects that may be among the
//     best k, and only these are counted. When too many may, the query is abandoned and executed again by another kernel,
//     in the same call.
//
// What the last two need beside the queries comes out of the same arena; should it not fit, the piece becomes smaller, and where
// that does not pay the (query, tile) kernel takes it. So Cost need not count it.
//
// # An index that does not fit
//
// It is streamed through the device in parts (partStream), which the first two kernels go through; the bound
// needs bytes, which stay. Which form an index gets of the memory there is, its placement says (plan.Placement).
type Engine struct {
	*run.Engine
	opts    gpuexec.CUDAOptions
	device  cu.Device
	context cu.CUContext
	kernels *loaded

	lanes turns.Pool[*lane]
	all   []*lane // of the pool

	loading  sync.Mutex // held to load and to free
	uploader *uploader

	limits plan.Limits // of what is loaded, besides the memory (tests)
}

// Count is how many devices the driver sees.
func Count() (int, error) {
	if err := driverStatus(); err != nil {
		return 0, err
	}
	count, err := cu.NumDevices()
	return count, deviceError("counting the CUDA devices", err)
}

// Open opens one device, of the driver's order, with given images of the kernels. Engines may share the cores of a crew.
func Open(opts gpuexec.CUDAOptions, device int, crew *run.Crew, images map[string][]byte) (*Engine, error) {
	if err := driverStatus(); err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, device: cu.Device(device)}
	e.Engine = &run.Engine{Host: &run.Host{Crew: crew, Budget: run.NewBudget(device, 0)}, Loaders: e.loaders(), Release: e.close, Hashes: e.hasher}
	if err := e.open(images); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *Engine) open(images map[string][]byte) error {
	name, err := e.device.Name()
	if err != nil {
		return deviceError("naming the device", err)
	}
	e.About = gpuexec.Info{Kind: gpuexec.CUDA, Device: name, Workers: e.Host.Crew.Size()}
	if e.context, err = e.device.RetainPrimaryCtx(); err != nil {
		return deviceError("opening the device", err)
	}
	err = e.do(func() error {
		free, _, err := cu.MemInfo()
		if err != nil {
			return deviceError("asking for the device's memory", err)
		}
		if e.kernels, err = loadKernels(e.device, name, images); err != nil {
			return imageError(name, err)
		}
		e.defaults(free)
		e.uploader, err = newUploader()
		return err
	})
	if err != nil {
		return err
	}
	return e.openLanes()
}

// do executes work on the device, one at a time: work must not call it.
func (e *Engine) do(work func() error) error {
	e.loading.Lock()
	defer e.loading.Unlock()
	return binding(e.context).do(work)
}

// defaults fills the options that are not given, for a device with so much free memory, and makes the budget of it.
func (e *Engine) defaults(free int64) {
	budget := free / 10 * 9
	if e.opts.Memory > 0 {
		budget = min(e.opts.Memory, free)
	}
	e.Host.Budget = run.NewBudget(int(e.device), budget)
	if e.opts.InFlight <= 0 {
		e.opts.InFlight = e.kernels.Profile.Lanes
	}
	if e.opts.BatchMemory <= 0 {
		e.opts.BatchMemory = min(1<<30, budget/int64(4*e.kernels.Profile.Lanes))
	}
}

// openLanes makes the lanes.
func (e *Engine) openLanes() error {
	arenas := int64(e.opts.InFlight) * e.opts.BatchMemory
	if _, err := e.Host.Budget.Reserve(gpuexec.Holding{Owner: "engine", Form: "batches in flight", Bytes: arenas, Needed: true}); err != nil {
		return err
	}
	e.Capacity = gpuexec.Capacity{
		BatchPlans: 1024, BatchBytes: e.opts.BatchMemory, InFlight: e.opts.InFlight + e.kernels.Profile.AtHand, SharedBytes: arenas,
	}
	e.lanes = turns.New[*lane](e.opts.InFlight)
	for range e.opts.InFlight {
		l, err := newLane(e)
		if err != nil {
			return err
		}
		e.all = append(e.all, l)
		e.lanes.Free <- l
	}
	return nil
}

// close releases the device.
func (e *Engine) close() error {
	var errs []error
	for _, l := range e.all {
		errs = append(errs, l.close())
	}
	e.all = nil
	if e.uploader != nil {
		errs = append(errs, e.do(func() error { return e.uploader.close() }))
		e.uploader = nil
	}
	if e.context != (cu.CUContext{}) {
		e.context = cu.CUContext{}
		// The modules go with the context.
		errs = append(errs, deviceError("closing the device", e.device.ReleasePrimaryCtx()))
	}
	return errors.Join(errs...)
}

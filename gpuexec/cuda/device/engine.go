//go:build cuda

// Package cuda is the engine that searches on GPUs.
package device

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/kernels"
)

// cudaEngine searches on a GPU. Who owns what:
//
//   - The engine owns the device's primary context, the kernels (cudaKernels), the memory budget and the lanes. It has a
//     thread of its own for loading and freeing.
//   - A lane (lane.go) is what one batch in flight needs: an OS thread, a stream, an arena of device memory and
//     pinned host memory, all allocated when the engine is opened. While a batch runs nothing is allocated on the device. Who
//     gets one says lanePool.
//   - A searcher owns the resident form of one index (resident.go).
//
// # Execution of a batch
//
// The host flattens the queries into spans of keywords and sends these, not where their postings lie: the directories of the
// index are on the device, so a block finds the postings of its (query, tile) itself. Where attributes have other forms than
// postings of all their keywords, a kernel first makes of the spans what these want (kernels/resolve.cu). What must be known
// before, so that all is bounded and the kernels chosen, the host derives from tables by attribute and keyword (planner),
// before the batch takes a lane. Tiles run in waves of ascending ids.
// A wave is one launch a counter width that occurs in the batch (kernels/match.cu), then a compaction that cuts every
// query's candidates to its best k and raises its threshold (kernels/select.cu). All launches and copies of a batch are
// recorded first and cross into C once.
//
// # Memory
//
// Every buffer is bounded before anything is launched: a query's candidates by k + w x parts x min(k, objects of a
// part) for waves of w tiles, which is proven where the entries are appended (match.cu). Cost is the need with w = 1; the
// memory that the batch leaves makes the waves wider, up to queryCandidates a query, or to waveTiles tiles where that is more. A
// batch whose sum does not fit is executed in pieces; a query that does not fit alone fails alone.
//
// # Three kernels
//
// Attributes that are bit-sliced in the file lie on the device as bit planes, where there is room as postings too
// (residentLayout), and where there is room yet and they are many and narrow, as bytes (codesLayout). Policies decide by cost
// where the queries of a batch go (launchPolicy, filterPolicy):
//
//   - The (query, tile) kernel can execute every query: it reads postings, rare lists, and planes where there is nothing
//     else.
//   - The shared-decode kernel (kernels/sliced.cuh, sliced.go) takes queries that ask for bit-sliced attributes only:
//     large batches on dense lists.
//   - The filter (kernels/bound.cuh, filter.go) takes those of them that ask for many narrow attributes by one value or
//     range each, as signatures for nearest-neighbour search do. Tensor cores find the few objects that may be among the
//     best k, and only these are counted. When too many may, the query is abandoned and executed again by another kernel,
//     in the same call.
//
// What the last two need beside the queries comes out of the same arena; should it not fit, the piece becomes smaller, and where
// that does not pay the (query, tile) kernel takes it (lane.layout). So Cost need not count it.
//
// # An index that does not fit
//
// It is streamed through the device in parts (partStream in parts.go), which the first two kernels go through; the filter
// needs bytes, which stay. Which form an index gets of the memory there is, its placement says (place.go).
type cudaEngine struct {
	*run.Engine
	opts    gpuexec.CUDAOptions
	device  cu.Device
	context cu.CUContext
	thread  *cudaThread
	kernels *cudaKernels
	crew    *run.Crew

	lanes lanePool
	all   []*lane // of the pool

	uploader *uploader // of the thread

	mu   sync.Mutex
	free int64 // of the memory budget

	limits residentLimits // of what is loaded, besides the memory (tests)
}

// countDevices is how many devices the driver sees.
func Count() (int, error) {
	if err := driverStatus(); err != nil {
		return 0, err
	}
	count, err := cu.NumDevices()
	return count, deviceError("counting the CUDA devices", err)
}

// openCUDA opens one device, of the driver's order, with given images of the kernels. Engines may share the cores of a crew.
func Open(opts gpuexec.CUDAOptions, device int, crew *run.Crew, images map[string][]byte) (*cudaEngine, error) {
	if err := driverStatus(); err != nil {
		return nil, err
	}
	e := &cudaEngine{opts: opts, device: cu.Device(device), crew: crew}
	e.Engine = &run.Engine{Host: &run.Host{Crew: crew, Budget: run.NewBudget(device, 0)}, Loaders: e.loaders(), Release: e.close}
	if err := e.open(images); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func (e *cudaEngine) open(images map[string][]byte) error {
	name, err := e.device.Name()
	if err != nil {
		return deviceError("naming the device", err)
	}
	e.About = gpuexec.Info{Kind: gpuexec.CUDA, Device: name, Workers: e.crew.Size()}
	if e.context, err = e.device.RetainPrimaryCtx(); err != nil {
		return deviceError("opening the device", err)
	}
	if e.thread, err = startThread(e.context); err != nil {
		return err
	}
	err = e.thread.do(func() error {
		free, _, err := cu.MemInfo()
		if err != nil {
			return deviceError("asking for the device's memory", err)
		}
		e.free = free / 10 * 9
		if e.opts.Memory > 0 {
			e.free = min(e.opts.Memory, free)
		}
		if e.opts.InFlight <= 0 {
			e.opts.InFlight = 2
		}
		if e.opts.BatchMemory <= 0 {
			e.opts.BatchMemory = min(1<<30, e.free/8)
		}
		if e.opts.BatchPlans <= 0 {
			e.opts.BatchPlans = 1024
		}
		if e.kernels, err = loadKernels(e.device, images); err != nil {
			return imageError(name, err)
		}
		e.uploader, err = newUploader()
		return err
	})
	if err != nil {
		return err
	}
	e.Capacity = gpuexec.Capacity{
		BatchPlans: e.opts.BatchPlans, BatchBytes: e.opts.BatchMemory, InFlight: e.opts.InFlight,
		SharedBytes: int64(e.opts.InFlight) * e.opts.BatchMemory,
	}
	if err := e.reserve("opening the engine", int64(e.opts.InFlight)*e.opts.BatchMemory); err != nil {
		return err
	}
	e.lanes = newLanePool(e.opts.InFlight)
	for range e.opts.InFlight {
		l, err := newLane(e)
		if err != nil {
			return err
		}
		e.all = append(e.all, l)
		e.lanes.free <- l
	}
	return nil
}

func (e *cudaEngine) close() error {
	var errs []error
	for _, l := range e.all {
		errs = append(errs, l.close())
	}
	e.all = nil
	if e.thread != nil {
		errs = append(errs, e.thread.do(func() error { return e.uploader.close() }))
		e.thread.stop()
		e.thread = nil
	}
	if e.context != (cu.CUContext{}) {
		e.context = cu.CUContext{}
		// The modules go with the context.
		errs = append(errs, deviceError("closing the device", e.device.ReleasePrimaryCtx()))
	}
	return errors.Join(errs...)
}

// cudaKernels are the kernels as a device launches them.
type cudaKernels struct {
	processors    int // multiprocessors
	matches       []cudaMatch
	compact       function
	answer        function
	surveyRepeats function
	arrange       function
	sliced        []cudaSliced // none where a block has too little shared memory
	slicedPlan    function
	resolve       function
	filter        cudaFilter
	verify        cudaVerify
	scan          cudaScan
}

// cudaMatch is a variant of the (query, tile) kernel that the device can launch.
type cudaMatch struct {
	kernels.Match
	function
}

func (m *cudaMatch) maxCount() uint32 { return uint32(1<<m.Bits - 1) }

func loadKernels(device cu.Device, images map[string][]byte) (_ *cudaKernels, err error) {
	modules := make(map[string]module, len(images))
	for name, image := range images {
		if modules[name], err = loadModule(image); err != nil {
			return nil, deviceError("loading the kernels of "+name+".cu", err)
		}
	}
	k := &cudaKernels{}
	if k.processors, err = device.Attribute(cu.MultiprocessorCount); err != nil {
		return nil, deviceError("asking for the number of multiprocessors", err)
	}
	const maxSharedPerBlockOptin = cu.DeviceAttribute(97) // cu does not name it
	limit, err := device.Attribute(maxSharedPerBlockOptin)
	if err != nil {
		return nil, deviceError("asking for the shared memory of a block", err)
	}
	for _, variant := range kernels.MatchVariants {
		shared, err := modules["match"].constant(variant.Name + "_shared")
		if err != nil {
			return nil, deviceError("reading "+variant.Name+"_shared", err)
		}
		if int(shared) > limit {
			continue
		}
		threads, err := modules["match"].constant(variant.Name + "_threads")
		if err != nil {
			return nil, deviceError("reading "+variant.Name+"_threads", err)
		}
		f, err := modules["match"].function(variant.Name, int(threads), int(shared))
		if err != nil {
			return nil, deviceError("finding kernel "+variant.Name, err)
		}
		k.matches = append(k.matches, cudaMatch{variant, f})
	}
	if len(k.matches) == 0 || k.matches[len(k.matches)-1].Bits != 32 {
		return nil, fmt.Errorf("%w: a block of the device has %d bytes of shared memory, too little for the kernels", gpuexec.ErrNoCUDA, limit)
	}
	for _, f := range []struct {
		module, name string
		to           *function
	}{
		{"select", "compact_wave", &k.compact},
		{"select", "answer", &k.answer},
		{"load", "survey_repeats", &k.surveyRepeats},
		{"load", "arrange", &k.arrange},
		{"resolve", "resolve", &k.resolve},
	} {
		if *f.to, err = modules[f.module].function(f.name, kernels.SelectThreads, 0); err != nil {
			return nil, deviceError("finding kernel "+f.name, err)
		}
	}
	if err := k.loadSliced(modules, limit); err != nil {
		return nil, err
	}
	if err := k.loadFilter(modules, limit); err != nil {
		return nil, err
	}
	if err := k.loadVerify(modules["verify"]); err != nil {
		return nil, err
	}
	if err := k.loadScan(modules["scan"]); err != nil {
		return nil, err
	}
	return k, nil
}

// variant is the position of the first variant whose counters hold bound.
func (k *cudaKernels) variant(bound uint32) int {
	for i := range k.matches {
		if bound <= k.matches[i].maxCount() {
			return i
		}
	}
	return len(k.matches) - 1
}

// loaders are the families that the engine can search.
func (e *cudaEngine) loaders() run.Loaders {
	return run.Loaders{postings.FamilyName: {
		Load:  e.loadPostings,
		Weigh: func(x gpuexec.Source) []uint64 { return postingsOf(x).TileWork() },
	}}
}

func postingsOf(x gpuexec.Source) *index.Index {
	return x.Structure(postings.FamilyName).(*index.Index)
}

// postingsOfAll are those of extents.
func postingsOfAll(extents []run.Extent) (all []tiledIndex) {
	for _, x := range extents {
		if of, ok := x.Source.(*index.Index); ok {
			all = append(all, tiledIndex{of, x.Tiles})
		}
	}
	return all
}

// tiledIndex is a range of the tiles of an index.
type tiledIndex struct {
	Index *index.Index
	Tiles run.Tiles
}

func (e *cudaEngine) loadPostings(ctx context.Context, _ *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
	s := &cudaSearcher{engine: e, index: postingsOf(own.Source)}
	if err := s.open(ctx, tiledIndex{s.index, own.Tiles}, postingsOfAll(later)); err != nil {
		return nil, fmt.Errorf("loading an index onto %s: %w", e.About.Device, errors.Join(err, s.Close()))
	}
	s.parts, s.form = s.resident.partsOfBatch(), s.resident.description()
	return s, nil
}

// cudaSearcher is an index, or a range of its tiles, resident on the device.
type cudaSearcher struct {
	engine   *cudaEngine
	index    *index.Index
	resident *resident
	bytes    int64 // of the memory budget
	parts    int   // of a batch
	form     string
}

func (s *cudaSearcher) open(ctx context.Context, own tiledIndex, later []tiledIndex) error {
	e := s.engine
	var texts *textsLayout
	if s.index.Schema().Kind == index.Sequences {
		var err error
		if texts, err = surveyTexts(ctx, s.index, own.Tiles, e.crew); err != nil {
			return err
		}
	}
	p, err := e.place(own, texts, later)
	if err != nil {
		return err
	}
	s.bytes, s.resident = p.deviceBytes(), newResident(s.index, p.layout, e.kernels)
	return e.thread.do(func() error { return s.resident.load(ctx, &p, e.uploader, e.crew) })
}

func (s *cudaSearcher) Match(ctx context.Context, jobs []*run.Job, timed *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	// Before a lane is taken, so that it happens while other batches run.
	queries := make([]laneQuery, len(jobs))
	start := time.Now()
	spans := 0
	for _, job := range jobs {
		spans += len(queryOf(job).Spans)
	}
	const span = 10 // nanoseconds
	err := s.engine.crew.Each(ctx, len(jobs), spans*span, func(i int) { queries[i] = s.resident.plan(jobs[i]) })
	if err != nil {
		return err
	}
	if timed != nil {
		timed.Plan += time.Since(start)
	}
	return s.onLane(ctx, func(l *lane) error { return l.match(ctx, s.resident, queries, timed) })
}

// onLane calls work with a lane, once there is one for the index.
func (s *cudaSearcher) onLane(ctx context.Context, work func(l *lane) error) error {
	return s.engine.lanes.with(ctx, s.resident.stream != nil, work)
}

// Residence implements run.Matcher.
func (s *cudaSearcher) Residence() run.Residence {
	return run.Residence{IndexBytes: s.bytes, DeviceBytes: s.bytes, Parts: s.parts, Form: s.form}
}

// Check implements run.Matcher.
func (s *cudaSearcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	return s.index.CheckQuery(p.Query)
}

func queryOf(job *run.Job) *index.Query { return job.Query.(*index.Query) }

// Cost implements run.Matcher.
func (s *cudaSearcher) Cost(p *gpuexec.Plan) int64 {
	k := max(0, min(p.Candidates(), int(s.index.Objects())))
	spans := 0 // items may share theirs
	if q, ok := p.Query.(*index.Query); ok && q != nil {
		for i := range q.Items {
			spans += int(q.Items[i].Count)
		}
	}
	need := queryNeed(s.resident.spanRoom(spans), k, 1, s.engine.kernels.matches[len(s.engine.kernels.matches)-1].Parts)
	in, out := s.resident.verifyNeed(&run.Job{K: k, Rescore: p.Rescore})
	return need + in + out
}

func (s *cudaSearcher) Close() error {
	var errs []error
	if r := s.resident; r != nil {
		errs = append(errs, s.engine.thread.do(r.free))
		s.resident = nil
	}
	s.engine.release(s.bytes)
	s.bytes = 0
	return errors.Join(errs...)
}

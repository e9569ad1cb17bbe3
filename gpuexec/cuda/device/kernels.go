//go:build cuda

package device

import (
	"fmt"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/kernels"
)

// loaded are the kernels as a device launches them, beside what planning knows of it.
type loaded struct {
	plan.Device
	modules                 *modules
	shared                  int        // bytes that a block may have
	tile                    []function // by variant
	sliced                  []function // by variant
	slicedPlan              function
	compact, answer, choose function
	surveyRepeats, arrange  function
	resolve                 function
	boundCodes, boundPlan   function
	boundMatch, boundCount  function
	// Those that meet filters, and what finds what passes.
	tileFiltered, slicedFiltered []function // by variant
	boundFiltered                function
	filterTiles, firstPassing    function
	boundShared                  int // bytes of shared memory of boundMatch beside the masks
	verifyNarrow, verifyWide     function
	scoreTerms, orderTerms       function
	scanNarrow, scanWide         function
	hashRows, hashCells          function
	hashFunctions, hashVectors   int // of a block
}

// kernelEntry is a line of the table of kernels: a kernel of a module with the launch parameters that do not change.
type kernelEntry struct {
	to              *function
	module, name    string
	threads, shared int
}

// loadKernels loads the modules and finds what a block of the device has room for. Kernels that it has no room for, or that the
// modules are not built with for this device, are left out where there are others in their place.
func loadKernels(device cu.Device, name string, images map[string][]byte) (*loaded, error) {
	m := &modules{by: make(map[string]module, len(images))}
	for name, image := range images {
		var err error
		if m.by[name], err = loadModule(image); err != nil {
			return nil, deviceError("loading the kernels of "+name+".cu", err)
		}
	}
	k := &loaded{Device: plan.Device{Profile: profile.Of(name)}}
	var err error
	if k.Processors, err = device.Attribute(cu.MultiprocessorCount); err != nil {
		return nil, deviceError("asking for the number of multiprocessors", err)
	}
	const maxSharedPerBlockOptin = cu.DeviceAttribute(97) // cu does not name it
	limit, err := device.Attribute(maxSharedPerBlockOptin)
	if err != nil {
		return nil, deviceError("asking for the shared memory of a block", err)
	}
	k.modules, k.shared = m, limit
	table := k.common(m)
	table = append(table, k.tileVariants(m, limit)...)
	table = append(table, k.slicedVariants(m, limit)...)
	table = append(table, k.bound(m, limit)...)
	for _, entry := range table {
		*entry.to = m.kernel(entry)
	}
	if m.err == nil && (len(k.Tile) == 0 || k.Tile[len(k.Tile)-1].Bits != 32) {
		return nil, fmt.Errorf("%w: a block of the device has %d bytes of shared memory, too little for the kernels", gpuexec.ErrNoCUDA, limit)
	}
	return k, m.err
}

// common are the kernels that have no variants.
func (k *loaded) common(m *modules) []kernelEntry {
	k.MaxPattern = m.number("verify", "verify_max_pattern")
	k.ScanObjects, k.ScanFarthest = m.number("scan", "scan_objects"), m.number("scan", "scan_farthest")
	threads, shared := m.number("scan", "scan_threads"), m.number("scan", "scan_shared")
	k.hashFunctions, k.hashVectors = m.number("hash", "hash_functions"), m.number("hash", "hash_vectors")
	hashing := m.number("hash", "hash_threads")
	const narrow, wide = abi.MaxNarrow * 8 * abi.WarpLanes, abi.HashedMaskBytes * abi.WarpLanes // masks of the longest pattern
	return []kernelEntry{
		{&k.compact, "select", "compact_wave", kernels.SelectThreads, 0},
		{&k.answer, "select", "answer", kernels.SelectThreads, 0},
		{&k.choose, "select", "choose", kernels.SelectThreads, 0},
		{&k.surveyRepeats, "load", "survey_repeats", kernels.SelectThreads, 0},
		{&k.arrange, "load", "arrange", kernels.SelectThreads, 0},
		{&k.resolve, "resolve", "resolve", kernels.SelectThreads, 0},
		{&k.filterTiles, "filter", "filter_tiles", kernels.SelectThreads, 0},
		{&k.firstPassing, "filter", "first_passing", kernels.SelectThreads, 0},
		{&k.verifyNarrow, "verify", "verify_narrow", abi.WarpLanes, narrow},
		{&k.verifyWide, "verify", "verify_wide", abi.WarpLanes, wide},
		{&k.scoreTerms, "terms", "score_terms", abi.TermsThreads, 0},
		{&k.orderTerms, "terms", "order_terms", abi.OrderThreads, 2 * abi.MostOrdered * abi.OrderedHitBytes},
		{&k.scanNarrow, "scan", "scan_narrow", threads, shared + narrow},
		{&k.scanWide, "scan", "scan_wide", threads, shared + wide},
		{&k.hashRows, "hash", "hash_rows", hashing, 0},
		{&k.hashCells, "hash", "hash_cells", hashing, 0},
	}
}

// tileVariants are the variants of the (query, tile) kernel for which a block has enough shared memory.
func (k *loaded) tileVariants(m *modules, limit int) (table []kernelEntry) {
	k.tile = make([]function, 0, len(kernels.MatchVariants)) // which the table points into
	k.tileFiltered = make([]function, 0, len(kernels.MatchVariants))
	for _, v := range kernels.MatchVariants {
		shared := m.number("match", v.Name+"_shared")
		if shared > limit {
			continue
		}
		k.Tile, k.tile = append(k.Tile, plan.TileVariant{Bits: v.Bits, Blocks: v.Blocks}), append(k.tile, function{})
		k.tileFiltered = append(k.tileFiltered, function{})
		threads := m.number("match", v.Name+"_threads")
		table = append(table, kernelEntry{&k.tile[len(k.tile)-1], "match", v.Name, threads, shared},
			kernelEntry{&k.tileFiltered[len(k.tile)-1], "match", v.Filtered, threads, shared})
	}
	return table
}

// slicedVariants are the variants of the shared-decode kernel; none where a block has too little shared memory for any of them.
func (k *loaded) slicedVariants(m *modules, limit int) (table []kernelEntry) {
	if !m.has("sliced_match") {
		return nil
	}
	widths := []int{8, 16, 32}
	k.sliced, k.slicedFiltered = make([]function, len(widths)), make([]function, len(widths))
	for i, planes := range widths {
		name := fmt.Sprintf("sliced_match_%d", planes)
		number := func(of string) int { return m.number("sliced_match", name+of) }
		v := plan.SlicedVariant{Planes: planes, Slots: number("_slots"), Warps: number("_counters"), Decoders: number("_decoders")}
		shared := number("_shared")
		const stage = 128 // bytes of a stage beside its octets
		if v.StageOctets = ((limit-shared)/abi.SlicedStages - stage) / abi.OctetBytes; v.StageOctets < abi.MinStageOctets {
			k.Sliced = nil
			return nil
		}
		k.Sliced = append(k.Sliced, v)
		threads, all := (v.Warps+v.Decoders)*abi.WarpLanes, shared+abi.SlicedStages*(stage+v.StageOctets*abi.OctetBytes)
		table = append(table, kernelEntry{&k.sliced[i], "sliced_match", name, threads, all},
			kernelEntry{&k.slicedFiltered[i], "sliced_match", fmt.Sprintf("sliced_filtered_%d", planes), threads, all})
	}
	return append(table, kernelEntry{&k.slicedPlan, "sliced_plan", "sliced_plan", abi.SlicedPlanThreads, 0})
}

// bound are the kernels of the bound; none where the device has no such matrix product.
func (k *loaded) bound(m *modules, limit int) []kernelEntry {
	if !m.has("bound_match") {
		return nil
	}
	number := func(name string) int { return m.number("bound_match", name) }
	k.boundShared = number("bound_match_shared")
	steps := (limit - k.boundShared) / abi.StepBytes &^ 1
	if number("bound_match_queries") != abi.BoundQueries || steps < 2 {
		return nil
	}
	k.BoundColumns = min(steps*abi.StepColumns, plan.MaxColumns)
	plans := m.number("bound_plan", "bound_plan_threads")
	return []kernelEntry{
		{&k.boundCodes, "bound_plan", "bound_codes", plans, 0},
		{&k.boundPlan, "bound_plan", "bound_plan", plans, 0},
		{&k.boundMatch, "bound_match", "bound_match", number("bound_match_threads"), k.boundShared + steps*abi.StepBytes},
		{&k.boundCount, "bound_match", "bound_recount", number("bound_recount_threads"), 0},
		{&k.boundFiltered, "bound_filtered", "bound_recount_filtered", number("bound_recount_threads"), 0},
	}
}

// modules are the loaded modules, and the first error of reading them: after it whatever is read is zero.
type modules struct {
	by  map[string]module
	err error
}

func (m *modules) has(name string) bool {
	_, ok := m.by[name]
	return ok
}

// number reads a constant of a module.
func (m *modules) number(module, name string) int {
	if m.err != nil {
		return 0
	}
	value, err := m.by[module].constant(name)
	m.err = deviceError("reading "+name, err)
	return int(value)
}

// kernel finds a kernel.
func (m *modules) kernel(e kernelEntry) function {
	if m.err != nil {
		return function{}
	}
	f, err := m.by[e.module].function(e.name, e.threads, e.shared)
	m.err = deviceError("finding kernel "+e.name, err)
	return f
}

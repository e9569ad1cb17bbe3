//go:build cuda

package cuda

import "unsafe"

// Mirrors of the structs of kernels/batch.cuh and kernels/load.cu, which explain the fields. The sizes are checked on
// both sides.

type deviceSection struct {
	words, starts, ids uint32 // in units
	lists              uint32
}

type deviceSpan struct {
	attribute, lo, hi, weight uint32
}

type deviceQuery struct {
	first, spans          uint32
	k, bound              uint32
	entries, out          uint64
	planeSpans, rareSpans uint32
}

type deviceState struct {
	threshold, stored uint32
	postings, passed  uint64
	kept, _           uint32
}

type deviceBatch struct {
	data, sections, queries, spans, states, entries, out devicePointer
	planes, rare                                         devicePointer
	attributes, objects                                  uint32
	firstQuery, firstTile, residentTile, base            uint32
	roundSpans, planesOfGroup                            uint32
}

type deviceSurvey struct {
	data, sections, repeats devicePointer
	attributes, _           uint32
}

// Of kernels/sliced.cuh.

type deviceSlicedAttribute struct {
	codeOf                     devicePointer
	plane, planes, codes, unit uint32
}

type devicePlan struct {
	queries, spans, attributes, unitAttribute          devicePointer
	programs, lists, lengths, records, biases          devicePointer
	chunks, tasks, rows, counts, units                 devicePointer
	firstQuery, queriesOfBatch, perBlock               uint32
	warps, slots, decoders                             uint32
	unitsOfKind, stageOctets                           uint32
	maxRows, maxChunks, maxTrees, maxTasks, maxList, _ uint32
}

type deviceSliced struct {
	planes, programs, lists, lengths, records, biases devicePointer
	queries, states, entries, waves, tickets          devicePointer
	planesOfGroup, residentGroup                      uint32
	firstGroup, groups, firstWave, waveGroups, base   uint32
	firstQuery, queriesOfBatch, perBlock              uint32
	stages, stageOctets                               uint32
	maxTrees, maxList                                 uint32
}

// devicePointer is an address in the device's memory.
type devicePointer uint64

const (
	sectionBytes = 16
	spanBytes    = 16
	queryBytes   = 40
	stateBytes   = 32
	unitBytes    = 16 // of deviceSection

	slicedAttributeBytes = 24
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSection{})-sectionBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSpan{})-spanBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceQuery{})-queryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceState{})-stateBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceBatch{})-104]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSurvey{})-32]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSlicedAttribute{})-slicedAttributeBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(devicePlan{})-168]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSliced{})-144]
)

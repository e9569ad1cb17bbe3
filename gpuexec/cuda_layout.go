//go:build cuda

package gpuexec

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
	first, spans uint32
	k, bound     uint32
	entries, out uint64
}

type deviceState struct {
	threshold, stored uint32
	postings, passed  uint64
	kept, _           uint32
}

type deviceBatch struct {
	data, sections, queries, spans, states, entries, out devicePointer
	attributes, objects                                  uint32
	firstQuery, firstTile, residentTile, base            uint32
	roundSpans, _                                        uint32
}

type deviceSurvey struct {
	data, sections, repeats devicePointer
	attributes, _           uint32
}

// devicePointer is an address in the device's memory.
type devicePointer uint64

const (
	sectionBytes = 16
	spanBytes    = 16
	queryBytes   = 32
	stateBytes   = 32
	entryBytes   = 8
	unitBytes    = 16 // of deviceSection
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSection{})-sectionBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSpan{})-spanBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceQuery{})-queryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceState{})-stateBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceBatch{})-88]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceSurvey{})-32]
)

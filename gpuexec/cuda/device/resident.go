//go:build cuda

package device

import (
	"errors"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
)

// resident is an index in the memory of a device: what its placement says lies where, and these are the addresses. An index for
// which the memory does not suffice stays on the host but for tables and rare keywords, and is streamed (partStream).
type resident struct {
	*plan.Index
	*partStream // nil unless the parts are streamed
	kernels     *loaded
	own         owned // all that is here

	data     abi.Pointer // of the parts, unless they are streamed
	sections abi.Pointer
	rare     abi.Pointer
	tables   abi.Pointer // of the planes
	forms    abi.Pointer
	codes    abi.Pointer
	texts    abi.Pointer
	terms    []abi.Pointer // by Originals.Terms
	numbers  abi.Pointer
	hosts    []pinned // by part of a streamed index: what is copied, as the kernels want it
}

// dataOf is where the kernels find a part.
func (r *resident) dataOf(i int) abi.Pointer {
	if r.partStream != nil {
		return r.buffers[i%2]
	}
	return r.data + abi.Pointer(r.Parts[i].At*abi.UnitBytes)
}

// starts is where it is said where each text starts.
func (r *resident) starts() abi.Pointer { return r.texts + abi.Pointer(r.Texts.Units*abi.UnitBytes) }

// free gives back what there is, also after a load that failed.
func (r *resident) free() error {
	// What the stream of parts copies is freed after it.
	return errors.Join(r.partStream.close(), deviceError("freeing an index", r.own.close()))
}

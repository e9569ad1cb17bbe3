//go:build cuda

package device

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A placement is what of an index, or of a range of its tiles, comes onto a device.
//
// What an index must have comes first: itself, whole where there is room, else streamed through buffers of bounded size. Forms
// that only make it faster take what is left, in this order: postings of what is sliced, texts, codes. They leave room for
// what indexes must have that will be loaded later, because to be streamed costs an index much more than these forms bring.
// They are not given back: for an index that nobody has announced there is what the others have left. Before an announced one
// has no place at all an index is streamed, through buffers as small as need be.
//
// Loads at the same time are placed one after the other, each in the memory that those before it have left.
type placement struct {
	layout *residentLayout
	texts  *textsLayout // nil: on the host
	codes  *codesLayout // nil: none
}

func (p *placement) deviceBytes() int64 {
	return p.layout.deviceBytes() + p.texts.deviceBytes() + p.codes.deviceBytes()
}

// place takes memory for an index, and for its texts if they are given and there is room.
func (e *cudaEngine) place(own tiledIndex, texts *textsLayout, later []tiledIndex) (p placement, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	limits := e.limits
	limits.memory, limits.planesOnly = e.free, true
	for _, next := range later {
		limits.memory -= leastBytes(next)
	}
	if p.layout, err = layoutResident(own.Index, own.Tiles, limits); err != nil {
		limits.memory = e.free // not enough for all
		if p.layout, err = layoutResident(own.Index, own.Tiles, limits); err != nil {
			return p, err
		}
	}
	left := e.free - p.layout.deviceBytes() // for what only makes the index faster
	for _, next := range later {
		// What will not fit then leaves no room now either.
		if layout, err := layoutResident(next.Index, next.Tiles, residentLimits{memory: left, planesOnly: true}); err == nil {
			left -= layout.deviceBytes()
		}
	}
	if p.layout.sliced != nil && !p.layout.streamed && !e.limits.planesOnly {
		limits.memory, limits.planesOnly = p.layout.deviceBytes()+left, false
		bare := p.layout
		if p.layout, err = layoutResident(own.Index, own.Tiles, limits); err != nil {
			return p, err
		}
		left -= p.layout.deviceBytes() - bare.deviceBytes()
	}
	if bytes := texts.deviceBytes(); !p.layout.streamed && bytes <= left {
		p.texts = texts
		left -= bytes
	}
	codes := newCodesLayout(own.Index, p.layout, e.kernels.filter.columns, e.limits.narrow)
	if codes.deviceBytes() <= left {
		p.codes = codes
	}
	return p, e.take("placing the index", p.deviceBytes())
}

// leastBytes is the memory without which an index has no place: of all that it must have, or of tables and two buffers for a
// tile. It is 0 of one that no memory is enough for.
func leastBytes(x tiledIndex) int64 {
	l, err := layoutResident(x.Index, x.Tiles, residentLimits{memory: math.MaxInt64, planesOnly: true})
	if err != nil {
		return 0
	}
	tile := int64(0)
	for _, units := range l.measure(x.Index) {
		tile = max(tile, units*abi.UnitBytes)
	}
	return min(l.deviceBytes(), l.fixedBytes()+2*tile)
}

// reserve takes bytes of the memory budget.
func (e *cudaEngine) reserve(op string, bytes int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.take(op, bytes)
}

// take is reserve for who holds the lock.
func (e *cudaEngine) take(op string, bytes int64) error {
	if bytes > e.free {
		return &gpuexec.DeviceError{Op: op, OutOfMemory: true, Err: fmt.Errorf("it needs %d MiB of device memory, %d MiB are free",
			bytes>>20, e.free>>20)}
	}
	e.free -= bytes
	return nil
}

func (e *cudaEngine) release(bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.free += bytes
}

//go:build cuda

package device

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// owned is what its holder has made with the driver: streams, events and memory. What cannot be made is zero, and so is all that
// would come after it; err says why. close is right after that too.
type owned struct {
	err  error
	back []func() error // gives each back, in the order in which they were made
}

func (o *owned) stream(p priority) cu.Stream {
	return own(o, func() (cu.Stream, error) { return makeStream(p) },
		func(s cu.Stream) error { return errors.Join(s.Synchronize(), s.Destroy()) })
}

func (o *owned) event(flags cu.EventFlags) cu.Event {
	return own(o, func() (cu.Event, error) { return cu.MakeEvent(flags) }, func(e cu.Event) error { return cu.DestroyEvent(&e) })
}

// memory is that of the device, 0 where none is wanted.
func (o *owned) memory(bytes int64) abi.Pointer {
	if bytes == 0 {
		return 0
	}
	return own(o, func() (abi.Pointer, error) { return allocDevice(bytes) }, freeDevice)
}

func (o *owned) pinned(bytes int64) pinned {
	return own(o, func() (pinned, error) { return allocPinned(bytes) }, pinned.free)
}

func own[T any](o *owned, made func() (T, error), back func(T) error) (v T) {
	if o.err != nil {
		return v
	}
	if v, o.err = made(); o.err == nil {
		o.back = append(o.back, func() error { return back(v) })
	}
	return v
}

// close gives back all there is: a stream, which is made before what it uses, when its work has ended.
func (o *owned) close() error {
	var errs []error
	for _, back := range o.back {
		errs = append(errs, back())
	}
	o.back = nil
	return errors.Join(errs...)
}

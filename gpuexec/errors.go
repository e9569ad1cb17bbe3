package gpuexec

import (
	"errors"
	"fmt"
)

// ErrNoCUDA is wrapped by the error of NewCUDA when no CUDA device can be used: the binary was built without the
// tag cuda, or the machine has no driver, no device, or one that is too old for the kernels.
var ErrNoCUDA = errors.New("no CUDA engine")

// PanicError is the Answer.Err of a plan during whose execution the engine panicked: a fault of the engine or a damaged
// index, not of who asked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the engine failed on this query: %v", e.Value)
}

// DeviceError reports that the device of an engine failed.
type DeviceError struct {
	Op          string // what was being done
	Sticky      bool   // the device stays unusable for this process: restart it
	OutOfMemory bool   // a smaller batch or another index may fit
	Err         error
}

func (e *DeviceError) Error() string {
	advice := ""
	switch {
	case e.Sticky:
		advice = " (the device is unusable for this process: restart it)"
	case e.OutOfMemory:
		advice = " (out of device memory: use smaller batches or a device with more memory)"
	}
	return fmt.Sprintf("%s: %v%s", e.Op, e.Err, advice)
}

func (e *DeviceError) Unwrap() error { return e.Err }

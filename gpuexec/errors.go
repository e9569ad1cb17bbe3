package gpuexec

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrNoCUDA is wrapped by the error of NewCUDA when no CUDA device can be used: the binary was built without the
// tag cuda, or the machine has no driver, no device, or one that is too old for the kernels.
var ErrNoCUDA = errors.New("no CUDA engine")

// PlanError is the Answer.Err of a plan that the index cannot execute. It is the fault of who asked: bad_request.
type PlanError struct {
	Reason string
}

func (e *PlanError) Error() string { return e.Reason }

func planErrorf(format string, args ...any) error {
	return &PlanError{Reason: fmt.Sprintf(format, args...)}
}

// PanicError is the Answer.Err of a plan during whose execution the engine panicked: a fault of the engine or a damaged
// index, not of who asked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the engine failed on this query: %v", e.Value)
}

// protect runs work and turns a panic into an error, also that of a read of an index's mapping that fails: the file was cut off, or
// its medium fails (index.Index.Faulted). Without that such a read would end the process.
func protect(work func()) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return catch(work)
}

// catch is protect within protect, where its 4 ns count.
func catch(work func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	work()
	return nil
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

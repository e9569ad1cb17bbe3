//go:build cuda

package device

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
)

// driverError is a result of the driver.
type driverError C.int

func (e driverError) Error() string {
	name, text := C.GoString(C.geniemq_error_name(C.CUresult(e))), C.GoString(C.geniemq_error_text(C.CUresult(e)))
	if name == "" {
		return fmt.Sprintf("the driver's error %d", int(e))
	}
	return fmt.Sprintf("%s (%s)", text, name)
}

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return driverError(r)
}

// Results that the headers of CUDA 12 do not name.
const (
	errorContained        = 226
	errorTensorMemoryLeak = 721
)

// stickyResults are those after which the context is lost, and with it everything on the device, so that only a new process
// recovers: those of which the driver's documentation says so, and beside them uncorrectable errors of memory and links, a
// driver that shuts down, and the unknown error, which is what a device gives that fell off the bus.
var stickyResults = []int64{
	C.CUDA_ERROR_DEINITIALIZED, C.CUDA_ERROR_ECC_UNCORRECTABLE, C.CUDA_ERROR_NVLINK_UNCORRECTABLE, errorContained,
	C.CUDA_ERROR_ILLEGAL_ADDRESS, C.CUDA_ERROR_LAUNCH_TIMEOUT, C.CUDA_ERROR_CONTEXT_IS_DESTROYED, C.CUDA_ERROR_ASSERT,
	C.CUDA_ERROR_HARDWARE_STACK_ERROR, C.CUDA_ERROR_ILLEGAL_INSTRUCTION, C.CUDA_ERROR_MISALIGNED_ADDRESS,
	C.CUDA_ERROR_INVALID_ADDRESS_SPACE, C.CUDA_ERROR_INVALID_PC, C.CUDA_ERROR_LAUNCH_FAILED, errorTensorMemoryLeak,
	C.CUDA_ERROR_MPS_CLIENT_TERMINATED, C.CUDA_ERROR_EXTERNAL_DEVICE, C.CUDA_ERROR_UNKNOWN,
}

// imageResults say that the device or the driver cannot run the kernels, most often because it is too old for them. The
// last is also what driver.c returns for functions that the driver lacks.
var imageResults = []int64{
	C.CUDA_ERROR_INVALID_IMAGE, C.CUDA_ERROR_NO_BINARY_FOR_GPU, C.CUDA_ERROR_INVALID_PTX, C.CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
	C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION, C.CUDA_ERROR_JIT_COMPILATION_DISABLED, C.CUDA_ERROR_INVALID_SOURCE,
	C.CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, C.CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, C.CUDA_ERROR_NOT_SUPPORTED,
}

// deviceError makes the error of an operation from results of the shim or errors of cu, also wrapped or joined ones; nils stay
// nil. It is sticky when any of them is.
func deviceError(op string, errs ...error) error {
	for i, err := range errs {
		if number, ok := numberOf(err); ok {
			errs[i] = driverError(number) // what cu says of it are names like IllegalAddress
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	if len(errs) == 1 {
		err = errs[0]
	}
	e := &gpuexec.DeviceError{Op: op, Err: err}
	walk(err, func(err error) {
		if of, ok := err.(*gpuexec.DeviceError); ok {
			e.Sticky, e.OutOfMemory = e.Sticky || of.Sticky, e.OutOfMemory || of.OutOfMemory
		}
		number, _ := numberOf(err)
		e.Sticky = e.Sticky || slices.Contains(stickyResults, number)
		e.OutOfMemory = e.OutOfMemory || number == C.CUDA_ERROR_OUT_OF_MEMORY
	})
	return e
}

// imageError is the error of loading the kernels, which wraps gpuexec.ErrNoCUDA where it says that they cannot run here.
func imageError(device string, err error) error {
	cannot := false
	walk(err, func(err error) {
		number, _ := numberOf(err)
		cannot = cannot || slices.Contains(imageResults, number)
	})
	if !cannot {
		return err
	}
	return fmt.Errorf("%w: the kernels cannot be loaded on %s; they need compute capability 8.0 and driver 580, or later ones: %w",
		gpuexec.ErrNoCUDA, device, err)
}

// numberOf is the driver's number in an error, itself and not what it wraps.
func numberOf(err error) (number int64, ok bool) {
	if own, ok := err.(driverError); ok {
		return int64(own), true
	}
	return as(err, cu.Success)
}

// as is the number in an error of the type of another one: that of cu is not exported.
func as[T interface {
	error
	~int
}](err error, _ T) (int64, bool) {
	number, ok := err.(T)
	return int64(number), ok
}

// walk visits an error and all that it wraps.
func walk(err error, visit func(error)) {
	if err == nil {
		return
	}
	visit(err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		walk(err.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, e := range err.Unwrap() {
			walk(e, visit)
		}
	}
}

//go:build cuda

package device

// #include <stdlib.h>
// #include "shim.h"
// #cgo LDFLAGS: -ldl
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// What of the driver is not taken from gorgonia.org/cu: launches, memory and modules; see shim.h. All functions must
// be called on a thread to which a context is bound (binding).

// driverStatus returns an error that wraps ErrNoCUDA unless there is a driver with a device.
func driverStatus() error {
	var why *C.char
	switch status := C.geniemq_driver_status(&why); {
	case why != nil:
		return fmt.Errorf("%w: the NVIDIA driver is not installed or not visible here (%s)", gpuexec.ErrNoCUDA, C.GoString(why))
	case status == C.CUDA_ERROR_NO_DEVICE:
		return fmt.Errorf("%w: the NVIDIA driver sees no device", gpuexec.ErrNoCUDA)
	case status != C.CUDA_SUCCESS:
		return fmt.Errorf("%w: the NVIDIA driver does not start: %w", gpuexec.ErrNoCUDA, driverError(status))
	}
	return nil
}

// allocDevice returns bytes of device memory, at least 256-byte aligned.
func allocDevice(bytes int64) (abi.Pointer, error) {
	var p C.uint64_t
	err := result(C.geniemq_device_alloc(&p, C.size_t(bytes)))
	return abi.Pointer(p), err
}

func freeDevice(p abi.Pointer) error { return result(C.geniemq_device_free(C.uint64_t(p))) }

// priority says whose blocks the device takes first when several streams have some that wait.
type priority int

const (
	urgent  priority = C.GENIEMQ_URGENT  // of batches
	patient priority = C.GENIEMQ_PATIENT // of loading
)

// makeStream makes a stream that waits for no other.
func makeStream(p priority) (stream cu.Stream, err error) {
	err = result(C.geniemq_stream((*C.CUstream)(unsafe.Pointer(&stream)), C.int(p)))
	return stream, err
}

// pinned is host memory that the device copies from and to at full speed, and asynchronously. The garbage collector
// does not know it.
type pinned []byte

func allocPinned(bytes int64) (pinned, error) {
	var p unsafe.Pointer
	if err := result(C.geniemq_host_alloc(&p, C.size_t(bytes))); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func (p pinned) free() error {
	if p == nil {
		return nil
	}
	return result(C.geniemq_host_free(unsafe.Pointer(unsafe.SliceData(p))))
}

type module struct{ handle C.CUmodule }

func loadModule(image []byte) (module, error) {
	var m module
	data := C.CBytes(image) // the driver reads the length from the image
	defer C.free(data)
	err := result(C.geniemq_load(&m.handle, data))
	return m, err
}

// constant reads a uint32 of the module.
func (m module) constant(name string) (uint32, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var value C.uint32_t
	err := result(C.geniemq_constant(m.handle, cname, &value))
	return uint32(value), err
}

// function is a kernel with the launch parameters that do not change.
type function struct {
	handle  C.CUfunction
	threads int
	shared  int // dynamic shared memory in bytes
}

func (m module) function(name string, threads, shared int) (function, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	f := function{threads: threads, shared: shared}
	if err := result(C.geniemq_function(&f.handle, m.handle, cname)); err != nil {
		return f, err
	}
	if shared > 48<<10 {
		return f, result(C.geniemq_allow_shared(f.handle, C.int(shared)))
	}
	return f, nil
}

// steps is a list of device operations, recorded first and put on a stream by one call into C.
type steps []C.geniemq_step

// launch adds a kernel with a grid of x times y blocks; argument is the kernel's one parameter, a struct of device
// pointers and numbers.
func launch[T any](s *steps, f function, x, y int, argument *T) {
	step := C.geniemq_step{
		kind: C.GENIEMQ_LAUNCH, handle: C.uint64_t(uintptr(unsafe.Pointer(f.handle))),
		threads: C.uint32_t(f.threads), shared: C.uint32_t(f.shared), x: C.uint32_t(x), y: C.uint32_t(y),
	}
	if unsafe.Sizeof(*argument) > unsafe.Sizeof(step.arguments) {
		panic(fmt.Sprintf("a kernel's argument of %d bytes; a step has %d", unsafe.Sizeof(*argument), unsafe.Sizeof(step.arguments)))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&step.arguments)), unsafe.Sizeof(step.arguments)),
		unsafe.Slice((*byte)(unsafe.Pointer(argument)), unsafe.Sizeof(*argument)))
	*s = append(*s, step)
}

func (s *steps) copyIn(to abi.Pointer, from pinned) {
	*s = append(*s, C.geniemq_step{
		kind: C.GENIEMQ_COPY_IN, device: C.uint64_t(to), bytes: C.uint64_t(len(from)),
		host: C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(from)))),
	})
}

func (s *steps) copyOut(to pinned, from abi.Pointer) {
	*s = append(*s, C.geniemq_step{
		kind: C.GENIEMQ_COPY_OUT, device: C.uint64_t(from), bytes: C.uint64_t(len(to)),
		host: C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(to)))),
	})
}

// Fill sets bytes of the device to zero.
func (s *steps) Fill(to abi.Pointer, bytes int64) {
	*s = append(*s, C.geniemq_step{kind: C.GENIEMQ_FILL, device: C.uint64_t(to), bytes: C.uint64_t(bytes)})
}

// wait makes what follows on the stream wait for an event.
func (s *steps) wait(e cu.Event) {
	*s = append(*s, C.geniemq_step{kind: C.GENIEMQ_WAIT, handle: C.uint64_t(uintptr(unsafe.Pointer(eventHandle(e))))})
}

// on puts the steps from the first on onto a stream of their own.
func (s steps) on(stream cu.Stream, first int) {
	for i := first; i < len(s); i++ {
		s[i].stream = C.uint64_t(uintptr(unsafe.Pointer(streamHandle(stream))))
	}
}

func (s *steps) record(e cu.Event) {
	*s = append(*s, C.geniemq_step{kind: C.GENIEMQ_RECORD, handle: C.uint64_t(uintptr(unsafe.Pointer(eventHandle(e))))})
}

// submit puts the steps on a stream.
func (s steps) submit(stream cu.Stream) error {
	if len(s) == 0 {
		return nil
	}
	return result(C.geniemq_submit(streamHandle(stream), &s[0], C.int(len(s))))
}

// run puts the steps on a stream and waits for their end.
func (s steps) run(stream cu.Stream, done cu.Event) error {
	if len(s) == 0 {
		return nil
	}
	return result(C.geniemq_run(streamHandle(stream), eventHandle(done), &s[0], C.int(len(s))))
}

// wait waits for an event; the thread sleeps.
func wait(e cu.Event) error { return result(C.geniemq_wait(eventHandle(e))) }

func streamHandle(s cu.Stream) C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }

// A cu.Event is the driver's handle and nothing else.
func eventHandle(e cu.Event) C.CUevent { return *(*C.CUevent)(unsafe.Pointer(&e)) }

var _ = [1]struct{}{}[unsafe.Sizeof(cu.Event{})-unsafe.Sizeof(uintptr(0))]
var _ = [1]struct{}{}[unsafe.Sizeof(cu.Stream{})-unsafe.Sizeof(uintptr(0))]

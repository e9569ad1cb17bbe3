//go:build cuda

package device

import (
	"runtime"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/run"
)

// A binding is a device's context, to which an OS thread is bound while something is done on the device. The driver keeps the current context of each
// thread, and Go moves goroutines between threads. So whoever does something stays on the thread that it has, and binds it anew each time. A thread of
// one's own would have to be woken for each batch, and would have to wake whoever waits for it: a lone query took the engine 1.6 times as long.
type binding cu.CUContext

// do executes work on a thread that is bound to the context.
func (b binding) do(work func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(cu.CUContext(b)); err != nil {
		return deviceError("binding the device to a thread", err)
	}
	if panicked := run.Protect(func() { err = work() }); panicked != nil {
		return panicked
	}
	return err
}

//go:build cuda

package device

import (
	"runtime"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/run"
)

// A binding is a device's context, to which an OS thread is bound while something is done on the device. The driver keeps the current context of each
// thread, and Go moves goroutines between threads. So whoever does something stays on the thread that it has, and binds it anew each time, which takes a
// tenth of a microsecond. A thread of one's own would have to be woken for each batch, and its end would have to wake whoever waits for it: more than
// half of what a lone query waits for beside the kernels.
type binding cu.CUContext

// do executes work on a thread that is bound to the context. It is not to be called by work.
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

//go:build cuda

package device

import (
	"runtime"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec/run"
)

// A thread is an OS thread to which a device's context is bound. The driver keeps the current context a thread,
// and Go moves goroutines between threads, so whoever owns device objects does all its work on a thread of its own.
type thread struct {
	work chan func()
	done chan struct{}
}

// startThread starts a thread for a context.
func startThread(context cu.CUContext) (*thread, error) {
	t := &thread{work: make(chan func()), done: make(chan struct{})}
	bound := make(chan error)
	go func() {
		defer close(t.done)
		// Never unlocked: the thread ends with the goroutine, and the binding with it.
		runtime.LockOSThread()
		bound <- cu.SetCurrentContext(context)
		for work := range t.work {
			work()
		}
	}()
	if err := <-bound; err != nil {
		t.stop()
		return nil, deviceError("binding the device to a thread", err)
	}
	return t, nil
}

// do executes work on the thread and waits for it.
func (t *thread) do(work func() error) (err error) {
	done := make(chan struct{})
	t.work <- func() {
		defer close(done)
		if panicked := run.Protect(func() { err = work() }); panicked != nil {
			err = panicked
		}
	}
	<-done
	return err
}

// stop ends the thread; nothing may be done on it any more.
func (t *thread) stop() {
	close(t.work)
	<-t.done
}

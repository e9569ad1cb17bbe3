package run

import (
	"runtime/debug"

	"github.com/geniemq/geniemq/gpuexec"
)

// Protect runs work and turns a panic into an error, also that of a read of an index's mapping that fails: the file was cut off, or
// its medium fails (index.Index.Faulted). Without that such a read would end the process.
func Protect(work func()) error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return Catch(work)
}

// Catch is Protect within Protect, where its 4 ns count.
func Catch(work func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &gpuexec.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	work()
	return nil
}

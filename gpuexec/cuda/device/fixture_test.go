//go:build cuda

package device

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
)

// loadHost makes an index resident on a CPU engine, to compare with.
func loadHost(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return enginetest.LoadOn(t, cpu.New(opts), x)
}

package enginetest

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
)

// loadCPU makes an index resident on a CPU engine.
func loadCPU(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return LoadOn(t, cpu.New(opts), x)
}

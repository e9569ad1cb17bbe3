package gpuexec

import (
	"testing"

	"github.com/geniemq/geniemq/index"
)

// loadCPU makes an index resident on a CPU engine.
func loadCPU(t testing.TB, x *index.Index, opts CPUOptions) Searcher {
	t.Helper()
	return loadOn(t, NewCPU(opts), x)
}

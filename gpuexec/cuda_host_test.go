//go:build cuda

package gpuexec

import (
	"testing"

	"github.com/geniemq/geniemq/index"
)

// loadHost makes an index resident on a CPU engine, to compare with.
func loadHost(t testing.TB, x *index.Index, opts CPUOptions) Searcher {
	t.Helper()
	return loadOn(t, NewCPU(opts), x)
}

//go:build !cuda

package gpuexec

import (
	"errors"
	"strings"
	"testing"
)

// TestWithoutCUDA: what a binary without the tag cuda says.
func TestWithoutCUDA(t *testing.T) {
	if _, err := Open(CUDA, Options{}); !errors.Is(err, ErrNoCUDA) || !strings.Contains(err.Error(), "tag cuda") {
		t.Errorf("cuda: %v", err)
	}
	for _, kind := range []string{Auto, ""} {
		e, err := Open(kind, Options{})
		if err != nil || e.Info().Kind != CPU || !strings.Contains(e.Info().Note, "tag cuda") {
			t.Errorf("%q: %+v %v", kind, e.Info(), err)
		}
	}
}

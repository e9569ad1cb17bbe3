//go:build cuda

package device

import (
	"bytes"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// TestUploadAfterFailure: what a load that failed has left in a buffer does not go to the next one's memory.
func TestUploadAfterFailure(t *testing.T) {
	u := &uploader{buffers: [2]pinned{make(pinned, uploadBytes), make(pinned, uploadBytes)}}
	u.begin(abi.UnitBytes)
	u.write(bytes.Repeat([]byte{1}, 100))
	u.begin(2 * abi.UnitBytes)
	u.write([]byte{2})
	if got := u.buffers[0][:u.filled]; !bytes.Equal(got, append([]byte{2}, make([]byte, abi.UnitBytes-1)...)) {
		t.Errorf("the buffer begins with %v", got)
	}
}

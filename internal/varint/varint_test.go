package varint

import (
	"encoding/binary"
	"testing"
)

// TestReader reads what encoding/binary writes, and nothing that says the same otherwise or more than it may.
func TestReader(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 1 << 20, 1<<31 - 1} {
		data := append(binary.AppendUvarint(nil, uint64(n)), "x"...)
		r := Reader{Data: string(data)}
		if got := r.Number(n); got != n || r.Failed || r.At != len(data)-1 {
			t.Errorf("%d is read as %d, up to %d: %v", n, got, r.At, r.Failed)
		}
		r = Reader{Data: string(data)}
		if r.Number(n - 1); !r.Failed {
			t.Errorf("%d is read where at most %d is allowed", n, n-1)
		}
	}
	for _, data := range []string{"", "\x80", "\x80\x00", "\xff\xff\xff\xff\xff\x01"} {
		r := Reader{Data: data}
		if r.Number(1 << 30); !r.Failed {
			t.Errorf("%q is read as a number", data)
		}
	}
	r := Reader{Data: "\x03abcd"}
	if got := r.Text(3); got != "abc" || r.Failed || r.At != 4 {
		t.Errorf("a text is read as %q, up to %d: %v", got, r.At, r.Failed)
	}
	if r = (Reader{Data: "\x05abcd"}); r.Text(9) != "" || !r.Failed {
		t.Error("a text is read that ends after the data")
	}
}

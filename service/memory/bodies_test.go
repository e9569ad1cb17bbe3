package memory

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// What is given out is large enough, and what comes back is found again by its size.
func TestBodyMemory(t *testing.T) {
	var bodies Bodies
	for _, size := range []int{0, 1, 1 << 10, 1 << 15, 1<<15 + 1, 700_000, 1 << 24, 1<<24 + 1, 1 << 25} {
		for range 3 {
			b := bodies.Make(size)
			if len(b) != 0 || cap(b) < size {
				t.Fatalf("%d bytes wanted, got %d of %d", size, len(b), cap(b))
			}
			bodies.Keep(append(b, "used"...))
		}
	}
	bodies.Keep(make([]byte, 0, 40_000)) // not of a class: one that had to grow
	if b := bodies.Make(39_000); cap(b) < 39_000 {
		t.Fatalf("39000 bytes wanted, got %d", cap(b))
	}
}

// Nobody is given what somebody else has, as a whole or in part, whatever came back: each who has a body writes to all of it, and finds it as it was.
func TestBodiesHaveOneOwner(t *testing.T) {
	rng := seeded.Rand(t)
	type owned struct {
		body []byte
		mark byte
	}
	var bodies Bodies
	var out []owned
	given := map[*byte]bool{}
	for i := range 20_000 {
		if len(out) < 40 && rng.IntN(2) == 0 {
			size := rng.IntN(1 + 1<<rng.IntN(14))
			b := bodies.Make(size)
			if cap(b) == 0 { // of which nobody has anything
				continue
			}
			if most := max(1<<minBodyClass, 2*size); len(b) != 0 || cap(b) < size || cap(b) > most {
				t.Fatalf("%d bytes wanted, got %d of %d", size, len(b), cap(b))
			}
			o := owned{b[:cap(b)], byte(i)}
			if at := unsafe.SliceData(o.body); given[at] {
				t.Fatal("a body is given to two")
			} else {
				given[at] = true
			}
			for j := range o.body {
				o.body[j] = o.mark
			}
			out = append(out, o)
			continue
		}
		if len(out) == 0 {
			continue
		}
		n := rng.IntN(len(out))
		o := out[n]
		if count := bytes.Count(o.body, []byte{o.mark}); count != len(o.body) {
			t.Fatalf("%d of %d bytes of a body were written to by somebody else", len(o.body)-count, len(o.body))
		}
		delete(given, unsafe.SliceData(o.body))
		if rng.IntN(4) == 0 { // one that had to grow in place of it, of any size
			o.body = make([]byte, 1+rng.IntN(5000))
		}
		bodies.Keep(o.body[:rng.IntN(len(o.body))])
		out[n] = out[len(out)-1]
		out = out[:len(out)-1]
	}
}

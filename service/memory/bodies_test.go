package memory

import "testing"

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

package tree

import "testing"

// What is struck out is what lies outside of the cells, whatever they are and however many objects a leaf has; nobody comes back.
func TestKeep(t *testing.T) {
	for first := range 256 {
		for last := -1; last < 256; last++ {
			n := 256 + (first+last)&7
			column, alive := make([]byte, n), make([]byte, n)
			for i := range column {
				column[i], alive[i] = byte(i*37), byte(i/3)&1
			}
			keep(alive, column, first, last)
			for i, b := range column {
				want := byte(i/3) & 1
				if int(b) < first || int(b) > last {
					want = 0
				}
				if alive[i] != want {
					t.Fatalf("cell %d of %d to %d: %d, and before %d", b, first, last, alive[i], i/3&1)
				}
			}
		}
	}
}

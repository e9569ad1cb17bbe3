package plan

import "testing"

// TestLongestRun: repeats do not go on from list to list.
func TestLongestRun(t *testing.T) {
	for _, c := range []struct {
		starts, ids []uint32
		want        uint32
	}{
		{[]uint32{0}, nil, 1}, {[]uint32{0, 0, 1, 2}, []uint32{5, 5}, 1}, {[]uint32{0, 3, 5}, []uint32{1, 5, 5, 5, 5}, 2},
		{[]uint32{0, 1, 5}, []uint32{1, 1, 1, 1, 2}, 3},
	} {
		if got := LongestRun(c.starts, c.ids); got != c.want {
			t.Errorf("%v of %v: %d, want %d", c.ids, c.starts, got, c.want)
		}
	}
}

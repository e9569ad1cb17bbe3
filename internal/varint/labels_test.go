package varint

import "testing"

// TestLabels: labels have the numbers of when they were first seen, and those that were read are looked up like those that were added.
func TestLabels(t *testing.T) {
	var l Labels
	for range 2 { // in the memory of the first time
		for i, want := range []uint32{0, 1, 0, 2} {
			if got := l.Add([]string{"b", "a", "b", ""}[i]); got != want {
				t.Errorf("label %d has number %d, want %d", i, got, want)
			}
		}
		l.Reset()
		if _, ok := l.Of("b"); ok {
			t.Error("a label is there that was forgotten")
		}
		l.Names = append(l.Names, "x", "y")
		if err := l.Index(); err != nil {
			t.Error(err)
		}
		if id, ok := l.Of("y"); !ok || id != 1 || len(l.Names) != 2 {
			t.Errorf("%q: y has number %d, %v", l.Names, id, ok)
		}
		l.Reset()
	}
	for _, names := range [][]string{{"x", "y", "x"}, {"\xff"}} {
		if l = (Labels{Names: names}); l.Index() == nil {
			t.Errorf("%q are taken for labels", names)
		}
	}
}

package pool

import "testing"

// What is put back is what others get, or nobody: a pool never makes two of one.
func TestPool(t *testing.T) {
	var p Of[[]int]
	a, b := p.Get(), p.Get()
	if a == b || *a != nil || *b != nil {
		t.Fatal("a pool that is empty does not make new zero values")
	}
	*a = append(*a, 1)
	p.Put(a)
	c, d := p.Get(), p.Get()
	if c == d || c != a && *c != nil || d != a && *d != nil {
		t.Errorf("one was put back, and %p and %p are had of it", c, d)
	}
}

// Package bell wakes a goroutine.
package bell

// Bell wakes one that waits to receive from it. Rings that nobody was waiting for are one ring, which the next to wait hears at once:
// so whoever changes something and rings, and whoever hears it and looks at everything, miss nothing.
type Bell chan struct{}

// New returns a bell that has not rung.
func New() Bell { return make(Bell, 1) }

// Ring never waits.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

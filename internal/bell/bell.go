// Package bell wakes a goroutine.
package bell

import (
	"context"
	"time"
)

// Sleep returns after a time, or when ctx ends: then it is false.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

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

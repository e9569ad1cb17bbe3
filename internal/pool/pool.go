// Package pool keeps memory that is used again.
package pool

import "sync"

// Of is a [sync.Pool] of one type. Its zero value is ready, and makes zero values. It must not be copied once it is in use.
type Of[T any] struct{ pool sync.Pool }

// Get returns what was put back, or a new one.
func (p *Of[T]) Get() *T {
	if v, ok := p.pool.Get().(*T); ok {
		return v
	}
	return new(T)
}

// Put takes back what nobody uses any longer.
func (p *Of[T]) Put(v *T) { p.pool.Put(v) }

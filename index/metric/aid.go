package metric

import (
	"context"
	"fmt"
)

// Engine is a device that can find the nearest objects of a space by itself, with the same bits as the host.
type Engine interface {
	// Finder lays a space out on the device. nil without an error: the device finds nothing in such spaces. The finder is to be closed before the engine is.
	Finder(ctx context.Context, space *Vectors) (Finder, error)
}

// Finder is a space on a device. One goroutine at a time uses it.
type Finder interface {
	// Find finds the first k objects of the space, in the order of (value, id), for each of some vectors of another space with as many elements: objects says which, nil: all. What
	// it finds for the i-th it tells found, once, in any order and from several goroutines at a time; hits hold until found returns, and there are fewer only where the space
	// has fewer. After an error, which for want of an answer to one vector is that of all, what was told is right and not everything.
	Find(ctx context.Context, from *Vectors, objects []uint32, k int, found func(i int, hits []Hit)) error
	// Close frees what is on the device.
	Close() error
}

// Aid is a device that does a part of what a builder's cores would do: it finds nearest objects. It changes no byte of what is built: whatever it does not do, the cores do. nil is no
// device. One goroutine at a time uses it.
type Aid struct {
	Engine Engine
	// Note is told why the device does not help, once: what has failed is not asked again. nil: nobody wants to know.
	Note func(note string)

	failed bool
}

// Find does what a Finder of the space does, if there is a device that can: done says so. Otherwise the caller is to find all by itself, whatever was told. The error is that of the context.
func (a *Aid) Find(ctx context.Context, space, from *Vectors, objects []uint32, k int, found func(i int, hits []Hit)) (done bool, err error) {
	if a == nil || a.Engine == nil || a.failed {
		return false, nil
	}
	done, err = a.find(ctx, space, from, objects, k, found)
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil {
		return done, nil
	}
	if a.failed = true; a.Note != nil {
		a.Note(fmt.Sprintf("the device finds no nearest vectors for the build, so the cores of this machine do: %v", err))
	}
	return false, nil
}

func (a *Aid) find(ctx context.Context, space, from *Vectors, objects []uint32, k int, found func(i int, hits []Hit)) (done bool, err error) {
	f, err := a.Engine.Finder(ctx, space)
	if f == nil || err != nil {
		return false, err
	}
	defer func() {
		if fault := f.Close(); err == nil {
			err = fault
		}
	}()
	if err := f.Find(ctx, from, objects, k, found); err != nil {
		return false, err
	}
	return true, nil
}

// Parts are the elements as they are stored, row after row: []float32, []sums.Half, []uint8 or []float64 each. nil: objects are in another order than rows.
func (s *Vectors) Parts() []any {
	if s.order != nil {
		return nil
	}
	return s.rows.stored()
}

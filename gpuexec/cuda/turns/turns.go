// Package turns hands out what batches run on: the lanes of an engine.
package turns

import (
	"context"

	"github.com/geniemq/geniemq/gpuexec"
)

// Pool hands out the lanes of an engine.
//
// Batches on streamed indexes take turns, whatever their index: they all wait for one bus, so two at a time would only hold two
// lanes for twice as long. The turn comes before the lane. So they have one lane at most, and the others are left to indexes
// that stay on the device. Background calls (Pace) have half of the lanes at most, and ask for one of these before any other.
// Nobody who has a lane waits for another one or for a turn, so waiting always ends.
type Pool[Lane any] struct {
	Free       chan Lane
	Turn       chan struct{} // full while a batch has the turn
	background chan struct{} // an element for each batch in the background
}

// New makes a pool for so many lanes, which whoever owns it puts into Free.
func New[Lane any](lanes int) Pool[Lane] {
	return Pool[Lane]{Free: make(chan Lane, lanes), Turn: make(chan struct{}, 1), background: make(chan struct{}, max(1, lanes/2))}
}

// With calls work with a lane, once one is free and, for a batch on a streamed index, it is its turn. It gives up waiting when
// ctx ends.
func (p *Pool[Lane]) With(ctx context.Context, streamed bool, work func(l Lane) error) error {
	if gpuexec.PaceOf(ctx).Background {
		select {
		case p.background <- struct{}{}:
			defer func() { <-p.background }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if streamed {
		select {
		case p.Turn <- struct{}{}:
			defer func() { <-p.Turn }()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case l := <-p.Free:
		defer func() { p.Free <- l }()
		return work(l)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

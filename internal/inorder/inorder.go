// Package inorder does work on all cores whose results are wanted in order.
package inorder

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Run passes batches through three stages: fill, by one goroutine, which says with true that there is nothing after; work, by so many
// goroutines at a time; apply, by one, in the order in which they were filled. There are so many batches as room says, each made once: one is
// used again when it has been applied. The first error ends all and is returned; the goroutines have ended then.
func Run[T any](ctx context.Context, workers, room int, made func() T, fill func(T) (last bool, err error), work func(T) error, apply func(T) error) error {
	type job struct {
		batch T
		done  chan error
	}
	group, ctx := errgroup.WithContext(ctx)
	free, todo, ordered := make(chan T, room), make(chan job, room), make(chan job, room)
	for range room {
		free <- made()
	}
	group.Go(func() error {
		defer close(todo)
		defer close(ordered)
		for {
			select {
			case batch := <-free:
				last, err := fill(batch)
				if err != nil {
					return err
				}
				j := job{batch, make(chan error, 1)}
				ordered <- j // has room for all batches, and so has todo
				todo <- j
				if last {
					return nil
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
	for range workers {
		group.Go(func() error {
			for j := range todo {
				if ctx.Err() != nil {
					j.done <- context.Cause(ctx)
					continue
				}
				j.done <- work(j.batch)
			}
			return nil
		})
	}
	group.Go(func() error {
		for j := range ordered {
			select {
			case err := <-j.done:
				if err != nil {
					return err
				}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := apply(j.batch); err != nil {
				return err
			}
			free <- j.batch
		}
		return nil
	})
	return group.Wait()
}

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/metrics"
)

// Swap puts the index in a file in the place of the one that is served under a name, while queries are answered, and returns the
// versions of both. The file is the worker's to read, and stays open. What goes wrong leaves what is served as it is; an error that is
// admin.ErrRefused says that nothing is wrong with the file, but that it cannot take the place, or not now.
func (s *Service) Swap(ctx context.Context, name, file string) (was, is string, err error) {
	if err := s.swappable(); err != nil {
		return "", "", err
	}
	i := slices.IndexFunc(s.indexes, func(x *served) bool { return x.name == name })
	if i < 0 {
		return "", "", fmt.Errorf("%w: this worker does not serve %q", admin.ErrNoSuchIndex, name)
	}
	return s.swap(ctx, s.indexes[i], file)
}

// Refresh swaps each index whose file was replaced by a newer one of the same name. The error joins those of all that failed.
func (s *Service) Refresh(ctx context.Context) error {
	if err := s.swappable(); err != nil {
		return err
	}
	faults := make([]error, len(s.indexes))
	var swaps sync.WaitGroup
	for i, x := range s.indexes {
		replaced, path := x.index.Replaced()
		if !replaced {
			s.log.Info("an index's file is the one that is served", "index", x.name, "file", path)
			continue
		}
		swaps.Go(func() {
			if _, _, err := s.swap(ctx, x, path); err != nil {
				faults[i] = fmt.Errorf("index %s: %w", x.name, err)
			}
		})
	}
	swaps.Wait()
	return errors.Join(faults...)
}

// swappable says why nothing can be swapped now, or nil.
func (s *Service) swappable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopping:
		return generation.ErrEnding
	case !s.running:
		return &generation.RefusedError{Reason: "the worker is starting"}
	}
	return s.err
}

func (s *Service) swap(ctx context.Context, x *served, file string) (was, is string, err error) {
	before, after, err := x.index.Swap(ctx, file)
	outcome := metrics.SwapDone
	var refused *generation.RefusedError
	switch {
	case errors.As(err, &refused):
		outcome = metrics.SwapRefused
		err = fmt.Errorf("%w: %w", admin.ErrRefused, err)
	case err != nil:
		outcome = metrics.SwapFailed
	}
	s.metrics.Swapped(x.name, outcome)
	return before.Version, after.Version, err
}

package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/served"
	"github.com/geniemq/geniemq/wire"
)

// Swap puts the index in a file in the place of the one that is served under a name, while queries are answered, and returns the
// versions of both. The file is the worker's to read, and stays open. What goes wrong leaves what is served as it is; an error that is
// admin.ErrRefused says that nothing is wrong with the file, but that it cannot take the place, or not now.
func (s *Service) Swap(ctx context.Context, name, file string) (was, is string, err error) {
	if err := s.swappable(); err != nil {
		return "", "", err
	}
	x := s.set.Find(name)
	if x == nil {
		return "", "", fmt.Errorf("%w: this worker does not serve %q", admin.ErrNoSuchIndex, name)
	}
	return swap(ctx, x, file)
}

// Refresh swaps each index whose file was replaced by a newer one of the same name. The error joins those of all that failed.
func (s *Service) Refresh(ctx context.Context) error {
	if err := s.swappable(); err != nil {
		return err
	}
	all := s.set.Serving()
	faults := make([]error, len(all))
	var swaps sync.WaitGroup
	for i, x := range all {
		replaced, path := x.Index.Replaced()
		if !replaced {
			s.log.Info("an index's file is the one that is served", "index", x.Name, "file", path)
			continue
		}
		swaps.Go(func() {
			if _, _, err := swap(ctx, x, path); err != nil {
				faults[i] = fmt.Errorf("index %s: %w", x.Name, err)
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

func swap(ctx context.Context, x *served.Entry, file string) (was, is string, err error) {
	was, is, err = x.Swap(ctx, file)
	return was, is, told(err)
}

// told is an error as the admin server tells it: what is refused is told from what is wrong.
func told(err error) error {
	var refused *generation.RefusedError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %w", admin.ErrRefused, err)
	case errors.Is(err, served.ErrNotServed):
		return fmt.Errorf("%w: %w", admin.ErrNoSuchIndex, err)
	}
	return err
}

// Add serves the index in a file beside the others: under a name, or with "" under its own. A file of "nats:" or "nats:name" stands for what was pushed, which
// is followed for as long as it is served. When Add returns, queries are answered. What goes wrong, the end of ctx too, leaves what is served as it is; errors are
// those of Swap. The file is the worker's to read, and stays open.
func (s *Service) Add(ctx context.Context, name, file string) (added, version string, err error) {
	if err := s.swappable(); err != nil {
		return "", "", err
	}
	source := served.Source{Name: name, File: file}
	if pushed, is := (config.IndexSource{Name: name, Path: file}).Pushed(); is {
		if wire.CheckIndexName(pushed) != nil {
			return "", "", fmt.Errorf("%w: %q names no index that was pushed: write INDEX nats: or nats:PUSHED-NAME", admin.ErrRefused, file)
		}
		source.Name = cmp.Or(name, pushed)
		source.Fetch = func(ctx context.Context) (string, func(context.Context), error) {
			file, by, err := s.pushed.Fetch(ctx, pushed, source.Name)
			if errors.Is(err, depot.ErrNothing) {
				err = &generation.RefusedError{Reason: fmt.Sprintf("nothing was pushed of %s: push it first (geniemq push)", pushed)}
			}
			return file, by, err
		}
	}
	x, err := s.set.Add(ctx, source)
	if err != nil {
		return "", "", told(err)
	}
	return x.Name, x.Index.Facts().Version, nil
}

// Remove ends an index while the others are served, and returns its version. What was taken in is answered, or given back when the setting drain-timeout is
// over, as note says: nothing is lost either way. Once it has begun a removal goes on whatever becomes of ctx.
func (s *Service) Remove(ctx context.Context, name string) (version string, note, err error) {
	if err := s.swappable(); err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.DrainTimeout)
	defer cancel()
	version, note, err = s.set.Remove(ctx, name)
	return version, note, told(err)
}

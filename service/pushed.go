package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/wire"
)

// fetchedFolder is where files of pushed indexes go, in the folder of data.
const fetchedFolder = "indexes"

// openPushed fetches what was pushed of the indexes that come from the server, and follows it: each version that takes the place of another is
// fetched and swapped. It waits for the first one. It has a connection of its own, since files are large.
func (s *Service) openPushed(ctx context.Context) error {
	sources := append([]config.IndexSource(nil), s.cfg.Indexes...)
	var store *depot.Depot
	for i, source := range sources {
		name, pushed := source.Pushed()
		if !pushed {
			continue
		}
		if store == nil {
			var err error
			if store, err = s.openDepot(); err != nil {
				return err
			}
		}
		first := make(chan string, 1)
		served := source.Name
		if served == "" {
			served = name
		}
		s.background("versions of "+name, func(ctx context.Context) { s.follow(ctx, store, name, served, first) })
		select {
		case path := <-first:
			sources[i] = config.IndexSource{Name: served, Path: path}
		case <-ctx.Done():
			return fmt.Errorf("waiting for a first version of %s to be pushed (geniemq push): %w", name, ctx.Err())
		}
	}
	s.cfg.Indexes = sources
	return nil
}

func (s *Service) openDepot() (*depot.Depot, error) {
	nc, err := s.connect(s.cfg.NATS, "geniemq indexes")
	if err != nil {
		return nil, err
	}
	s.onStop("connection of pushed indexes", func(ctx context.Context) error { return connection.Close(ctx, nc) })
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	subjects, err := wire.NewSubjects(s.cfg.Prefix)
	if err != nil {
		return nil, err
	}
	return depot.New(js, subjects), nil
}

// follow hands the first file to who waits for it, and swaps the others.
func (s *Service) follow(ctx context.Context, store *depot.Depot, name, served string, first chan<- string) {
	handed := false
	_ = store.Follow(ctx, name, s.log, func(ctx context.Context, version string) error {
		path, err := store.Fetch(ctx, name, version, filepath.Join(s.cfg.DataDir, fetchedFolder))
		switch {
		case errors.Is(err, depot.ErrNoVersion):
			return &depot.FinalError{Err: err}
		case err != nil:
			return err
		case !handed:
			handed = true
			first <- path
			return nil
		}
		if err := s.swappable(); err != nil {
			return err
		}
		_, _, err = s.Swap(ctx, served, path)
		if refused := (*generation.RefusedError)(nil); err == nil || errors.As(err, &refused) || errors.Is(err, generation.ErrEnding) {
			return err // which may be another in a while
		}
		return &depot.FinalError{Err: err}
	})
}

// nameInterval is how often names of files are looked at, and how long a file must be as it is to count as whole.
const nameInterval = 2 * time.Second

// watchFiles swaps an index when another file has the name of its own, and has not changed for an interval. One that cannot be served is not tried again
// before it changes.
func (s *Service) watchFiles(ctx context.Context) {
	seen := make([]os.FileInfo, len(s.indexes))
	tried := make([]os.FileInfo, len(s.indexes))
	for bell.Sleep(ctx, nameInterval) {
		for i, x := range s.indexes {
			replaced, path := x.index.Replaced()
			if !replaced {
				seen[i], tried[i] = nil, nil
				continue
			}
			now, err := os.Stat(path)
			if err != nil || sameFile(now, tried[i]) {
				continue
			}
			if !sameFile(now, seen[i]) {
				seen[i] = now
				continue
			}
			tried[i] = now
			if s.swappable() != nil {
				continue
			}
			_, _, _ = s.swap(ctx, x, path) // which logs what comes of it
		}
	}
}

func sameFile(a, b os.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

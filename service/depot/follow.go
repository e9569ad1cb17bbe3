package depot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Pauses between attempts to follow an index: they double from the first to the last.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	// waitingPause is the longest one for what was never pushed.
	waitingPause = 4 * time.Second
)

// Follow calls take with the version that is to be served, first with the present one, unless it is the one that was taken ("": none was), and then with each
// that takes its place, until ctx ends. Versions that are replaced while take is at work are left out. An error of take that is not final is tried again.
func (d *Depot) Follow(ctx context.Context, name, taken string, log *slog.Logger, take func(ctx context.Context, version string) error) error {
	pause, waiting := firstPause, false
	for {
		err := d.follow(ctx, name, func(version string) error {
			if version == taken {
				return nil
			}
			err := take(ctx, version)
			if final := (*FinalError)(nil); errors.As(err, &final) {
				log.Error("a version that was pushed is not served", "index", name, "version", version, "error", err)
			} else if err != nil {
				return err
			}
			taken, pause = version, firstPause
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrNothing) {
			if !waiting {
				log.Info("waiting for a first version to be pushed", "index", name)
			}
			waiting = true
		} else if err != nil {
			log.Warn("cannot follow what is pushed, trying again", "index", name, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, lastPause)
			if errors.Is(err, ErrNothing) {
				pause = min(pause, waitingPause)
			}
		}
	}
}

// FinalError is one that trying again does not mend.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }

func (e *FinalError) Unwrap() error { return e.Err }

// follow watches a shelf until something goes wrong or ctx ends.
func (d *Depot) follow(ctx context.Context, name string, take func(version string) error) error {
	_, shelves, err := d.open(ctx, name)
	if err != nil {
		return err
	}
	w, err := shelves.Watch(ctx, name)
	if err != nil {
		return fmt.Errorf("watch the versions of %s: %w", name, err)
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-w.Updates():
			for more := true; open && more; { // only the last one matters
				select {
				case next, still := <-w.Updates():
					if open = still; next != nil {
						entry = next
					}
				default:
					more = false
				}
			}
			if !open {
				return errors.New("the watch has ended")
			}
			if entry == nil || entry.Operation() != jetstream.KeyValuePut {
				continue
			}
			s, err := parse(entry)
			if err != nil {
				return err
			}
			if err := take(s.Current); err != nil {
				return err
			}
		}
	}
}

// fetched follows an index into a folder, and calls take with the files.
func (d *Depot) fetched(ctx context.Context, name, taken, dir string, log *slog.Logger, take func(ctx context.Context, file, version string) error) error {
	return d.Follow(ctx, name, taken, log, func(ctx context.Context, version string) error {
		path, err := d.Fetch(ctx, name, version, dir)
		if errors.Is(err, ErrNoVersion) {
			return &FinalError{err}
		} else if err != nil {
			return err
		}
		return take(ctx, path, version)
	})
}

// first waits for a version that is to be served, and fetches it.
func (d *Depot) first(ctx context.Context, name, dir string, log *slog.Logger) (file, version string, err error) {
	ctx, found := context.WithCancel(ctx)
	defer found()
	err = d.fetched(ctx, name, "", dir, log, func(_ context.Context, path, v string) error {
		file, version = path, v
		found()
		return nil
	})
	if file != "" {
		err = nil
	}
	return file, version, err
}

package depot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Worker brings pushed indexes to one worker, and says what follows them. It has a connection for as long as it follows or fetches something.
type Worker struct {
	Connect func() (jetstream.JetStream, error) // by a connection of its own, since files are large
	Prefix  string
	Folder  string // for what is fetched
	Log     *slog.Logger
	// Swap serves a file in the place of what is served under a name. What another time does not mend is a *FinalError.
	Swap func(ctx context.Context, name, file string) error

	mu    sync.Mutex
	js    jetstream.JetStream
	store *Depot
	users int // of the connection
}

// Follower is what follows an index for as long as it is served: each version that takes the place of another is fetched and swapped. It is to be called
// once, also if the index comes to nothing: then with a context that has ended, so that it gives up what it has.
type Follower func(context.Context)

// Fetched replaces the indexes that come from the server by files, once there are some, and calls follow with what follows them, by the name under which
// they are served.
func (w *Worker) Fetched(ctx context.Context, sources []config.IndexSource, follow func(served string, by Follower)) ([]config.IndexSource, error) {
	sources = slices.Clone(sources)
	for i, source := range sources {
		name, pushed := source.Pushed()
		if !pushed {
			continue
		}
		store, err := w.connected()
		if err != nil {
			return nil, err
		}
		file, version, err := store.first(ctx, name, w.Folder, w.Log)
		if err != nil {
			w.release()
			return nil, fmt.Errorf("waiting for a first version of %s to be pushed (geniemq push): %w", name, err)
		}
		served := cmp.Or(source.Name, name)
		follow(served, w.follower(store, name, served, version))
		sources[i] = config.IndexSource{Name: served, Path: file}
	}
	return sources, nil
}

// Fetch brings what is to be served now of an index that was pushed. It does not wait for a first version.
func (w *Worker) Fetch(ctx context.Context, name, served string) (file string, by Follower, err error) {
	store, err := w.connected()
	if err != nil {
		return "", nil, err
	}
	shelf, err := store.Shelf(ctx, name)
	if err == nil {
		file, err = store.Fetch(ctx, name, shelf.Current, w.Folder)
	}
	if err != nil {
		w.release()
		return "", nil, err
	}
	return file, w.follower(store, name, served, shelf.Current), nil
}

// follower is a Follower. It has the connection from now on.
func (w *Worker) follower(store *Depot, name, served, version string) Follower {
	return func(ctx context.Context) {
		defer w.release()
		_ = store.fetched(ctx, name, version, w.Folder, w.Log, func(ctx context.Context, file, _ string) error { return w.Swap(ctx, served, file) })
	}
}

// connected is the depot for one more user, until release.
func (w *Worker) connected() (*Depot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 {
		w.users++
		return w.store, nil
	}
	subjects, err := wire.NewSubjects(w.Prefix)
	if err != nil {
		return nil, err
	}
	js, err := w.Connect()
	if err != nil {
		return nil, err
	}
	w.js, w.store, w.users = js, New(js, subjects), 1
	return w.store, nil
}

// release closes the connection when nobody uses it any more.
func (w *Worker) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 {
		w.js.Conn().Close()
	}
}

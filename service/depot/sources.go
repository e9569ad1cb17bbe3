package depot

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Worker is what following pushed indexes needs of one.
type Worker struct {
	Connect func() (jetstream.JetStream, error) // made once, if anything is pushed; files are large, so it is for them alone
	Prefix  string
	Folder  string // for what is fetched
	Log     *slog.Logger
	// Follow runs what follows an index, by the name under which it is served, until that is not served any longer.
	Follow func(served string, run func(context.Context))
	// Swap serves a file in the place of what is served under a name. What another time does not mend is a *FinalError.
	Swap func(ctx context.Context, name, file string) error
}

// Fetched replaces the indexes that come from the server by files, once there are some, and follows them: each version that takes the place of another
// is fetched and swapped.
func (w Worker) Fetched(ctx context.Context, sources []config.IndexSource) ([]config.IndexSource, error) {
	sources = slices.Clone(sources)
	var store *Depot
	for i, source := range sources {
		name, pushed := source.Pushed()
		if !pushed {
			continue
		}
		if store == nil {
			js, err := w.Connect()
			if err != nil {
				return nil, err
			}
			subjects, err := wire.NewSubjects(w.Prefix)
			if err != nil {
				return nil, err
			}
			store = New(js, subjects)
		}
		first, served := make(chan string, 1), cmp.Or(source.Name, name)
		w.Follow(served, func(ctx context.Context) {
			_ = store.Serve(ctx, name, w.Folder, w.Log, first, func(ctx context.Context, file string) error { return w.Swap(ctx, served, file) })
		})
		select {
		case path := <-first:
			sources[i] = config.IndexSource{Name: served, Path: path}
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a first version of %s to be pushed (geniemq push): %w", name, ctx.Err())
		}
	}
	return sources, nil
}

package match

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// target is the index that is asked, wherever its worker is.
type target struct {
	index   string
	schema  *schema.Schema // nil: the worker is elsewhere, and does not tell
	version string
	objects uint64
	asker   *client.Client
	close   func() error
}

// connect finds the index at a worker, or serves the file of one, with a broker in a folder that is removed after it.
func (r *runner) connect(ctx context.Context, file, temporary string) (t *target, err error) {
	var closers []func() error
	closeAll := func() (err error) {
		for _, c := range slices.Backward(closers) {
			err = errors.Join(err, c())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	t = &target{index: r.index, close: closeAll}
	server := r.server
	if file != "" {
		srv, err := r.serve(ctx, t, file, temporary)
		if err != nil {
			return nil, err
		}
		closers = append(closers, srv.close)
		server = config.Config{NATS: srv.url}
	}
	nc, js, err := connection.Connect(&server, "geniemq match", nats.MaxReconnects(-1))
	if err != nil {
		return nil, err
	}
	closers = append(closers, func() error { nc.Close(); return nil })
	if t.asker, err = client.New(nc, client.Options{Prefix: r.server.Prefix, Timeout: r.timeout, JetStream: js}); err != nil {
		return nil, err
	}
	closers = append(closers, func() error { t.asker.Close(); return nil })

	// Whatever passes no filter is everything.
	all, err := r.persist(ctx, func(ctx context.Context) ([]wire.Result, error) {
		return t.asker.SearchBatch(ctx, t.index, []wire.Query{{Total: true, K: 1}})
	})
	if err == nil && all[0].Err != nil {
		err = all[0].Err
	}
	if err != nil {
		return nil, fmt.Errorf("looking at index %s: %w", t.index, err)
	}
	t.version, t.objects = all[0].Version, all[0].Total
	return t, nil
}

// served is a service of this process.
type served struct {
	url   string
	close func() error
}

// serve serves a file, on a free port of this machine.
func (r *runner) serve(ctx context.Context, t *target, file, temporary string) (*served, error) {
	x, err := index.Open(file)
	if err != nil {
		return nil, err
	}
	t.schema = x.Schema()
	if err := x.Close(); err != nil {
		return nil, err
	}
	cfg := r.server.WithoutNATS()
	cfg.Indexes = []config.IndexSource{{Name: t.index, Path: file}}
	cfg.NATSListen, cfg.Admin, cfg.DataDir = "127.0.0.1:0", config.Off, filepath.Join(temporary, "streams")
	cfg.EnsureDefaults()
	log := slog.New(slog.NewTextHandler(r.host.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	srv, err := service.Start(ctx, cfg, service.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	return &served{srv.NATSURL(), func() error {
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainTimeout)
		defer cancel()
		return srv.Shutdown(draining)
	}}, nil
}

// persist tries until there is an answer, an error that stays, or --timeout is over.
func (r *runner) persist(ctx context.Context, try func(context.Context) ([]wire.Result, error)) ([]wire.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("no answer within --timeout %v", r.timeout))
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		results, err := try(ctx)
		if err == nil || ctx.Err() == nil && !passes(err) {
			return results, err
		}
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return nil, err
		case <-time.After(pause):
		}
	}
}

// passes says that an error may pass by itself: a worker that is busy or starts, a connection that is away.
func passes(err error) bool {
	if known := (*wire.Error)(nil); errors.As(err, &known) {
		return known.Code == wire.Overloaded || known.Code == wire.DeadlineExceeded
	}
	return errors.Is(err, client.ErrNotServed) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, context.DeadlineExceeded)
}

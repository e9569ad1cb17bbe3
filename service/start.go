package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/repeats"
)

// Start starts a service. ctx bounds the start only.
func Start(ctx context.Context, cfg config.Config, opts Options) (*Service, error) {
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.OpenEngine == nil {
		opts.OpenEngine = open.Engine
	}
	if opts.Kinds.Columns == nil {
		opts.Kinds = index.Builtin()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Service{cfg: cfg, log: opts.Logger, metrics: metrics.New(), budget: memory.NewBudget(int64(cfg.Memory)), started: time.Now(), kinds: opts.Kinds, failed: make(chan struct{})}
	s.aborted, s.abandon = context.WithCancel(context.Background())
	s.budget.Pulled = s.pulledBytes
	s.metrics.MustRegister(s.budget)
	s.clock, s.repeats = clock.New(opts.Now, opts.Logger), repeats.New(repeats.Interval)
	s.metrics.WatchClock(s.clock.Skew)
	for _, step := range []func(context.Context) error{
		func(context.Context) error { s.background("log of repeats", s.repeats.Run); return nil },
		s.openAdmin, // early, so that it answers while large indexes are loaded, and while the rest shuts down
		func(context.Context) error { return s.openEngine(opts) },
		s.openIndexes,
		s.openConnection,
		s.openStreams,
		s.openPublishers,
		s.openPipelines,
		s.openSuspects,
		s.openSearch,
		s.openStored,
		s.openWatches,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Shutdown(ctx))
		}
	}
	s.openReadiness()
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	return s, nil
}

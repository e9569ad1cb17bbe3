package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/door"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/repeats"
	"github.com/geniemq/geniemq/service/served"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/service/streamwatch"
	"github.com/geniemq/geniemq/service/suspects"
	"github.com/geniemq/geniemq/wire"
)

// serverWait bounds what the server is asked for at the start, for which a cluster may have to elect leaders first.
const serverWait = 30 * time.Second

func (s *Service) openEngine(opts Options) error {
	settings, err := s.cfg.EngineOptions()
	if err != nil {
		return err
	}
	engine, err := opts.OpenEngine(s.cfg.Engine, settings)
	if err != nil {
		return err
	}
	s.engine = engine
	s.metrics.MustRegister(admin.MemoryCollector(func() []admin.Holding { return holdings(engine) }))
	s.onStop("engine", func(context.Context) error { return engine.Close() })
	if note := engine.Info().Note; note != "" && s.cfg.Engine == gpuexec.Auto {
		s.log.Info("using the CPU engine", "because", note)
	}
	return nil
}

// openIndexes opens and loads the indexes.
func (s *Service) openIndexes(ctx context.Context) error {
	s.onStop("indexes", func(context.Context) error { return s.set.Close() })
	return s.set.Open(ctx, s.engine, s.traces, s.cfg.Indexes)
}

func (s *Service) openConnection(ctx context.Context) (err error) {
	url := s.cfg.NATS
	if s.cfg.Embedded() {
		opts, err := s.brokerOptions()
		if err != nil {
			return err
		}
		s.broker, err = broker.Start(ctx, opts)
		if err != nil {
			return err
		}
		s.onStop("embedded nats-server", func(context.Context) error { return s.broker.Shutdown() })
		url = s.broker.URL()
	}
	if s.nc, s.js, err = s.keep(url, "geniemq"); err != nil {
		return err
	}
	s.denials = connection.NewDenials()
	s.denials.Watch(s.nc)
	s.url = url
	if s.subjects, err = wire.NewSubjects(s.cfg.Prefix); err != nil {
		return err
	}
	s.replies.Subjects = s.subjects
	s.limits = wire.LimitsFor(s.nc.MaxPayload())
	s.limits.Body = min(s.limits.Body, s.cfg.MaxBody)
	s.limits.Queries = s.cfg.MaxQueries
	s.limits.Items = s.cfg.MaxItems
	return nil
}

func (s *Service) brokerOptions() (opts broker.Options, err error) {
	e := &s.cfg.Server
	opts = broker.Options{
		Listen: s.cfg.NATSListen, DataDir: s.cfg.DataDir, Name: e.ServerName, SyncAlways: e.SyncAlways, Logger: s.log, OnLost: s.fail, OnMended: s.brokerMended,
	}
	if e.ClusterName != "" {
		opts.Cluster = &broker.Cluster{Name: e.ClusterName, Listen: e.ClusterListen, Routes: e.Routes}
	}
	if opts.Token, err = s.cfg.ListenToken(); err != nil {
		return opts, err
	}
	opts.TLS, err = s.cfg.ListenTLS()
	return opts, err
}

func (s *Service) openPipelines(context.Context) error {
	s.onEnd("pipelines", s.set.Drain)
	s.suspects = suspects.New(&s.exclusion, consumer.NewSuspects(s.js, s.subjects, cmp.Or(s.cfg.Streams.Replicas, 1)), s.log)
	limits := s.limits
	limits.Body = min(wire.LimitsFor(0).Body, s.cfg.MaxBody) // a body may come from elsewhere than a message
	s.set.Start(served.Link{
		NC: s.nc, Carriers: &s.carriers, Subjects: s.subjects, Classes: s.classes, Limits: limits, Bodies: s.fetcher, Denials: s.denials, Needs: s.needsOf,
		Replies: s.replies, Admission: s.admission, Answers: s.answers, Suspects: s.suspects, Clock: s.clock, MaxResult: s.watch.MaxResult,
	})
	s.background("memory", s.budget.Trim)
	s.background("garbage", s.budget.Spare)
	return nil
}

// background runs a function until its context, which Shutdown cancels, ends.
func (s *Service) background(what string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	s.onEnd(what, func() {
		cancel()
		running.Wait()
	})
}

func (s *Service) openAdmin(context.Context) (err error) {
	if s.cfg.Admin == config.Off {
		return nil
	}
	token, err := s.cfg.AdminToken()
	if err != nil {
		return err
	}
	s.admin, err = admin.Start(s.cfg.Admin, admin.Source{
		Metrics: s.metrics, Status: s.Status, Swap: s.Swap, Add: s.Add, Remove: s.Remove, Ask: s.ask, Letters: s.letters, Token: token, Pprof: s.cfg.Pprof, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.onStop("admin server", s.admin.Shutdown)
	return nil
}

// openDoor lets those in who do not speak NATS.
func (s *Service) openDoor(context.Context) (err error) {
	if s.cfg.HTTP == config.Off {
		return nil
	}
	s.door, err = door.Start(s.cfg.HTTP, door.Source{Token: s.cfg.HTTPToken, Conn: s.nc, JS: s.js, Subjects: s.subjects, MaxBody: s.limits.Body, Log: s.log,
		MaxLarge: min(wire.LimitsFor(0).Body, s.cfg.MaxBody), Bodies: s.bodies,
		Indexes: func() (all []door.Index) {
			for _, x := range s.set.Serving() {
				facts := x.Index.Facts()
				all = append(all, door.Index{Name: x.Name, Kind: facts.Kind, Version: facts.Version, Objects: int(facts.Objects)})
			}
			return all
		}})
	if err != nil {
		return err
	}
	s.onStop("HTTP door", s.door.Shutdown)
	return nil
}

// openSearch makes the indexes reachable by request and reply.
func (s *Service) openSearch(ctx context.Context) error {
	s.onStop("NATS service", func(ctx context.Context) error { s.set.StopSearch(ctx); return nil })
	return s.set.Listen(ctx)
}

// openStreams makes the streams that are missing and reports what is not as expected about the others.
func (s *Service) openStreams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	allowed, end := s.denials.Bound(ctx, connection.JetStream(s.api()))
	differences, err := streams.Ensure(allowed, s.js, s.cfg.Streams.Settings().Configs(s.subjects, streams.Queries, streams.Results, streams.Dead))
	if err = end(err); err != nil {
		return err
	}
	s.classes = []wire.Class{wire.ClassQuery}
	for _, class := range s.cfg.Fairness.Stored()[1:] {
		more, err := s.openClass(ctx, class)
		if err != nil {
			return err
		}
		differences = append(differences, more...)
	}
	for _, d := range differences {
		s.log.Warn("a stream is used as it is, though it differs from what is recommended", "difference", d.String())
	}
	s.answers = storedanswers.New(s.js, s.subjects.ResultStream(), s.repeats.Logger(s.log))
	watched := []streamwatch.Stream{{Name: s.subjects.ResultStream(), Needs: func() (subjects []string) {
		for _, name := range s.set.Names() {
			subjects = append(subjects, s.subjects.Result(name))
		}
		return subjects
	}}}
	for _, class := range s.classes {
		watched = append(watched, streamwatch.Stream{Name: s.subjects.Stream(class), Needs: func() (subjects []string) {
			for _, name := range s.set.Names() {
				subjects = append(subjects, s.subjects.Filters(class, name)...)
			}
			return subjects
		}})
	}
	s.watch = streamwatch.New(s.js, s.subjects, s.clock, watched...)
	s.watch.Start(ctx)
	s.background("watch of the streams", s.watch.Run)
	return nil
}

// openClass makes the stream of a class beside the first. A server that has no room for it, or does not allow it, may have been set up for a worker
// of an earlier version: then the class is not served, and all else is.
func (s *Service) openClass(ctx context.Context, class wire.Class) ([]streams.Difference, error) {
	allowed, end := s.denials.Bound(ctx, connection.JetStream(s.api()))
	differences, err := streams.Ensure(allowed, s.js, s.cfg.Streams.Settings().Configs(s.subjects, streams.KindOf(class)))
	err = end(err)
	var denied *connection.ForbiddenError
	switch {
	case err == nil:
		s.classes = append(s.classes, class)
		return differences, nil
	case errors.As(err, &denied), streams.NoRoom(err):
		s.log.Warn("a class of queries is not served: see to its stream and restart, or leave it out of the setting classes", "class", class, "error", err)
		return nil, nil
	}
	return nil, err
}

// openSuspects makes the bucket of records and begins to run suspects.
func (s *Service) openSuspects(ctx context.Context) error {
	s.suspects.Ensure(ctx)
	s.background("suspects", s.suspects.Run)
	return nil
}

// openStored begins to pull.
func (s *Service) openStored(ctx context.Context) error {
	s.onStop("consumers", s.set.StopPulling)
	if err := s.set.Pull(ctx); err != nil {
		return err
	}
	if !s.cfg.NoSweep {
		for _, class := range s.classes {
			s.background("sweeper", func(ctx context.Context) { s.sweep(ctx, class) })
		}
	}
	return nil
}

// openChanges begins to look at the files of the indexes. From now on they may be swapped, and others come and go.
func (s *Service) openChanges(context.Context) error {
	s.onEnd("changes", s.set.End) // before all else: what ends need not be followed by what begins
	s.set.Watch()
	return nil
}

// Start starts a service. ctx bounds the start only.
func Start(ctx context.Context, cfg config.Config, opts Options) (*Service, error) {
	cfg.EnsureDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
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
	s.metrics.MustRegister(s.budget)
	s.replies = &intake.Replies{Config: &s.cfg}
	s.admission = &intake.Admissions{Quotas: admission.NewQuotas(cfg.Fairness.Quota()), Trust: cfg.Fairness.TrustUserHeader}
	s.clock, s.repeats = clock.New(opts.Now, opts.Logger), repeats.New(repeats.Interval)
	s.set = served.New(served.Options{
		Config: &s.cfg, Kinds: s.kinds, Metrics: s.metrics, Repeats: s.repeats, Budget: s.budget, Exclusion: &s.exclusion, Version: Version(), Log: s.log,
		Fatal: s.fail, Aborted: s.aborted,
	})
	s.budget.Pulled = s.set.PulledBytes
	s.openMetrics()
	for _, step := range []func(context.Context) error{
		func(context.Context) error { s.background("log of repeats", s.repeats.Run); return nil },
		s.openTraces,
		s.openAdmin, // early, so that it answers while large indexes are loaded, and while the rest shuts down
		func(context.Context) error { return s.openEngine(opts) },
		s.openPushed,
		s.openIndexes,
		s.openConnection,
		s.openStreams,
		s.openCarriers,
		s.openBodies,
		s.openPipelines,
		s.openSuspects,
		s.openSearch,
		s.openFetches,
		s.openStored,
		s.openChanges,
		s.openDoor,
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

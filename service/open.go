package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/door"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/service/repeats"
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

// openIndexes opens all indexes before it loads the first, which leaves room for the others.
func (s *Service) openIndexes(ctx context.Context) error {
	paths := make(map[string]string)
	var opened []*served
	var later []*generation.Index
	for _, source := range s.cfg.Indexes {
		x, err := s.openIndex(source)
		if err != nil {
			return err
		}
		if other, twice := paths[x.name]; twice {
			return fmt.Errorf("%s and %s are both index %s: name them, like --index other=%s", other, source.Path, x.name, source.Path)
		}
		paths[x.name] = source.Path
		opened = append(opened, x)
		later = append(later, x.index)
	}
	for i, x := range opened {
		s.indexes = append(s.indexes, x)
		if err := s.loadIndex(ctx, x, later[i+1:]); err != nil {
			return fmt.Errorf("loading %s: %w", paths[x.name], err)
		}
	}
	return nil
}

func (s *Service) openIndex(source config.IndexSource) (*served, error) {
	x, err := generation.Open(source.Path, source.Name, s.kinds, int64(s.cfg.CertifyLimit))
	if errors.Is(err, fs.ErrNotExist) && source.Name == "" && wire.CheckIndexName(source.Path) == nil {
		return nil, fmt.Errorf("%w: if %s is the index's name, give its file too, like --index %[2]s=%[2]s.gmq", err, source.Path)
	} else if err != nil {
		return nil, err
	}
	s.onStop("index "+source.Path, func(context.Context) error { return x.Close() })
	if err := wire.CheckIndexName(x.Name()); err != nil {
		return nil, fmt.Errorf("%s: %w", source.Path, err)
	}
	return &served{name: x.Name(), index: x}, nil
}

func (s *Service) loadIndex(ctx context.Context, x *served, later []*generation.Index) error {
	x.metrics = s.metrics.Index(x.name)
	log := s.log.With("index", x.name)
	x.observe = &observe.Index{Metrics: x.metrics, Name: x.name, Traces: s.traces, Slow: s.cfg.SlowQuery, Log: s.repeats.Logger(log)}
	return x.index.Load(ctx, generation.Settings{
		Engine: s.engine, Metrics: x.metrics, Log: log, Queries: s.repeats.Logger(log), Changed: func(f generation.Facts) { s.describe(x.name, f) },
	}, later)
}

// describe has the metrics say what is served of an index now.
func (s *Service) describe(name string, f generation.Facts) {
	info := s.engine.Info()
	s.metrics.Serving(metrics.Served{
		Name: name, Version: f.Version, Kind: f.Kind, Bytes: f.Bytes, Engine: info.Kind, Device: info.Device,
	})
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
	if s.nc, err = s.connect(url, "geniemq"); err != nil {
		return err
	}
	s.onStop("connection", func(ctx context.Context) error { return connection.Close(ctx, s.nc) })
	s.denials = connection.WatchDenials(s.nc)
	s.url = url
	if s.js, err = connection.JetStreamOf(s.nc, s.cfg.Streams.Domain); err != nil {
		return err
	}
	if s.subjects, err = wire.NewSubjects(s.cfg.Prefix); err != nil {
		return err
	}
	s.replies.subjects = s.subjects
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

func (s *Service) openPublishers(ctx context.Context) error {
	s.onStop("settlements", func(context.Context) error { // after the producers, whose confirmations begin them
		for _, x := range s.indexes {
			for _, intake := range x.stored {
				intake.settling.Wait()
			}
		}
		return nil
	})
	for i := range publishConnections {
		nc, err := s.connect(s.url, fmt.Sprintf("geniemq answers %d", i+1))
		if err != nil {
			return err
		}
		s.onStop("connection of a producer", func(ctx context.Context) error { return connection.Close(ctx, nc) })
		p, err := producer.New(nc, producer.Options{
			Subjects: s.subjects,
			OnState: func(state producer.State) {
				if state.Blocked {
					s.log.Warn("results do not get out, holding back", "error", state.Reason, "in_flight", state.InFlight)
				} else {
					s.log.Info("results get out again")
				}
			},
		})
		if err != nil {
			return err
		}
		s.onStop("producer", p.Close)
		s.publishers.producers = append(s.publishers.producers, p)
	}
	return nil
}

func (s *Service) openPipelines(context.Context) error {
	s.onStop("pipelines", func(context.Context) error {
		var draining sync.WaitGroup
		for _, x := range s.indexes {
			draining.Go(x.index.Drain)
		}
		draining.Wait()
		return nil
	})
	for _, x := range s.indexes {
		x.index.Start(pipeline.Options{
			BatchSize:     s.cfg.BatchSize,
			Linger:        s.cfg.BatchLinger,
			Workers:       s.cfg.Workers,
			DirectQueue:   s.cfg.DirectQueue,
			Limits:        s.limits,
			Exclusion:     &s.exclusion,
			MaxMessage:    s.nc.MaxPayload(),
			Budget:        s.budget,
			Cores:         s.engine.Info().Workers,
			EngineTimeout: s.cfg.EngineTimeout,
			Weights:       s.cfg.Fairness.WeightsOf(x.name),
			Most:          s.cfg.Fairness.LimitsOf(x.name),
			Quotas:        s.admission.quotas,
			BulkSlice:     s.cfg.Fairness.BulkSlice,
			Fatal:         s.fail,
		})
	}
	s.background("memory", s.budget.Trim)
	return nil
}

// background runs a function until its context, which Shutdown cancels, ends.
func (s *Service) background(what string, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	s.onStop(what, func(context.Context) error {
		cancel()
		<-done
		return nil
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
		Metrics: s.metrics, Status: s.Status, Swap: s.Swap, Ask: s.ask, Letters: s.letters, Token: token, Pprof: s.cfg.Pprof, Log: s.log,
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
		Indexes: func() (all []door.Index) {
			for _, x := range s.indexes {
				facts := x.index.Facts()
				all = append(all, door.Index{Name: x.name, Kind: facts.Kind, Version: facts.Version, Objects: int(facts.Objects)})
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
	intakes := make(map[string]*directIntake)
	endpoint := func(x *served) string { return "search-" + x.name }
	users := func(x *served) string { return "search-" + x.name + "-users" }
	for _, x := range s.indexes {
		limit := cmp.Or(s.cfg.Fairness.LimitsOf(x.name)[wire.ClassDirect], s.cfg.DirectQueue)
		x.direct = &directIntake{index: x.index, metrics: x.metrics, observe: x.observe, nc: s.nc, limit: int64(limit), allow: s.cfg.DirectReplies(), admission: s.admission,
			allowUser: func(user string) []string { return s.cfg.DirectUserReplies(x.name, user) }, users: s.subjects.UserSearch(x.name, ""),
			log: s.repeats.Logger(s.log.With("index", x.name))}
		intakes[endpoint(x)], intakes[users(x)] = x.direct, x.direct
	}
	var err error
	s.micro, err = micro.AddService(s.nc, micro.Config{
		Name:        "geniemq",
		Version:     Version(),
		Description: "top-k similarity search",
		Metadata:    map[string]string{"engine": s.engine.Info().Kind, "protocol": fmt.Sprint(wire.Version)},
		StatsHandler: func(e *micro.Endpoint) any {
			if intake := intakes[e.Name]; intake != nil {
				return intake.Stats()
			}
			return nil
		},
	})
	if err != nil {
		return fmt.Errorf("adding the NATS service: %w", err)
	}
	s.onStop("NATS service", func(context.Context) error {
		err := s.micro.Stop()
		for _, intake := range intakes {
			intake.close()
		}
		return err
	})
	for _, x := range s.indexes {
		endpoints := [][2]string{{endpoint(x), s.subjects.Search(x.name)}}
		if s.cfg.Fairness.Serves(wire.ClassUsers) {
			endpoints = append(endpoints, [2]string{users(x), s.subjects.UserSearch(x.name, "*")})
		}
		for _, e := range endpoints {
			err := s.micro.AddEndpoint(e[0], x.direct,
				micro.WithEndpointSubject(e[1]),
				micro.WithEndpointMetadata(map[string]string{"index": x.name, "kind": x.index.Facts().Kind, wire.FieldsMetadata: strings.Join(wire.QueryFields(), " "),
					wire.AcceptsMetadata: wire.Reads().String()}),
				micro.WithEndpointPendingLimits(-1, maxUnread))
			if err != nil {
				return fmt.Errorf("adding the search endpoint of %s: %w", x.name, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	if err := s.nc.FlushWithContext(ctx); err != nil { // the server knows of the endpoints when Start returns
		return fmt.Errorf("adding the search endpoints: %w", err)
	}
	return nil
}

// openStreams makes the streams that are missing and reports what is not as expected about the others.
func (s *Service) openStreams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	allowed, end := s.denials.Bound(ctx, connection.JetStream)
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
	results := streamwatch.Stream{Name: s.subjects.ResultStream()}
	for _, x := range s.indexes {
		results.Needs = append(results.Needs, s.subjects.Result(x.name))
	}
	watched := []streamwatch.Stream{results}
	for _, class := range s.classes {
		stream := streamwatch.Stream{Name: s.subjects.Stream(class)}
		for _, x := range s.indexes {
			stream.Needs = append(stream.Needs, s.subjects.Filters(class, x.name)...)
		}
		watched = append(watched, stream)
	}
	s.watch = streamwatch.New(s.js, s.subjects, s.clock, watched...)
	s.watch.Start(ctx)
	s.background("watch of the streams", s.watch.Run)
	return nil
}

// openClass makes the stream of a class beside the first. A server that has no room for it, or does not allow it, may have been set up for a worker
// of an earlier version: then the class is not served, and all else is.
func (s *Service) openClass(ctx context.Context, class wire.Class) ([]streams.Difference, error) {
	allowed, end := s.denials.Bound(ctx, connection.JetStream)
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
	s.suspects = suspects.New(&s.exclusion, consumer.NewSuspects(s.js, s.subjects, cmp.Or(s.cfg.Streams.Replicas, 1)), s.log)
	s.suspects.Ensure(ctx)
	s.background("suspects", s.suspects.Run)
	return nil
}

// openStored begins to pull.
func (s *Service) openStored(ctx context.Context) error {
	var open []*storedIntake
	s.onStop("consumers", func(ctx context.Context) error { // all at once, since they share the time there is
		faults := make([]error, len(open))
		var stopping sync.WaitGroup
		for i, intake := range open {
			stopping.Go(func() { faults[i] = intake.stop(ctx) })
		}
		stopping.Wait()
		return errors.Join(faults...)
	})
	for _, x := range s.indexes {
		for _, class := range s.classes {
			intake, err := s.openConsumer(x, class)
			if err != nil {
				return err
			}
			open = append(open, intake)
		}
	}
	if err := s.awaitDurables(ctx); err != nil {
		return err
	}
	if !s.cfg.NoSweep {
		for _, class := range s.classes {
			s.background("sweeper", func(ctx context.Context) { s.sweep(ctx, class) })
		}
	}
	return nil
}

// openWatches begins to look at the files of the indexes. From now on they may be swapped.
func (s *Service) openWatches(context.Context) error {
	s.onStop("swaps", func(context.Context) error { // before all else: what ends need not be followed by what begins
		for _, x := range s.indexes {
			x.index.Cancel()
			x.index.Unwatch()
		}
		return nil
	})
	for _, x := range s.indexes {
		x.index.Watch(x.hold)
		if s.cfg.Watch {
			s.background("name of the file of "+x.name, func(ctx context.Context) {
				x.index.FollowName(ctx, func(ctx context.Context, path string) { _, _, _ = s.swap(ctx, x, path) }) // which logs what comes of it
			})
		}
	}
	return nil
}

// pullBytes is how much all consumers, which share a connection, ask for at a time: half of a server's default max_pending.
const pullBytes = 32 << 20

// window is how many bytes a consumer of a class may hold: half of what there is for an index is for the class of queries, the rest for the
// others, so that many of one do not keep those of another from being pulled.
func (s *Service) window(all int64, class wire.Class) int64 {
	switch others := int64(len(s.classes) - 1); {
	case others == 0:
		return all
	case class == wire.ClassQuery:
		return all / 2
	default:
		return all / 2 / others
	}
}

func (s *Service) openConsumer(x *served, class wire.Class) (*storedIntake, error) {
	log := s.log.With("index", x.name)
	if class != wire.ClassQuery {
		log = log.With("class", class)
	}
	intake := &storedIntake{
		index: x.name, class: class, stream: s.subjects.Stream(class), served: x.index, aborted: s.aborted, metrics: x.metrics, observe: x.observe, suspects: s.suspects, publishers: &s.publishers,
		replies: s.replies, admission: s.admission, maxResult: s.watch.MaxResult, answers: s.answers, clock: s.clock, log: s.repeats.Logger(log),
	}
	window := s.window(s.budget.Window(len(s.indexes)), class)
	c, err := consumer.New(s.js, consumer.Options{
		Subjects:      s.subjects,
		Index:         x.name,
		Class:         class,
		AckWait:       s.cfg.AckWait,
		MaxAckPending: s.cfg.MaxPending,
		BatchMessages: x.index.BatchSize(),
		PullBytes:     min(s.window(pullBytes/int64(len(s.indexes)), class), window),
		Bytes:         window,
		InfoInterval:  streamwatch.Interval,
		OnState: func(err error) {
			if err != nil {
				log.Warn("no queries can be pulled", "error", err)
			} else {
				log.Info("queries can be pulled again")
			}
		},
		OnDifference: func(d streams.Difference) {
			log.Warn("the durable is used as it is, though it differs from the settings", "difference", d.String())
		},
	}, intake.take)
	if err != nil {
		return nil, err
	}
	intake.consumer, intake.ended = c, make(chan error, 1)
	x.stored = append(x.stored, intake)
	s.mu.Lock()
	s.intakes = append(s.intakes, intake)
	err = s.err
	s.mu.Unlock()
	if err != nil { // the engine is lost already
		return nil, err
	}
	go func() { intake.ended <- c.Run(context.Background()) }()
	return intake, nil
}

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
	s.replies = &replies{cfg: &s.cfg}
	s.admission = &admissions{quotas: admission.NewQuotas(cfg.Fairness.Quota()), trust: cfg.Fairness.TrustUserHeader}
	s.clock, s.repeats = clock.New(opts.Now, opts.Logger), repeats.New(repeats.Interval)
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
		s.openPublishers,
		s.openPipelines,
		s.openSuspects,
		s.openSearch,
		s.openStored,
		s.openWatches,
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

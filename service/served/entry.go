package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/generation"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/service/streamwatch"
	"github.com/geniemq/geniemq/wire"
)

// state is what becomes of an index.
type state int

const (
	coming state = iota
	serving
	going
)

// Entry is one index and what answers its queries.
type Entry struct {
	Name    string
	Index   *generation.Index
	Metrics *metrics.Index
	Direct  *intake.Direct

	set     *Set
	observe *observe.Index
	aborted context.Context // ends when what was taken in is given up
	abandon context.CancelFunc
	listens bool // the micro service has its endpoints; guarded by Set.sharing

	// Guarded by Set.mu:
	state  state
	stored []*intake.Stored // one for each class
}

// entry makes an entry of an open index, which comes.
func (s *Set) entry(x *generation.Index) *Entry {
	e := &Entry{Name: x.Name(), Index: x, set: s}
	e.aborted, e.abandon = context.WithCancel(s.options.Aborted)
	context.AfterFunc(e.aborted, x.Abort)
	return e
}

// load has the engine load the index, and leave room for those that come later.
func (e *Entry) load(ctx context.Context, later []*generation.Index) error {
	o := &e.set.options
	e.Metrics = o.Metrics.Index(e.Name)
	log := o.Log.With("index", e.Name)
	e.observe = &observe.Index{Metrics: e.Metrics, Name: e.Name, Traces: e.set.traces, Slow: o.Config.SlowQuery, Log: o.Repeats.Logger(log)}
	return e.Index.Load(ctx, generation.Settings{Engine: e.set.engine, Metrics: e.Metrics, Log: log, Queries: o.Repeats.Logger(log), Changed: e.describe, Followed: o.Config.Watch}, later)
}

// describe has the metrics say what is served of the index now.
func (e *Entry) describe(f generation.Facts) {
	info := e.set.engine.Info()
	recalls := make([]metrics.Recall, len(f.Recalls))
	for i, r := range f.Recalls {
		recalls[i] = metrics.Recall(r)
	}
	e.set.options.Metrics.Serving(metrics.Served{
		Name: e.Name, Version: f.Version, Kind: f.Kind, Bytes: f.Bytes, Engine: info.Kind, Device: info.Device, Recalls: recalls,
	})
}

// pipelines are the options of the index's pipelines.
func (e *Entry) pipelines() pipeline.Options {
	o, cfg, link := &e.set.options, e.set.options.Config, &e.set.link
	return pipeline.Options{
		BatchSize:     cfg.BatchSize,
		Linger:        cfg.BatchLinger,
		Workers:       cfg.Workers,
		DirectQueue:   cfg.DirectQueue,
		Limits:        link.Limits,
		Exclusion:     o.Exclusion,
		MaxMessage:    link.NC.MaxPayload(),
		Budget:        o.Budget,
		Cores:         e.set.engine.Info().Workers,
		EngineTimeout: cfg.EngineTimeout,
		Weights:       cfg.Fairness.WeightsOf(e.Name),
		Most:          cfg.Fairness.LimitsOf(e.Name),
		Quotas:        link.Admission.Quotas,
		BulkSlice:     cfg.Fairness.BulkSlice,
		Fatal:         o.Fatal,
	}
}

// listen makes what takes requests in, which nobody sends any yet.
func (e *Entry) listen() {
	cfg, link := e.set.options.Config, &e.set.link
	e.Direct = &intake.Direct{
		Index: e.Index, Metrics: e.Metrics, Observe: e.observe, NC: link.NC, Limit: int64(cmp.Or(cfg.Fairness.LimitsOf(e.Name)[wire.ClassDirect], cfg.DirectQueue)),
		Allow: cfg.DirectReplies(), Users: link.Subjects.UserSearch(e.Name, ""), AllowUser: func(user string) []string { return cfg.DirectUserReplies(e.Name, user) },
		Admission: link.Admission, Log: e.set.options.Repeats.Logger(e.set.options.Log.With("index", e.Name)),
	}
}

// pull begins to pull the stored queries of all classes. since is intake.Stored.Since.
func (e *Entry) pull(s share, since time.Time) error {
	for _, class := range e.set.link.Classes {
		if err := e.pullClass(class, s, since); err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) pullClass(class wire.Class, s share, since time.Time) error {
	o, link := &e.set.options, &e.set.link
	carrier := link.Carriers.Of(class)
	log := o.Log.With("index", e.Name)
	if class != wire.ClassQuery {
		log = log.With("class", class)
	}
	stored := &intake.Stored{
		Index: e.Name, Class: class, Stream: link.Subjects.Stream(class), Served: e.Index, Aborted: e.aborted, Metrics: e.Metrics, Observe: e.observe, Suspects: link.Suspects,
		Publishers: &carrier.Publishers, Bodies: link.Bodies, BodyMemory: link.Bodies.Holder(), Replies: link.Replies, Allow: o.Config.StoredReplies(e.Name), Admission: link.Admission, MaxResult: link.MaxResult, Answers: link.Answers, Clock: link.Clock, Log: o.Repeats.Logger(log), Since: since,
	}
	window, pull := s.of(class)
	c, err := consumer.New(carrier.JS, consumer.Options{
		Subjects:      link.Subjects,
		Index:         e.Name,
		Class:         class,
		AckWait:       o.Config.AckWait,
		MaxAckPending: o.Config.MaxPending,
		BatchMessages: e.Index.BatchSize(),
		PullBytes:     pull,
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
	}, stored.Take)
	if err != nil {
		return err
	}
	stored.Consumer = c
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	if e.set.failed {
		return errors.New("the worker cannot go on")
	}
	e.stored = append(e.stored, stored)
	stored.Pull()
	return nil
}

// durablesWait bounds how long an index waits for its durables, which somebody may have to make.
const durablesWait = 30 * time.Second

// awaitDurables has consumers begin, and returns when all have looked at their durables, or made them, with what the server did not allow. Whatever else
// keeps them from it may pass, so it is no reason not to start.
func (s *Set) awaitDurables(ctx context.Context, begin func() error, entries ...*Entry) error {
	link := &s.link
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	needs := func(e *connection.ForbiddenError) bool { return link.Needs(e, names...) }
	ctx, end := link.Denials.Bound(ctx, needs) // before the first of them asks
	if err := begin(); err != nil {
		return end(err)
	}
	ctx, cancel := context.WithTimeout(ctx, durablesWait)
	defer cancel()
	for _, e := range entries {
		for _, stored := range e.Stored() {
			for errors.Is(stored.Consumer.Progress().Err, consumer.ErrNotStarted) && ctx.Err() == nil {
				bell.Sleep(ctx, time.Millisecond)
			}
		}
	}
	err := cmp.Or(link.Denials.Flush(ctx), context.Cause(ctx))
	if denied, ok := errors.AsType[*connection.ForbiddenError](end(err)); ok {
		return denied
	}
	return nil
}

// watch begins to look at the file. From now on it may be swapped.
func (e *Entry) watch() {
	e.Index.Watch(e.hold)
	if e.set.options.Config.Watch {
		e.set.Follow(e.Name, func(ctx context.Context) {
			e.Index.FollowName(ctx, func(ctx context.Context, path string) { _, _, _ = e.Swap(ctx, path) }) // which logs what comes of it
		})
	}
}

// stopReplacing ends what would replace the file, and swaps.
func (e *Entry) stopReplacing() {
	e.set.unfollow(e.Name)
	e.Index.Cancel()
	e.Index.Unwatch()
}

// stopPulling pulls no more and returns when everything that was pulled is settled, or given back because ctx ended.
func (e *Entry) stopPulling(ctx context.Context) error { return stopAll(ctx, e.Stored()) }

// stopAll stops intakes at once, since they share the time there is.
func stopAll(ctx context.Context, all []*intake.Stored) error {
	faults := make([]error, len(all))
	var stopping sync.WaitGroup
	for i, stored := range all {
		stopping.Go(func() { faults[i] = stored.Stop(ctx) })
	}
	stopping.Wait()
	return errors.Join(faults...)
}

// Stored are the intakes of stored queries.
func (e *Entry) Stored() []*intake.Stored {
	e.set.mu.RLock()
	defer e.set.mu.RUnlock()
	return e.stored[:len(e.stored):len(e.stored)]
}

// Pending is how many messages of all classes are not answered.
func (e *Entry) Pending() (n int64) {
	for _, stored := range e.Stored() {
		n += stored.Pending()
	}
	return n
}

// Redelivered is how many messages of all classes came again.
func (e *Entry) Redelivered() (n uint64) {
	for _, stored := range e.Stored() {
		n += stored.Consumer.Stats().Redelivered
	}
	return n
}

// Oldest is when the oldest message came that is not answered. Where none is held and some wait, it is when the first message of their stream came,
// as first says; the zero value: there is none.
func (e *Entry) Oldest(first func(stream string) time.Time) (oldest time.Time) {
	for _, stored := range e.Stored() {
		at := stored.Consumer.Oldest()
		if at.IsZero() && stored.Consumer.Stats().Pending > 0 {
			at = first(stored.Stream)
		}
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

// Fault says why the index does not answer, or nil.
func (e *Entry) Fault(now time.Time) error {
	err := e.Index.FileFault() // all else follows from that
	if err == nil {
		var faults []error
		for _, stored := range e.Stored() {
			faults = append(faults, stored.Fault(now))
		}
		err = errors.Join(append(faults, e.Index.Fault(now))...)
	}
	if err != nil {
		return fmt.Errorf("index %s: %w", e.Name, err)
	}
	return nil
}

// hold holds stored messages back, or lets them come again.
func (e *Entry) hold(hold bool) {
	for _, stored := range e.Stored() {
		stored.Consumer.Hold(hold)
	}
}

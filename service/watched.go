package service

import (
	"cmp"
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/served"
)

// openMetrics adds the figures that are asked for when metrics are collected.
func (s *Service) openMetrics() {
	s.metrics.WatchClock(s.clock.Skew)
	s.metrics.Watch(s.watched)
	revision, compiler := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		compiler = info.GoVersion
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	s.metrics.Build(Version(), cmp.Or(revision, "unknown"), compiler)
}

// lastTraces bounds how long the end of a worker waits for a collector.
const lastTraces = 2 * time.Second

// openTraces begins to send spans, if they are wanted.
func (s *Service) openTraces(ctx context.Context) (err error) {
	if s.cfg.Traces == "" {
		return nil
	}
	s.traces, err = observe.StartTraces(ctx, observe.TraceOptions{Endpoint: s.cfg.Traces, Version: Version(), Log: s.repeats.Logger(s.log)})
	if err != nil {
		return err
	}
	s.onStop("traces", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTraces)
		defer cancel()
		if err := s.traces.Shutdown(ctx); err != nil { // a collector that is away is no reason to end with an error
			s.log.Warn("the last traces are lost", "error", err)
		}
		return nil
	})
	return nil
}

// watched is what the metrics say of the worker and its server. It may be called at any time, from any goroutine.
func (s *Service) watched() metrics.Worker {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if !running {
		return metrics.Worker{}
	}
	w := metrics.Worker{Connected: s.connected(), Ready: s.Status().Ready}
	for _, class := range s.classes {
		w.Streams = s.full(w.Streams, string(streams.KindOf(class)), s.subjects.Stream(class))
	}
	w.Streams = s.full(w.Streams, metrics.Results, s.subjects.ResultStream())
	for _, x := range s.set.Serving() {
		w.Indexes = append(w.Indexes, s.watchedIndex(x))
	}
	return w
}

// connected says whether all connections are there.
func (s *Service) connected() bool {
	return !slices.ContainsFunc(s.conns, func(nc *nats.Conn) bool { return !nc.IsConnected() })
}

// full adds how full a stream is.
func (s *Service) full(all []metrics.Stream, use, name string) []metrics.Stream {
	info := s.watch.Info(name)
	if info.Created.IsZero() {
		return all
	}
	one := metrics.Stream{Name: use, Messages: info.State.Msgs, Bytes: info.State.Bytes, MaxMessages: info.Config.MaxMsgs, MaxBytes: info.Config.MaxBytes}
	if one.Messages > 0 {
		one.Oldest = max(0, s.clock.Server().Sub(info.State.FirstTime))
	}
	return append(all, one)
}

// watchedIndex is what the metrics say of an index, of all classes together.
func (s *Service) watchedIndex(x *served.Entry) metrics.Watched {
	i := metrics.Watched{
		Name: x.Name, Pending: float64(x.Pending()), Redelivered: float64(x.Redelivered()), Limit: s.watch.Info(s.subjects.QueryStream()).Config.MaxMsgsPerSubject,
		PerMessage: x.Metrics.PerMessage(), Direct: float64(x.Direct.Waiting()),
	}
	oldest := x.Oldest(func(stream string) (at time.Time) {
		if info := s.watch.Info(stream); !info.Created.IsZero() {
			at = info.State.FirstTime
		}
		return at
	})
	if !oldest.IsZero() {
		i.Oldest = max(0, s.clock.Server().Sub(oldest))
	}
	return i
}

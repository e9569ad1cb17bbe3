package service

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
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
	w := metrics.Worker{Connected: s.nc.IsConnected(), Ready: s.Status().Ready}
	streams, limit := s.watch.full()
	w.Streams = streams
	for _, x := range s.indexes {
		stats := x.stored.consumer.Stats()
		i := metrics.Watched{
			Name: x.name, Pending: float64(x.stored.pending()), Redelivered: float64(stats.Redelivered), Limit: limit,
			PerMessage: x.metrics.PerMessage(), Direct: float64(x.direct.waiting.Load()),
		}
		if oldest := x.stored.consumer.Oldest(); !oldest.IsZero() {
			i.Oldest = max(0, s.clock.Server().Sub(oldest))
		} else if stats.Pending > 0 && len(streams) > 0 && streams[0].Name == metrics.Queries {
			i.Oldest = streams[0].Oldest
		}
		w.Indexes = append(w.Indexes, i)
	}
	return w
}

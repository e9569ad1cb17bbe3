package service

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/wire"
)

// orphanInterval is between sweeps of the object store. Nothing is an orphan before it is a day old.
const orphanInterval = 15 * time.Minute

// openBodies makes the buckets of queries that are too large for a message, and what fetches them. Where a bucket cannot be made queries have to fit a message,
// and all else is served: the server may have been set up for a worker of an earlier version.
func (s *Service) openBodies(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	s.bodies = bodystore.Of(s.js, s.subjects)
	made := 0
	for _, user := range append([]string{""}, s.cfg.ObjectUsers...) {
		if err := s.makeBucket(ctx, user); err != nil {
			s.log.Warn("queries that are too large for a message are not taken: see to their bucket and restart", "user", user, "error", err)
			continue
		}
		made++
	}
	limits := wire.LimitsFor(0) // of what is no message
	limits.Body = min(limits.Body, s.cfg.MaxBody)
	s.fetcher = fetch.New(s.aborted, s.bodies, fetch.Options{Limits: limits, Memory: s.budget, Chunk: s.nc.MaxPayload, Log: s.repeats.Logger(s.log)})
	if made > 0 && !s.cfg.NoSweep {
		s.background("sweep of large queries", s.sweepBodies)
	}
	return nil
}

// openFetches has what is fetched end before the pipelines do, which it goes into.
func (s *Service) openFetches(context.Context) error {
	s.onEnd("fetches of large queries", s.fetcher.Close)
	return nil
}

// makeBucket makes the bucket of a user, "" for all who are none, unless it is there.
func (s *Service) makeBucket(ctx context.Context, user string) error {
	config, err := s.cfg.Streams.Settings().Bucket(s.subjects, user)
	if err != nil {
		return err
	}
	allowed, end := s.denials.Bound(ctx, connection.JetStream(s.api()))
	differences, err := streams.Ensure(allowed, s.js, []jetstream.StreamConfig{config})
	if err = end(err); err != nil {
		return err
	}
	for _, d := range differences {
		s.log.Warn("a bucket is used as it is, though it differs from what is recommended", "difference", d.String())
	}
	return nil
}

// sweepBodies removes what nobody needs from the object store, until ctx ends.
func (s *Service) sweepBodies(ctx context.Context) {
	log := s.repeats.Logger(s.log)
	for bell.Sleep(ctx, orphanInterval) {
		removed, err := s.bodies.Sweep(ctx, bodystore.Sweep{Letters: letters.Of(s.js, s.subjects).Objects})
		if removed > 0 {
			log.Warn("removed bodies of queries from the object store that nobody needs any more", "objects", removed)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn("sweeping the object store", "error", err)
		}
	}
}

package service

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/service/generation"
)

// openPushed fetches what was pushed of the indexes that come from the server, and follows it.
func (s *Service) openPushed(ctx context.Context) (err error) {
	s.onStop("followers", func(context.Context) error {
		s.set.Unfollow()
		return nil
	})
	s.cfg.Indexes, err = depot.Worker{
		Connect: func() (jetstream.JetStream, error) {
			nc, err := s.connect(s.cfg.NATS, "geniemq indexes")
			if err != nil {
				return nil, err
			}
			s.onStop("connection of pushed indexes", func(ctx context.Context) error { return connection.Close(ctx, nc) })
			return connection.JetStreamOf(nc, &s.cfg)
		},
		Prefix: s.cfg.Prefix, Folder: filepath.Join(s.cfg.DataDir, "indexes"), Log: s.log, Follow: s.set.Follow, Swap: s.swapPushed,
	}.Fetched(ctx, s.cfg.Indexes)
	return err
}

func (s *Service) swapPushed(ctx context.Context, name, file string) error {
	_, _, err := s.Swap(ctx, name, file)
	if refused := (*generation.RefusedError)(nil); err == nil || errors.As(err, &refused) || errors.Is(err, generation.ErrEnding) {
		return err
	}
	return &depot.FinalError{Err: err}
}

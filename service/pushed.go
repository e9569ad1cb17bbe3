package service

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/service/generation"
)

// openPushed fetches what was pushed of the indexes that come from the server, and follows it.
func (s *Service) openPushed(ctx context.Context) (err error) {
	s.pushed = &depot.Worker{
		Connect: func() (jetstream.JetStream, error) {
			_, js, err := s.connect(cmp.Or(s.url, s.cfg.NATS), "geniemq indexes") // an embedded server has an address when it runs
			return js, err
		},
		Prefix: s.cfg.Prefix, Folder: filepath.Join(s.cfg.DataDir, "indexes"), Log: s.log, Swap: s.swapPushed,
	}
	s.onEnd("followers", s.set.Unfollow)
	s.cfg.Indexes, err = s.pushed.Fetched(ctx, s.cfg.Indexes, func(served string, by depot.Follower) { s.set.Follow(served, by) })
	return err
}

func (s *Service) swapPushed(ctx context.Context, name, file string) error {
	_, _, err := s.Swap(ctx, name, file)
	if refused := (*generation.RefusedError)(nil); err == nil || errors.As(err, &refused) || errors.Is(err, generation.ErrEnding) {
		return err
	}
	return &depot.FinalError{Err: err}
}

package service

import (
	"context"
	"time"

	"github.com/geniemq/geniemq/consumer"
)

// mendedWait bounds what is done after a new start of the server.
const mendedWait = 10 * time.Second

// brokerMended removes what the server could not remove when the disk was full.
func (s *Service) brokerMended(ctx context.Context) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if !running {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mendedWait)
	defer cancel()
	for !s.nc.IsConnected() && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if err := consumer.RemoveSettled(ctx, s.js, s.subjects); err != nil {
		s.log.Warn("queries that were answered while the disk was full are still in their stream", "error", err)
	}
}

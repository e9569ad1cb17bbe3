package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/connection"
)

// connect connects to the server, and logs the errors of the connection.
func (s *Service) connect(url, name string) (*nats.Conn, error) {
	nc, err := connection.Stay(url, name, &s.cfg, s.log)
	if err != nil {
		return nil, err
	}
	connection.LogErrors(nc, s.repeats.Logger(s.log.With("connection", name)))
	return nc, nil
}

// needs says whether a worker is of no use when something is forbidden: to look at its streams and its durables, to make what is
// missing of them, to pull, to acknowledge, and to get answers. What else it asks for it does without: a sweep that is not allowed
// is not made, and what users name in Genie-Reply is their affair.
func (s *Service) needs(e *connection.ForbiddenError) bool {
	if e.Action == "subscribe" {
		return strings.HasPrefix(e.Subject, nats.InboxPrefix)
	}
	stream := s.subjects.QueryStream()
	for _, own := range []string{stream, s.subjects.ResultStream()} {
		if e.Subject == "$JS.API.STREAM.INFO."+own {
			return true
		}
	}
	for _, x := range s.indexes {
		durable := stream + "." + s.subjects.Durable(x.name)
		for _, api := range []string{"CONSUMER.INFO.", "CONSUMER.MSG.NEXT.", "CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE."} {
			if rest, ok := strings.CutPrefix(e.Subject, "$JS.API."+api+durable); ok && (rest == "" || rest[0] == '.') {
				return true
			}
		}
		if strings.HasPrefix(e.Subject, "$JS.ACK.") && strings.Contains(e.Subject, "."+durable+".") {
			return true
		}
	}
	return false
}

// awaitDurables returns when all consumers have looked at their durables, or made them, with what the server did not allow. Whatever else
// keeps them from it may pass, so it is no reason not to start.
func (s *Service) awaitDurables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	ctx, end := s.denials.Bound(ctx, s.needs)
	for _, x := range s.indexes {
		for errors.Is(x.stored.consumer.Progress().Err, consumer.ErrNotStarted) && ctx.Err() == nil {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	err := s.nc.FlushWithContext(ctx)
	if denied := connection.Denied(s.nc.LastError()); denied != nil && s.needs(denied) {
		err = denied
	}
	var denied *connection.ForbiddenError
	if err = end(err); errors.As(err, &denied) {
		return err
	}
	return nil
}

package service

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/connection"
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
	// What is asked on the connection to the server of before is lost with it, and that this is gone may not have been noticed yet. It answers no ping.
	for s.ping(ctx) != nil && bell.Sleep(ctx, 10*time.Millisecond) {
	}
	for _, class := range s.classes {
		if err := streams.RemoveSettled(ctx, s.js, s.subjects.Stream(class)); err != nil {
			s.log.Warn("queries that were answered while the disk was full are still in their stream", "error", err)
		}
	}
}

// ping is nil when the server has answered, which has a second for it.
func (s *Service) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.nc.FlushWithContext(ctx)
}

// keep makes a connection that the service needs, while it starts: it is ready while it has that, and closes it at its end.
func (s *Service) keep(url, name string) (*nats.Conn, jetstream.JetStream, error) {
	nc, js, err := s.connect(url, name)
	if err != nil {
		return nil, nil, err
	}
	s.conns = append(s.conns, nc)
	s.onStop(name+" connection", func(ctx context.Context) error { return connection.Close(ctx, nc) })
	return nc, js, nil
}

// connect makes a connection to the server, which is its caller's, and logs its errors.
func (s *Service) connect(url, name string) (*nats.Conn, jetstream.JetStream, error) {
	nc, js, err := connection.Stay(url, name, &s.cfg, s.log)
	if err == nil {
		connection.LogErrors(nc, s.repeats.Logger(s.log.With("connection", name)))
	}
	return nc, js, err
}

// needs says whether a worker is of no use when something is forbidden: to look at its streams and its durables, to make what is
// missing of them, to pull, to acknowledge, and to get answers. What else it asks for it does without: a sweep that is not allowed
// is not made, and what users name in Genie-Reply is their affair.
func (s *Service) needs(e *connection.ForbiddenError) bool { return s.needsOf(e, s.set.Names()...) }

// needsOf is needs of a worker that serves only so many indexes.
func (s *Service) needsOf(e *connection.ForbiddenError, names ...string) bool {
	if e.Action == "subscribe" {
		return strings.HasPrefix(e.Subject, nats.InboxPrefix)
	}
	if s.needsStream(e, s.subjects.ResultStream()) {
		return true
	}
	for _, class := range s.classes {
		stream := s.subjects.Stream(class)
		if s.needsStream(e, stream) {
			return true
		}
		for _, name := range names {
			if s.needsDurable(e, stream+"."+s.subjects.Durable(name)) {
				return true
			}
		}
	}
	return false
}

// api is what the subject of a request to the JetStream API begins with.
func (s *Service) api() string { return streams.API(s.js.Options()) }

func (s *Service) needsStream(e *connection.ForbiddenError, name string) bool {
	return e.Subject == s.api()+"STREAM.INFO."+name
}

func (s *Service) needsDurable(e *connection.ForbiddenError, durable string) bool {
	for _, request := range []string{"CONSUMER.INFO.", "CONSUMER.MSG.NEXT.", "CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE."} {
		if rest, ok := strings.CutPrefix(e.Subject, s.api()+request+durable); ok && (rest == "" || rest[0] == '.') {
			return true
		}
	}
	return strings.HasPrefix(e.Subject, "$JS.ACK.") && strings.Contains(e.Subject, "."+durable+".")
}

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

const (
	// watchInterval is how often streams and durables are looked at. What is wrong with them shows within twice that.
	watchInterval = time.Second
	// watchWait bounds one look.
	watchWait = 5 * time.Second
)

// streamWatch looks at the streams of queries and of results while the service runs: whether they are there and take what
// belongs into them, how large a message of results may be now, and what time the server has. It is a small request a second for each.
// The durables are looked at by their consumers, just as often.
type streamWatch struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects wire.Subjects
	clock    *clock.Clock
	watched  []watched

	resultBytes atomic.Int64 // the result stream's limit on a message; 0: none
	startBytes  int64        // what it was when the service started

	mu     sync.Mutex
	faults []error // of each that is watched
}

// watched is a stream with subjects that it must take.
type watched struct {
	name  string
	needs []string
}

// start looks at the streams for the first time.
func (w *streamWatch) start(ctx context.Context) {
	w.look(ctx)
	w.startBytes = w.resultBytes.Load()
}

// run looks again and again until ctx ends.
func (w *streamWatch) run(ctx context.Context) {
	for bell.Sleep(ctx, watchInterval) {
		if w.nc.IsConnected() { // else that is what is wrong
			w.look(ctx)
		}
	}
}

// look asks for the state of the streams.
func (w *streamWatch) look(ctx context.Context) {
	for i, stream := range w.watched {
		err := w.lookAt(ctx, stream.name, stream.needs)
		if ctx.Err() != nil || !w.nc.IsConnected() {
			return // that says nothing about the stream
		}
		w.mu.Lock()
		w.faults[i] = err
		w.mu.Unlock()
	}
}

func (w *streamWatch) lookAt(ctx context.Context, name string, needs []string) error {
	ctx, cancel := context.WithTimeout(ctx, watchWait)
	defer cancel()
	sent := w.clock.Wall()
	stream, err := w.js.Stream(ctx, name)
	received := w.clock.Wall()
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("stream %s does not exist: make it again, or restart a worker, which does", name)
	case err != nil:
		return fmt.Errorf("stream %s does not answer: %w", name, err)
	}
	info := stream.CachedInfo()
	config := &info.Config
	if name == w.subjects.QueryStream() { // its leader stamps the queries
		w.clock.Observe(sent, info.TimeStamp, received)
	} else if name == w.subjects.ResultStream() {
		w.resultBytes.Store(int64(max(0, config.MaxMsgSize)))
	}
	if config.Sealed {
		return fmt.Errorf("stream %s is sealed and takes no messages", name)
	}
	for _, subject := range needs {
		if !slices.ContainsFunc(config.Subjects, func(pattern string) bool { return wire.MatchSubject(pattern, subject) }) {
			return fmt.Errorf("stream %s does not take %s: its subjects are %v", name, subject, config.Subjects)
		}
	}
	return nil
}

// fault is what is wrong with the streams, or nil.
func (w *streamWatch) fault() error {
	w.mu.Lock()
	faults := slices.Clone(w.faults)
	w.mu.Unlock()
	now, then := w.resultBytes.Load(), w.startBytes
	if now > 0 && (then == 0 || now < then) {
		was := "unlimited"
		if then > 0 {
			was = fmt.Sprint(then)
		}
		faults = append(faults, fmt.Errorf("max_msg_size of stream %s was lowered to %d, and was %s when the service started: "+
			"answers are cut to fit, larger results are too_large; raise it, or restart the worker to accept it",
			w.subjects.ResultStream(), now, was))
	}
	return errors.Join(faults...)
}

// maxResult is how large a stored answer may be, headers included, as far as is known. Another server of a cluster may
// have another limit.
func (w *streamWatch) maxResult() int64 {
	limit := w.nc.MaxPayload()
	if size := w.resultBytes.Load(); size > 0 {
		limit = min(limit, size)
	}
	return limit
}

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
		bell.Sleep(ctx, 10*time.Millisecond)
	}
	for _, class := range s.classes {
		if err := streams.RemoveSettled(ctx, s.js, s.subjects.Stream(class)); err != nil {
			s.log.Warn("queries that were answered while the disk was full are still in their stream", "error", err)
		}
	}
}

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
	if s.needsStream(e, s.subjects.ResultStream()) {
		return true
	}
	for _, class := range s.classes {
		stream := s.subjects.Stream(class)
		if s.needsStream(e, stream) {
			return true
		}
		for _, x := range s.indexes {
			if s.needsDurable(e, stream+"."+s.subjects.Durable(x.name)) {
				return true
			}
		}
	}
	return false
}

// api is what the subject of a request to the JetStream API begins with.
func (s *Service) api() string {
	if domain := s.cfg.Streams.Domain; domain != "" {
		return "$JS." + domain + ".API."
	}
	return jetstream.DefaultAPIPrefix
}

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

// awaitDurables returns when all consumers have looked at their durables, or made them, with what the server did not allow. Whatever else
// keeps them from it may pass, so it is no reason not to start.
func (s *Service) awaitDurables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	ctx, end := s.denials.Bound(ctx, s.needs)
	for _, intake := range s.intakes {
		for errors.Is(intake.consumer.Progress().Err, consumer.ErrNotStarted) && ctx.Err() == nil {
			bell.Sleep(ctx, time.Millisecond)
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

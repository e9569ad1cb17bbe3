// Package streamwatch looks at the streams of a worker while it runs.
package streamwatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/wire"
)

const (
	// Interval is how often streams and durables are looked at. What is wrong with them shows within twice that.
	Interval = time.Second
	// wait bounds one look.
	wait = 5 * time.Second
)

// Watch looks at the streams of queries and of results while the service runs: whether they are there and take what
// belongs into them, how large a message of results may be now, and what time the server has. It is a small request a second for each.
// The durables are looked at by their consumers, just as often.
type Watch struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects wire.Subjects
	clock    *clock.Clock
	watched  []Stream

	resultBytes atomic.Int64 // the result stream's limit on a message; 0: none
	startBytes  int64        // what it was when the service started

	mu     sync.Mutex
	faults []error                // of each that is watched
	infos  []jetstream.StreamInfo // the same; the zero value until they were seen, and while they are not there
}

// Stream is a stream with subjects that it must take, which Needs says whenever it is looked at: indexes come and go.
type Stream struct {
	Name  string
	Needs func() []string
}

// New makes a watch of streams, which has not looked yet.
func New(js jetstream.JetStream, subjects wire.Subjects, clock *clock.Clock, watched ...Stream) *Watch {
	return &Watch{nc: js.Conn(), js: js, subjects: subjects, clock: clock, watched: watched, faults: make([]error, len(watched)), infos: make([]jetstream.StreamInfo, len(watched))}
}

// Start looks at the streams for the first time.
func (w *Watch) Start(ctx context.Context) {
	w.look(ctx)
	w.startBytes = w.resultBytes.Load()
}

// Run looks again and again until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for bell.Sleep(ctx, Interval) {
		if w.nc.IsConnected() { // else that is what is wrong
			w.look(ctx)
		}
	}
}

// look asks for the state of the streams.
func (w *Watch) look(ctx context.Context) {
	for i, stream := range w.watched {
		info, err := w.lookAt(ctx, stream.Name, stream.Needs())
		if ctx.Err() != nil || !w.nc.IsConnected() {
			return // that says nothing about the stream
		}
		w.mu.Lock()
		w.faults[i], w.infos[i] = err, info
		w.mu.Unlock()
	}
}

func (w *Watch) lookAt(ctx context.Context, name string, needs []string) (info jetstream.StreamInfo, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	sent := w.clock.Now()
	stream, err := w.js.Stream(ctx, name)
	received := w.clock.Now()
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return info, fmt.Errorf("stream %s does not exist: make it again, or restart a worker, which does", name)
	case err != nil:
		return info, fmt.Errorf("stream %s does not answer: %w", name, err)
	}
	info = *stream.CachedInfo()
	config := &info.Config
	if name == w.subjects.QueryStream() { // its leader stamps the queries
		w.clock.Observe(sent, info.TimeStamp, received)
	} else if name == w.subjects.ResultStream() {
		w.resultBytes.Store(int64(max(0, config.MaxMsgSize)))
	}
	if config.Sealed {
		return info, fmt.Errorf("stream %s is sealed and takes no messages", name)
	}
	for _, subject := range needs {
		if !slices.ContainsFunc(config.Subjects, func(pattern string) bool { return wire.MatchSubject(pattern, subject) }) {
			return info, fmt.Errorf("stream %s does not take %s: its subjects are %v", name, subject, config.Subjects)
		}
	}
	return info, nil
}

// Info is how a stream was when it was last looked at; the zero value when it was not there.
func (w *Watch) Info(name string) (info jetstream.StreamInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, stream := range w.watched {
		if stream.Name == name {
			return w.infos[i]
		}
	}
	return info
}

// Fault is what is wrong with the streams, or nil.
func (w *Watch) Fault() error {
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

// MaxResult is how large a stored answer may be, headers included, as far as is known. Another server of a cluster may
// have another limit.
func (w *Watch) MaxResult() int64 {
	limit := w.nc.MaxPayload()
	if size := w.resultBytes.Load(); size > 0 {
		limit = min(limit, size)
	}
	return limit
}

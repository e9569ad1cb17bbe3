// Package service makes a worker of the parts: it loads indexes, connects to NATS or starts a server of its own,
// and answers queries until it is told to stop.
//
// It is the only place that knows all parts. consumer, batcher, gpuexec and producer do not know each other; what
// goes from one to the next goes through a pipeline here, of which there is one for each index.
package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/clock"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/service/door"
	"github.com/geniemq/geniemq/service/exclusion"
	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/service/intake"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/repeats"
	"github.com/geniemq/geniemq/service/served"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/service/streamwatch"
	"github.com/geniemq/geniemq/service/suspects"
	"github.com/geniemq/geniemq/wire"
)

// Options are what a Service takes from its program rather than from its user.
type Options struct {
	// Logger takes the service's log. Default: none.
	Logger *slog.Logger
	// OpenEngine opens the engine that all indexes share. Default: open.Engine.
	OpenEngine func(kind string, opts gpuexec.Options) (gpuexec.Engine, error)
	// Kinds are what indexes may be made of. Default: index.Builtin(). An engine that searches other families is OpenEngine's.
	Kinds index.Kinds
	// Now is this host's clock, which need not agree with the server's. Default: time.Now.
	Now func() time.Time
}

// Service is a running worker: some indexes, one engine, and connections to one server.
//
// Start returns when everything is in place and messages are being pulled. From then on a Service runs until
// Shutdown; when something breaks that only a new process can mend, a GPU that is lost above all, Failed is closed
// and Err says why, and the owner is expected to call Shutdown and exit for the supervisor to start it again.
//
// # Order
//
// Parts are started in the order in which a message needs them, from the engine back to the intake, and each
// registers how it is stopped. Shutdown stops them in the reverse order, which is the order in which a message goes
// through them: intakes, pipelines, producers, connections, engine, broker. So nothing is ever handed to a part that has
// ended, and whatever was pulled is answered, or given back when the time is over.
type Service struct {
	cfg     config.Config
	log     *slog.Logger
	metrics *metrics.Metrics
	budget  *memory.Budget
	started time.Time

	broker    *broker.Broker
	url       string // of the server
	nc        *nats.Conn
	js        jetstream.JetStream
	subjects  wire.Subjects
	classes   []wire.Class // of stored queries that are served
	replies   *intake.Replies
	admission *intake.Admissions
	limits    wire.Limits
	clock     *clock.Clock
	watch     *streamwatch.Watch
	traces    *observe.Traces // nil: none are sent
	denials   *connection.Denials
	conns     []*nats.Conn
	repeats   *repeats.Limiter
	kinds     index.Kinds
	engine    gpuexec.Engine
	carriers  intake.Carriers
	bodies    *bodystore.Store
	fetcher   *fetch.Fetcher
	answers   *storedanswers.Reader
	admin     *admin.Server
	door      *door.Door
	set       *served.Set
	pushed    *depot.Worker
	exclusion exclusion.Lock
	suspects  *suspects.Runner

	aborted context.Context // ends when what was pulled is given up
	abandon context.CancelFunc

	stop       []func(context.Context) error // in the order of the start
	conditions []func(time.Time) error       // of readiness

	mu       sync.Mutex
	running  bool // Start is done
	stopping bool // Shutdown has begun
	err      error
	failed   chan struct{}
}

// onStop registers how what was just started is stopped.
func (s *Service) onStop(what string, stop func(context.Context) error) {
	s.stop = append(s.stop, func(ctx context.Context) error {
		s.log.Debug("stopping", "part", what)
		if err := stop(ctx); err != nil {
			return fmt.Errorf("stopping the %s: %w", what, err)
		}
		return nil
	})
}

// onEnd is onStop of what cannot fail, and takes the time that it takes.
func (s *Service) onEnd(what string, end func()) {
	s.onStop(what, func(context.Context) error {
		end()
		return nil
	})
}

// Shutdown stops pulling, answers what was pulled, gives back what is not answered when ctx ends, and ends every
// goroutine. It must be called, whether the service failed or not; a second call does nothing. The error tells what was not orderly; nothing
// is lost even then, since what is not acknowledged is delivered again.
func (s *Service) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok {
		s.set.Hurry(deadline)
	}
	release := context.AfterFunc(ctx, s.abandon)
	defer release()
	defer s.abandon()
	var faults []error
	for _, stop := range slices.Backward(s.stop) {
		faults = append(faults, stop(ctx))
	}
	s.stop = nil
	return errors.Join(faults...)
}

// fail ends the service for a reason that only a new process can mend.
func (s *Service) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
		close(s.failed)
	}
	s.mu.Unlock()
	if first {
		s.log.Error("the service cannot go on", "error", err)
		s.set.GiveBack()
		s.abandon()
	}
}

// Failed is closed when the service cannot go on.
func (s *Service) Failed() <-chan struct{} { return s.failed }

// Err is why the service cannot go on, or nil.
func (s *Service) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// NATSURL is the server's address, for people: what it takes to be let in is not part of it.
func (s *Service) NATSURL() string {
	if s.broker != nil {
		return s.broker.URL()
	}
	return connection.ServerURL(s.nc)
}

// HTTPURL is the address of the HTTP door, "" when there is none.
func (s *Service) HTTPURL() string {
	if s.door == nil {
		return ""
	}
	return s.door.URL()
}

// AdminURL is the address of the admin page, "" when there is none.
func (s *Service) AdminURL() string {
	if s.admin == nil {
		return ""
	}
	return s.admin.URL()
}

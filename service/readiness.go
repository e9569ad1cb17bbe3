package service

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// readyWhile adds a condition of readiness: the service is ready while check returns nil, and else /readyz says what it
// returns. Parts add theirs when they are started, in the order in which reasons are to be read. A check is called for
// every request to the admin server, from any goroutine, so it looks at what is known and asks nobody.
func (s *Service) readyWhile(check func(now time.Time) error) {
	s.conditions = append(s.conditions, check)
}

// openReadiness adds the conditions of parts that are there as long as the service is.
func (s *Service) openReadiness() {
	if s.broker != nil {
		s.readyWhile(func(time.Time) error { return s.broker.Fault() })
	}
	s.readyWhile(func(time.Time) error {
		if state := s.nc.Status(); state != nats.CONNECTED {
			return fmt.Errorf("the connection to NATS is %s", state)
		}
		return nil
	})
	s.readyWhile(func(time.Time) error { return s.watch.fault() })
	s.readyWhile(func(now time.Time) error {
		if denied := s.denials.Latest(now, s.needs); denied != nil {
			return denied
		}
		return nil
	})
	s.readyWhile(func(time.Time) error {
		if state, blocked := s.publishers.blocked(); blocked {
			return fmt.Errorf("results do not get out: %w", state.Reason)
		}
		return nil
	})
	for _, x := range s.indexes {
		s.readyWhile(func(now time.Time) error {
			err := x.index.FileFault() // all else follows from that
			if err == nil {
				err = errors.Join(x.stored.fault(now), x.index.Fault(now))
			}
			if err != nil {
				return fmt.Errorf("index %s: %w", x.name, err)
			}
			return nil
		})
	}
}

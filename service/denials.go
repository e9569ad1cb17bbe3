package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
)

// ForbiddenError says that the server does not allow this service's user something that it needs.
type ForbiddenError struct {
	Action  string // "publish" or "subscribe"
	Subject string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("the server does not allow to %s to %s: allow it to geniemq's user (docs/configuration.md lists what a worker needs)",
		e.Action, e.Subject)
}

func (e *ForbiddenError) Unwrap() error { return nats.ErrPermissionViolation }

// denials are what the server has forbidden on a connection. It says so in its own time, in words, and to nobody in
// particular: the request that was forbidden just gets no answer. So who makes a request and needs it waits for either.
type denials struct {
	mu      sync.Mutex
	seen    []denial
	waiting map[*denialWait]struct{}
}

type denial struct {
	error *ForbiddenError
	at    time.Time
}

type denialWait struct {
	needs  func(*ForbiddenError) bool
	cancel context.CancelCauseFunc
}

const (
	// maxDenials is how many are remembered. Users can cause as many as they like; what the worker needs it soon asks for again.
	maxDenials = 64
	// denialHolds is how long a denial counts. What is needed is asked for again long before that.
	denialHolds = 45 * time.Second
)

// watchDenials puts itself in front of the connection's error handler.
func watchDenials(nc *nats.Conn) *denials {
	d := &denials{waiting: make(map[*denialWait]struct{})}
	next := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if denied := parseDenial(err); denied != nil {
			d.note(denied)
		}
		if next != nil {
			next(nc, sub, err)
		}
	})
	return d
}

// parseDenial reads what was forbidden out of an asynchronous error of a connection, nil when it is no such error.
func parseDenial(err error) *ForbiddenError {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	for _, form := range []struct{ before, action string }{
		{`Publish to "`, "publish"}, {`Publish with Reply of "`, "publish"}, {`Subscription to "`, "subscribe"},
	} {
		if _, rest, ok := strings.Cut(err.Error(), form.before); ok {
			subject, _, _ := strings.Cut(rest, `"`)
			return &ForbiddenError{form.action, subject}
		}
	}
	return nil
}

func (d *denials) note(e *ForbiddenError) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.seen = slices.DeleteFunc(d.seen, func(old denial) bool { return *old.error == *e || now.Sub(old.at) >= denialHolds })
	d.seen = append(d.seen, denial{e, now})
	if len(d.seen) > maxDenials {
		d.seen = d.seen[1:]
	}
	for w := range d.waiting {
		if w.needs(e) {
			w.cancel(e)
		}
	}
}

// bound returns a context for requests to subjects that are needed, which ends as soon as the server forbids one of them, and a
// function that must be called with their error and returns it, or what was forbidden instead.
func (d *denials) bound(ctx context.Context, needs func(*ForbiddenError) bool) (context.Context, func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &denialWait{needs, cancel}
	d.mu.Lock()
	d.waiting[w] = struct{}{}
	d.mu.Unlock()
	return ctx, func(err error) error {
		d.mu.Lock()
		delete(d.waiting, w)
		d.mu.Unlock()
		var denied *ForbiddenError
		if err != nil && errors.As(context.Cause(ctx), &denied) {
			err = denied
		}
		cancel(nil)
		return err
	}
}

// latest is the last denial of something that is needed, if it is recent.
func (d *denials) latest(now time.Time, needs func(*ForbiddenError) bool) *ForbiddenError {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.seen) - 1; i >= 0; i-- {
		if old := d.seen[i]; now.Sub(old.at) < denialHolds && needs(old.error) {
			return old.error
		}
	}
	return nil
}

// needs says whether a worker is of no use when something is forbidden: to look at its streams and its durables, to make what is
// missing of them, to pull, to acknowledge, and to get answers. What else it asks for it does without: a sweep that is not allowed
// is not made, and what users name in Genie-Reply is their affair.
func (s *Service) needs(e *ForbiddenError) bool {
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

// jetStream says whether something forbidden is of JetStream's API, or an answer of it.
func jetStream(e *ForbiddenError) bool {
	return strings.HasPrefix(e.Subject, "$JS.API.") || strings.HasPrefix(e.Subject, nats.InboxPrefix)
}

// awaitDurables returns when all consumers have looked at their durables, or made them, with what the server did not allow. Whatever else
// keeps them from it may pass, so it is no reason not to start.
func (s *Service) awaitDurables(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	ctx, end := s.denials.bound(ctx, s.needs)
	for _, x := range s.indexes {
		for errors.Is(x.stored.consumer.Progress().Err, consumer.ErrNotStarted) && ctx.Err() == nil {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	err := s.nc.FlushWithContext(ctx)
	if denied := parseDenial(s.nc.LastError()); denied != nil && s.needs(denied) {
		err = denied
	}
	var denied *ForbiddenError
	if err = end(err); errors.As(err, &denied) {
		return err
	}
	return nil
}

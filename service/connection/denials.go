package connection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
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

// Denials are what the server has forbidden on some connections. It says so in its own time, in words, and to nobody in
// particular: the request that was forbidden just gets no answer. So a caller that needs the answer waits for it or for a
// denial, whichever comes first (Bound).
type Denials struct {
	mu      sync.Mutex
	conns   map[*nats.Conn]error // the last error that each was heard of
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
	// maxDenials is how many are remembered. Users can cause as many as they like. The worker soon asks again for what it needs.
	maxDenials = 64
	// denialHolds is how long a denial counts. What is needed is asked for again long before that.
	denialHolds = 45 * time.Second
)

// NewDenials are those of no connection yet.
func NewDenials() *Denials {
	return &Denials{conns: make(map[*nats.Conn]error), waiting: make(map[*denialWait]struct{})}
}

// Watch begins to hear what is forbidden on a connection, in front of the error handler that it has.
func (d *Denials) Watch(nc *nats.Conn) {
	d.mu.Lock()
	d.conns[nc] = nc.LastError()
	d.mu.Unlock()
	next := nc.ErrorHandler()
	nc.SetErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		d.heard(nc, err)
		if next != nil {
			next(nc, sub, err)
		}
	})
}

// heard takes note of an error of a connection.
func (d *Denials) heard(nc *nats.Conn, err error) {
	d.mu.Lock()
	again := d.conns[nc] == err //nolint:errorlint // another occurrence is meant
	d.conns[nc] = err
	d.mu.Unlock()
	if denied := Denied(err); denied != nil && !again {
		d.note(denied)
	}
}

// Flush returns when the server has read what was sent on all connections, and what it has forbidden of that is known: the client would tell it later.
func (d *Denials) Flush(ctx context.Context) error {
	d.mu.Lock()
	conns := slices.Collect(maps.Keys(d.conns))
	d.mu.Unlock()
	for _, nc := range conns {
		if err := nc.FlushWithContext(ctx); err != nil {
			return fmt.Errorf("flushing the connection %q: %w", nc.Opts.Name, err)
		}
		if last := nc.LastError(); last != nil {
			d.heard(nc, last)
		}
	}
	return nil
}

// Denied reads what was forbidden out of an asynchronous error of a connection, nil when it is no such error.
func Denied(err error) *ForbiddenError {
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

func (d *Denials) note(e *ForbiddenError) {
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

// Bound returns a context for requests to subjects that are needed, which ends as soon as the server forbids one of them, and a
// function that must be called with their error and returns it, or what was forbidden instead.
func (d *Denials) Bound(ctx context.Context, needs func(*ForbiddenError) bool) (context.Context, func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &denialWait{needs, cancel}
	d.mu.Lock()
	d.waiting[w] = struct{}{}
	d.mu.Unlock()
	return ctx, func(err error) error {
		d.mu.Lock()
		delete(d.waiting, w)
		d.mu.Unlock()
		if denied, ok := errors.AsType[*ForbiddenError](context.Cause(ctx)); err != nil && ok {
			err = denied
		}
		cancel(nil)
		return err
	}
}

// Latest is the last denial of something that is needed, a [ForbiddenError], if it is recent.
func (d *Denials) Latest(now time.Time, needs func(*ForbiddenError) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.seen) - 1; i >= 0; i-- {
		if old := d.seen[i]; now.Sub(old.at) < denialHolds && needs(old.error) {
			return old.error
		}
	}
	return nil
}

// JetStream says whether something forbidden is of JetStream's API, the requests to which begin with api, or an answer of it.
func JetStream(api string) (is func(e *ForbiddenError) bool) {
	return func(e *ForbiddenError) bool {
		return strings.HasPrefix(e.Subject, api) || strings.HasPrefix(e.Subject, nats.InboxPrefix)
	}
}

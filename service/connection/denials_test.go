package connection

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func denied(form, subject string) error {
	return fmt.Errorf("%w: Permissions Violation for %s%q", nats.ErrPermissionViolation, form, subject)
}

// What a server says when it forbids something is understood; what it says otherwise is no denial.
func TestDenied(t *testing.T) {
	for form, action := range map[string]string{"Publish to ": "publish", "Publish with Reply of ": "publish", "Subscription to ": "subscribe"} {
		if e := Denied(denied(form, "a.b")); e == nil || e.Action != action || e.Subject != "a.b" || !errors.Is(e, nats.ErrPermissionViolation) {
			t.Errorf("%s: %+v", form, e)
		}
	}
	for _, err := range []error{nil, nats.ErrTimeout, nats.ErrPermissionViolation, fmt.Errorf(`Publish to "a.b"`)} {
		if e := Denied(err); e != nil {
			t.Errorf("%v: %+v", err, e)
		}
	}
}

// A request ends as soon as something that it needs is forbidden, with that as its error, and bears that other things are.
func TestBoundEndsWithDenial(t *testing.T) {
	d := &Denials{waiting: make(map[*denialWait]struct{})}
	needs := func(e *ForbiddenError) bool { return e.Subject == "needed" }
	ctx, end := d.Bound(t.Context(), needs)
	d.note(&ForbiddenError{"publish", "other"})
	if ctx.Err() != nil {
		t.Fatal("a denial of something else ends the request")
	}
	d.note(&ForbiddenError{"publish", "needed"})
	<-ctx.Done()
	var forbidden *ForbiddenError
	if err := end(ctx.Err()); !errors.As(err, &forbidden) || forbidden.Subject != "needed" {
		t.Errorf("the error is %v", err)
	}
	if len(d.waiting) > 0 {
		t.Error("a request that has ended is still waited for")
	}

	ctx, end = d.Bound(t.Context(), needs)
	other := errors.New("other")
	if err := end(other); err != other || ctx.Err() == nil {
		t.Errorf("the error is %v, the context's %v", err, ctx.Err())
	}
	ctx, end = d.Bound(t.Context(), needs)
	if err := end(nil); err != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("the error is %v, the context's cause %v", err, context.Cause(ctx))
	}
}

// The last denial of something needed counts for a while, whatever else users cause in the meantime.
func TestLatestDenial(t *testing.T) {
	d := &Denials{waiting: make(map[*denialWait]struct{})}
	needs := func(e *ForbiddenError) bool { return e.Action == "subscribe" }
	for i := range 10 * maxDenials {
		d.note(&ForbiddenError{"publish", fmt.Sprint(i)})
	}
	if len(d.seen) > maxDenials {
		t.Errorf("%d denials are remembered", len(d.seen))
	}
	if e := d.Latest(time.Now(), needs); e != nil {
		t.Errorf("%v is not needed", e)
	}
	for range 3 {
		d.note(&ForbiddenError{"subscribe", "a"})
	}
	d.note(&ForbiddenError{"publish", "x"})
	if e := d.Latest(time.Now(), needs); e == nil || e.Subject != "a" {
		t.Errorf("the last denial is %v", e)
	}
	if e := d.Latest(time.Now().Add(denialHolds), needs); e != nil {
		t.Errorf("%v counts for ever", e)
	}
}

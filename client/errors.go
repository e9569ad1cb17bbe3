package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

// Errors to tell apart with errors.Is. What the service answers is a *[wire.Error] instead, for errors.As, and its
// code for errors.Is: errors.Is(err, wire.Overloaded).
var (
	// ErrNotServed: no worker listens for direct search of this index. The durable calls would wait for one.
	ErrNotServed = errors.New("no worker serves this index")
	// ErrNoStream: the streams are not there, so that a query would be lost: the service has never run here, or runs
	// with another prefix or in another account.
	ErrNoStream = errors.New("geniemq's streams are not here")
	// ErrQueueFull: the stream of queries has no room for this index. Nothing was published; try again later.
	ErrQueueFull = errors.New("the queue is full")
	// ErrBucketFull: the query is too large for a message, and the bucket for such queries has no room. Nothing was published; try again when workers have answered
	// what is in it, or have it given more room (stream-bytes objects=…).
	ErrBucketFull = errors.New("the bucket of large queries is full")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("the client is closed")
)

// IsRefusal reports whether an error is the service's or this library's verdict on the query itself, so that sending
// the same query again is useless.
func IsRefusal(err error) bool {
	var e *wire.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case wire.Overloaded, wire.DeadlineExceeded, wire.Internal, wire.UnknownIndex, wire.ObjectMissing:
		return false
	}
	return true
}

// streamError names what JetStream answered to a publish in terms of this package, as far as it has one.
func streamError(err error, subject string) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w: none takes %s; start geniemq there once, or check the prefix", ErrNoStream, subject)
	case errors.As(err, &api) && api.ErrorCode == errCodeStoreFailed && strings.Contains(api.Description, "maximum"):
		return fmt.Errorf("%w: %s: %s", ErrQueueFull, subject, api.Description)
	}
	return fmt.Errorf("publishing to %s: %w", subject, err)
}

// errCodeStoreFailed is the server's JSStreamStoreFailedF: the stream's limits with discard new.
const errCodeStoreFailed jetstream.ErrorCode = 10077

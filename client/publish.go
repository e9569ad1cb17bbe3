package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// PublishOptions are options of one publish. The zero value is ready for use.
type PublishOptions struct {
	// Reply is the subject that the answer goes to: literal, and allowed by the service (_INBOX.>, genie.result.<index> and
	// genie.result.<index>.> unless it is configured otherwise; of a user _INBOX.> and genie.result.<index>.<user>.>). Default genie.result.<index>, of a user
	// genie.result.<index>.<user>.answers.
	Reply string
	// MsgID makes publishing idempotent beyond this call: within the stream's duplicate window, 2 minutes, a
	// message with an id that was seen is not stored again. It must be unique across the whole stream, all users
	// and indexes. A query published alone and without an ID has it as its result's ID. Default a new unique id.
	MsgID string
	// Header is added to the message's headers.
	Header nats.Header
}

// Receipt says where a query was stored.
type Receipt struct {
	MsgID    string // its Nats-Msg-Id
	Stream   string
	Sequence uint64 // in the stream; results have it as Genie-Query-Seq
	// Duplicate says that the stream had a message with this id already, and Sequence is that one's.
	Duplicate bool
}

// String says where, without the message's id.
func (r Receipt) String() string {
	said := fmt.Sprintf("published as %s:%d", r.Stream, r.Sequence)
	if r.Duplicate {
		return said + ", a duplicate"
	}
	return said + ", not a duplicate"
}

// Publish stores a query for an index in the stream and returns when the stream has confirmed it. The answer goes to
// opts.Reply.
//
// While the connection is away it goes on trying until the context, or Options.Timeout, ends it; after such an error
// the query may have been stored or not, and publishing it again with the same MsgID is safe. The query's own timeout_ms
// is not derived from the context.
//
// A query that is too large for a message of the server is stored in its object store first; see [Client].
//
// Errors: [ErrNoStream], [ErrQueueFull], [ErrBucketFull], *[wire.Error] for what the service would refuse, those of the context and of
// nats.go.
func (c *Client) Publish(ctx context.Context, index string, q Query, opts PublishOptions) (Receipt, error) {
	return c.publishQueries(ctx, index, []Query{q}, false, opts)
}

// PublishBatch is [Client.Publish] for many queries in one message, whose answers come together, in their order.
func (c *Client) PublishBatch(ctx context.Context, index string, queries []Query, opts PublishOptions) (Receipt, error) {
	return c.publishQueries(ctx, index, queries, true, opts)
}

func (c *Client) publishQueries(ctx context.Context, index string, queries []Query, batch bool, opts PublishOptions) (Receipt, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	msg, err := c.message(ctx, c.storedSubject, index, queries, batch, false, c.storedLimits())
	if err != nil {
		return Receipt{}, err
	}
	maps.Copy(msg.Header, opts.Header)
	if opts.Reply != "" {
		if err := wire.ValidateReplySubject(opts.Reply, []string{">"}); err != nil {
			return Receipt{}, err
		}
		msg.Header.Set(wire.HeaderReply, opts.Reply)
	}
	if opts.MsgID != "" {
		msg.Header.Set(wire.HeaderMsgID, opts.MsgID)
	}
	return c.store(ctx, msg)
}

const (
	// attempt is how long one try of a publish waits for its acknowledgement.
	attempt = 5 * time.Second
	// pause is between tries that failed at once.
	pause = 250 * time.Millisecond
	// noResponders is how often a try is repeated within an attempt while no stream answers: one that is
	// electing a leader does so soon, one that does not exist never.
	noResponders = 6
)

// store publishes until the stream confirms, with one message id for all tries.
func (c *Client) store(ctx context.Context, msg *nats.Msg) (Receipt, error) {
	id := msg.Header.Get(wire.HeaderMsgID)
	if id == "" {
		id = nuid.Next()
		msg.Header.Set(wire.HeaderMsgID, id)
	}
	object, err := c.large(ctx, msg)
	if err != nil {
		return Receipt{}, err
	}
	if err := c.checkPayload(msg); err != nil {
		c.unpublished(object)
		return Receipt{}, err
	}
	if object != "" { // later it could be swept away before its query is there
		bounded, cancel := context.WithTimeout(ctx, bodystore.PublishWithin)
		defer cancel()
		ctx = bounded
	}
	var last error
	for tries := 1; ; tries++ {
		ack, err := c.tryStore(ctx, msg)
		// What an earlier try has come to is not known, and then the object may be needed.
		if tries == 1 && (err == nil && ack.Duplicate || err != nil && !c.passes(err) && refused(err)) {
			c.unpublished(object)
		}
		if err == nil {
			return Receipt{MsgID: id, Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
		}
		if ctx.Err() != nil {
			return Receipt{}, fmt.Errorf("publishing to %s, not confirmed; tries: %d, last: %s: %w", msg.Subject, tries, cmp.Or(last, err).Error(), cause(ctx))
		}
		last = err
		if !c.passes(err) {
			return Receipt{}, streamError(err, msg.Subject)
		}
		bell.Sleep(ctx, pause)
	}
}

func (c *Client) tryStore(ctx context.Context, msg *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	return c.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(noResponders), jetstream.WithRetryWait(pause))
}

// passes reports whether an error of a publish may pass by itself.
func (c *Client) passes(err error) bool {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return false
	case !c.nc.IsConnected():
		return true
	case errors.As(err, &api):
		return api.Code == 503 && api.ErrorCode != errCodeStoreFailed // a cluster without a leader, not a full stream
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrReconnectBufExceeded) || broken(err)
}

// broken says that a connection, which may be there again, broke while something was written to it.
func broken(err error) bool {
	var network *net.OpError
	return errors.As(err, &network)
}

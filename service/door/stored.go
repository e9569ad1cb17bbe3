package door

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/wire"
)

const (
	defaultWait = 30 * time.Second
	maxWait     = time.Minute
	// storeWait bounds how long a query may take to be stored. It comes before the wait for the answer.
	storeWait = 10 * time.Second
	// look is how often a request looks into the stream while it waits: what a subscription cannot bring is there.
	look = 2 * time.Second
	// maxKey is the longest Idempotency-Key.
	maxKey = 255
)

// store stores a query, and answers by its answer, or by where it is stored if that takes long.
func (d *Door) store(w http.ResponseWriter, r *http.Request) {
	m, err := d.message(w, r, d.source.MaxLarge)
	if err != nil {
		refuse(w, err)
		return
	}
	wait, err := waitOf(r.Header.Values("Prefer"))
	if err != nil {
		refuse(w, err)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		key = nuid.Next()
	} else if len(key) > maxKey || wire.HeaderID(key) != key {
		refuse(w, wire.Errorf(wire.BadRequest, "Idempotency-Key has more than %d bytes, or control characters", maxKey))
		return
	}
	index := r.PathValue("index")
	sum := sha256.Sum256([]byte(key))
	reply := d.source.Subjects.Reply(index, "by."+hex.EncodeToString(sum[:16])) // as the clients of other languages make it
	m.Subject = d.source.Subjects.Query(index)
	m.Header.Set(wire.HeaderMsgID, key)
	m.Header.Set(wire.HeaderReply, reply)
	w.Header().Set("Idempotency-Key", key)

	sub, err := d.source.Conn.SubscribeSync(reply)
	if err != nil {
		refuse(w, wire.Errorf(wire.Internal, "waiting for the answer: %v", err))
		return
	}
	defer func() { _ = sub.Unsubscribe() }()
	ctx, cancel := context.WithTimeout(r.Context(), storeWait)
	defer cancel()
	ack, err := d.publish(ctx, m)
	if err != nil {
		refuse(w, unstored(err))
		return
	}
	answer := &answer{contentType: jsonType}
	if d.await(r.Context(), wait, sub, reply, answer) {
		if answer.err != nil {
			refuse(w, answer.err)
			return
		}
		send(w, status(answer.code), answer.contentType, answer.body)
		return
	}
	encoded(w, http.StatusAccepted, map[string]any{"id": key, "sequence": ack.Sequence, "duplicate": ack.Duplicate, "reply": reply})
}

// publish stores a query. A body that is too large for a message goes into the object store before, and stays there unless it is certain that no message needs it.
func (d *Door) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	if len(m.Data) <= d.source.MaxBody {
		return d.source.JS.PublishMsg(ctx, m)
	}
	stored, err := d.source.Bodies.Put(ctx, "", m.Data)
	if err != nil {
		return nil, err
	}
	m.Header.Set(wire.HeaderQueryObject, stored.String())
	m.Data = nil
	ack, err := d.source.JS.PublishMsg(ctx, m) // which tries again only what was certainly not stored
	api := (*jetstream.APIError)(nil)
	if err == nil && ack.Duplicate || errors.As(err, &api) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		_ = d.source.Bodies.Remove(ctx, "", stored.Name) // or the sweep does it
	}
	return ack, err
}

// waitOf reads Prefer: wait=N.
func waitOf(prefer []string) (time.Duration, error) {
	for _, p := range strings.FieldsFunc(strings.Join(prefer, ","), func(r rune) bool { return r == ',' || r == ';' || r == ' ' }) {
		text, ok := strings.CutPrefix(p, "wait=")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || time.Duration(n)*time.Second > maxWait {
			return 0, wire.Errorf(wire.BadRequest, "Prefer: wait=%.20s is not a number of seconds from 0 to %.0f", text, maxWait.Seconds())
		}
		return time.Duration(n) * time.Second, nil
	}
	return defaultWait, nil
}

// unstored is why a query was not stored, for who sent it.
func unstored(err error) error {
	api := (*jetstream.APIError)(nil)
	switch {
	case errors.Is(err, bodystore.ErrNoBucket):
		return wire.Errorf(wire.TooLarge, "the body does not fit a message, and %v: send fewer queries per message, or restart the worker where it may make the bucket", err)
	case errors.Is(err, bodystore.ErrFull):
		return wire.Errorf(wire.Overloaded, "%v", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return wire.Errorf(wire.Overloaded, "the stream did not confirm the query: post it again with the same Idempotency-Key")
	case errors.As(err, &api) && strings.Contains(api.Description, "maximum"):
		return wire.Errorf(wire.Overloaded, "the queue is full, nothing was stored: try again later")
	}
	return wire.Errorf(wire.Internal, "storing the query: %v", err)
}

// answer is what has come of an answer.
type answer struct {
	contentType string
	body        []byte
	code        wire.Code // of an error that is the answer as a whole
	err         error     // the message is none that can be passed on

	results []wire.Result // of an answer in several messages, by position
	have    []bool
	missing int
}

// await collects the answer from the subscription, and from the stream, which has what came before it or while the connection was away.
// It is false when the time is over first.
func (d *Door) await(ctx context.Context, wait time.Duration, sub *nats.Subscription, reply string, a *answer) bool {
	ctx, cancel := context.WithTimeout(ctx, max(wait, time.Second)) // to look into the stream once takes a moment
	defer cancel()
	next := uint64(1)
	for pause := time.Duration(0); ; pause = look {
		if pause > 0 {
			if wait == 0 {
				return false
			}
			slice, stop := context.WithTimeout(ctx, pause)
			m, err := sub.NextMsgWithContext(slice)
			stop()
			switch {
			case err == nil:
				if a.add(m.Header, m.Data) {
					return true
				}
				continue
			case ctx.Err() != nil, errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrBadSubscription):
				return false
			}
		}
		stream, err := d.source.JS.Stream(ctx, d.source.Subjects.ResultStream())
		for err == nil {
			var m *jetstream.RawStreamMsg
			if m, err = stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(reply)); err == nil {
				next = m.Sequence + 1
				if a.add(m.Header, m.Data) {
					return true
				}
			}
		}
	}
}

// add takes in a message of the answer, and says whether that is complete.
func (a *answer) add(header nats.Header, data []byte) bool {
	a.contentType = header.Get(wire.HeaderContentType)
	part, err := wire.DecodeBody(a.contentType, data)
	if err != nil {
		a.err = wire.Errorf(wire.Internal, "a message in the place of the answer is none: %v", err)
		return true
	}
	of, several := wire.ParseRange(header.Get(wire.HeaderQueries))
	if !several || part.Batch && len(part.Results) == of.Total {
		if a.body = data; !part.Batch && part.Results[0].Err != nil {
			a.code = part.Results[0].Err.Code
		}
		return true
	}
	if a.have == nil {
		a.results, a.have, a.missing = make([]wire.Result, of.Total), make([]bool, of.Total), of.Total
	}
	for i := range part.Results {
		if at := part.First + i; at < len(a.have) && !a.have[at] {
			a.results[at], a.have[at] = part.Results[i], true
			a.missing--
		}
	}
	if a.missing > 0 {
		return false
	}
	codec, err := wire.ParseContentType(a.contentType)
	if err != nil {
		a.err = fmt.Errorf("joining the answer: %w", err)
		return true
	}
	a.body = wire.AppendAnswer(nil, codec, &wire.Answer{Batch: true, Results: a.results})
	return true
}

package intake

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/wire"
)

// Unserved answers the messages that the sweeper finds on subjects that nobody serves.
type Unserved struct {
	Publishers *Publishers
	Subjects   wire.Subjects
	Replies    *Replies
	Answers    *storedanswers.Reader
	Log        *slog.Logger
}

// Answer tells the sender of a message that nobody serves its index, and returns when that is confirmed. Where it asked for a
// subject that does not work, it is told where results go that name none: messages that cannot be answered would stay
// for ever, and enough of them would keep the sweeper from those behind them.
func (a *Unserved) Answer(ctx context.Context, u *consumer.Stored) error {
	result := wire.Result{Index: u.Index, Err: wire.Errorf(wire.UnknownIndex, "no worker serves index %q%s", u.Index, ofClass(u.Class))}
	answer := &wire.Answer{Results: []wire.Result{result}}
	codec, _, _ := wire.ParseBodyType(u.Header.Get(wire.HeaderContentType)) // JSON when that is wrong, too
	stream := a.Subjects.Stream(u.Class)
	id := identity.Result(stream, u)
	out := producer.Outgoing{
		MsgID: identity.Part(id, wire.Position{}),
		Body:  wire.AppendAnswer(nil, codec, answer),
	}
	standard := a.Replies.standard(u)
	out.Subject, _ = a.Replies.of(u, a.Replies.Config.StoredReplies(u.Index))
	asked := identity.Ask(stream, u)
	for salt := 1; ; {
		var h headers
		h.beginResult(u.Header, asked, codec, "")
		out.Header = h.Header
		how, err := a.publish(ctx, out)
		if err == nil && how.Duplicate {
			_, whose, fault := a.Answers.Look(ctx, how.Sequence, out.Subject, asked)
			if fault != nil {
				return fault
			}
			if whose == storedanswers.Another { // a message with this id was answered before: see delivery
				out.MsgID = identity.Part(identity.Salted(id, out.Subject, asked, salt), wire.Position{})
				salt++
				continue
			}
		}
		log := a.Log.With("sequence", u.Sequence, "reply", out.Subject, "error", err)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil, errors.Is(err, producer.ErrClosed), errors.Is(err, nats.ErrConnectionClosed):
			return err // it is this process that ends
		case out.Subject == standard:
			log.Error("nobody can be told that nobody serves an index; the dead letter says so")
			return nil
		}
		log.Warn("a sender cannot be told that nobody serves its index, telling the standard subject")
		out.Subject = standard
	}
}

// publish returns when a message is confirmed.
func (a *Unserved) publish(ctx context.Context, out producer.Outgoing) (producer.Confirmation, error) {
	var how producer.Confirmation
	confirmed := make(chan error, 1)
	a.Publishers.next(len(out.Body)).Publish(ctx, out, func(h producer.Confirmation, err error) {
		how = h
		confirmed <- err
	})
	err := <-confirmed
	return how, err
}

// ofClass says which class of queries is not served, for those beside the first.
func ofClass(class wire.Class) string {
	if class == wire.ClassQuery {
		return ""
	}
	return " for the class " + string(class)
}

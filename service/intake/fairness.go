package intake

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Replies say where answers to stored queries may go.
type Replies struct {
	Config   *config.Config
	Subjects wire.Subjects
}

// standard is where an answer goes whose query names no subject, or one that does not work.
func (a *Replies) standard(m *consumer.Stored) string {
	if m.User != "" && m.User != "*" && m.User != ">" {
		return a.Subjects.UserResult(m.Index, m.User)
	}
	return a.Subjects.Result(m.Index)
}

// of is where the answer to a message goes. allow are the patterns of its index. What is wrong with the subject that it names is told on the standard one. Whose
// subject names a user may have answers sent where that user alone reads, and the server says who may publish on that subject; all others are trusted
// with the whole index.
func (a *Replies) of(m *consumer.Stored, allow []string) (reply string, fault *wire.Error) {
	reply = m.Header.Get(wire.HeaderReply)
	if reply == "" {
		return a.standard(m), nil
	}
	if m.User != "" {
		allow = a.Config.UserReplies(m.Index, m.User)
	}
	if err := wire.ValidateReplySubject(reply, allow); err != nil {
		return a.standard(m), wire.AsError(err)
	}
	return reply, nil
}

// Admissions are the accounts of users.
type Admissions struct {
	Quotas *admission.Quotas
	Trust  bool // the header
}

// user is of whom account is kept: the user in the subject, which a server can enforce, or the one that a trusted client names.
func (a *Admissions) user(subject string, header nats.Header) string {
	if subject != "" || !a.Trust {
		return subject
	}
	return header.Get(wire.HeaderUser)
}

// spend takes queries from a user's rate, or says when there is some left.
func (a *Admissions) spend(user string, queries int) *wire.Error {
	if wait := a.Quotas.Spend(user, queries, time.Now()); wait > 0 {
		return wire.Errorf(wire.Overloaded, "the quota of user %q is used up: ask again in %v", clipped(user), wait.Round(time.Millisecond))
	}
	return nil
}

// enter has queries of a direct message begin, if the user has so much room.
func (a *Admissions) enter(user string, queries int) *wire.Error {
	if most := a.Quotas.Most(user); queries > most { // trying again would not help
		return wire.Errorf(wire.TooLarge, "the message has %d queries, user %q may have %d in flight: send at most that many per message, or send them through the stream",
			queries, clipped(user), most)
	}
	if !a.Quotas.TryEnter(user, queries, time.Now()) {
		return wire.Errorf(wire.Overloaded, "user %q has as many queries in flight as one may have: wait for an answer, or send them through the stream", clipped(user))
	}
	return nil
}

// clipped is a name that somebody chose, for a text.
func clipped(name string) string { return name[:min(len(name), 64)] }

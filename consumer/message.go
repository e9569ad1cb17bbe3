package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

var (
	// ErrSettled says that a message was acked, naked, termed or given back before.
	ErrSettled = errors.New("the message was settled before")
	// ErrGone says that the stream which the message came from was deleted: there is nothing left to settle.
	ErrGone = errors.New("the message's stream was deleted")
)

// Stored is a message of a stream of queries.
type Stored struct {
	Index   string // the token of the subject, which need not be a valid index name
	User    string // the token after it; "": none
	Class   wire.Class
	Subject string
	Header  nats.Header
	Body    []byte
	// Sequence numbers the message in the stream, which was made at StreamCreated: together they are the
	// message's identity for ever, also when a stream of the same name is made anew.
	Sequence      uint64
	StreamCreated time.Time
	// Timestamp is when the stream stored the message, by the server's clock.
	Timestamp time.Time
}

// Message is a message that was pulled and is outstanding until it is settled. The exported fields must not be
// changed.
type Message struct {
	Stored
	// Delivered is how often the message was delivered to anyone, this time included. Counting more than a few
	// means that it may be to blame for the end of those who had it before.
	Delivered int

	c *Consumer
	// Guarded by c.mu:
	reply   string    // of the latest delivery
	heard   time.Time // when the server was last told, or said, that the message is here
	size    int64
	settled bool
	gone    bool
}

// Ack says that the message was answered: the server deletes it.
func (m *Message) Ack() error { return m.settle("+ACK") }

// Nak gives the message back, to be delivered again to any worker after delay. That counts as a delivery.
func (m *Message) Nak(delay time.Duration) error {
	body := "-NAK"
	if delay > 0 {
		body = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	return m.settle(body)
}

// Term says that the message is given up and must not be delivered again: the server deletes it. The reason is for
// those who watch JetStream's advisories.
func (m *Message) Term(reason string) error { return m.settle("+TERM " + oneLine(reason, 256)) }

// Dead gives the message up and keeps a copy for people to look at: it is published to the dead letters of the index
// with the headers HeaderDead..., and only when the stream has confirmed that, termed. The reason is a word
// that is counted by, detail a sentence. What may pass (no connection, no stream) is tried again until ctx ends;
// the message then stays outstanding and the error says why.
func (m *Message) Dead(ctx context.Context, reason, detail string) error {
	m.c.mu.Lock()
	settled, gone := m.settled, m.gone
	m.c.mu.Unlock()
	if settled {
		return ErrSettled
	}
	if !gone {
		l := letter{Stored: &m.Stored, reason: reason, detail: detail, delivered: m.Delivered}
		if err := l.publish(ctx, m.c.js, m.c.opts.Subjects, m.c.limits.requestTimeout); err != nil {
			return err
		}
	}
	return m.Term(reason)
}

// AwaitSettled returns when the message is settled and the server has been told, or ctx ends. It is for the few callers that must not
// go on before.
func (m *Message) AwaitSettled(ctx context.Context) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		m.c.mu.Lock()
		settled := m.settled
		m.c.mu.Unlock()
		if settled {
			return m.c.nc.FlushWithContext(ctx)
		}
		if !bell.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// AckSync is Ack that returns when the server has confirmed it: the message will not be delivered again. With an error it may be, or not. It is for what
// must not be done before.
func (m *Message) AckSync(ctx context.Context) error { return m.settleSync(ctx, "+ACK") }

// TermSync is Term in the same way.
func (m *Message) TermSync(ctx context.Context, reason string) error {
	return m.settleSync(ctx, "+TERM "+oneLine(reason, 256))
}

func (m *Message) settleSync(ctx context.Context, word string) error {
	reply, err := m.release()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, m.c.limits.requestTimeout)
	defer cancel()
	if _, err := m.c.nc.RequestWithContext(ctx, reply, []byte(word)); err != nil {
		return fmt.Errorf("settle message %d of %s, not confirmed: %w", m.Sequence, m.Subject, err)
	}
	return nil
}

func (m *Message) settle(word string) error {
	reply, err := m.release()
	if err != nil {
		return err
	}
	if err := m.c.nc.Publish(reply, []byte(word)); err != nil {
		return fmt.Errorf("settle message %d of %s: %w", m.Sequence, m.Subject, err)
	}
	return nil
}

// release ends that the message is outstanding, and returns where the server is told.
func (m *Message) release() (reply string, err error) {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.settled {
		return "", ErrSettled
	}
	m.settled = true
	if !m.gone {
		delete(c.outstanding, m.Sequence)
		c.bytes -= m.size
	}
	// The pull loop waits for room, and after Stop for the last message.
	if messages, _ := c.room(); messages > 0 || len(c.outstanding) == 0 {
		c.wakePull.Ring()
	}
	if m.gone {
		return "", ErrGone
	}
	return m.reply, nil
}

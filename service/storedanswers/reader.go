// Package storedanswers reads what the result stream holds of answers.
package storedanswers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/wire"
)

// Reader reads what the result stream holds, to find out what a message stands for whose id was there already.
type Reader struct {
	js     jetstream.JetStream
	name   string // of the stream
	log    *slog.Logger
	stream atomic.Pointer[jetstream.Stream] // once it was found
	turns  chan struct{}                    // a place for each look: a message has megabytes, in base64
}

// Whose says what a stored message is to a delivery.
type Whose uint8

const (
	Unknown Whose = iota // it is gone, or may not be read: what was confirmed counts as out
	Own                  // an earlier attempt's answer to the same message, or to its double
	Another              // the answer to another message, or to another subject
)

const (
	lookTimeout  = 5 * time.Second
	lookPause    = 100 * time.Millisecond
	lookAttempts = 4 // while the connection is there
	lookTurns    = 4 // at a time
)

// Look says what the stream holds at a sequence, for a message of the query stream that asks this and whose answer goes to reply. What cannot be
// read because the server is away is tried again until ctx ends, which is the only error.
func (s *Reader) Look(ctx context.Context, sequence uint64, reply string, asked identity.Asked) (Part, Whose, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return Part{}, Unknown, context.Cause(ctx)
	}
	for attempt := 1; ; {
		m, err := s.get(ctx, sequence)
		switch {
		case err == nil:
			if m.Subject != reply || !asked.AnsweredBy(m.Header, m.Time) {
				return Part{}, Another, nil
			}
			if has, ok := covered(m); ok {
				return has, Own, nil
			}
			return Part{}, Another, nil // whatever it is, it is no answer
		case ctx.Err() != nil:
			return Part{}, Unknown, fmt.Errorf("looking at message %d of %s: %w", sequence, s.name, context.Cause(ctx))
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return Part{}, Unknown, nil
		case !s.js.Conn().IsConnected():
		case attempt == lookAttempts:
			s.log.Warn("an answer's id was used before and the message that has it cannot be read: taking it for an earlier attempt's; "+
				"allow the requests $JS.API.STREAM.INFO and $JS.API.STREAM.MSG.GET of the result stream", "stream_sequence", sequence, "error", err)
			return Part{}, Unknown, nil
		default:
			attempt++
		}
		bell.Sleep(ctx, lookPause)
	}
}

func (s *Reader) get(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stream := s.stream.Load()
	if stream == nil {
		found, err := s.js.Stream(ctx, s.name)
		if err != nil {
			return nil, err
		}
		stream = &found
		s.stream.Store(stream)
	}
	return (*stream).GetMsg(ctx, sequence)
}

// Part is what a stored message has of the answer to its query message.
type Part struct {
	Queries wire.Range
	Batch   bool       // it says which queries it is to
	Hits    wire.Range // of the only result, where that came in parts, by the version of the index
	Version string
}

// Some says that it has some of the hits of a result.
func (p *Part) Some() bool { return p.Hits.Total > 0 }

// Next is where what comes after it begins.
func (p *Part) Next() wire.Position {
	if p.Hits.Last+1 < p.Hits.Total {
		return wire.Position{Query: p.Queries.First, Hit: p.Hits.Last + 1}
	}
	return wire.Position{Query: p.Queries.Last + 1}
}

// covered is what a stored answer is of. Workers of earlier versions did not say that of queries in the header.
func covered(m *jetstream.RawStreamMsg) (p Part, ok bool) {
	if text := m.Header.Get(wire.HeaderHits); text != "" {
		if p.Hits, ok = wire.ParseRange(text); !ok {
			return p, false
		}
		p.Version = m.Header.Get(wire.HeaderVersion)
	}
	if text := m.Header.Get(wire.HeaderQueries); text != "" {
		p.Batch = true
		p.Queries, ok = wire.ParseRange(text)
		return p, ok
	}
	p.Queries.Total = 1
	if p.Some() {
		return p, true
	}
	answer, err := wire.DecodeBody(m.Header.Get(wire.HeaderContentType), m.Data)
	if err != nil || len(answer.Results) == 0 {
		return p, false
	}
	if answer.Batch {
		last := answer.First + len(answer.Results) - 1
		p.Queries, p.Batch = wire.Range{First: answer.First, Last: last, Total: last + 1}, true
	}
	return p, true
}

// New makes a reader of a stream.
func New(js jetstream.JetStream, name string, log *slog.Logger) *Reader {
	return &Reader{js: js, name: name, log: log, turns: make(chan struct{}, lookTurns)}
}

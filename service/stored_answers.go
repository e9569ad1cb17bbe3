package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/wire"
)

// storedAnswers reads what the result stream holds, to find out what a message stands for whose id was there already.
type storedAnswers struct {
	js     jetstream.JetStream
	name   string // of the stream
	log    *slog.Logger
	mu     sync.Mutex
	stream jetstream.Stream // once it was found
	turns  chan struct{}    // a place for each look: a message has megabytes, in base64
}

// whose says what a stored message is to a delivery.
type whose uint8

const (
	unknown whose = iota // it is gone, or may not be read: what was confirmed counts as out
	own                  // an earlier attempt's answer to the same message, or to its double
	another              // the answer to another message, or to another subject
)

const (
	lookTimeout  = 5 * time.Second
	lookPause    = 100 * time.Millisecond
	lookAttempts = 4 // while the connection is there
	lookTurns    = 4 // at a time
)

// look says what the stream holds at a sequence, for a message of the query stream that asks this and whose answer goes to reply. What cannot be
// read because the server is away is tried again until ctx ends, which is the only error.
func (s *storedAnswers) look(ctx context.Context, sequence uint64, reply string, asked identity.Asked) (storedPart, whose, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return storedPart{}, unknown, context.Cause(ctx)
	}
	for attempt := 1; ; {
		m, err := s.get(ctx, sequence)
		switch {
		case err == nil:
			if m.Subject != reply || !asked.AnsweredBy(m.Header, m.Time) {
				return storedPart{}, another, nil
			}
			if has, ok := covered(m); ok {
				return has, own, nil
			}
			return storedPart{}, another, nil // whatever it is, it is no answer
		case ctx.Err() != nil:
			return storedPart{}, unknown, fmt.Errorf("looking at message %d of %s: %w", sequence, s.name, context.Cause(ctx))
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return storedPart{}, unknown, nil
		case !s.js.Conn().IsConnected():
		case attempt == lookAttempts:
			s.log.Warn("an answer's id was used before and the message that has it cannot be read: taking it for an earlier attempt's; "+
				"allow the requests $JS.API.STREAM.INFO and $JS.API.STREAM.MSG.GET of the result stream", "stream_sequence", sequence, "error", err)
			return storedPart{}, unknown, nil
		default:
			attempt++
		}
		bell.Sleep(ctx, lookPause)
	}
}

func (s *storedAnswers) get(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	if stream == nil {
		var err error
		if stream, err = s.js.Stream(ctx, s.name); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.stream = stream
		s.mu.Unlock()
	}
	return stream.GetMsg(ctx, sequence)
}

// storedPart is what a stored message has of the answer to its query message.
type storedPart struct {
	queries wire.Range
	batch   bool       // it says which queries it is to
	hits    wire.Range // of the only result, where that came in parts, by the version of the index
	version string
}

// some says that it has some of the hits of a result.
func (p *storedPart) some() bool { return p.hits.Total > 0 }

// next is where what comes after it begins.
func (p *storedPart) next() wire.Position {
	if p.hits.Last+1 < p.hits.Total {
		return wire.Position{Query: p.queries.First, Hit: p.hits.Last + 1}
	}
	return wire.Position{Query: p.queries.Last + 1}
}

// covered is what a stored answer is of. Workers of earlier versions did not say that of queries in the header.
func covered(m *jetstream.RawStreamMsg) (p storedPart, ok bool) {
	if text := m.Header.Get(wire.HeaderHits); text != "" {
		if p.hits, ok = wire.ParseRange(text); !ok {
			return p, false
		}
		p.version = m.Header.Get(wire.HeaderVersion)
	}
	if text := m.Header.Get(wire.HeaderQueries); text != "" {
		p.batch = true
		p.queries, ok = wire.ParseRange(text)
		return p, ok
	}
	p.queries.Total = 1
	if p.some() {
		return p, true
	}
	answer, err := wire.DecodeBody(m.Header.Get(wire.HeaderContentType), m.Data)
	if err != nil || len(answer.Results) == 0 {
		return p, false
	}
	if answer.Batch {
		last := answer.First + len(answer.Results) - 1
		p.queries, p.batch = wire.Range{First: answer.First, Last: last, Total: last + 1}, true
	}
	return p, true
}

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
func (s *storedAnswers) look(ctx context.Context, sequence uint64, reply string, asked asked) (wire.Range, whose, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return wire.Range{}, unknown, context.Cause(ctx)
	}
	for attempt := 1; ; {
		m, err := s.get(ctx, sequence)
		switch {
		case err == nil:
			if m.Subject != reply || !asked.answeredBy(m.Header, m.Time) {
				return wire.Range{}, another, nil
			}
			if has, ok := covered(m); ok {
				return has, own, nil
			}
			return wire.Range{}, another, nil // whatever it is, it is no answer
		case ctx.Err() != nil:
			return wire.Range{}, unknown, fmt.Errorf("looking at message %d of %s: %w", sequence, s.name, context.Cause(ctx))
		case errors.Is(err, jetstream.ErrMsgNotFound):
			return wire.Range{}, unknown, nil
		case !s.js.Conn().IsConnected():
		case attempt == lookAttempts:
			s.log.Warn("an answer's id was used before and the message that has it cannot be read: taking it for an earlier attempt's; "+
				"allow the requests $JS.API.STREAM.INFO and $JS.API.STREAM.MSG.GET of the result stream", "stream_sequence", sequence, "error", err)
			return wire.Range{}, unknown, nil
		default:
			attempt++
		}
		select {
		case <-time.After(lookPause):
		case <-ctx.Done():
		}
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

// covered is which queries of its message a stored answer is to. Workers of earlier versions did not say it in the header.
func covered(m *jetstream.RawStreamMsg) (wire.Range, bool) {
	if text := m.Header.Get(wire.HeaderQueries); text != "" {
		return wire.ParseRange(text)
	}
	codec, err := wire.ParseContentType(m.Header.Get(wire.HeaderContentType))
	if err != nil {
		return wire.Range{}, false
	}
	answer, err := wire.DecodeAnswer(codec, m.Data)
	if err != nil || len(answer.Results) == 0 {
		return wire.Range{}, false
	}
	last := answer.First + len(answer.Results) - 1
	if !answer.Batch {
		return wire.Range{Total: 1}, true
	}
	return wire.Range{First: answer.First, Last: last, Total: last + 1}, true
}

package producer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrClosed is given to what a closed producer did not confirm.
var ErrClosed = errors.New("the producer is closed")

var (
	errDisconnected = errors.New("not connected to NATS")
	errNoAck        = errors.New("the result stream does not confirm in time")
	errNoFlush      = errors.New("the NATS server does not answer in time")
	errNoStream     = errors.New("no stream takes results: does the result stream exist, and is JetStream up?")
)

// TooLargeError says that a message is larger than the server or the stream ever accepts.
type TooLargeError struct {
	Subject string
	Size    int64  // bytes of headers and body
	Limit   int64  // bytes; 0 when the stream did not say
	What    string // what set the limit
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("a message of %d bytes to %s is too large: %s", e.Size, e.Subject, e.What)
	}
	return fmt.Sprintf("a message of %d bytes to %s is too large: %s is %d", e.Size, e.Subject, e.What, e.Limit)
}

// ForbiddenError says that this connection may not publish to a subject.
type ForbiddenError struct{ Subject string }

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("publishing to %s is forbidden: allow it in the permissions of geniemq's NATS user", e.Subject)
}

func (e *ForbiddenError) Unwrap() error { return nats.ErrPermissionViolation }

// classify says whether an error of the client library, if there is one, is final for a message, and puts it in our words.
func (p *Producer) classify(f *flight, err error) (_ error, permanent bool) {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return &TooLargeError{f.msg.Subject, f.bytes, p.nc.MaxPayload(), "the server's max_payload"}, true
	case errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrBadHeaderMsg), errors.Is(err, nats.ErrHeadersNotSupported), errors.Is(err, nats.ErrInvalidMsg),
		errors.Is(err, nats.ErrInvalidConnection), errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		// It is wrong with the message, or with a connection that will not come back.
		return fmt.Errorf("publish to %s: %w", f.msg.Subject, err), true
	}
	// Everything else passes. A large message is written to the socket at once, and may find that broken before the library does.
	return err, false
}

// Error codes of nats-server that are final for a message; everything else may pass.
const (
	codeMessageTooLarge jetstream.ErrorCode = 10054 // above the stream's max_msg_size
	codeHeaderTooLarge  jetstream.ErrorCode = 10097 // above JetStream's 64 KiB
)

// parseAck reads JetStream's answer to a publish.
func parseAck(f *flight, m *nats.Msg) (how Confirmation, err error, permanent bool) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return how, errNoStream, false
	}
	if sequence, ok := plainAck(m.Data); ok {
		return Confirmation{Sequence: sequence}, nil, false
	}
	var ack struct {
		Error     *jetstream.APIError `json:"error"`
		Stream    string              `json:"stream"`
		Sequence  uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return how, fmt.Errorf("unreadable publish acknowledgement: %w", err), false
	}
	switch {
	case ack.Error == nil && ack.Stream != "":
		return Confirmation{ack.Sequence, ack.Duplicate}, nil, false
	case ack.Error == nil:
		return how, fmt.Errorf("publish acknowledgement without a stream: %.100q", m.Data), false
	case ack.Error.ErrorCode == codeMessageTooLarge:
		return how, &TooLargeError{f.msg.Subject, f.bytes, 0, "it exceeds the stream's max_msg_size"}, true
	case ack.Error.ErrorCode == codeHeaderTooLarge:
		return how, &TooLargeError{f.msg.Subject, f.bytes, 0, "its headers exceed 64 KiB"}, true
	}
	return how, fmt.Errorf("the result stream refuses messages: %w", ack.Error), false
}

var ackStart, ackSequence = []byte(`{"stream":"`), []byte(`","seq":`)

// plainAck reads what nearly every answer is, {"stream":"...","seq":...}, without decoding it. Whatever has more members,
// "duplicate", "domain" or "error", is left to be decoded.
func plainAck(data []byte) (sequence uint64, ok bool) {
	rest, ok := bytes.CutPrefix(data, ackStart)
	if !ok {
		return 0, false
	}
	name, rest, ok := bytes.Cut(rest, ackSequence)
	if !ok || bytes.IndexByte(name, '"') >= 0 {
		return 0, false
	}
	digits := bytes.TrimRight(rest, "} ")
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		sequence = 10*sequence + uint64(c-'0')
	}
	return sequence, true
}

// What a permission error was about.
const (
	publishing = iota + 1
	replying
	subscribing
)

// forbiddenSubject extracts what was forbidden from an asynchronous error of the connection; action is 0 when it is
// no permission error. The server gives text alone.
func forbiddenSubject(err error) (action int, subject string) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return 0, ""
	}
	for action, before := range []string{
		publishing:  `Publish to "`,
		replying:    `Publish with Reply of "`,
		subscribing: `Subscription to "`,
	} {
		if _, rest, ok := strings.Cut(err.Error(), before); ok && action > 0 {
			subject, _, _ = strings.Cut(rest, `"`)
			return action, subject
		}
	}
	return 0, ""
}

// Ids in acknowledgement subjects are written in base 36.
func formatID(id uint64) string            { return strconv.FormatUint(id, 36) }
func parseID(token string) (uint64, error) { return strconv.ParseUint(token, 36, 64) }

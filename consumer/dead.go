package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/wire"
)

// Headers of dead letters. Beside them a dead letter has the headers of the message, as far as they fit, but for those
// that begin with "Nats-", which would mean something to the stream.
const (
	HeaderDeadReason    = "Genie-Dead-Reason"    // a word
	HeaderDeadDetail    = "Genie-Dead-Detail"    // a sentence
	HeaderDeadSubject   = "Genie-Dead-Subject"   // that the message was published to
	HeaderDeadSequence  = "Genie-Dead-Sequence"  // in the query stream
	HeaderDeadTime      = "Genie-Dead-Time"      // when the query stream stored it, RFC 3339
	HeaderDeadDelivered = "Genie-Dead-Delivered" // how often it was delivered; absent if never
	HeaderDeadMsgID     = "Genie-Dead-Msg-Id"    // its Nats-Msg-Id
	HeaderDeadSize      = "Genie-Dead-Size"      // bytes of its body; only when the copy has fewer
)

const (
	// JetStream takes 64 KiB of headers. The message's own, which may be as many, get half of that.
	maxDeadHeaders = 32 << 10
	maxDeadDetail  = 2 << 10
)

// letter is a message that was given up.
type letter struct {
	*Stored
	reason, detail string
	delivered      int
}

// publish copies the message to the dead letters, and returns nil when the stream has confirmed that. The copy has an
// id, so that several attempts, and several workers, make one. Errors that may pass are tried again until ctx ends.
func (l *letter) publish(ctx context.Context, js jetstream.JetStream, subjects wire.Subjects, timeout time.Duration) error {
	msg := &nats.Msg{Subject: subjects.Dead(l.Index), Header: l.headers(), Data: l.Body}
	limit := js.Conn().MaxPayload()
	for pause := minPause; ; pause = min(2*pause, 5*time.Second) {
		l.fit(msg, limit)
		attempt, cancel := context.WithTimeout(ctx, timeout)
		_, err := js.PublishMsg(attempt, msg)
		cancel()
		if err == nil {
			return nil
		}
		api, ok := errors.AsType[*jetstream.APIError](err)
		tooLarge := errors.Is(err, nats.ErrMaxPayload) || ok && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum
		if tooLarge && len(msg.Data) > 0 { // for another server's limit, or the stream's own, which it does not tell
			limit = int64(msg.Size()) - int64(len(msg.Subject)) - int64(len(msg.Data)+1)/2
			continue
		}
		if !bell.Sleep(ctx, pause) {
			return fmt.Errorf("copy message %d of %s to %s: %w (%w)", l.Sequence, l.Subject, msg.Subject, err, context.Cause(ctx))
		}
	}
}

func (l *letter) headers() nats.Header {
	h := nats.Header{
		HeaderDeadReason:   {oneLine(l.reason, 256)},
		HeaderDeadDetail:   {oneLine(l.detail, maxDeadDetail)},
		HeaderDeadSubject:  {l.Subject},
		HeaderDeadSequence: {strconv.FormatUint(l.Sequence, 10)},
		HeaderDeadTime:     {l.Timestamp.UTC().Format(time.RFC3339Nano)},
		wire.HeaderMsgID:   {l.id()},
	}
	if l.delivered > 0 {
		h[HeaderDeadDelivered] = []string{strconv.Itoa(l.delivered)}
	}
	if id := l.Header.Get(wire.HeaderMsgID); id != "" {
		h[HeaderDeadMsgID] = []string{oneLine(id, 1024)}
	}
	room := maxDeadHeaders
	for _, name := range slices.Sorted(maps.Keys(l.Header)) {
		_, ours := h[name]
		if ours || len(name) >= 5 && strings.EqualFold(name[:5], "Nats-") {
			continue
		}
		size := 0
		for _, v := range l.Header[name] {
			size += len(name) + len(v) + 4
		}
		if size <= room {
			room -= size
			h[name] = l.Header[name]
		}
	}
	return h
}

// id is that of the copy: streams number their messages each for itself.
func (l *letter) id() string {
	id := fmt.Sprintf("dead.%d.%d", l.StreamCreated.UnixNano(), l.Sequence)
	if l.Class != wire.ClassQuery && l.Class != "" {
		id += "." + string(l.Class)
	}
	return id
}

// fit cuts the body so that headers and body have at most limit bytes.
func (l *letter) fit(msg *nats.Msg, limit int64) {
	msg.Data = l.Body
	delete(msg.Header, HeaderDeadSize)
	size := func() int64 { return int64(msg.Size() - len(msg.Subject) - len(msg.Reply)) }
	if size() <= limit {
		return
	}
	msg.Header[HeaderDeadSize] = []string{strconv.Itoa(len(l.Body))}
	room := limit - (size() - int64(len(msg.Data)))
	msg.Data = l.Body[:min(max(room, 0), int64(len(l.Body)))]
}

// oneLine makes a text fit for a header: one line, valid UTF-8, at most limit bytes.
func oneLine(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Package letters reads dead letters, publishes their queries anew, and drops them.
package letters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/wire"
)

// Letter is a dead letter: a message that was given up, and why.
type Letter struct {
	Sequence  uint64    `json:"sequence"` // in the stream of dead letters: by this it is named
	Index     string    `json:"index"`
	Reason    string    `json:"reason"`          // a word
	Detail    string    `json:"detail"`          // a sentence
	Subject   string    `json:"subject"`         // that the query was published to
	Query     uint64    `json:"query"`           // its sequence in the query stream
	ID        string    `json:"id,omitempty"`    // its Nats-Msg-Id
	Reply     string    `json:"reply,omitempty"` // where its answer was to go; "": to the default subject
	Asked     time.Time `json:"asked"`           // when the query stream stored it
	Died      time.Time `json:"died"`
	Delivered int       `json:"delivered"`      // how often
	Size      int       `json:"size"`           // bytes of the body, of which the copy may have fewer
	Cut       bool      `json:"cut,omitempty"`  // it has fewer, and cannot be replayed
	Type      string    `json:"type,omitempty"` // of the body
	// Object names the body where it lies in the object store, by the header of the query, whose Size this letter has. It stays there for as long as the letter does.
	Object      string `json:"object,omitempty"`
	ObjectFault string `json:"object_fault,omitempty"` // why it could not be read, of a letter that was got by its sequence
	Body        []byte `json:"-"`                      // only of a letter that was got by its sequence
}

var (
	// ErrNone: there is no such letter.
	ErrNone = errors.New("there is no such dead letter")
	// ErrCut: the copy of the query is not whole.
	ErrCut = errors.New("the dead letter has only a part of the query, which was too large: publish it anew from where it came")
)

// Box is the dead letters of a deployment.
//
// # Replay
//
// A replay is a new query: it is stored, answered and delivered as any other, and keeps all promises. Its message id is made of the letter, so
// whoever replays a letter twice within the query stream's duplicate window (2 minutes), because he was not told that it had worked, asks once. The letter is
// deleted when the query is stored, never before: a replay that fails in between leaves the letter, and can be repeated.
//
// A query whose body lies in the object store is replayed with the same object, which is made young again first, so that no sweep takes it for an orphan.
//
// The id is not that of the first query. With that one, the stream could take the replay for the query that died, and the error that answered it for
// the replay's answer. What answers to the query call it is as it was: the header Genie-Query-Id of the replay says it.
type Box struct {
	js       jetstream.JetStream
	subjects wire.Subjects
	bodies   *bodystore.Store
}

// Of is the box of a deployment.
func Of(js jetstream.JetStream, subjects wire.Subjects) *Box {
	return &Box{js, subjects, bodystore.Of(js, subjects)}
}

// Choice says which letters are wanted.
type Choice struct {
	Index, Reason string // "": any
	// Newest bounds how many there are, of which the oldest are left out. Default: all.
	Newest int
	// Within bounds how many letters are looked at, the newest of the stream. Default: all.
	Within uint64
}

// List returns letters, the oldest first, without their bodies.
func (b *Box) List(ctx context.Context, choice Choice) ([]Letter, error) {
	stream, err := b.stream(ctx)
	if err != nil {
		return nil, err
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return nil, nil
	}
	from := state.FirstSeq
	if choice.Within > 0 && state.LastSeq-from >= choice.Within {
		from = state.LastSeq - choice.Within + 1
	}
	reader, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Description: "geniemq: lists dead letters", AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, InactiveThreshold: time.Minute,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, FilterSubject: b.filter(choice.Index),
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	defer func() { // nobody has to wait for that: it goes by itself, too
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = stream.DeleteConsumer(ending, reader.CachedInfo().Name)
	}()
	return collect(ctx, reader, choice)
}

// collect reads what a consumer had before it when it was made.
func collect(ctx context.Context, reader jetstream.Consumer, choice Choice) (found []Letter, err error) {
	const most = 500
	for left := reader.CachedInfo().NumPending; left > 0; {
		batch, err := reader.Fetch(int(min(left, most)), jetstream.FetchContext(ctx))
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		got := uint64(0)
		for m := range batch.Messages() {
			got++
			meta, err := m.Metadata()
			if err != nil {
				return nil, fmt.Errorf("list dead letters: %w", err)
			}
			size, _ := strconv.Atoi(m.Headers().Get("Nats-Msg-Size"))
			if l := read(m.Subject(), meta.Sequence.Stream, meta.Timestamp, m.Headers(), size); choice.Reason == "" || l.Reason == choice.Reason {
				found = append(found, l)
			}
		}
		if over := len(found) - choice.Newest; choice.Newest > 0 && over > 0 {
			found = append(found[:0], found[over:]...)
		}
		if err := batch.Error(); err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		if got == 0 {
			break // they were dropped meanwhile
		}
		left -= min(got, left)
	}
	return found, nil
}

// Count is how many letters there are.
func (b *Box) Count(ctx context.Context) (uint64, error) {
	stream, err := b.stream(ctx)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.Msgs, nil
}

// Get returns a letter with its body, which may lie in the object store.
func (b *Box) Get(ctx context.Context, sequence uint64) (*Letter, error) {
	_, raw, err := b.get(ctx, sequence)
	if err != nil {
		return nil, err
	}
	l := read(raw.Subject, raw.Sequence, raw.Time, raw.Header, len(raw.Data))
	l.Body = raw.Data
	if l.Object != "" {
		if l.Body, err = b.fetch(ctx, &l); err != nil {
			l.ObjectFault = err.Error()
		}
	}
	return &l, nil
}

// Replayed is what came of a replay.
type Replayed struct {
	Subject  string `json:"subject"`  // to which the query was published
	Sequence uint64 `json:"sequence"` // that it has in its stream
	ID       string `json:"id"`       // its Nats-Msg-Id
	Already  bool   `json:"already"`  // an earlier replay had stored it
}

// Replay publishes the query of a letter anew and deletes the letter when it is stored; see [Box]. With an error that comes with a sequence the query is
// stored and the letter is still there.
func (b *Box) Replay(ctx context.Context, sequence uint64) (Replayed, error) {
	stream, raw, err := b.get(ctx, sequence)
	if err != nil {
		return Replayed{}, err
	}
	l := read(raw.Subject, raw.Sequence, raw.Time, raw.Header, len(raw.Data))
	switch {
	case l.Cut:
		return Replayed{}, ErrCut
	case !b.replayable(l.Subject):
		return Replayed{}, fmt.Errorf("dead letter %d says that it was published to %q, which is no subject of queries", sequence, l.Subject)
	}
	if key, ok := b.object(&l); ok {
		if err := b.bodies.Touch(ctx, key.User, key.Name); err != nil {
			return Replayed{}, fmt.Errorf("replay dead letter %d: %w", sequence, err)
		}
	}
	msg := &nats.Msg{Subject: l.Subject, Header: replayHeader(raw.Header), Data: raw.Data}
	id := replayID(stream.CachedInfo().Created, raw)
	ack, err := b.js.PublishMsg(ctx, msg, jetstream.WithMsgID(id))
	if err != nil {
		return Replayed{}, fmt.Errorf("replay dead letter %d to %s: %w", sequence, l.Subject, err)
	}
	done := Replayed{Subject: l.Subject, Sequence: ack.Sequence, ID: id, Already: ack.Duplicate}
	if err := remove(ctx, stream, sequence); err != nil && !errors.Is(err, ErrNone) {
		return done, fmt.Errorf("dead letter %d is replayed, as message %d of %s, but still there: %w", sequence, ack.Sequence, ack.Stream, err)
	}
	return done, nil
}

// Drop deletes a letter for good, and then the object with its query's body, if it has one.
func (b *Box) Drop(ctx context.Context, sequence uint64) error {
	stream, raw, err := b.get(ctx, sequence)
	if err != nil {
		return err
	}
	if err := remove(ctx, stream, sequence); err != nil {
		return err
	}
	l := read(raw.Subject, raw.Sequence, raw.Time, raw.Header, len(raw.Data))
	if key, ok := b.object(&l); ok {
		if err := b.bodies.Remove(ctx, key.User, key.Name); err != nil && !errors.Is(err, bodystore.ErrNoBucket) {
			return fmt.Errorf("dead letter %d is gone, the object of its query is left to the sweep: %w", sequence, err)
		}
	}
	return nil
}

func (b *Box) stream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := b.js.Stream(ctx, b.subjects.DeadStream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("stream %s is not there: no worker was started on this server, or with another --prefix: %w", b.subjects.DeadStream(), err)
	} else if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", b.subjects.DeadStream(), err)
	}
	return stream, nil
}

func (b *Box) filter(index string) string {
	if index == "" {
		return b.subjects.DeadAll()
	}
	return b.subjects.Dead(index)
}

func (b *Box) get(ctx context.Context, sequence uint64) (jetstream.Stream, *jetstream.RawStreamMsg, error) {
	stream, err := b.stream(ctx)
	if err != nil {
		return nil, nil, err
	}
	raw, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil, fmt.Errorf("%w: %d", ErrNone, sequence)
	} else if err != nil {
		return nil, nil, fmt.Errorf("read dead letter %d: %w", sequence, err)
	}
	return stream, raw, nil
}

// replayable says that queries are published to a subject, and no answers: who wrote the letter says where it came from.
func (b *Box) replayable(subject string) bool {
	if strings.ContainsAny(subject, " \t\r\n*>") || strings.Contains(subject, "..") || strings.HasSuffix(subject, ".") {
		return false
	}
	tokens := strings.Split(subject, ".")
	return len(tokens) >= 3 && tokens[0] == b.subjects.Prefix() && (tokens[1] == "query" || tokens[1] == "bulk")
}

func remove(ctx context.Context, stream jetstream.Stream, sequence uint64) error {
	err := stream.DeleteMsg(ctx, sequence)
	if err == nil {
		return nil
	}
	if _, gone := stream.GetMsg(ctx, sequence); errors.Is(gone, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("%w: %d", ErrNone, sequence)
	}
	return fmt.Errorf("delete dead letter %d: %w", sequence, err)
}

// replayID is the message id of a replay: the same for every attempt, of no other letter, and hard to guess for who has not read the letter, so
// that nobody can take it beforehand.
func replayID(created time.Time, raw *jetstream.RawStreamMsg) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n", raw.Header.Get(consumer.HeaderDeadSubject), raw.Time.UnixNano())
	h.Write(raw.Data)
	return fmt.Sprintf("replay.%d.%d.%s", created.UnixNano(), raw.Sequence, hex.EncodeToString(h.Sum(nil)[:8]))
}

// replayHeader are the headers that the query had, but for those that mean something to streams.
func replayHeader(dead nats.Header) nats.Header {
	h := make(nats.Header)
	for name, values := range dead {
		if !prefixed(name, "Genie-Dead-") && !prefixed(name, "Nats-") {
			h[name] = values
		}
	}
	if id := dead.Get(consumer.HeaderDeadMsgID); id != "" && h.Get(wire.HeaderQueryID) == "" {
		h.Set(wire.HeaderQueryID, id)
	}
	return h
}

func prefixed(name, prefix string) bool {
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}

// read reads a letter from what the stream has of it. What is missing or cannot be read is left empty: whoever may publish there writes what he likes.
func read(subject string, sequence uint64, died time.Time, h nats.Header, size int) Letter {
	index := subject[strings.LastIndexByte(subject, '.')+1:]
	l := Letter{
		Sequence: sequence, Index: index, Reason: h.Get(consumer.HeaderDeadReason), Detail: h.Get(consumer.HeaderDeadDetail),
		Subject: h.Get(consumer.HeaderDeadSubject), ID: h.Get(consumer.HeaderDeadMsgID), Reply: h.Get(wire.HeaderReply),
		Type: h.Get(wire.HeaderContentType), Died: died, Size: size,
	}
	l.Query, _ = strconv.ParseUint(h.Get(consumer.HeaderDeadSequence), 10, 64)
	l.Asked, _ = time.Parse(time.RFC3339Nano, h.Get(consumer.HeaderDeadTime))
	l.Delivered, _ = strconv.Atoi(h.Get(consumer.HeaderDeadDelivered))
	if stored, err := wire.ParseStoredBody(h.Get(wire.HeaderQueryObject)); err == nil {
		l.Object, l.Size = stored.String(), int(stored.Size)
	} else if whole, err := strconv.Atoi(h.Get(consumer.HeaderDeadSize)); err == nil {
		l.Size, l.Cut = whole, true
	}
	return l
}

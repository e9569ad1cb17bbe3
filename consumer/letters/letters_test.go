package letters_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// bury stores a letter as workers do.
func bury(t *testing.T, js jetstream.JetStream, index, reason, body string, more nats.Header) uint64 {
	t.Helper()
	msg := &nats.Msg{Subject: wire.Subjects{}.Dead(index), Data: []byte(body), Header: nats.Header{
		consumer.HeaderDeadReason: {reason}, consumer.HeaderDeadDetail: {"why"}, consumer.HeaderDeadSubject: {"genie.query." + index}, consumer.HeaderDeadSequence: {"17"},
		consumer.HeaderDeadTime: {"2026-11-22T10:00:00.5Z"}, consumer.HeaderDeadDelivered: {"4"},
	}}
	for name, values := range more {
		msg.Header[name] = values
	}
	ack, err := js.PublishMsg(t.Context(), msg)
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

func start(t *testing.T) (jetstream.JetStream, *letters.Box) {
	js := testkit.JetStream(t, testkit.StartBroker(t).URL())
	if _, err := streams.Ensure(t.Context(), js, new(streams.Settings).Configs(wire.Subjects{})); err != nil {
		t.Fatal(err)
	}
	return js, letters.Of(js, wire.Subjects{})
}

// queries are the messages of the query stream.
func queries(t *testing.T, js jetstream.JetStream) (found []*jetstream.RawStreamMsg) {
	stream, err := js.Stream(t.Context(), wire.Subjects{}.QueryStream())
	if err != nil {
		t.Fatal(err)
	}
	state := stream.CachedInfo().State
	for sequence := state.FirstSeq; state.Msgs > 0 && sequence <= state.LastSeq; sequence++ {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, m)
	}
	return found
}

// TestList: whatever is asked for comes, the newest of it, oldest first, and what was dropped does not.
func TestList(t *testing.T) {
	js, box := start(t)
	if found, err := box.List(t.Context(), letters.Choice{}); err != nil || found != nil {
		t.Errorf("of no letters: %v, %v", found, err)
	}
	rng := seeded.Rand(t)
	type made struct {
		sequence      uint64
		index, reason string
	}
	var all []made
	for i := range 60 {
		m := made{index: []string{"a", "b"}[rng.IntN(2)], reason: []string{"worker_lost", "bad_reply"}[rng.IntN(2)]}
		m.sequence = bury(t, js, m.index, m.reason, fmt.Sprint(i), nil)
		all = append(all, m)
	}
	for range 15 {
		at := rng.IntN(len(all))
		if err := box.Drop(t.Context(), all[at].sequence); err != nil {
			t.Fatal(err)
		}
		if err := box.Drop(t.Context(), all[at].sequence); !errors.Is(err, letters.ErrNone) {
			t.Errorf("dropped twice: %v", err)
		}
		all = slices.Delete(all, at, at+1)
	}
	if n, err := box.Count(t.Context()); err != nil || n != uint64(len(all)) {
		t.Errorf("%d letters, %v, want %d", n, err, len(all))
	}
	for range 20 {
		choice := letters.Choice{Index: []string{"", "a", "b", "c"}[rng.IntN(4)], Reason: []string{"", "worker_lost", "none"}[rng.IntN(3)], Newest: rng.IntN(20), Within: uint64(rng.IntN(70))}
		var want []uint64
		for _, m := range all {
			if (choice.Index == "" || m.index == choice.Index) && (choice.Reason == "" || m.reason == choice.Reason) && (choice.Within == 0 || m.sequence+choice.Within > 60) {
				want = append(want, m.sequence)
			}
		}
		if choice.Newest > 0 && len(want) > choice.Newest {
			want = want[len(want)-choice.Newest:]
		}
		found, err := box.List(t.Context(), choice)
		var got []uint64
		for _, l := range found {
			got = append(got, l.Sequence)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: %v, %v, want %v", choice, got, err, want)
		}
	}
	l, err := box.Get(t.Context(), all[0].sequence)
	if err != nil || l.Query != 17 || l.Delivered != 4 || l.Detail != "why" || !l.Asked.Equal(time.Date(2026, 11, 22, 10, 0, 0, 5e8, time.UTC)) || len(l.Body) != l.Size || l.Cut {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := box.Get(t.Context(), 1000); !errors.Is(err, letters.ErrNone) {
		t.Errorf("a letter that is not there: %v", err)
	}
}

// TestReplay: the query is stored as it was, under an id of its own, and the letter is gone.
func TestReplay(t *testing.T) {
	js, box := start(t)
	at := bury(t, js, "people", "unknown_index", `{"text":"x"}`, nats.Header{consumer.HeaderDeadMsgID: {"order-17"}, wire.HeaderReply: {"_INBOX.me"}, "Genie-Other": {"kept", "twice"}})
	done, err := box.Replay(t.Context(), at)
	if err != nil || done.Already || done.Subject != "genie.query.people" {
		t.Fatalf("%+v, %v", done, err)
	}
	asked := queries(t, js)
	if len(asked) != 1 || string(asked[0].Data) != `{"text":"x"}` || asked[0].Subject != "genie.query.people" {
		t.Fatalf("%+v", asked)
	}
	h := asked[0].Header
	if h.Get(wire.HeaderMsgID) != done.ID || h.Get(wire.HeaderQueryID) != "order-17" || h.Get(wire.HeaderReply) != "_INBOX.me" || !slices.Equal(h["Genie-Other"], []string{"kept", "twice"}) || len(h) != 4 {
		t.Errorf("headers %v", h)
	}
	if _, err := box.Replay(t.Context(), at); !errors.Is(err, letters.ErrNone) {
		t.Errorf("replayed twice: %v", err)
	}
}

// TestReplayIsInterrupted: who is not told that a replay worked repeats it, and the query is stored once.
func TestReplayIsInterrupted(t *testing.T) {
	js, box := start(t)
	stream, err := js.Stream(t.Context(), wire.Subjects{}.DeadStream())
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.DenyDelete = true // so that each replay ends where the letter is to be deleted
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	at := bury(t, js, "people", "worker_lost", `{"text":"x"}`, nil)
	first, err := box.Replay(t.Context(), at)
	if err == nil || first.Sequence == 0 || first.Already {
		t.Fatalf("a replay that cannot delete: %+v, %v", first, err)
	}
	second, err := box.Replay(t.Context(), at)
	if err == nil || !second.Already || second.ID != first.ID || second.Sequence != first.Sequence {
		t.Errorf("%+v, %v after %+v", second, err, first)
	}
	if asked := queries(t, js); len(asked) != 1 {
		t.Errorf("%d queries", len(asked))
	}
}

// TestNoReplay: what is not whole, or was no query, stays where it is.
func TestNoReplay(t *testing.T) {
	js, box := start(t)
	if _, err := box.Replay(t.Context(), bury(t, js, "people", "worker_lost", `{"te`, nats.Header{consumer.HeaderDeadSize: {"1000"}})); !errors.Is(err, letters.ErrCut) {
		t.Errorf("a part: %v", err)
	}
	subjects := []string{"", "genie.result.people", "genie.dead.people", "genie.search.people", "other.query.people", "$JS.API.STREAM.DELETE.GENIE_QUERIES", "genie.query.*", "genie.query.", "genie.query", "genie.query.a b"}
	for _, subject := range subjects {
		if done, err := box.Replay(t.Context(), bury(t, js, "people", "x", "{}", nats.Header{consumer.HeaderDeadSubject: {subject}})); err == nil || done != (letters.Replayed{}) {
			t.Errorf("%q: %+v, %v", subject, done, err)
		}
	}
	if n, err := box.Count(t.Context()); err != nil || n != uint64(1+len(subjects)) || len(queries(t, js)) != 0 {
		t.Errorf("%d letters, %v", n, err)
	}
	if _, err := letters.Of(js, prefixed(t, "none")).List(t.Context(), letters.Choice{}); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("without a stream: %v", err)
	}
	// Whoever may publish there writes what he likes.
	at := bury(t, js, "people", "x", "", nats.Header{consumer.HeaderDeadSequence: {"-1"}, consumer.HeaderDeadTime: {"yesterday"}, consumer.HeaderDeadDelivered: {strconv.Itoa(-5)}})
	if l, err := box.Get(t.Context(), at); err != nil || l.Query != 0 || !l.Asked.IsZero() {
		t.Errorf("%+v, %v", l, err)
	}
}

func prefixed(t *testing.T, prefix string) wire.Subjects {
	s, err := wire.NewSubjects(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

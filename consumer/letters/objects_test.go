package letters_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/wire"
)

// TestObjects: a letter whose query lies in the object store has its body from there, asks with it again, and takes it along when it is dropped.
func TestObjects(t *testing.T) {
	js, box := start(t)
	bobs, err := new(streams.Settings).Bucket(wire.Subjects{}, "bob")
	if err == nil {
		_, err = js.CreateStream(t.Context(), bobs)
	}
	if err != nil {
		t.Fatal(err)
	}
	bodies := bodystore.Of(js, wire.Subjects{})
	body := bytes.Repeat([]byte(`{"text":"x"} `), 20_000)
	store := func(user string) (wire.StoredBody, nats.Header) {
		t.Helper()
		b, err := bodies.Put(t.Context(), user, body)
		if err != nil {
			t.Fatal(err)
		}
		subject := "genie.query.people"
		if user != "" {
			subject += "." + user
		}
		return b, nats.Header{wire.HeaderQueryObject: {b.String()}, consumer.HeaderDeadSubject: {subject}, consumer.HeaderDeadMsgID: {"id." + b.Name}}
	}
	for _, user := range []string{"", "bob"} {
		b, header := store(user)
		at := bury(t, js, "people", "worker_lost", "", header)
		l, err := box.Get(t.Context(), at)
		if err != nil || !bytes.Equal(l.Body, body) || l.Size != len(body) || l.Object != b.String() || l.ObjectFault != "" || l.Cut {
			t.Errorf("of %q: %d bytes, %v, %v", user, len(l.Body), l.ObjectFault, err)
		}
		if named, err := box.Objects(t.Context()); err != nil || len(named) != 1 || !named[bodystore.Key{User: user, Name: b.Name}] {
			t.Errorf("letters of %q name %v, %v", user, named, err)
		}
		done, err := box.Replay(t.Context(), at)
		if err != nil || !strings.HasPrefix(done.Subject, "genie.query.people") {
			t.Fatalf("replay of %q: %+v, %v", user, done, err)
		}
		if _, err := bodies.Fetch(t.Context(), user, b, nil); err != nil {
			t.Errorf("of %q, replayed: %v", user, err)
		}
		// Dropped, it is gone with its letter.
		at = bury(t, js, "people", "worker_lost", "", header)
		if err := box.Drop(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if _, err := bodies.Fetch(t.Context(), user, b, nil); !errors.Is(err, bodystore.ErrMissing) {
			t.Errorf("of %q, dropped: %v", user, err)
		}
		// Without its object a letter can be looked at, and not be replayed.
		at = bury(t, js, "people", "bad_object", "", header)
		if l, err := box.Get(t.Context(), at); err != nil || l.Body != nil || !strings.Contains(l.ObjectFault, "not in the bucket") {
			t.Errorf("of %q, without its object: %+v, %v", user, l, err)
		}
		if _, err := box.Replay(t.Context(), at); !errors.Is(err, bodystore.ErrMissing) {
			t.Errorf("replay of %q, without its object: %v", user, err)
		}
		if err := box.Drop(t.Context(), at); err != nil {
			t.Errorf("dropping what has no object: %v", err)
		}
	}
	asked := queries(t, js)
	if len(asked) != 1 || asked[0].Header.Get(wire.HeaderQueryObject) == "" {
		t.Errorf("%d queries were asked again without a user, want 1 with its object", len(asked))
	}
}

package bodystore_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// open is a store on a server of its own, with the buckets of some users, of so many bytes.
func open(t *testing.T, maxBytes int64, users ...string) (*bodystore.Store, jetstream.JetStream) {
	t.Helper()
	js := testkit.JetStream(t, testkit.StartBroker(t).URL())
	settings := &streams.Settings{Bytes: map[streams.Kind]int64{streams.Objects: maxBytes}}
	for _, user := range users {
		config, err := settings.Bucket(wire.Subjects{}, user)
		if err == nil {
			_, err = js.CreateStream(t.Context(), config)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return bodystore.Of(js, wire.Subjects{}), js
}

func content(random *rand.Rand, size int) []byte {
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	return body
}

func messages(t *testing.T, js jetstream.JetStream, bucket string) uint64 {
	t.Helper()
	stream, err := js.Stream(t.Context(), bodystore.StreamOf(bucket))
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// What is stored is fetched, into memory of its size, and removed without a trace.
func TestRoundTrip(t *testing.T) {
	s, js := open(t, 0, "", "bob")
	random := rand.New(rand.NewPCG(seeded.Seed(t), 0))
	for _, size := range []int{1, 100, 128<<10 - 1, 128 << 10, 128<<10 + 1, 3 << 20, random.IntN(1 << 20)} {
		for user, bucket := range map[string]string{"": "GENIE_OBJECTS", "bob": "GENIE_OBJECTS_bob"} {
			body := content(random, size+1)
			b, err := s.Put(t.Context(), user, body)
			if err != nil {
				t.Fatal(err)
			}
			memory := make([]byte, 0, b.Size)
			got, err := s.Fetch(t.Context(), user, b, memory)
			if err != nil || !bytes.Equal(got, body) || &got[0] != &memory[:1][0] {
				t.Fatalf("%d bytes of %q: %v", size, user, err)
			}
			if err := s.Touch(t.Context(), user, b.Name); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Fetch(t.Context(), user, b, nil); err != nil || !bytes.Equal(got, body) {
				t.Fatalf("%d bytes of %q, touched: %v", size, user, err)
			}
			for range 2 { // the second time it is gone
				if err := s.Remove(t.Context(), user, b.Name); err != nil {
					t.Fatal(err)
				}
			}
			if n := messages(t, js, bucket); n != 0 {
				t.Fatalf("%d messages are left of what was removed", n)
			}
			if _, err := s.Fetch(t.Context(), user, b, nil); !errors.Is(err, bodystore.ErrMissing) {
				t.Fatalf("what was removed is fetched: %v", err)
			}
			if err := s.Touch(t.Context(), user, b.Name); !errors.Is(err, bodystore.ErrMissing) {
				t.Fatalf("what was removed is touched: %v", err)
			}
		}
	}
}

func TestNoBucket(t *testing.T) {
	s, _ := open(t, 0)
	b := wire.StoredBodyOf("x", []byte("x"))
	_, put := s.Put(t.Context(), "", []byte("x"))
	_, fetched := s.Fetch(t.Context(), "", b, nil)
	for _, err := range []error{put, fetched, s.Remove(t.Context(), "", "x"), s.Touch(t.Context(), "", "x")} {
		if !errors.Is(err, bodystore.ErrNoBucket) {
			t.Errorf("without a bucket: %v", err)
		}
	}
	if n, err := s.Sweep(t.Context(), bodystore.Sweep{Letters: noLetters}); n != 0 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
}

// A bucket that is full refuses, keeps what it has, and nothing of what it refused.
func TestFullBucket(t *testing.T) {
	s, js := open(t, 1<<20, "")
	random := rand.New(rand.NewPCG(seeded.Seed(t), 0))
	first := content(random, 600<<10)
	b, err := s.Put(t.Context(), "", first)
	if err != nil {
		t.Fatal(err)
	}
	held := messages(t, js, "GENIE_OBJECTS")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Put(ctx, "", content(random, 600<<10)); !errors.Is(err, bodystore.ErrFull) {
		t.Fatalf("a full bucket: %v", err)
	}
	if n := messages(t, js, "GENIE_OBJECTS"); n != held {
		t.Errorf("%d messages are in the bucket, %d before", n, held)
	}
	if got, err := s.Fetch(t.Context(), "", b, nil); err != nil || !bytes.Equal(got, first) {
		t.Errorf("what was there before: %v", err)
	}
	if err := s.Remove(t.Context(), "", b.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), "", first); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// describe writes what somebody says of an object.
func describe(t *testing.T, js jetstream.JetStream, bucket, name, text string) {
	t.Helper()
	subject := "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
	msg := &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {"sub"}}, Data: []byte(text)}
	if _, err := js.PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}

// Nothing that an object or a query says of itself is believed, and nothing of it reaches what is another's.
func TestHostileObjects(t *testing.T) {
	s, js := open(t, 0, "", "bob")
	body := bytes.Repeat([]byte("x"), 300<<10)
	put := func() wire.StoredBody {
		b, err := s.Put(t.Context(), "", body)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	neighbour := put()
	for name, lie := range map[string]func(*wire.StoredBody){
		"larger":  func(b *wire.StoredBody) { b.Size++ },
		"smaller": func(b *wire.StoredBody) { b.Size-- },
		"digest":  func(b *wire.StoredBody) { b.Digest = sha256.Sum256([]byte("another")) },
	} {
		b := put()
		lie(&b)
		if _, err := s.Fetch(t.Context(), "", b, nil); !errors.Is(err, bodystore.ErrWrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, text := range []string{
		`{`, `{}`, `null`, `[]`, `{"name":"x","nuid":">","size":3,"chunks":1}`, `{"name":"x","nuid":"*","size":3}`, `{"name":"x","nuid":"a.b","size":3}`,
		`{"name":"x","nuid":"` + neighbour.Name + `.>","size":3}`, `{"options":{"link":{"bucket":"GENIE_OBJECTS_bob","name":"y"}},"nuid":"","size":3}`,
	} {
		name := fmt.Sprint("hostile", i)
		describe(t, js, "GENIE_OBJECTS", name, text)
		b := wire.StoredBodyOf(name, []byte("abc"))
		if _, err := s.Fetch(t.Context(), "", b, nil); !errors.Is(err, bodystore.ErrWrong) {
			t.Errorf("%s: %v", text, err)
		}
		if err := s.Remove(t.Context(), "", name); err != nil {
			t.Errorf("%s cannot be removed: %v", text, err)
		}
	}
	// Chunks that are more, fewer, or not there.
	for size, chunks := range map[int]int{3: 4, 5: 2, 7: 0} {
		name, nuid := fmt.Sprint("chunks", size), fmt.Sprint("nuid", size)
		for range chunks {
			if _, err := js.Publish(t.Context(), "$O.GENIE_OBJECTS.C."+nuid, []byte("ab")); err != nil {
				t.Fatal(err)
			}
		}
		describe(t, js, "GENIE_OBJECTS", name, fmt.Sprintf(`{"name":%q,"nuid":%q,"size":%d,"chunks":%d}`, name, nuid, size, chunks))
		_, err := s.Fetch(t.Context(), "", wire.StoredBody{Name: name, Size: int64(size)}, nil)
		if want := map[int]error{3: bodystore.ErrWrong, 5: bodystore.ErrMissing, 7: bodystore.ErrMissing}[size]; !errors.Is(err, want) {
			t.Errorf("%d bytes in %d chunks of 2: %v, want %v", size, chunks, err, want)
		}
	}
	for _, name := range []string{"", "a.b", ">", "*", "x/y", "x y"} {
		if err := s.Remove(t.Context(), "", name); !errors.Is(err, wire.BadRequest) {
			t.Errorf("removing %q: %v", name, err)
		}
	}
	if got, err := s.Fetch(t.Context(), "", neighbour, nil); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the neighbour of all that: %v", err)
	}
}

func noLetters(context.Context) (map[bodystore.Key]bool, error) { return nil, nil }

// The sweep takes what nobody needs: no query that may name it waits, no dead letter names it, and it is old. It takes chunks that belong to nothing, too.
func TestSweep(t *testing.T) {
	s, js := open(t, 0, "", "bob")
	if _, err := streams.Ensure(t.Context(), js, (&streams.Settings{}).Configs(wire.Subjects{}, streams.Queries, streams.Users)); err != nil {
		t.Fatal(err)
	}
	const age = 1500 * time.Millisecond // within which a busy machine, too, stores two objects and a query after them
	put := func(user string) wire.StoredBody {
		t.Helper()
		b, err := s.Put(t.Context(), user, bytes.Repeat([]byte("x"), 200<<10))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sweep := func(letters map[bodystore.Key]bool) int {
		t.Helper()
		n, err := s.Sweep(t.Context(), bodystore.Sweep{Age: age, Letters: func(context.Context) (map[bodystore.Key]bool, error) { return letters, nil }})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	there := func(user string, b wire.StoredBody) bool {
		t.Helper()
		_, err := s.Fetch(t.Context(), user, b, nil)
		if err != nil && !errors.Is(err, bodystore.ErrMissing) {
			t.Fatal(err)
		}
		return err == nil
	}
	aged := func() { // until a new object is as old: time passes for all
		t.Helper()
		begin := time.Now()
		testkit.Until(t, "time passes", func() bool { return time.Since(begin) > 2*age })
	}

	mine, bobs := put(""), put("bob")
	if n, err := s.Sweep(t.Context(), bodystore.Sweep{Letters: noLetters}); n != 0 || err != nil || !there("", mine) || !there("bob", bobs) {
		t.Errorf("%d young objects were swept: %v", n, err)
	}
	if _, err := js.Publish(t.Context(), "genie.query.people", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	aged()
	if n := sweep(nil); n != 0 || !there("", mine) || !there("bob", bobs) {
		t.Errorf("%d were swept though a query waits that may name them", n)
	}
	queries, err := js.Stream(t.Context(), "GENIE_QUERIES")
	if err == nil {
		err = queries.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := sweep(map[bodystore.Key]bool{{User: "", Name: mine.Name}: true, {User: "bob", Name: bobs.Name}: true}); n != 0 || !there("", mine) || !there("bob", bobs) {
		t.Errorf("%d were swept though dead letters name them", n)
	}
	// A letter of another user with the same name does not count, nor does a query that came long after; what was touched is young.
	if err := s.Touch(t.Context(), "", mine.Name); err != nil {
		t.Fatal(err)
	}
	if n := sweep(map[bodystore.Key]bool{{User: "", Name: bobs.Name}: true}); n != 1 || !there("", mine) || there("bob", bobs) {
		t.Errorf("%d were swept, want that of bob", n)
	}
	aged()
	if _, err := js.Publish(t.Context(), "genie.query.people", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	young := put("")
	if _, err := js.Publish(t.Context(), "$O.GENIE_OBJECTS.C.partial", []byte("of who died")); err != nil {
		t.Fatal(err)
	}
	if n := sweep(nil); n != 1 || there("", mine) || !there("", young) {
		t.Errorf("%d were swept, want the old one", n)
	}
	if err := queries.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	aged()
	if n := sweep(nil); n != 2 || messages(t, js, "GENIE_OBJECTS") != 0 || messages(t, js, "GENIE_OBJECTS_bob") != 0 {
		t.Errorf("%d were swept in the end, want an object and chunks of none", n)
	}
}

// A user whose server permits what docs/security.md says can neither read, write nor remove what is another's.
func TestUsersBuckets(t *testing.T) {
	permit := func(user string) *server.Permissions {
		bucket := "GENIE_OBJECTS_" + user
		return &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{"$O." + bucket + ".>", "$JS.API.STREAM.INFO.OBJ_" + bucket, "$JS.API.STREAM.MSG.GET.OBJ_" + bucket,
				"$JS.API.STREAM.PURGE.OBJ_" + bucket}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}
	}
	broker := testkit.StartBroker(t, func(o *server.Options) {
		o.Users = []*server.User{{Username: "root", Password: "s"}, {Username: "bob", Password: "s", Permissions: permit("bob")}, {Username: "alice", Password: "s", Permissions: permit("alice")}}
	})
	as := func(user string) (*bodystore.Store, jetstream.JetStream) {
		js := testkit.JetStream(t, broker.URL(), nats.UserInfo(user, "s"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		return bodystore.Of(js, wire.Subjects{}), js
	}
	_, root := as("root")
	for _, user := range []string{"", "bob", "alice"} {
		config, err := (&streams.Settings{}).Bucket(wire.Subjects{}, user)
		if err == nil {
			_, err = root.CreateStream(t.Context(), config)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bob, raw := as("bob")
	alice, _ := as("alice")
	body := bytes.Repeat([]byte("secret"), 50<<10)
	hers, err := alice.Put(t.Context(), "alice", body)
	if err != nil {
		t.Fatal(err)
	}
	his, err := bob.Put(t.Context(), "bob", body)
	if err != nil {
		t.Fatal(err)
	}
	if err := bob.Remove(t.Context(), "bob", his.Name); err != nil {
		t.Errorf("his own: %v", err)
	}
	denied := func(what string, do func(context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // a server answers nothing to what it forbids
		defer cancel()
		if do(ctx) == nil {
			t.Errorf("bob may %s", what)
		}
	}
	for _, user := range []string{"alice", ""} {
		bucket, _ := wire.Subjects{}.ObjectBucket(user)
		denied("write to "+bucket, func(ctx context.Context) error { _, err := bob.Put(ctx, user, body); return err })
		denied("read "+bucket, func(ctx context.Context) error { _, err := bob.Fetch(ctx, user, hers, nil); return err })
		denied("remove from "+bucket, func(ctx context.Context) error { return bob.Remove(ctx, user, hers.Name) })
		denied("publish chunks to "+bucket, func(ctx context.Context) error { _, err := raw.Publish(ctx, "$O."+bucket+".C.x", body); return err })
		denied("delete "+bucket, func(ctx context.Context) error { return raw.DeleteStream(ctx, "OBJ_"+bucket) })
	}
	denied("delete his bucket", func(ctx context.Context) error { return raw.DeleteStream(ctx, "OBJ_GENIE_OBJECTS_bob") })
	denied("make a bucket", func(ctx context.Context) error {
		_, err := raw.CreateStream(ctx, jetstream.StreamConfig{Name: "OBJ_GENIE_OBJECTS_eve", Subjects: []string{"$O.GENIE_OBJECTS_eve.>"}})
		return err
	})
	if got, err := alice.Fetch(t.Context(), "alice", hers, nil); err != nil || !bytes.Equal(got, body) {
		t.Errorf("hers: %v", err)
	}
}

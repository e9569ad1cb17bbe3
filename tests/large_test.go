package tests

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// smallPayload is what a message of the servers of these tests holds.
const smallPayload = 192 << 10

// smallServer is a server whose messages are small.
func smallServer(t testing.TB, more ...string) *external {
	t.Helper()
	return startServer(t, append(more, fmt.Sprintf("max_payload: %d", smallPayload))...)
}

// manyAges are queries whose body has at least so many bytes, most of them in their ids, and their answers.
func manyAges(rng *rand.Rand, bytes int) (queries []client.Query, want []string) {
	people := map[int]string{30: "ann:1", 35: "bob:1 cyd:1", 52: "dan:1"}
	for size := 0; size < bytes; {
		age := []int{30, 35, 52, rng.IntN(100)}[rng.IntN(4)]
		var id [6]uint64
		for i := range id {
			id[i] = rng.Uint64() // which nothing shrinks to a body that fits
		}
		q := client.Query{ID: fmt.Sprintf("%x", id), Row: client.Conditions(client.Equal("age", age))}
		queries, want = append(queries, q), append(want, people[age])
		size += len(wire.AppendQuery(nil, wire.MessagePack, &q))
	}
	return queries, want
}

func answeredAs(t testing.TB, what string, results []wire.Result, want []string) {
	t.Helper()
	if len(results) != len(want) {
		t.Fatalf("%s: %d results, want %d", what, len(results), len(want))
	}
	for i := range results {
		if got := keys(&results[i]); got != want[i] {
			t.Fatalf("%s: query %d is answered %q, want %q", what, i, got, want[i])
		}
	}
}

func newClient(t testing.TB, url string, opts client.Options) *client.Client {
	t.Helper()
	nc, _ := connect(t, url)
	c, err := client.New(nc, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// inBucket is how many messages a bucket has.
func inBucket(t testing.TB, js jetstream.JetStream, bucket string) int {
	t.Helper()
	n := 0
	insist(t, func(ctx context.Context) error {
		stream, err := js.Stream(ctx, "OBJ_"+bucket)
		if err == nil {
			n = int(stream.CachedInfo().State.Msgs)
		}
		return err
	})
	return n
}

func noObjects(t testing.TB, js jetstream.JetStream, buckets ...string) {
	t.Helper()
	testkit.Eventually(t, func() error {
		for _, bucket := range buckets {
			if n := inBucket(t, js, bucket); n > 0 {
				return fmt.Errorf("%s has %d messages", bucket, n)
			}
		}
		return nil
	})
}

// Queries of three times what a message holds are asked as any other, alone and in a batch, by users, in bulk, compressed; and nothing is left of them.
func TestLargeQueries(t *testing.T) {
	t.Parallel()
	server := smallServer(t)
	r := start(t, config.Config{NATS: server.url, ObjectUsers: []string{"bob"}}, service.Options{})
	rng := seeded.Rand(t)
	for name, opts := range map[string]client.Options{
		"plain": {}, "JSON": {JSON: true}, "compressed": {Compress: true}, "user": {User: "bob"}, "bulk": {Class: client.ClassBulk}, "bulk of a user": {Class: client.ClassBulk, User: "bob"},
	} {
		c := newClient(t, server.url, opts)
		for range 2 { // the second time a client that compresses has learnt that it may
			queries, want := manyAges(rng, 3*smallPayload)
			results, err := c.RequestBatch(within(t), "people", queries)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			answeredAs(t, name, results, want)
		}
		values := make([]float64, 30_000)
		for i := range values {
			values[i] = float64(1000+i) + 0.5
		}
		values[rng.IntN(len(values))] = 52
		res, err := c.Request(within(t), "people", client.Query{K: 1, Row: client.Conditions(client.AnyOf("age", values...))})
		if err != nil || keys(res) != "dan:1" {
			t.Fatalf("%s, one query: %v, %v", name, res, err)
		}
		_, err = c.SearchBatch(within(t), "people", make([]client.Query, 1))
		if !errors.Is(err, wire.BadRequest) {
			t.Errorf("%s: a search of nothing: %v", name, err)
		}
		queries, _ := manyAges(rng, 3*smallPayload)
		if _, err := c.SearchBatch(within(t), "people", queries); !errors.Is(err, wire.TooLarge) {
			t.Errorf("%s: a direct search that is too large: %v", name, err)
		}
		opts.NoObjects = true
		if _, err := newClient(t, server.url, opts).RequestBatch(within(t), "people", queries); !errors.Is(err, wire.TooLarge) {
			t.Errorf("%s, without objects: %v", name, err)
		}
	}
	noObjects(t, r.js, "GENIE_OBJECTS", "GENIE_OBJECTS_bob")
	r.settled()

	// A user without a bucket, and more than workers take.
	queries, _ := manyAges(rng, 3*smallPayload)
	if _, err := newClient(t, server.url, client.Options{User: "eve"}).RequestBatch(within(t), "people", queries); !errors.Is(err, wire.TooLarge) || !strings.Contains(err.Error(), "GENIE_OBJECTS_eve") {
		t.Errorf("without a bucket: %v", err)
	}
	vector := make([]client.Query, 40)
	for i := range vector {
		vector[i].Vector = make([]float32, 60_000)
	}
	if _, err := newClient(t, server.url, client.Options{}).RequestBatch(within(t), "people", vector); !errors.Is(err, wire.TooLarge) || !strings.Contains(err.Error(), "8388608") {
		t.Errorf("more than 8 MiB: %v", err)
	}
	// Which is a query of its own when it is published again, and one when its id says so.
	c := newClient(t, server.url, client.Options{})
	queries, _ = manyAges(rng, 2*smallPayload)
	for i := range 2 {
		receipt, err := c.PublishBatch(within(t), "people", queries, client.PublishOptions{MsgID: "twice", Reply: "genie.result.people.twice"})
		if err != nil || receipt.Duplicate != (i > 0) {
			t.Fatalf("published %d times: %+v, %v", i+1, receipt, err)
		}
	}
	r.settled()
	noObjects(t, r.js, "GENIE_OBJECTS")
	r.works()
}

// store puts a body into a bucket, as a client of another make does.
func storeBody(t testing.TB, js jetstream.JetStream, user, body string) wire.StoredBody {
	t.Helper()
	b, err := bodystore.Of(js, wire.Subjects{}).Put(within(t), user, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Whatever the header says, the message is answered, once, with what is wrong; and nothing of it reaches another's object.
func TestHostileObjectHeaders(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{ObjectUsers: []string{"bob", "alice"}}, service.Options{})
	body := `{"id":"q","k":1,"row":{"age":52}}`
	hers, shared := storeBody(t, r.js, "alice", body), storeBody(t, r.js, "", body)
	lie := func(change func(*wire.StoredBody)) string {
		b := storeBody(t, r.js, "bob", body)
		change(&b)
		return b.String()
	}
	own := storeBody(t, r.js, "bob", body)
	broken := storeBody(t, r.js, "bob", `{"row":{"age":52}`)
	garbage := storeBody(t, r.js, "bob", "\xc1\xff")
	for i, c := range []struct {
		header string
		want   string // the answer
		dead   bool
	}{
		{own.String(), "dan:1", false},
		{own.String(), "object_missing", false}, // it is gone: each object has one query
		{broken.String(), "bad_request", false},
		{garbage.String(), "bad_request", false},
		{"a.b 3 SHA-256=x", "bad_request", false},
		{"GENIE_OBJECTS_alice/" + hers.String(), "bad_request", false},
		{"../GENIE_OBJECTS_alice." + hers.String(), "bad_request", false},
		{"> " + hers.Identity(), "bad_request", false},
		{"* " + hers.Identity(), "bad_request", false},
		{hers.String(), "object_missing", false},
		{shared.String(), "object_missing", false},
		{strings.Replace(hers.String(), " ", "\t", 1), "bad_request", false},
		{lie(func(b *wire.StoredBody) { b.Size = 1 << 40 }), "too_large", false},
		{lie(func(b *wire.StoredBody) { b.Size = 8<<20 + 1 }), "too_large", false},
		{lie(func(b *wire.StoredBody) { b.Size = 8 << 20 }), "bad_request", true},
		{lie(func(b *wire.StoredBody) { b.Size++ }), "bad_request", true},
		{lie(func(b *wire.StoredBody) { b.Size-- }), "bad_request", true},
		{lie(func(b *wire.StoredBody) { b.Digest[7] ^= 1 }), "bad_request", true},
	} {
		if i == 1 { // a worker removes an object after its query, a moment later
			testkit.Eventually(t, func() error {
				if _, err := bodystore.Of(r.js, wire.Subjects{}).Fetch(within(t), "bob", own, nil); !errors.Is(err, bodystore.ErrMissing) {
					return fmt.Errorf("the object of an answered query is still there: %v", err)
				}
				return nil
			})
		}
		reply := fmt.Sprintf("genie.result.people.bob.%d", i)
		dead := r.count("GENIE_DEAD", "genie.dead.people")
		m := message("genie.query.people.bob", "", wire.HeaderQueryObject, c.header, wire.HeaderReply, reply)
		if _, err := r.js.PublishMsg(within(t), m); err != nil {
			t.Fatal(err)
		}
		if got := keys(result(t, r.stored(reply, 1).Data)); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q is answered %s, want %s", c.header, got, c.want)
		}
		testkit.Eventually(t, func() error {
			if n := r.count("GENIE_USERS", "genie.query.>"); n > 0 {
				return fmt.Errorf("%q: %d messages are left", c.header, n)
			}
			return nil
		})
		if now := r.count("GENIE_DEAD", "genie.dead.people"); (now > dead) != c.dead || r.count("GENIE_RESULTS", reply) != 1 {
			t.Errorf("%q: %d dead letters, %d before, and %d answers", c.header, now, dead, r.count("GENIE_RESULTS", reply))
		}
	}
	// A user whose token can be no bucket's.
	if _, err := r.js.PublishMsg(within(t), message("genie.query.people.b$b", "", wire.HeaderQueryObject, own.String())); err != nil {
		t.Fatal(err)
	}
	if got := keys(result(t, r.stored("genie.result.people.b$b.answers", 1).Data)); !strings.HasPrefix(got, "bad_request") {
		t.Errorf("a user of another form is answered %s", got)
	}
	for user, b := range map[string]wire.StoredBody{"alice": hers, "": shared} {
		if _, err := bodystore.Of(r.js, wire.Subjects{}).Fetch(within(t), user, b, nil); err != nil {
			t.Errorf("what is %q's: %v", user, err)
		}
	}
	// Direct search reads no objects, and says so.
	reply, err := r.nc.RequestMsg(message("genie.search.people", body, wire.HeaderQueryObject, shared.String()), patience)
	if err != nil {
		t.Fatal(err)
	}
	if got := keys(result(t, reply.Data)); !strings.HasPrefix(got, "bad_request") || !strings.Contains(got, "Genie-Query-Object: direct search") {
		t.Errorf("direct search answers %s", got)
	}
	r.works()
}

// An object stays for as long as its dead letter does: it can be shown, replayed, and is dropped with it.
func TestDeadLettersWithObjects(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	box := letters.Of(r.js, wire.Subjects{})
	body := `{"id":"q","k":1,"row":{"age":52}}`
	die := func() (letters.Letter, wire.StoredBody) {
		b := storeBody(t, r.js, "", body)
		before := r.count("GENIE_DEAD", "genie.dead.people")
		r.publish("people", "", wire.HeaderQueryObject, b.String(), wire.HeaderReply, "not.allowed")
		streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.people", before+1)
		r.settled()
		all, err := box.List(within(t), letters.Choice{Reason: "bad_reply"})
		if err != nil || len(all) != before+1 {
			t.Fatalf("%d letters, %v", len(all), err)
		}
		return all[before], b
	}
	l, _ := die()
	if shown, err := box.Get(within(t), l.Sequence); err != nil || string(shown.Body) != body || shown.Size != len(body) {
		t.Errorf("shown as %+v, %v", shown, err)
	}
	sweep := bodystore.Sweep{Age: time.Millisecond, Letters: box.Objects}
	if n, err := bodystore.Of(r.js, wire.Subjects{}).Sweep(within(t), sweep); n != 0 || err != nil {
		t.Errorf("%d objects with letters were swept, %v", n, err)
	}
	if err := box.Drop(within(t), l.Sequence); err != nil {
		t.Fatal(err)
	}
	if n := inBucket(t, r.js, "GENIE_OBJECTS"); n != 0 {
		t.Errorf("%d messages are left in the bucket of what was dropped", n)
	}
	// Replayed without the header that was wrong it would be another query; with it, it dies again, and has its object still.
	l, b := die()
	if _, err := box.Replay(within(t), l.Sequence); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if all, err := box.List(within(t), letters.Choice{}); err != nil || len(all) != 1 || all[0].Sequence == l.Sequence {
			return fmt.Errorf("letters %+v, %w", all, err)
		}
		return nil
	})
	if _, err := bodystore.Of(r.js, wire.Subjects{}).Fetch(within(t), "", b, nil); err != nil {
		t.Errorf("of what was replayed: %v", err)
	}
	// For an index that nobody serves.
	b = storeBody(t, r.js, "", body)
	r.publish("nobody", "", wire.HeaderQueryObject, b.String())
	unserved := streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.nobody", 1)
	if shown, err := box.Get(within(t), unserved.Sequence); err != nil || string(shown.Body) != body {
		t.Errorf("shown as %+v, %v", shown, err)
	}
	r.works()
}

// A bucket that is full refuses what does not fit it, with an error that says so, and nothing is published or left of that.
func TestFullBucket(t *testing.T) {
	t.Parallel()
	server := smallServer(t)
	rng := seeded.Rand(t)
	_, js := connect(t, server.url)
	makeStreams(t, server.url, []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}})
	stream, err := js.Stream(within(t), "OBJ_GENIE_OBJECTS")
	if err != nil {
		t.Fatal(err)
	}
	small := stream.CachedInfo().Config
	small.MaxBytes = 1 << 20
	if _, err := js.UpdateStream(within(t), small); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, server.url, client.Options{})
	queries, want := manyAges(rng, 600<<10)
	publish := func(id string) error {
		_, err := c.PublishBatch(within(t), "people", queries, client.PublishOptions{MsgID: id, Reply: "genie.result.people." + id})
		return err
	}
	if err := publish("first"); err != nil {
		t.Fatal(err)
	}
	held := inBucket(t, js, "GENIE_OBJECTS")
	if err := publish("second"); !errors.Is(err, client.ErrBucketFull) || client.IsRefusal(err) {
		t.Fatalf("a full bucket: %v", err)
	}
	if n := inBucket(t, js, "GENIE_OBJECTS"); n != held {
		t.Errorf("%d messages in the bucket, %d before", n, held)
	}
	// A full stream refuses the query, and its object is removed.
	if err := js.DeleteStream(within(t), "GENIE_BULK"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "GENIE_BULK", Subjects: []string{"genie.bulk.*", "genie.bulk.*.*"}, MaxMsgs: 1, Discard: jetstream.DiscardNew}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(within(t), "genie.bulk.other", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	few, _ := manyAges(rng, smallPayload+smallPayload/2)
	if _, err := newClient(t, server.url, client.Options{Class: client.ClassBulk}).PublishBatch(within(t), "people", few, client.PublishOptions{}); !errors.Is(err, client.ErrQueueFull) {
		t.Errorf("a full stream: %v", err)
	}
	if n := inBucket(t, js, "GENIE_OBJECTS"); n != held {
		t.Errorf("%d messages in the bucket after a publish was refused, %d before", n, held)
	}
	// When a worker has answered there is room.
	start(t, config.Config{NATS: server.url, Fairness: config.Fairness{Classes: []string{"none"}}}, service.Options{})
	testkit.Eventually(t, func() error { return publish("third") })
	for _, id := range []string{"first", "third"} {
		answeredAs(t, id, storedResults(t, js, "genie.result.people."+id, len(want)), want)
	}
	noObjects(t, js, "GENIE_OBJECTS")
}

// storedResults joins the answer to a batch from what the stream of results has on a subject, and sees to it that no result is there twice.
func storedResults(t testing.TB, js jetstream.JetStream, subject string, n int) []wire.Result {
	t.Helper()
	results, have := make([]wire.Result, n), make([]bool, n)
	for part, found := 1, 0; found < n; part++ {
		m := streamMessage(t, js, "GENIE_RESULTS", subject, part)
		a, err := wire.DecodeBody(m.Header.Get("Content-Type"), m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Results) == 1 && a.Results[0].Err != nil && n > 1 {
			t.Fatalf("answered %v", a.Results[0].Err)
		}
		for i := range a.Results {
			if have[a.First+i] {
				t.Fatalf("result %d is there twice", a.First+i)
			}
			have[a.First+i], results[a.First+i] = true, a.Results[i]
			found++
		}
	}
	return results
}

package tests

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// shortWindow makes the query stream forget ids at once: what takes two minutes otherwise.
func shortWindow(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	_, err := js.CreateStream(within(t), jetstream.StreamConfig{
		Name: "GENIE_QUERIES", Subjects: []string{"genie.query.*"}, Retention: jetstream.WorkQueuePolicy, Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Nobody suppresses another's stored answer by choosing the id of a query.
func TestIDsOfOthers(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	_, js := connect(t, server.url)
	shortWindow(t, js)
	r := start(t, config.Config{NATS: server.url}, service.Options{})
	stream, err := r.js.Stream(within(t), "GENIE_QUERIES")
	if err != nil {
		t.Fatal(err)
	}
	created := stream.CachedInfo().Created.UnixNano()
	forged := fmt.Sprintf("%d.%d", created, 4)
	r.publish("people", `{"id":"mallory","row":{"age":30}}`, "Nats-Msg-Id", forged)
	r.publish("people", `{"id":"mallory 2","row":{"age":30}}`, "Nats-Msg-Id", "~"+forged)
	r.settled()
	r.publish("people", `{"id":"mallory 3","row":{"age":30}}`, "Nats-Msg-Id", fmt.Sprintf("%d.%d.1", created, 4))
	if seq := r.publish("people", `{"id":"alice","row":{"age":52}}`); seq != 4 {
		t.Fatalf("alice's query is message %d", seq)
	}
	r.settled()
	got := make(map[string]string)
	for n := range 4 {
		m := r.stored("genie.result.people", n+1)
		got[m.Header.Get("Genie-Query-Id")] = keys(result(t, m.Data))
	}
	if len(got) != 4 || got["alice"] != "dan:1" {
		t.Errorf("answers: %v", got)
	}
}

// An id may be used again when the query stream has forgotten it: to another subject, to the same, and for another query.
func TestIDsUsedAgain(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	_, js := connect(t, server.url)
	shortWindow(t, js)
	r := start(t, config.Config{NATS: server.url}, service.Options{})
	wait := func() { // until the id is forgotten
		r.settled()
		time.Sleep(300 * time.Millisecond)
	}
	batch := `{"queries":[{"row":{"age":30}},{"row":{"age":52}}]}`
	for _, q := range []struct{ body, reply string }{
		{`{"row":{"age":30}}`, "genie.result.people.a"},
		{`{"row":{"age":52}}`, "genie.result.people.b"},
		{`{"row":{"age":52}}`, "genie.result.people.a"},
		{`{"row":{"age":35}}`, "genie.result.people.a"},
		{batch, "genie.result.people.a"},
	} {
		r.publish("people", q.body, "Nats-Msg-Id", "again", "Genie-Reply", q.reply)
		wait()
	}
	for n, want := range []string{"ann:1", "dan:1", "bob:1 cyd:1"} {
		if got := keys(result(t, r.stored("genie.result.people.a", n+1).Data)); got != want {
			t.Errorf("answer %d on a is %s, want %s", n+1, got, want)
		}
	}
	if m := r.stored("genie.result.people.a", 4); m.Header.Get("Genie-Queries") != "0-1/2" {
		t.Errorf("the batch is answered by %v %s", m.Header, m.Data)
	}
	if got := keys(result(t, r.stored("genie.result.people.b", 1).Data)); got != "dan:1" {
		t.Errorf("the answer on b is %s", got)
	}
	if a, b := r.count("GENIE_RESULTS", "genie.result.people.a"), r.count("GENIE_RESULTS", "genie.result.people.b"); a != 4 || b != 1 {
		t.Errorf("%d and %d answers", a, b)
	}
	// The same message again, to the same subject: it was published twice because its acknowledgement was lost, and the server
	// has forgotten it meanwhile. It has its answer.
	for _, body := range []string{`{"row":{"age":52}}`, batch} {
		r.publish("people", body, "Nats-Msg-Id", "twice", "Genie-Reply", "genie.result.people.c")
		wait()
		before := r.count("GENIE_RESULTS", "genie.result.people.c")
		r.publish("people", body, "Nats-Msg-Id", "twice", "Genie-Reply", "genie.result.people.c")
		wait()
		if n := r.count("GENIE_RESULTS", "genie.result.people.c"); n != before {
			t.Errorf("%s, published twice, is answered %d times", body, 1+n-before)
		}
	}
	// The same message to an index that nobody serves.
	for n := range 2 {
		reply := fmt.Sprint("genie.result.nobody.", n)
		r.publish("nobody", `{"row":{"age":30}}`, "Nats-Msg-Id", "again too", "Genie-Reply", reply)
		if res := result(t, r.stored(reply, 1).Data); res.Err == nil || res.Err.Code != "unknown_index" {
			t.Errorf("answered %+v", res)
		}
		wait()
	}
}

package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// A reply subject that is allowed by the service but forbidden to it by the server: the sender is told where results
// go that name no subject, and the message is a dead letter.
func TestForbiddenReply(t *testing.T) {
	t.Parallel()
	server := startServer(t, `
authorization {
  users = [
    {user: service, password: secret, permissions: {publish: {deny: ["_INBOX.private.>"]}}}
    {user: other, password: secret}
  ]
}`)
	address := strings.TrimPrefix(server.url, "nats://")
	r := start(t, config.Config{NATS: "nats://service:secret@" + address, Indexes: buildAll(t, t.TempDir())}, service.Options{})
	if url := r.srv.NATSURL(); strings.Contains(url, "secret") {
		t.Errorf("the password is in %s", url)
	}
	for i := range 3 {
		r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", fmt.Sprintf("_INBOX.private.%d", i))
		res := result(t, r.stored("genie.result.people", i+1).Data)
		if res.Err == nil || res.Err.Code != wire.BadRequest || !strings.Contains(res.Err.Message, "forbidden") {
			t.Errorf("the sender is told %v", res.Err)
		}
		if dead := streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.people", i+1); dead.Header.Get("Genie-Dead-Reason") != "bad_reply" {
			t.Errorf("dead letter %v", dead.Header)
		}
	}
	// The same for an index that nobody serves: many such messages do not keep the sweeper from those behind them.
	const forbidden = 20
	for i := range forbidden {
		r.publish("nobody", `{"text":"x"}`, "Genie-Reply", fmt.Sprintf("_INBOX.private.%d", i))
	}
	r.publish("nobody", `{"text":"x"}`)
	for i := range forbidden + 1 {
		if res := result(t, r.stored("genie.result.nobody", i+1).Data); res.Err == nil || res.Err.Code != wire.UnknownIndex {
			t.Errorf("the sender is told %v", res.Err)
		}
	}
	r.settled()
	r.works()
}

// A result stream that takes only small messages: answers are split to fit it, and where its limit was lowered
// meanwhile, one that is larger becomes an error.
func TestSmallResultStream(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	cfg := config.Config{NATS: server.url, Indexes: buildAll(t, t.TempDir())}
	r := start(t, cfg, service.Options{})
	stream, err := r.js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgSize = 800
	if _, err := r.js.UpdateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
	large := `{"queries":[` + strings.Repeat(`{"row":{"sex":"Female"}},`, 9) + `{"row":{"sex":"Male"}}]}`
	// Until the service knows, which takes a second, an answer that is too large for the stream becomes an error; TestReadiness has
	// what comes then.
	r.publish("people", `{"row":{"age":30}}`)
	if got := keys(result(t, r.stored("genie.result.people", 1).Data)); got != "ann:1" {
		t.Errorf("got %s", got)
	}
	r.settled()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.srv.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	r = start(t, cfg, service.Options{})
	r.publish("people", large)
	for results, n := 0, 2; results < 10; n++ {
		m := r.stored("genie.result.people", n)
		a, err := wire.DecodeAnswer(wire.JSON, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if a.First != results || m.Header.Get("Genie-Queries") == "" {
			t.Errorf("part from %d on, want %d; headers %v", a.First, results, m.Header)
		}
		for i := range a.Results {
			if want := map[bool]string{false: "ann:1 cyd:1 eve:1", true: "bob:1 dan:1"}[results == 9]; keys(&a.Results[i]) != want {
				t.Errorf("result %d: %s", results, keys(&a.Results[i]))
			}
			results++
		}
	}
	r.settled()
}

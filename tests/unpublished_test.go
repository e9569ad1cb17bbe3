package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service"
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
	r := start(t, service.Config{NATS: "nats://service:secret@" + address, Indexes: buildAll(t, t.TempDir())}, service.Options{})
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
	r.settled()
	r.works()
}

// A result stream that takes only small messages: a larger answer becomes an error that fits.
func TestSmallResultStream(t *testing.T) {
	t.Parallel()
	r := start(t, service.Config{}, service.Options{})
	stream, err := r.js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgSize = 600
	if _, err := r.js.UpdateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
	r.publish("people", `{"queries":[`+strings.Repeat(`{"row":{"sex":"Female"}},`, 9)+`{"row":{"sex":"Male"}}]}`)
	if res := result(t, r.stored("genie.result.people", 1).Data); res.Err == nil || res.Err.Code != wire.TooLarge {
		t.Errorf("got %v", res.Err)
	}
	r.publish("people", `{"row":{"age":30}}`)
	if got := keys(result(t, r.stored("genie.result.people", 2).Data)); got != "ann:1" {
		t.Errorf("got %s", got)
	}
	r.settled()
}

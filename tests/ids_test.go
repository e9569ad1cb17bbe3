package tests

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// An answer has the id of its query: the body's, be it a string or an integer, else, for a single query, the message's
// Nats-Msg-Id, whether the query is answered by hits or by an error, stored or direct.
func TestAnswersHaveIDs(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for i, c := range []struct {
		body, msgID, want string
	}{
		{`{"id":"a","row":{"age":30}}`, "m1", "a"},
		{`{"id":9007199254740993,"row":{"age":30}}`, "", "9007199254740993"},
		{`{"id":-5,"row":{"agee":30}}`, "", "-5"},
		{`{"row":{"age":30}}`, "order-17", "order-17"},
		{`{"row":{"agee":30}}`, "order-18", "order-18"},
		{`{"k":-1}`, "order-19", "order-19"},
		{`not JSON`, "order-20", "order-20"},
		{`{"row":{"age":30}}`, "", ""},
		{`{"row":{"age":30}}`, strings.Repeat("long", 1000), ""},
	} {
		var headers []string
		if c.msgID != "" {
			headers = []string{"Nats-Msg-Id", c.msgID}
		}
		reply := "genie.result.people.ids" + string(rune('a'+i))
		r.publish("people", c.body, append(headers, "Genie-Reply", reply)...)
		stored := r.stored(reply, 1)
		if got := result(t, stored.Data).ID; got != c.want {
			t.Errorf("stored %s with %.20q: the answer's id is %q, want %q", c.body, c.msgID, got, c.want)
		}
		if got := stored.Header.Get("Genie-Query-Id"); got != c.want {
			t.Errorf("stored %s with %.20q: the header's id is %q, want %q", c.body, c.msgID, got, c.want)
		}
		direct, err := r.nc.RequestMsg(message("genie.search.people", c.body, headers...), patience)
		if err != nil {
			t.Fatal(err)
		}
		if got := result(t, direct.Data).ID; got != c.want {
			t.Errorf("direct %s with %.20q: the answer's id is %q, want %q", c.body, c.msgID, got, c.want)
		}
	}
	// MessagePack, written by hand: {"id": 2^63, "row": {"age": 30}}.
	packed := "\x82\xa2id\xcf\x80\x00\x00\x00\x00\x00\x00\x00\xa3row\x81\xa3age\x1e"
	direct, err := r.nc.RequestMsg(message("genie.search.people", packed, "Content-Type", "application/msgpack"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := testkit.DecodeResult(wire.MessagePack, direct.Data); err != nil || got.Err != nil || got.ID != "9223372036854775808" {
		t.Errorf("MessagePack: %v %+v", err, got)
	}
	// The queries of a batch have none but their own.
	batch, err := r.nc.RequestMsg(message("genie.search.people", `{"queries":[{"row":{"age":30}},{"id":3,"row":{"age":30}}]}`, "Nats-Msg-Id", "b"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := wire.DecodeAnswer(wire.JSON, batch.Data); err != nil || a.Results[0].ID != "" || a.Results[1].ID != "3" {
		t.Errorf("batch: %v %s", err, batch.Data)
	}
	// The client gives messages ids of its own, which are none of its callers' business.
	nc, err := nats.Connect(r.srv.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	asker, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	for _, id := range []string{"", "mine"} {
		if res, err := asker.Request(within(t), "people", client.Query{ID: id, Row: client.Conditions(client.Equal("age", 30))}); err != nil || res.ID != id {
			t.Errorf("client: %v %+v, want id %q", err, res, id)
		}
	}
}

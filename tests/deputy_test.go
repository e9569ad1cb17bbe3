package tests

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// A user who may only publish direct searches cannot make the worker, which may publish everywhere, forge stored answers,
// queries or calls of JetStream's API: such requests are dropped, counted and logged, and searches are answered as ever.
func TestDirectReplyIsNoDeputy(t *testing.T) {
	t.Parallel()
	server := startServer(t, `
authorization {
  users: [
    { user: admin, password: a },
    { user: eve, password: e, permissions: { publish: { allow: ["genie.search.people"] }, subscribe: { allow: ["_INBOX.>"] } } }
  ]
}`)
	as := func(user string) string { return strings.Replace(server.url, "//", "//"+user+"@", 1) }
	log := &output{}
	r := start(t, config.Config{NATS: as("admin:a"), Admin: "127.0.0.1:0"}, service.Options{Logger: textLogger(log)})
	eve, err := nats.Connect(as("eve:e"))
	if err != nil {
		t.Fatal(err)
	}
	defer eve.Close()
	spy, err := r.nc.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	replies := []string{
		"genie.result.people.bob", "genie.result.people", "genie.query.people", "genie.search.people", "genie.dead.people",
		"$JS.API.STREAM.PURGE.GENIE_RESULTS", "$JS.API.STREAM.DELETE.GENIE_QUERIES", "$SYS.REQ.SERVER.PING", "$SRV.PING", "app.orders",
		"_INBOX", "_INBOX_bob.x", // not those of gateways, _GR_: the server lets no client say them
	}
	for _, reply := range replies {
		if err := eve.PublishRequest("genie.search.people", reply, []byte(`{"row":{"age":30}}`)); err != nil {
			t.Fatal(err)
		}
	}
	inbox, err := eve.Request("genie.search.people", []byte(`{"row":{"age":30}}`), patience) // taken in after all of them
	if err != nil || keys(result(t, inbox.Data)) != "ann:1" {
		t.Fatalf("an honest request is answered %v", err)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := spy.NextMsg(100 * time.Millisecond)
		if err != nil {
			break
		}
		if strings.HasPrefix(m.Subject, "genie.search.") || strings.HasPrefix(m.Subject, "_INBOX.") || strings.HasPrefix(m.Subject, "$JS.") {
			continue // eve's requests, her answer, and what the worker and its probes say to JetStream
		}
		t.Errorf("published on %s: %s", m.Subject, m.Data)
	}
	if n := r.count("GENIE_RESULTS", ">"); n != 0 {
		t.Errorf("%d answers are stored", n)
	}
	if n := r.count("GENIE_QUERIES", ">"); n != 0 {
		t.Errorf("%d queries are stored", n)
	}
	page, err := http.Get(r.srv.AdminURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	text, err := io.ReadAll(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("geniemq_direct_dropped_total{index=\"people\"} %d\n", len(replies)); !strings.Contains(string(text), want) {
		t.Errorf("the metrics lack %s", want)
	}
	if n := strings.Count(log.String(), "a direct request is dropped"); n != 1 {
		t.Errorf("%d lines about dropped requests, want 1:\n%s", n, log)
	}
	r.works()
}

// An own list of reply subjects replaces the default one.
func TestDirectReplyAllow(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{DirectReplyAllow: []string{"_INBOX_ann.>", "_INBOX_bob.>"}}, service.Options{})
	own, err := nats.Connect(r.srv.NATSURL(), nats.CustomInboxPrefix("_INBOX_ann"))
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Request("genie.search.people", []byte(`{"row":{"age":30}}`), patience); err != nil {
		t.Errorf("an inbox of its own: %v", err)
	}
	if _, err := r.nc.Request("genie.search.people", []byte(`{"row":{"age":30}}`), 300*time.Millisecond); err == nil {
		t.Error("an inbox that the list lacks is answered")
	}
}

// Another account asks through a service import, where the server replaces the inbox by a subject of its own.
func TestDirectSearchAcrossAccounts(t *testing.T) {
	t.Parallel()
	server := startServer(t, `
accounts {
  SEARCH: { jetstream: enabled, users: [ { user: worker, password: w } ], exports: [ { service: "genie.search.>" } ] }
  SHOP: { users: [ { user: shop, password: s } ], imports: [ { service: { account: SEARCH, subject: "genie.search.people" } } ] }
}`)
	start(t, config.Config{NATS: strings.Replace(server.url, "//", "//worker:w@", 1)}, service.Options{})
	shop, err := nats.Connect(strings.Replace(server.url, "//", "//shop:s@", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	reply, err := shop.Request("genie.search.people", []byte(`{"row":{"age":30}}`), patience)
	if err != nil || keys(result(t, reply.Data)) != "ann:1" {
		t.Errorf("another account is answered: %v", err)
	}
}

// A stored query names its answer's subject among those of its own index, unless another list is set.
func TestStoredReplyIsOfTheIndex(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for i, reply := range []string{"genie.result.words", "genie.result.words.bob", "genie.result.peopl", "genie.result.people2.bob", "genie.result.people-2"} {
		r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", reply)
		res := result(t, r.stored("genie.result.people", i+1).Data)
		if res.Err == nil || res.Err.Code != wire.BadRequest || !strings.Contains(res.Err.Message, "allowed are _INBOX.>, genie.result.people, genie.result.people.>") {
			t.Errorf("%s: %+v", reply, res)
		}
		if n := r.count("GENIE_RESULTS", reply); n != 0 {
			t.Errorf("%s has %d answers", reply, n)
		}
	}
	for _, reply := range []string{"genie.result.people.bob", "genie.result.people.bob.7", "genie.result.people"} {
		n := 1
		if reply == "genie.result.people" {
			n = 6 // after the errors
		}
		r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", reply)
		if got := keys(result(t, r.stored(reply, n).Data)); got != "ann:1" {
			t.Errorf("%s is answered %s", reply, got)
		}
	}
	own := start(t, config.Config{ReplyAllow: []string{"app.{index}.*", "x"}}, service.Options{})
	spy, err := own.nc.SubscribeSync("app.people.ann")
	if err != nil {
		t.Fatal(err)
	}
	own.publish("people", `{"row":{"age":30}}`, "Genie-Reply", "app.words.ann")
	if res := result(t, own.stored("genie.result.people", 1).Data); res.Err == nil || !strings.Contains(res.Err.Message, "allowed are app.people.*, x") {
		t.Errorf("%+v", res)
	}
	own.publish("people", `{"row":{"age":30}}`, "Genie-Reply", "app.people.ann")
	if m, err := spy.NextMsg(patience); err != nil || keys(result(t, m.Data)) != "ann:1" {
		t.Errorf("its own subject: %v", err)
	}
}

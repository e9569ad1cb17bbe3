package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// What is wrong with a query is said to whoever asked, stored or directly, and nobody else notices.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	answers := make(map[string]int)
	for _, c := range []struct {
		name, index, query string
		code               wire.Code
		says               string
	}{
		{"empty body", "people", ``, wire.BadRequest, "body is empty"},
		{"no JSON", "people", `{"row":`, wire.BadRequest, ""},
		{"not an object", "people", `[1,2]`, wire.BadRequest, "object"},
		{"wrong type of k", "people", `{"k":"ten","row":{"age":1}}`, wire.BadRequest, "k"},
		{"wrong type of row", "people", `{"row":"age"}`, wire.BadRequest, "row"},
		{"wrong type of value", "people", `{"row":{"age":"old"}}`, wire.BadRequest, "age"},
		{"unknown field", "people", `{"rows":{"age":1}}`, wire.BadRequest, "did you mean row?"},
		{"a shape that no column knows", "people", `{"row":{"age":[30,40]}}`, wire.BadRequest, "row.age: must be a value or a condition, not an array"},
		{"a field that no column knows", "people", `{"row":{"age":{"mim":30}}}`, wire.BadRequest, `row.age: unknown field "mim" (did you mean min?)`},
		{"unknown column", "people", `{"row":{"agee":1}}`, wire.BadRequest, `attribute "agee" is not in index people (did you mean age?)`},
		{"negative k", "people", `{"k":-1,"row":{"age":1}}`, wire.BadRequest, "between 1 and 65536"},
		{"k = 0", "people", `{"k":0,"row":{"age":1}}`, wire.BadRequest, "between 1 and 65536"},
		{"k over the limit", "people", `{"k":65537,"row":{"age":1}}`, wire.BadRequest, "between 1 and 65536"},
		{"empty query", "people", `{}`, wire.BadRequest, "asks for nothing"},
		{"empty row", "people", `{"row":{}}`, wire.BadRequest, "row"},
		{"empty text", "words", `{"text":""}`, wire.BadRequest, "empty"},
		{"NaN", "people", `{"row":{"age":NaN}}`, wire.BadRequest, ""},
		{"min > max", "people", `{"row":{"age":{"min":40,"max":30}}}`, wire.BadRequest, "min 40 is greater than max 30"},
		{"text for a table", "people", `{"text":"ann"}`, wire.BadRequest, "use row or items"},
		{"row for sequences", "words", `{"row":{"age":1}}`, wire.BadRequest, "age"},
		{"vector", "people", `{"vector":[1,2]}`, wire.BadRequest, "no column of type vector"},
		{"set", "words", `{"set":["a"]}`, wire.BadRequest, "no column of type set"},
		{"reserved field", "people", `{"row":{"age":1},"offset":2}`, wire.Unsupported, "offset"},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(where string, header nats.Header, body []byte) {
				t.Helper()
				res := result(t, body)
				if res.Err == nil || res.Err.Code != c.code || !strings.Contains(res.Err.Message, c.says) {
					t.Errorf("%s: %v, want %s with %q", where, res.Err, c.code, c.says)
				}
				if where == "direct" && (header.Get("Nats-Service-Error-Code") != string(c.code) || header.Get("Nats-Service-Error") == "") {
					t.Errorf("direct: headers %v", header)
				}
			}
			reply, err := r.nc.Request("genie.search."+c.index, []byte(c.query), patience)
			if err != nil {
				t.Fatal(err)
			}
			check("direct", reply.Header, reply.Data)
			r.publish(c.index, c.query)
			subject := "genie.result." + c.index
			answers[subject]++
			m := r.stored(subject, answers[subject])
			check("stored", m.Header, m.Data)
		})
	}
	r.settled() // nothing is kept for another try
	if n := r.count("GENIE_DEAD", "genie.dead.>"); n != 0 {
		t.Errorf("%d bad queries are dead letters, although their senders were told", n)
	}
	r.works()
}

// In MessagePack a NaN can be written down.
func TestBadMessagePack(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	nan := "\x81\xa3row\x81\xa3age\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct{ body, says string }{
		"NaN":              {nan, "NaN"},
		"lying length":     {"\x81\xa7queries\xdd\xff\xff\xff\xff", ""},
		"deep nesting":     {"\x81\xa3row" + strings.Repeat("\x91", 100000), ""},
		"cut off":          {nan[:10], ""},
		"trailing garbage": {nan[:5] + "\x81\xa3age\x01\x01", ""},
	} {
		reply, err := r.nc.RequestMsg(message("genie.search.people", c.body, "Content-Type", "application/msgpack"), patience)
		if err != nil {
			t.Fatal(err)
		}
		res, err := testkit.DecodeResult(wire.MessagePack, reply.Data)
		if err != nil {
			t.Fatalf("%s: the answer is not in the query's codec: %v", name, err)
		}
		if res.Err == nil || !strings.Contains(res.Err.Message, c.says) {
			t.Errorf("%s: %+v", name, res)
		}
	}
	r.works()
}

// k over the size of the index is no mistake: there are just fewer hits.
func TestKOverIndexSize(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for index, query := range map[string]string{
		"people": `{"k":65536,"row":{"sex":"Female"}}`,
		"words":  `{"k":65536,"text":"apple"}`,
		"papers": `{"k":65536,"text":"index"}`,
	} {
		reply, err := r.nc.Request("genie.search."+index, []byte(query), patience)
		if err != nil {
			t.Fatal(err)
		}
		if res := result(t, reply.Data); res.Err != nil || len(res.Hits) == 0 || res.MCK != 0 {
			t.Errorf("%s: %+v", index, res)
		}
	}
}

func TestContentTypeAndProtocol(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	n := 0
	for _, c := range []struct {
		header, value string
		code          wire.Code
	}{
		{"Content-Type", "application/xml", wire.Unsupported},
		{"Content-Type", "application/json; charset=utf-8", ""},
		{"Content-Type", "application/msgpack", wire.BadRequest}, // which the body is not
		{"Genie-Protocol", "2", wire.Unsupported},
		{"Genie-Protocol", "one", wire.BadRequest},
	} {
		r.publish("people", `{"row":{"age":30}}`, c.header, c.value)
		n++
		m := r.stored("genie.result.people", n)
		codec, _ := wire.ParseContentType(m.Header.Get("Content-Type"))
		res, err := testkit.DecodeResult(codec, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if c.code == "" && res.Err != nil || c.code != "" && (res.Err == nil || res.Err.Code != c.code) {
			t.Errorf("%s %s: %v, want %q", c.header, c.value, res.Err, c.code)
		}
	}
	r.settled()
	r.works()
}

// A body at the limit is answered, one byte more is too large, and what the server itself refuses costs the sender
// its message and nobody else anything.
func TestBodySize(t *testing.T) {
	t.Parallel()
	const limit = 8 << 20
	r := start(t, config.Config{}, service.Options{})
	body := func(size int) string {
		const head, tail = `{"row":{"age":30}`, `}`
		return head + strings.Repeat(" ", size-len(head)-len(tail)) + tail
	}
	for n, c := range []struct {
		size int
		want string
	}{{limit - 1, "ann:1"}, {limit, "ann:1"}, {limit + 1, "too_large"}} {
		reply, err := r.nc.Request("genie.search.people", []byte(body(c.size)), patience)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(result(t, reply.Data)); !strings.HasPrefix(got, c.want) {
			t.Errorf("direct, %d bytes: %s, want %s", c.size, got, c.want)
		}
		r.publish("people", body(c.size))
		if got := keys(result(t, r.stored("genie.result.people", n+1).Data)); !strings.HasPrefix(got, c.want) {
			t.Errorf("stored, %d bytes: %s, want %s", c.size, got, c.want)
		}
	}
	r.settled()

	if err := r.nc.Publish("genie.query.people", make([]byte, broker.MaxPayload+1)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a publish over max_payload: %v", err)
	}
	asker, err := client.New(r.nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	items := make([]client.Condition, 2000)
	for i := range items {
		items[i] = client.Equal("note", strings.Repeat("x", 60_000))
	}
	if _, err := asker.Request(within(t), "people", client.Query{Items: items}); !errors.Is(err, wire.TooLarge) {
		t.Errorf("the client sends what the server would refuse: %v", err)
	}
	r.works()
}

// A query without a reply subject is answered where results of its index go; a direct request without one cannot be
// answered and is ignored.
func TestMissingReply(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	r.publish("people", `{"row":{"age":30}}`)
	if got := keys(result(t, r.stored("genie.result.people", 1).Data)); got != "ann:1" {
		t.Errorf("got %s", got)
	}
	if err := r.nc.Publish("genie.search.people", []byte(`{"row":{"age":30}}`)); err != nil {
		t.Fatal(err)
	}
	// A request on the query subject gets the stream's acknowledgement, and its answer goes the usual way.
	reply, err := r.nc.Request("genie.query.people", []byte(`{"row":{"age":52}}`), patience)
	if err != nil || !strings.Contains(string(reply.Data), `"stream"`) {
		t.Errorf("a request on the query subject: %v", err)
	}
	if got := keys(result(t, r.stored("genie.result.people", 2).Data)); got != "dan:1" {
		t.Errorf("got %s", got)
	}
	r.works()
}

// Forbidden and malformed reply subjects: an error where it does no harm, a dead letter, and no second try.
func TestBadReply(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for i, reply := range []string{
		"genie.query.people", "$JS.API.STREAM.DELETE.GENIE_RESULTS", "app.results", "genie.result.*", "genie.result.>",
		"genie.result..x", ".genie.result", "_INBOX.", "genie.result.a b", "_INBOX." + strings.Repeat("x", 255),
	} {
		spy, err := r.nc.SubscribeSync("app.>")
		if err != nil {
			t.Fatal(err)
		}
		r.publish("people", `{"id":"x","row":{"age":30}}`, "Genie-Reply", reply)
		res := result(t, r.stored("genie.result.people", i+1).Data)
		if res.Err == nil || res.Err.Code != wire.BadRequest || !strings.Contains(res.Err.Message, "reply subject") {
			t.Errorf("%q: %v", reply, res.Err)
		}
		dead := streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.people", i+1)
		if dead.Header.Get("Genie-Dead-Reason") != "bad_reply" || dead.Header.Get("Genie-Reply") != reply || !strings.Contains(string(dead.Data), `"age":30`) {
			t.Errorf("%q: dead letter %v %s", reply, dead.Header, dead.Data)
		}
		if n, _, _ := spy.Pending(); n != 0 {
			t.Errorf("%q: something was published there", reply)
		}
	}
	r.settled()
	r.works()
}

// An own allow-list replaces the default.
func TestReplyAllow(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{ReplyAllow: []string{"app.*.in"}}, service.Options{})
	sub, err := r.nc.SubscribeSync("app.one.in")
	if err != nil {
		t.Fatal(err)
	}
	r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", "app.one.in")
	m, err := sub.NextMsg(patience)
	if err != nil || keys(result(t, m.Data)) != "ann:1" {
		t.Errorf("got %v", err)
	}
	r.publish("people", `{"row":{"age":30}}`, "Genie-Reply", "_INBOX.x")
	if res := result(t, r.stored("genie.result.people", 1).Data); res.Err == nil {
		t.Error("an inbox is allowed, although the list lacks it")
	}
}

// The same message id twice is one query, also from two users: ids are global. The query's own id may repeat.
func TestSameMessageID(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	first := r.publish("people", `{"id":"same","row":{"age":30}}`, "Nats-Msg-Id", "m1")
	other, js := connect(t, r.srv.NATSURL())
	ack, err := js.PublishMsg(within(t), message("genie.query.people", `{"id":"same","row":{"age":52}}`, "Nats-Msg-Id", "m1"))
	if err != nil || !ack.Duplicate || ack.Sequence != first {
		t.Errorf("a second message with the id: %+v %v", ack, err)
	}
	inbox := other.NewInbox()
	sub, err := other.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	// Two users with the same query id, each on a reply subject of its own.
	if _, err := js.PublishMsg(within(t), message("genie.query.people", `{"id":"same","row":{"age":52}}`, "Genie-Reply", inbox)); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if got := keys(result(t, m.Data)); got != "dan:1" {
		t.Errorf("the second user got %s", got)
	}
	if got := keys(result(t, r.stored("genie.result.people", 1).Data)); got != "ann:1" {
		t.Errorf("the first user got %s", got)
	}
	// Without message ids the same query counts twice, and is answered twice.
	r.publish("people", `{"id":"same","row":{"age":35}}`)
	r.publish("people", `{"id":"same","row":{"age":35}}`)
	r.stored("genie.result.people", 3)
	// An id that ends like the number of a part is another id.
	r.publish("people", `{"queries":[{"row":{"age":30}}]}`, "Nats-Msg-Id", "m2")
	r.publish("people", `{"row":{"age":30}}`, "Nats-Msg-Id", "m2.1")
	r.stored("genie.result.people", 5)
	// A message id as long as headers may be still has an answer, and only one.
	long := strings.Repeat("i", 40_000)
	r.publish("people", `{"row":{"age":30}}`, "Nats-Msg-Id", long)
	r.stored("genie.result.people", 6)
	r.settled()
	if n := r.count("GENIE_RESULTS", "genie.result.people"); n != 6 {
		t.Errorf("%d results, want 6", n)
	}
}

// An index that nobody serves: the sender is told, the message is kept as a dead letter.
func TestUnservedIndex(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	inbox := r.nc.NewInbox()
	sub, err := r.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.nc.Request("genie.search.nobody", []byte(`{}`), time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("direct: %v", err)
	}
	r.publish("nobody", `{"id":"1","text":"x"}`)
	r.publish("nobody", `{"id":"2","text":"x"}`, "Genie-Reply", inbox, "traceparent", "00-aa-bb-01")
	res := result(t, r.stored("genie.result.nobody", 1).Data)
	if res.Err == nil || res.Err.Code != wire.UnknownIndex || res.Index != "nobody" {
		t.Errorf("got %+v", res)
	}
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if res := result(t, m.Data); res.Err == nil || res.Err.Code != wire.UnknownIndex || m.Header.Get("traceparent") == "" {
		t.Errorf("inbox: %+v %v", res, m.Header)
	}
	if dead := streamMessage(t, r.js, "GENIE_DEAD", "genie.dead.nobody", 2); dead.Header.Get("Genie-Dead-Reason") != "unknown_index" {
		t.Errorf("dead letter %v", dead.Header)
	}
	r.settled()
	r.works()
}

// Answers too large for one message: split when stored, refused when direct.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	var data strings.Builder
	data.WriteString("name,note\n")
	for i := range 20_000 {
		fmt.Fprintf(&data, "same,%0500d\n", i)
	}
	schema := "name: big\nkind: rows\ncolumns: [{name: name, type: category}, {name: note, type: payload}]\n"
	dir := t.TempDir()
	cfg := config.Config{
		Indexes: append(buildAll(t, dir), config.IndexSource{Path: buildFile(t, dir, "big.csv", schema, data.String())}),
		Admin:   "127.0.0.1:0",
	}
	r := start(t, cfg, service.Options{})

	one := `{"k":20000,"row":{"name":"same"},"with_payload":true}` // some 11 MB
	half := `{"k":10000,"row":{"name":"same"},"with_payload":true}`
	reply, err := r.nc.Request("genie.search.big", []byte(one), patience)
	if err != nil {
		t.Fatal(err)
	}
	if res := result(t, reply.Data); res.Err == nil || res.Err.Code != wire.TooLarge || reply.Header.Get("Nats-Service-Error-Code") != "too_large" {
		t.Errorf("direct: %v %v", res.Err, reply.Header)
	}
	reply, err = r.nc.Request("genie.search.big", []byte(`{"queries":[`+half+","+half+`]}`), patience)
	if err != nil {
		t.Fatal(err)
	}
	if res := result(t, reply.Data); res.Err == nil || res.Err.Code != wire.TooLarge {
		t.Errorf("a direct batch is split: %v", res.Err)
	}

	r.publish("big", one)
	if res := result(t, r.stored("genie.result.big", 1).Data); res.Err == nil || res.Err.Code != wire.TooLarge {
		t.Errorf("a single result: %v", res.Err)
	}
	r.publish("big", `{"queries":[`+half+","+half+","+one+","+half+`]}`, "Nats-Msg-Id", "split")
	results, parts := 0, 0
	for ; results < 4; parts++ {
		m := r.stored("genie.result.big", 2+parts)
		queries, ok := wire.ParseRange(m.Header.Get("Genie-Queries"))
		if !ok || queries.First != results || queries.Total != 4 || m.Header.Get("Nats-Msg-Id") != fmt.Sprintf("big.split.%d", results+1) {
			t.Errorf("the part that begins with query %d has headers %v", results, m.Header)
		}
		a, err := wire.DecodeAnswer(wire.JSON, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if a.First != results {
			t.Errorf("a part begins with result %d, want %d", a.First, results)
		}
		for i := range a.Results {
			if res := &a.Results[i]; results == 2 && (res.Err == nil || res.Err.Code != wire.TooLarge) || results != 2 && len(res.Hits) != 10_000 {
				t.Errorf("result %d: %d hits, %v", results, len(res.Hits), res.Err)
			}
			results++
		}
		if queries.Last != results-1 {
			t.Errorf("a part that ends with query %d says %v", results-1, queries)
		}
	}
	if results != 4 || parts < 2 {
		t.Errorf("%d results in %d parts", results, parts)
	}
	r.settled()
	testkit.Eventually(t, func() error {
		s := r.scrape()
		ok := s.value("geniemq_queries_total", "index", "big", "outcome", "ok")
		tooLarge := s.value("geniemq_queries_total", "index", "big", "outcome", "too_large")
		if ok != 3 || tooLarge != 4 { // the direct batch is refused as a whole and counts as one
			return fmt.Errorf("%v queries are counted as ok and %v as too large, want 3 and 4", ok, tooLarge)
		}
		return nil
	})
	r.works()
}

// Index files that are not what they should be are refused before anything is served, by name and with what to do.
func TestBadIndexFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := buildFile(t, dir, "people.csv", peopleSchema, peopleData)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	try := func(path string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		srv, err := service.Start(ctx, config.Config{
			Indexes: []config.IndexSource{{Path: path}}, NATSListen: "127.0.0.1:0", DataDir: t.TempDir(), Admin: config.Off,
		}, service.Options{})
		if err == nil {
			srv.Shutdown(ctx)
		}
		return err
	}
	var damaged *store.CorruptError
	for _, size := range []int{len(data) - 1, len(data) / 2, 200, 64} {
		if err := try(write("cut.gmq", data[:size])); !errors.As(err, &damaged) {
			t.Errorf("cut off at %d of %d bytes: %v", size, len(data), err)
		}
	}
	if err := try(write("empty.gmq", nil)); !errors.Is(err, store.ErrNotIndex) {
		t.Errorf("an empty file: %v", err)
	}
	if err := try(write("text.gmq", []byte(strings.Repeat("age,sex\n", 100)))); !errors.Is(err, store.ErrNotIndex) {
		t.Errorf("a text file: %v", err)
	}
	if err := try(filepath.Join(dir, "none.gmq")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := try(good); err != nil {
		t.Errorf("a sound file: %v", err)
	}
}

package tests

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Every form of query, asked by plain NATS in JSON, stored and directly, has the answer that a reader of the data
// can check by hand.
func TestQueryForms(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	cases := []struct{ index, query, want string }{
		{"people", `{"k":3,"row":{"age":{"min":30,"max":40},"sex":"Female"}}`, "ann:2 cyd:2 bob:1"},
		{"people", `{"k":2,"row":{"age":35}}`, "bob:1 cyd:1"},
		{"people", `{"row":{"state":{"in":["WA","CA"]},"sex":"Female"}}`, "ann:2 eve:2 cyd:1 dan:1"},
		{"people", `{"row":{"age":{"max":34}}}`, "ann:1"},
		{"people", `{"row":{"age":{"min":36}}}`, "dan:1"},
		{"people", `{"row":{"age":{"min":-5,"max":0,"unit":"bucket"}}}`, "ann:1"},
		{"people", `{"row":{"age":{"min":2,"max":5000000000,"unit":"bucket"}}}`, "dan:1"},
		{"people", `{"row":{"age":{"min":-9,"max":-5,"unit":"bucket"}}}`, ""},
		{"people", `{"items":[{"attr":"sex","value":"Male","weight":5},{"attr":"state","value":"WA"},{"attr":"state","value":"WA"}]}`, "dan:7 bob:5 ann:2"},
		{"people", `{"row":{"sex":"Female"},"min_count":2}`, ""},
		{"people", `{"row":{"sex":"Neither"}}`, ""},
		{"people", `{"row":{"age":{"min":100,"max":200}}}`, ""},
		{"words", `{"text":"aple","k":2}`, "2:3 0:4"},
		{"papers", `{"text":"Inverted index for GPU"}`, "0:3 1:1 3:1"},
		{"papers", `{"text":"the of and"}`, ""},
		{"papers", `{"items":[{"attr":"title","value":"index"}]}`, "0:1 3:1"},
	}
	answers := make(map[string]int)
	for _, c := range cases {
		reply, err := r.nc.Request("genie.search."+c.index, []byte(c.query), patience)
		if err != nil {
			t.Fatal(err)
		}
		direct := result(t, reply.Data)
		if got := keys(direct); c.index != "words" && got != c.want {
			t.Errorf("direct %s: %s\n got %s\nwant %s", c.index, c.query, got, c.want)
		}
		if !direct.Exact && c.index != "words" {
			t.Errorf("%s: a plain match count is not exact", c.query)
		}
		if direct.Index != c.index || len(direct.Version) != 16 {
			t.Errorf("index %q version %q", direct.Index, direct.Version)
		}
		r.publish(c.index, c.query)
		subject := "genie.result." + c.index
		answers[subject]++
		if got, want := keys(result(t, r.stored(subject, answers[subject]).Data)), keys(direct); got != want {
			t.Errorf("stored and direct differ on %s:\nstored %s\ndirect %s", c.query, got, want)
		}
	}
	r.settled()
}

// Sequences answer in the order of the edit distance, with the text as payload.
func TestSequences(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	reply, err := r.nc.Request("genie.search.words", []byte(`{"text":"aple","k":3,"with_payload":true,"certify":true}`), patience)
	if err != nil {
		t.Fatal(err)
	}
	res := result(t, reply.Data)
	if res.Err != nil || len(res.Hits) != 3 {
		t.Fatalf("%+v", res)
	}
	for i, want := range []struct {
		payload  string
		distance float64
	}{{`{"word":"apple"}`, 1}, {`{"word":"ample"}`, 1}, {`{"word":"maple"}`, 1}} {
		h := res.Hits[i]
		if h.Distance != want.distance || !h.HasDistance {
			t.Errorf("hit %d has distance %v, want %v", i, h.Distance, want.distance)
		}
		if !strings.Contains(`{"word":"apple"} {"word":"ample"} {"word":"maple"}`, string(h.Payload)) {
			t.Errorf("hit %d has payload %s", i, h.Payload)
		}
	}
	if !res.Exact {
		t.Error("a certified answer is not exact")
	}
}

func TestPayload(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for _, c := range []struct{ index, query, want string }{
		{"people", `{"row":{"age":52},"with_payload":true}`, `{"note":"fourth"}`},
		{"people", `{"row":{"age":52}}`, ``},
		{"papers", `{"text":"everything","with_payload":true}`, `{"title":"The index of everything"}`},
	} {
		reply, err := r.nc.Request("genie.search."+c.index, []byte(c.query), patience)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(result(t, reply.Data).Hits[0].Payload); got != c.want {
			t.Errorf("%s: payload %s, want %s", c.query, got, c.want)
		}
	}
}

// One message with many queries: one answer, in the same order, in which bad queries fail alone.
func TestBatchMessage(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	body := `{"queries":[{"id":"a","row":{"age":52}},{"id":"b","row":{"agee":1}},{"id":"c","kk":1},{"id":"d","row":{"age":30}}]}`
	check := func(where string, header nats.Header, body []byte) {
		t.Helper()
		a, err := wire.DecodeAnswer(wire.JSON, body)
		if err != nil {
			t.Fatal(err)
		}
		if !a.Batch || a.First != 0 || len(a.Results) != 4 {
			t.Fatalf("%s: %s", where, body)
		}
		for i, want := range []struct{ id, keys string }{
			{"a", "dan:1"},
			{"b", `bad_request: attribute "agee" is not in index people (did you mean age?)`},
			{"c", `bad_request: unknown field "kk"`},
			{"d", "ann:1"},
		} {
			if a.Results[i].ID != want.id || keys(&a.Results[i]) != want.keys {
				t.Errorf("%s: result %d is %s %s, want %s %s", where, i, a.Results[i].ID, keys(&a.Results[i]), want.id, want.keys)
			}
		}
		if header.Get(wire.HeaderServiceError) != "" || where == "stored" && header.Get(wire.HeaderQueries) != "0-3/4" {
			t.Errorf("%s: headers %v", where, header)
		}
	}
	reply, err := r.nc.Request("genie.search.people", []byte(body), patience)
	if err != nil {
		t.Fatal(err)
	}
	check("direct", reply.Header, reply.Data)
	seq := r.publish("people", body)
	m := r.stored("genie.result.people", 1)
	check("stored", m.Header, m.Data)
	if got := m.Header.Get(wire.HeaderQuerySeq); got != "1" || seq != 1 {
		t.Errorf("%s is %q, the query's sequence %d", wire.HeaderQuerySeq, got, seq)
	}
	r.settled()
}

// What goes with a query comes back with its answer.
func TestHeaders(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	query := wire.Query{ID: "q-7", Text: "aple", K: 1}
	body := wire.AppendQuery(nil, wire.MessagePack, &query)
	headers := []string{"Content-Type", "application/msgpack", "traceparent", trace, "Genie-Protocol", "1"}
	check := func(where string, header nats.Header, body []byte) {
		t.Helper()
		if header.Get("Content-Type") != "application/msgpack" || header.Get("traceparent") != trace || header.Get("Genie-Query-Id") != "q-7" {
			t.Errorf("%s: headers %v", where, header)
		}
		res, err := testkit.DecodeResult(wire.MessagePack, body)
		if err != nil {
			t.Fatal(err)
		}
		if res.ID != "q-7" || len(res.Hits) != 1 || res.Took.Total <= 0 {
			t.Errorf("%s: %+v", where, res)
		}
	}
	reply, err := r.nc.RequestMsg(message("genie.search.words", string(body), headers...), patience)
	if err != nil {
		t.Fatal(err)
	}
	check("direct", reply.Header, reply.Data)

	r.publish("words", string(body), append(headers, "Nats-Msg-Id", "mine")...)
	m := r.stored("genie.result.words", 1)
	check("stored", m.Header, m.Data)
	if id := m.Header.Get("Nats-Msg-Id"); id != "words.mine.1" {
		t.Errorf("the result's message id is %q", id)
	}

	inbox := r.nc.NewInbox()
	sub, err := r.nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	r.publish("words", string(body), append(headers, "Genie-Reply", inbox)...)
	got, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	check("inbox", got.Header, got.Data)
	r.settled()
	if n := r.count("GENIE_RESULTS", "genie.result.>"); n != 1 {
		t.Errorf("%d results are stored, one was to go to an inbox", n)
	}
}

// An object that shares no n-gram with the query can be the nearest: a certified answer holds it, with count 0. The
// most candidates that the protocol allows are no more than the engine takes.
func TestSequencesWithNothingInCommon(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	for _, c := range []struct {
		options string
		hits    int
	}{{`"certify":true`, 3}, {`"certify":true,"candidates":65536`, 3}, {`"certify":true,"min_count":1`, 0}} {
		reply, err := r.nc.Request("genie.search.words", []byte(`{"text":"zzzz","k":3,`+c.options+`}`), patience)
		if err != nil {
			t.Fatal(err)
		}
		res := result(t, reply.Data)
		if res.Err != nil || !res.Exact || len(res.Hits) != c.hits {
			t.Errorf("%s: %+v", c.options, res)
		}
		for _, h := range res.Hits {
			if h.Count != 0 || !h.HasDistance {
				t.Errorf("%s: %+v", c.options, h)
			}
		}
	}
}

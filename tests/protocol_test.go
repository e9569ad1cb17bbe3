package tests

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/fields"
	"github.com/geniemq/geniemq/wire/schema"
)

// published is a schema of docs/protocol, as other programs read it.
func published(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("../docs/protocol/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return schemaOf(t, text)
}

func schemaOf(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:it", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:it")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// follows checks a body, and the headers of its message.
func follows(t *testing.T, what string, body *jsonschema.Schema, on fields.Message, header nats.Header, data []byte) {
	t.Helper()
	if body != nil {
		text := data
		if strings.Contains(header.Get("Content-Type"), "msgpack") {
			var doc any
			if err := msgpack.Unmarshal(data, &doc); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			var err error
			if text, err = json.Marshal(doc); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = body.Validate(doc)
		}
		if err != nil {
			t.Errorf("%s: the answer is not as the schema says: %v\n%s", what, err, text)
		}
	}
	described, err := json.Marshal(schema.Headers(on))
	if err != nil {
		t.Fatal(err)
	}
	known := described
	if on == fields.DeadMessage { // which has those of the message too
		known, _ = json.Marshal(schema.Headers(on | fields.QueryMessage))
	}
	have := map[string]any{}
	for name, values := range header {
		if have[name] = values[0]; strings.HasPrefix(name, "Genie-") && !bytes.Contains(known, []byte(`"`+name+`"`)) {
			t.Errorf("%s: no document has the header %s", what, name)
		}
	}
	if err := schemaOf(t, described).Validate(have); err != nil {
		t.Errorf("%s: the headers are not as the document says: %v\n%v", what, err, header)
	}
}

// What a service accepts and sends is what the schemas and the AsyncAPI document say: stored and direct, right and wrong, in both codecs.
func TestProtocolDocuments(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	query, answer := published(t, "query.schema.json"), published(t, "answer.schema.json")
	for i, c := range []struct{ index, body string }{
		{"people", `{"id":"q","k":3,"row":{"age":{"min":30,"max":40},"sex":"Female","state":{"in":["WA","OR"]}},"with_payload":true}`},
		{"people", `{"items":[{"attr":"age","min":30,"max":39,"weight":2},{"attr":"sex","value":"Male"}],"matched":true}`},
		{"people", `{"row":{"sex":"Female"},"filter":{"state":"WA"},"exclude":[{"age":52}],"total":true,"explain":true}`},
		{"people", `{"row":{"sex":"Female"},"form":"columns","keys":true,"with_payload":true}`},
		{"people", `{"queries":[{"id":1,"row":{"sex":"Male"}},{"row":{"nobody":1}},{"id":3,"filter":{"sex":"Male"},"form":"columns"}]}`},
		{"people", `{"row":{"agee":1}}`},
		{"words", `{"text":"aple","k":2,"candidates":20,"certify":true}`},
		{"words", `{"text":"zzzz","min_count":1,"timeout_ms":60000}`},
		{"papers", `{"text":"inverted index on GPUs","idf":true,"rescore":{"by":"jaccard"}}`},
		// And what both refuse.
		{"people", `{"k":0,"row":{"sex":"Male"}}`}, {"people", `{"row":{}}`}, {"people", `{"rows":{"sex":"Male"}}`}, {"people", `{"row":{"age":{"min":true}}}`},
		{"people", `{"queries":[]}`}, {"people", `{"text":"x","row":{"sex":"Male"}}`}, {"people", `[]`}, {"people", `{"row":{"sex":"Male"},"must":1}`},
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		fits := query.Validate(doc) == nil
		m, err := wire.DecodeMessage(wire.JSON, []byte(c.body), wire.Limits{})
		for i := 0; err == nil && i < len(m.Queries); i++ {
			if m.Queries[i].Err != nil {
				err = m.Queries[i].Err
			}
		}
		if fits != (err == nil) {
			t.Errorf("%s: the schema accepts it: %v; the service: %v", c.body, fits, err)
		}
		var value any
		if err := json.Unmarshal([]byte(c.body), &value); err != nil {
			t.Fatal(err)
		}
		packed, err := msgpack.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		for codec, body := range map[string]string{"application/json": c.body, "application/msgpack": string(packed)} {
			headers := []string{"Content-Type", codec, "Genie-Accept", "parts", "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
			direct, err := r.nc.RequestMsg(message("genie.search."+c.index, body, headers...), patience)
			if err != nil {
				t.Fatal(err)
			}
			follows(t, "direct "+codec+c.body, answer, fields.ReplyMessage, direct.Header, direct.Data)
			reply := "genie.result." + c.index + ".schema" + string(rune('a'+i)) + strings.TrimPrefix(codec, "application/")
			r.publish(c.index, body, append(headers, "Genie-Reply", reply, "Nats-Msg-Id", reply)...)
			stored := r.stored(reply, 1)
			follows(t, "stored "+codec+c.body, answer, fields.ResultMessage, stored.Header, stored.Data)
		}
	}
	// Dead letters: an index that nobody serves, and a reply that is not allowed.
	dead, err := r.nc.SubscribeSync("genie.dead.*")
	if err != nil {
		t.Fatal(err)
	}
	r.publish("people", `{"row":{"sex":"Male"}}`, "Genie-Reply", "elsewhere", "Nats-Msg-Id", "dead-1")
	letter, err := dead.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	follows(t, "dead letter", nil, fields.DeadMessage, letter.Header, letter.Data)
	for _, name := range []string{consumer.HeaderDeadReason, consumer.HeaderDeadDetail, consumer.HeaderDeadSubject, consumer.HeaderDeadSequence, consumer.HeaderDeadTime,
		consumer.HeaderDeadDelivered, consumer.HeaderDeadMsgID, consumer.HeaderDeadSize} {
		if text, _ := json.Marshal(schema.Headers(fields.DeadMessage)); !strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("the documents lack the header %s", name)
		}
	}
	info, err := r.nc.Request("$SRV.INFO.geniemq", nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	checkInfo(t, info.Data)
}

// checkInfo checks what a worker says of itself, and that the AsyncAPI document has the subjects that there are.
func checkInfo(t *testing.T, info []byte) {
	text, err := os.ReadFile("../docs/protocol/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Channels   map[string]struct{ Address *string }
		Components struct {
			Messages map[string]struct{ Payload json.RawMessage }
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	said, err := jsonschema.UnmarshalJSON(bytes.NewReader(info))
	if err == nil {
		err = schemaOf(t, doc.Components.Messages["info"].Payload).Validate(said)
	}
	if err != nil {
		t.Errorf("a worker's INFO is not as the document says: %v\n%s", err, info)
	}
	var s wire.Subjects
	for channel, want := range map[string]string{"query": s.Query("{index}"), "result": s.Result("{index}"), "reply": s.Reply("{index}", "{asker}"),
		"dead": s.Dead("{index}"), "search": s.Search("{index}"), "info": "$SRV.INFO.geniemq"} {
		if c := doc.Channels[channel]; c.Address == nil || *c.Address != want {
			t.Errorf("the document has no channel %s at %s", channel, want)
		}
	}
}

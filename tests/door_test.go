package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

const doorToken = "a-token-for-tests"

// askDoor posts a body to the HTTP door, or gets what is there where it is empty, and returns status, headers and the answer.
func askDoor(t *testing.T, r *running, path, body string, headers ...string) (int, http.Header, []byte) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(within(t), method, r.srv.HTTPURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+doorToken)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may take longer than the door waits: ask again, as who uses it would.
	if key := res.Header.Get("Idempotency-Key"); key != "" && req.Header.Get("Prefer") == "" && (res.StatusCode == http.StatusAccepted || res.StatusCode == http.StatusServiceUnavailable) {
		return askDoor(t, r, path, body, append(headers[:len(headers):len(headers)], "Idempotency-Key", key)...)
	}
	return res.StatusCode, res.Header, text
}

// doorSchemas compiles the schemas of the OpenAPI document that the door serves.
func doorSchemas(t *testing.T, r *running) func(name string) *jsonschema.Schema {
	t.Helper()
	_, _, text := askDoor(t, r, "/v1/openapi.json", "", "Authorization", "")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:door", doc); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("urn:door#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// What the door says is what the same message is answered over NATS, with the status of its error, and as the OpenAPI document has it.
func TestDoor(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{HTTP: "127.0.0.1:0", HTTPToken: doorToken}, service.Options{})
	schemaOf := doorSchemas(t, r)
	answers := schemaOf("answers")
	const good = `{"k":2,"row":{"sex":"Female"}}`
	for _, c := range []struct {
		path, body string
		status     int
		code       wire.Code
	}{
		{"people", good, 200, ""},
		{"people", `{"queries":[` + good + `,{"row":{"nobody":1}}]}`, 200, ""},
		{"people", `{"row":{"nobody":1}}`, 400, wire.BadRequest},
		{"people", `no JSON`, 400, wire.BadRequest},
		{"people", `{"row":{"sex":"Male"},"must":1}`, 501, wire.Unsupported},
		{"people", `{"text":"` + strings.Repeat("x", 70_000) + `"}`, 413, wire.TooLarge},
		{"people", strings.Repeat("x", 8<<20+1), 413, wire.TooLarge},
		{"peo%20ple", good, 400, wire.BadRequest},
		{"nobody", good, 404, wire.UnknownIndex},
	} {
		for _, way := range []string{"search", "queries"} {
			if way == "queries" && c.path == "nobody" {
				continue // it waits for a worker, or to be swept
			}
			status, _, text := askDoor(t, r, "/v1/indexes/"+c.path+"/"+way, c.body)
			a, err := wire.DecodeAnswer(wire.JSON, text)
			if err != nil {
				t.Fatalf("%s %.100s: %v: %s", way, c.body, err, text)
			}
			code := wire.Code("")
			if !a.Batch && a.Results[0].Err != nil {
				code = a.Results[0].Err.Code
			}
			if status != c.status || code != c.code {
				t.Errorf("%s of %s, %.100s: %d %q, not %d %q", way, c.path, c.body, status, code, c.status, c.code)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err == nil {
				err = answers.Validate(doc)
			}
			if err != nil {
				t.Errorf("%s %.100s: not as the document says: %v", way, c.body, err)
			}
			if direct, err := r.nc.Request("genie.search."+c.path, []byte(c.body), patience); err == nil && len(c.body) < 70_000 {
				if got, want := untimed(t, text), untimed(t, direct.Data); got != want {
					t.Errorf("%s %.100s: %s, and over NATS %s", way, c.body, got, want)
				}
			}
		}
	}
	for _, header := range []string{"", "Bearer ", "Bearer wrong", doorToken} {
		if status, _, _ := askDoor(t, r, "/v1/indexes", "", "Authorization", header); status != 401 {
			t.Errorf("who shows %q gets %d", header, status)
		}
	}
	status, _, text := askDoor(t, r, "/v1/indexes", "")
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schemaOf("indexes").Validate(doc)
	}
	if err != nil || status != 200 || strings.Count(string(text), `"name"`) != 3 {
		t.Errorf("the indexes are %d %s: %v", status, text, err)
	}
}

// A query that is too large for a message is stored through the object store; direct search takes what fits a message.
func TestDoorTakesLargeQueries(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{NATS: smallServer(t).url, HTTP: "127.0.0.1:0", HTTPToken: doorToken}, service.Options{})
	queries, want := manyAges(seeded.Rand(t), 3*smallPayload)
	large := string(wire.AppendQueries(nil, wire.JSON, queries))
	for range 2 { // the second time it is asked once, and its object is not needed
		status, _, text := askDoor(t, r, "/v1/indexes/people/queries", large, "Idempotency-Key", "large")
		a, err := wire.DecodeAnswer(wire.JSON, text)
		if status != 200 || err != nil {
			t.Fatalf("%d %.200s: %v", status, text, err)
		}
		answeredAs(t, "through the door", a.Results, want)
		noObjects(t, r.js, "GENIE_OBJECTS")
	}
	if status, _, text := askDoor(t, r, "/v1/indexes/people/search", large); status != 413 {
		t.Errorf("direct search of what is too large for a message: %d %.200s", status, text)
	}
	if err := r.js.DeleteStream(within(t), "OBJ_GENIE_OBJECTS"); err != nil {
		t.Fatal(err)
	}
	if status, _, text := askDoor(t, r, "/v1/indexes/people/queries", large); status != 413 || !strings.Contains(string(text), "GENIE_OBJECTS") {
		t.Errorf("without a bucket: %d %.200s", status, text)
	}
}

// untimed is an answer without what differs each time.
func untimed(t *testing.T, text []byte) string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "took_us")
			delete(v, "id")
			for inner := range maps.Values(v) {
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	if results, batch := doc["results"]; batch {
		strip(results)
	} else {
		delete(doc, "took_us")
		delete(doc, "id")
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// A query that is posted is stored once under its key, and its answer found again, also one in several messages; who does not wait is told where it is.
func TestDoorStores(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{HTTP: "127.0.0.1:0", HTTPToken: doorToken}, service.Options{})
	const path, body = "/v1/indexes/people/queries", `{"k":2,"row":{"sex":"Female"}}`
	status, header, text := askDoor(t, r, path, body, "Idempotency-Key", "order-1")
	if status != 200 || header.Get("Idempotency-Key") != "order-1" || result(t, text).ID != "order-1" {
		t.Fatalf("%d %v %s", status, header, text)
	}
	for range 2 {
		if again, _, same := askDoor(t, r, path, body, "Idempotency-Key", "order-1"); again != 200 || !bytes.Equal(same, text) {
			t.Errorf("again: %d %s, not %s", again, same, text)
		}
	}
	stream, err := r.js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d answers are stored", n)
	}
	many := `{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"k":5,"filter":{"age":{"min":0}},"explain":false},`, 30_000), ",") + `]}`
	status, _, text = askDoor(t, r, path, many, "Idempotency-Key", "many")
	a, err := wire.DecodeAnswer(wire.JSON, text)
	if err != nil || status != 200 || !a.Batch || len(a.Results) != 30_000 {
		t.Fatalf("many queries: %d %v %.200s", status, err, text)
	}
	for i := range a.Results {
		if len(a.Results[i].Hits) != 4 {
			t.Fatalf("result %d of many has %d hits", i, len(a.Results[i].Hits))
		}
	}
	if info, err := stream.Info(within(t)); err != nil || info.State.Msgs < 3 {
		t.Fatalf("the answer to many queries was no long one: %v", err)
	}
	// Who does not wait is told where the query is, and finds the answer later.
	status, _, text = askDoor(t, r, path, `{"k":1,"row":{"state":"WA"}}`, "Idempotency-Key", "later", "Prefer", "wait=0")
	if status != 200 && (status != 202 || !strings.Contains(string(text), `"id":"later"`)) {
		t.Errorf("without waiting: %d %s", status, text)
	}
	if status, _, text = askDoor(t, r, path, `{"k":1,"row":{"state":"WA"}}`, "Idempotency-Key", "later"); status != 200 || len(result(t, text).Hits) != 1 {
		t.Errorf("later: %d %s", status, text)
	}
	for _, bad := range [][]string{{"Prefer", "wait=61"}, {"Prefer", "respond-async, wait=x"}, {"Idempotency-Key", strings.Repeat("x", 256)}} {
		if status, _, text := askDoor(t, r, path, body, bad...); status != 400 {
			t.Errorf("%v: %d %s", bad, status, text)
		}
	}
}

package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// Queries that ask for as much as they may are answered or refused by name, and others are answered as ever.
func TestRecordsHostile(t *testing.T) {
	t.Parallel()
	r := shop(t)
	conditions := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"price":{"max":60}},`, n), ",")
	}
	filters := make([]string, 1000)
	for i := range filters {
		filters[i] = fmt.Sprintf(`{"row":{"title":"red shoes"},"filter":{"price":{"min":%d.5}},"total":true}`, i)
	}
	matched := strings.TrimSuffix(strings.Repeat(`{"row":{"tags":["a","b","sale"]},"k":65536,"matched":true},`, 16), ",")
	explained := strings.TrimSuffix(strings.Repeat(`{"row":{"title":"red"},"explain":true},`, 65), ",")
	for _, c := range []struct {
		name, body string
		code       wire.Code // "": answered
		says       string
	}{
		{"many conditions", `{"filter":[` + conditions(65_536) + `]}`, "", ""},
		{"too many conditions", `{"filter":[` + conditions(65_537) + `]}`, wire.TooLarge, "items"},
		{"a filter of many values", `{"filter":{"tags":{"any":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 60_000), ",") + `]}}}`, "", ""},
		{"weights beyond", `{"items":[{"attr":"brand","value":"acme","weight":65535}],"weights":{"brand":2}}`, wire.BadRequest, "65535"},
		{"many different filters", `{"queries":[` + strings.Join(filters, ",") + `]}`, "", ""},
		{"many candidates", `{"row":{"title":"red shoes"},"k":65536,"candidates":65536,"certify":true,"rescore":{"by":"jaccard"}}`, "", ""},
		{"many warnings", `{"row":{"tags":[` + strings.TrimSuffix(strings.Repeat(`"never",`, 60_000), ",") + `]}}`, "", ""},
		{"much that is matched", `{"queries":[` + matched + `]}`, "", ""},
		{"too much explained", `{"queries":[` + explained + `]}`, wire.TooLarge, "explained"},
	} {
		answer := send(t, r, wire.JSON, []byte(c.body))
		for i := range answer.Results {
			err := answer.Results[i].Err
			if (err == nil) != (c.code == "") || err != nil && (err.Code != c.code || !strings.Contains(err.Message, c.says)) {
				t.Errorf("%s: %v, want %q: %s", c.name, err, c.code, c.says)
				break
			}
			if n := len(answer.Results[i].Warnings); n > 10 {
				t.Errorf("%s: %d warnings", c.name, n)
			}
		}
		if got := keysOf(ask(t, r, "shop", `{"row":{"title":"red shoes"}}`)); got != "a b c e" {
			t.Errorf("after %s: %s", c.name, got)
		}
	}
	// What is no number cannot be written in JSON.
	q := wire.Query{Filter: []wire.Condition{{Attr: "price", Min: wire.Number(math.NaN())}}}
	answer := send(t, r, wire.MessagePack, wire.AppendQuery(nil, wire.MessagePack, &q))
	if err := answer.Results[0].Err; err == nil || err.Code != wire.BadRequest {
		t.Errorf("NaN: %v", err)
	}
}

// Queries are answered alike one by one and together, in both codecs.
func TestRecordsTogether(t *testing.T) {
	t.Parallel()
	r := shop(t)
	random := seeded.Rand(t)
	var queries []wire.Query
	var bodies []string
	for range 200 {
		body := randomShopQuery(random)
		message, err := wire.DecodeMessage(wire.JSON, []byte(body), wire.Limits{})
		if err != nil || message.Queries[0].Err != nil {
			t.Fatalf("%s: %v %v", body, err, message)
		}
		queries, bodies = append(queries, message.Queries[0].Query), append(bodies, body)
	}
	for _, codec := range []wire.ContentType{wire.JSON, wire.MessagePack} {
		together := send(t, r, codec, wire.AppendQueries(nil, codec, queries))
		for i := range queries {
			alone := askIn(t, r, "shop", wire.JSON, []byte(bodies[i]))
			alone.Took, together.Results[i].Took = wire.Took{}, wire.Took{}
			if !reflect.DeepEqual(sortedJSON(t, alone), sortedJSON(t, &together.Results[i])) {
				t.Fatalf("%s\nalone    %+v\ntogether %+v", bodies[i], alone, &together.Results[i])
			}
		}
	}
}

// randomShopQuery is a query with any of the fields.
func randomShopQuery(random *rand.Rand) string {
	pick := func(of ...any) any { return of[random.IntN(len(of))] }
	body := map[string]any{"k": 1 + random.IntN(6)}
	conditions := func() map[string]any {
		c := map[string]any{}
		for range 1 + random.IntN(3) {
			switch random.IntN(5) {
			case 0:
				c["title"] = pick("red shoes", "blue", "coat of wool", "zebra")
			case 1:
				c["brand"] = pick("acme", "Émile", "nobody")
			case 2:
				c["tags"] = pick([]string{"sale"}, []string{"sport", "sun"})
			case 3:
				c["price"] = map[string]any{"min": random.IntN(100), "max": 100 + random.IntN(40)}
			default:
				c["stocked"] = random.IntN(2) == 0
			}
		}
		return c
	}
	if random.IntN(4) > 0 {
		row := conditions()
		if body["row"] = row; row["title"] != nil && random.IntN(2) == 0 {
			body["rescore"] = map[string]any{"by": pick("jaccard", "bm25", "cosine"), "column": "title"}
			body["certify"] = random.IntN(2) == 0
		}
		body["idf"] = random.IntN(2) == 0
		body["matched"] = random.IntN(2) == 0
	} else {
		body["total"] = true
	}
	if random.IntN(2) == 0 {
		body["filter"] = conditions()
	}
	if random.IntN(3) == 0 {
		body["exclude"] = []any{conditions(), conditions()}
	}
	body["with_payload"] = random.IntN(3) == 0
	text, _ := json.Marshal(body) // strings and numbers cannot fail
	return string(text)
}

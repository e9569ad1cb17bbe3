package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Products, of a column of each type that records have.
const (
	shopSchema = `
name: shop
key: sku
columns:
  - {name: sku, type: skip}
  - {name: title, type: text, stop_words: english, store: true, idf_scale: 16}
  - {name: brand, type: category, fold: true, store: true}
  - {name: tags, type: set, idf_scale: 16}
  - {name: price, type: number, buckets: 4, store: true}
  - {name: added, type: date, store: true}
  - {name: stocked, type: bool}
  - {name: part, type: string, ngram: 2}
  - {name: note, type: payload}
`
	shopData = `{"sku":"a","title":"red running shoes","brand":"Émile","tags":["sale","sport"],"price":59.5,"added":"2024-05-17","stocked":true,"part":"AX-100","note":"first"}
{"sku":"b","title":"blue running shoes","brand":"acme","tags":["sport"],"price":80,"added":"2024-06-01T10:00:00Z","stocked":false,"part":"AX-101"}
{"sku":"c","title":"red hat","brand":"acme","tags":["sale","summer","sun"],"price":15,"added":"2023-01-01","stocked":true,"part":"HT-7"}
{"sku":"d","title":"green coat of wool","brand":"emile","tags":["winter"],"price":120,"added":"2024-05-17T23:59:59Z","stocked":true,"part":"CT-90"}
{"sku":"e","title":"shoes","price":60,"stocked":true}
`
)

func shop(t testing.TB) *running {
	return start(t, config.Config{Engine: "cpu", Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "shop.jsonl", shopSchema, shopData)}}}, service.Options{})
}

// ask asks a query in JSON directly, in both codecs, and returns the answer, which must be the same but for times.
func ask(t testing.TB, r *running, index, query string) *wire.Result {
	t.Helper()
	result := askIn(t, r, index, wire.JSON, []byte(query))
	queries, err := wire.DecodeMessage(wire.JSON, []byte(query), wire.Limits{})
	if err != nil || queries.Queries[0].Err != nil {
		return result // nothing that MessagePack could say
	}
	other := askIn(t, r, index, wire.MessagePack, wire.AppendQuery(nil, wire.MessagePack, &queries.Queries[0].Query))
	result.Took, other.Took = wire.Took{}, wire.Took{}
	if !reflect.DeepEqual(sortedJSON(t, result), sortedJSON(t, other)) {
		t.Errorf("%s: JSON %+v\nMessagePack %+v", query, result, other)
	}
	return result
}

// sortedJSON is a result without what codecs may write otherwise: the order of an object's members.
func sortedJSON(t testing.TB, r *wire.Result) (v any) {
	t.Helper()
	if err := json.Unmarshal(wire.AppendResult(nil, wire.JSON, r), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func askIn(t testing.TB, r *running, index string, codec wire.ContentType, body []byte) *wire.Result {
	t.Helper()
	return &sendTo(t, r, index, codec, body).Results[0]
}

// send sends a message to the shop.
func send(t testing.TB, r *running, codec wire.ContentType, body []byte) *wire.Answer {
	t.Helper()
	return sendTo(t, r, "shop", codec, body)
}

func sendTo(t testing.TB, r *running, index string, codec wire.ContentType, body []byte) *wire.Answer {
	t.Helper()
	m := nats.NewMsg("genie.search." + index)
	m.Data = body
	m.Header.Set(wire.HeaderContentType, codec.String())
	reply, err := r.nc.RequestMsg(m, patience)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := wire.DecodeAnswer(codec, reply.Data)
	if err != nil {
		t.Fatalf("%.200s: %v in %.200s", body, err, reply.Data)
	}
	return answer
}

// keysOf are the hits of an answer, as key:count.
func keysOf(r *wire.Result) string {
	var keys []string
	for i := range r.Hits {
		keys = append(keys, r.Hits[i].Key)
	}
	return strings.Join(keys, " ")
}

// Every field of a query does what it says, on records of all types.
func TestRecords(t *testing.T) {
	t.Parallel()
	r := shop(t)
	two := uint64(2)
	for _, c := range []struct {
		query, hits string
		total       *uint64
		warning     string // part of one; "": there is none
	}{
		{`{"row":{"title":"red shoes"}}`, "a b c e", nil, ""},
		{`{"text":"red shoes","row":{"brand":"acme"}}`, "", nil, "exclude each other"},
		{`{"row":{"title":"red shoes","brand":"ACME"}}`, "a b c e", nil, ""},
		{`{"row":{"title":"red shoes","brand":"ACME"},"weights":{"brand":2}}`, "b c a e", nil, ""},
		{`{"row":{"title":"red shoes"},"filter":{"price":{"max":60}}}`, "a c e", nil, ""},
		{`{"row":{"title":"red shoes"},"filter":{"price":{"max":59.5}}}`, "a c", nil, ""},
		{`{"row":{"title":"red shoes"},"exclude":{"brand":"emile"},"total":true}`, "b c e", ref(3), ""},
		{`{"row":{"title":"red shoes"},"filter":[{"tags":["sale"]},{"tags":{"any":["sun","sport"]}}],"total":true,"k":1}`, "a", &two, ""},
		{`{"filter":{"added":"2024-05-17"},"total":true}`, "a d", &two, ""},
		{`{"filter":{"added":{"min":"2024"}},"exclude":{"stocked":false}}`, "a d", nil, ""},
		{`{"filter":{"brand":{"missing":true}}}`, "e", nil, ""},
		{`{"filter":{"part":{"is":"HT-7"}}}`, "c", nil, ""},
		{`{"row":{"part":"AX-101"},"k":1}`, "b", nil, ""},
		{`{"row":{"tags":["sale","sun"],"stocked":true}}`, "c a d e", nil, ""},
		{`{"total":true,"k":2}`, "a b", ref(5), ""},
		{`{"text":"red shoes"}`, "", nil, "several columns of texts"},
		{`{"row":{"title":"wool shoes"},"idf":true,"k":1}`, "d", nil, ""},
		{`{"set":["sale","winter"],"idf":true,"k":1}`, "d", nil, ""}, // winter is the rarer one
		{`{"row":{"brand":{"all":["acme","emile"]}}}`, "", nil, `column "brand" counts for a value: write {"in":[...]}`},
		{`{"row":{"stocked":{"any":[true]}}}`, "", nil, `column "stocked" counts for a value: write {"in":[...]}`},
		{`{"row":{"price":{"all":[1,2]}}}`, "", nil, `column "price" takes no all: write {"in":[...]}`},
		{`{"filter":{"price":{"any":[1,2]}}}`, "", nil, `column "price" takes no any: write {"in":[...]}`},
		{`{"row":{"brand":{"alle":["acme"]}}}`, "", nil, `unknown field "alle"`},
		{`{"row":{"tags":{"all":["sale"]}}}`, "", nil, "all and any belong to filter and exclude"},
		// Warnings.
		{`{"row":{"title":"red zebras"}}`, "a c", nil, `no object has "zebras"`},
		{`{"row":{"title":"of the"}}`, "", nil, "nothing is left"},
		{`{"row":{"price":{"min":500}}}`, "", nil, "no object can meet"},
		{`{"filter":{"brand":"nobody"},"total":true}`, "", ref(0), "no object passes the filter"},
		{`{"row":{"title":"shoes"},"filter":[{"brand":"acme"},{"brand":"emile"}],"total":true}`, "", ref(0), "no object passes the filter"},
		{`{"row":{"title":"shoes"},"filter":[{"brand":"acme"},{"brand":"emile"}]}`, "", nil, "no object passes the filter"},
		{`{"row":{"tags":[]}}`, "", nil, "in an empty set"},
		{`{"row":{"part":"§§§§"}}`, "", nil, "column part: no object can meet"},
		{`{"row":{"title":"red shoes"},"weights":{"title":2,"brand":2},"filter":{"brand":"acme"}}`, "b c", nil, "column brand: its weight has no effect"},
		{`{"set":["sale","winter"],"weights":{"tags":2},"k":1}`, "a", nil, ""},
	} {
		got := ask(t, r, "shop", c.query)
		if got.Err != nil {
			if c.warning == "" || !strings.Contains(got.Err.Message, c.warning) {
				t.Errorf("%s: %v", c.query, got.Err)
			}
			continue
		}
		if keysOf(got) != c.hits {
			t.Errorf("%s: %s, want %s", c.query, keysOf(got), c.hits)
		}
		if got.HasTotal != (c.total != nil) || c.total != nil && got.Total != *c.total {
			t.Errorf("%s: total %v %d", c.query, got.HasTotal, got.Total)
		}
		if said := strings.Join(got.Warnings, "; "); (said == "") != (c.warning == "") || !strings.Contains(said, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.query, said, c.warning)
		}
	}
}

func ref(n uint64) *uint64 { return &n }

// Hits come in the order of a measure, with its score or distance.
func TestRecordsRescored(t *testing.T) {
	t.Parallel()
	r := shop(t)
	for _, c := range []struct{ query, hits, scores string }{
		// Of {red, shoes}: c {red, hat}, a {red, running, shoes}, e {shoes}.
		{`{"row":{"title":"red shoes"},"rescore":{"by":"jaccard"}}`, "a e c b", "0.6666666666666666 0.5 0.3333333333333333 0.25"},
		{`{"row":{"title":"red shoes"},"rescore":{"by":"containment","column":"title"},"k":2}`, "a b", "1 0.5"},
		{`{"row":{"title":"red shoes zebra"},"rescore":{"by":"jaccard"},"certify":true,"k":2}`, "a e", "0.5 0.3333333333333333"},
		{`{"row":{"tags":["sale","sun"]},"rescore":{"by":"dice"},"filter":{"stocked":true}}`, "c a", "0.8 0.5"},
		{`{"set":["sale","sun"],"rescore":{"by":"cosine"},"k":1}`, "c", "0.816496580927726"},
		{`{"row":{"part":"AX-111"},"rescore":{"by":"edit"},"k":3,"certify":true}`, "b a c", "1 2 5"},
		{`{"row":{"part":"AX-111","brand":"acme"},"rescore":{"by":"edit","column":"part"},"k":3,"certify":true}`, "b a c", "1 2 5"},
	} {
		got := ask(t, r, "shop", c.query)
		if got.Err != nil {
			t.Errorf("%s: %v", c.query, got.Err)
			continue
		}
		var scores []string
		for i := range got.Hits {
			h := &got.Hits[i]
			if h.HasScore == h.HasDistance {
				t.Errorf("%s: hit %d has score %v, distance %v", c.query, i, h.HasScore, h.HasDistance)
			}
			scores = append(scores, fmt.Sprint(h.Score+h.Distance))
		}
		if said := strings.Join(scores, " "); keysOf(got) != c.hits || said != c.scores {
			t.Errorf("%s: %s with %s, want %s with %s", c.query, keysOf(got), said, c.hits, c.scores)
		}
	}
}

// What is stored of any column comes back with hits.
func TestRecordsPayload(t *testing.T) {
	t.Parallel()
	r := shop(t)
	for _, c := range []struct{ query, payload string }{
		{`{"filter":{"part":{"is":"AX-100"}},"with_payload":true}`, `{"note":"first","title":"red running shoes","brand":"Émile","price":59.5,"added":"2024-05-17"}`},
		{`{"filter":{"brand":{"missing":true}},"with_payload":true}`, `{"title":"shoes","price":60}`},
	} {
		got := ask(t, r, "shop", c.query)
		if got.Err != nil || len(got.Hits) != 1 || string(got.Hits[0].Payload) != c.payload {
			t.Errorf("%s: %v %+v %s", c.query, got.Err, got.Hits, got.Hits[0].Payload)
		}
	}
}

// What cannot be answered says why, by its code.
func TestRecordsRefused(t *testing.T) {
	t.Parallel()
	r := shop(t)
	for _, c := range []struct {
		query string
		code  wire.Code
		says  string
	}{
		{`{"row":{"title":"red"},"rescore":{"by":"beauty"}}`, wire.BadRequest, "no measure"},
		{`{"row":{"title":"red"},"rescore":{"by":"edit"}}`, wire.Unsupported, "none of the columns"},
		{`{"row":{"title":"red"},"rescore":{"by":"edit","column":"title"}}`, wire.Unsupported, "title"},
		{`{"row":{"title":"red"},"rescore":{"by":"l2","column":"price"}}`, wire.Unsupported, "price"},
		{`{"row":{"title":"red"},"rescore":{"by":"jaccard","column":"tags"}}`, wire.BadRequest, "asks nothing of it"},
		{`{"row":{"brand":"acme"},"rescore":{"by":"jaccard","column":"brand"}}`, wire.Unsupported, "brand"},
		{`{"row":{"title":"red","tags":["sale"]},"rescore":{"by":"jaccard"}}`, wire.BadRequest, "name one"},
		{`{"row":{"title":"red"},"rescore":{"by":"jaccard","column":"titl"}}`, wire.BadRequest, "did you mean title"},
		{`{"filter":{"stocked":true},"rescore":{"by":"jaccard"}}`, wire.BadRequest, "rescore needs counts"},
		{`{"filter":{"stocked":true},"certify":true}`, wire.BadRequest, "certify needs counts"},
		{`{"filter":{"colour":"red"}}`, wire.BadRequest, "colour"},
		{`{"filter":{"title":"of the"}}`, wire.BadRequest, "nothing is left"},
		{`{"filter":{"price":{"value":5,"weight":2}}}`, wire.BadRequest, "weight"},
		{`{"filter":{"price":"cheap"}}`, wire.BadRequest, "number"},
		{`{"row":{"title":"red"},"weights":{"colour":2}}`, wire.BadRequest, "colour"},
		{`{"row":{"title":"red"},"weights":{"title":65536}}`, wire.BadRequest, "65535"},
		{`{"items":[{"attr":"brand","value":"acme","weight":256}],"weights":{"brand":256}}`, wire.BadRequest, "more than 65535"},
		{`{"row":{"title":"red"},"weights":{"title":65535},"idf":true}`, wire.BadRequest, "more than 65535"},
		{`{"vector":[1,2]}`, wire.BadRequest, "no column of type vector"},
	} {
		got := ask(t, r, "shop", c.query)
		if got.Err == nil || got.Err.Code != c.code || !strings.Contains(got.Err.Message, c.says) {
			t.Errorf("%s: %v, want %s: %s", c.query, got.Err, c.code, c.says)
		}
	}
}

// What hits met is told, and what an answer came from.
func TestRecordsExplained(t *testing.T) {
	t.Parallel()
	r := shop(t)
	query := `{"row":{"title":"red shoess","brand":"acme","part":"HT-7","price":{"max":20}},"filter":{"price":{"min":15.5}},"weights":{"brand":3},"matched":true,"explain":true}`
	got := ask(t, r, "shop", query)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if keysOf(got) != "b a d" {
		t.Errorf("hits %s", keysOf(got))
	}
	for i, want := range []string{"[brand]", "[title]", "[]"} {
		if d := got.Hits[i].Detail; d == nil || fmt.Sprint(d.Matched) != want {
			t.Errorf("hit %d matched %+v, want %s", i, d, want)
		}
	}
	alone := ask(t, r, "shop", `{"row":{"title":"red","brand":"acme"},"matched":true,"k":1}`)
	if alone.Err != nil || alone.Hits[0].Detail == nil || len(alone.Hits[0].Detail.Matched) != 2 || alone.Explain != nil {
		t.Errorf("matched alone: %+v", alone)
	}
	var x struct {
		Items []struct {
			Column          string
			Weight, Objects int
			Of, Keywords    int
			Values          []string
			By              string
		}
		Unknown []struct{ Column, Value, Nearest string }
		Filter  []struct {
			Columns []string
			By      string
		}
		Hits []struct {
			ID, Count int
			Items     []struct{ Item, Times, Count int }
		}
		Engine string
	}
	if err := json.Unmarshal(got.Explain, &x); err != nil {
		t.Fatalf("%v: %s", err, got.Explain)
	}
	if len(x.Items) != 4 || len(x.Unknown) != 1 || x.Unknown[0].Nearest != "shoes" || len(x.Filter) != 1 || x.Filter[0].By != "value" ||
		len(x.Hits) != 3 || x.Hits[0].Count != 3 || len(x.Hits[0].Items) != 1 || x.Hits[0].Items[0].Count != 3 || x.Engine == "" {
		t.Errorf("explanation %s", got.Explain)
	}
	for _, item := range x.Items {
		if item.Column == "brand" && (item.Weight != 3 || item.Objects != 2 || fmt.Sprint(item.Values) != "[acme]") || (item.Column == "price") != (item.By == "bucket") ||
			item.Column == "price" && (fmt.Sprint(item.Values) != "[15 to below 41.25]" || item.Keywords != 1 || item.Of != 4) || (item.Column == "part") != (item.By == "piece") {
			t.Errorf("item %+v", item)
		}
	}
}

// The command prints it for people, and query prints scores and warnings.
func TestExplainCommand(t *testing.T) {
	t.Parallel()
	r := shop(t)
	for _, c := range []struct {
		verb, query string
		says        []string
	}{
		{"explain", `{"row":{"title":"red shoess"},"filter":{"price":{"max":59.6}}}`,
			[]string{"warning: column title: no object has", "nearest that some have is \"shoes\"", "filter on price: up to 59.6, decided by value", "1 for item 1 (title)", "red"}},
		{"query", `{"row":{"title":"red shoes"},"rescore":{"by":"jaccard"},"total":true,"k":1}`, []string{"score", "0.666667", "1 hit of 5 objects that pass"}},
	} {
		out, stderr, code := command(t, c.verb, "--index", "shop", "--nats", r.srv.NATSURL(), "--json=false", c.query)
		for _, want := range c.says {
			if code != 0 || !strings.Contains(string(out), want) {
				t.Errorf("%s %s: code %d, %s%s\nwant %s", c.verb, c.query, code, out, stderr, want)
			}
		}
	}
}

// A client can ask which fields the workers of an index understand.
func TestUnderstood(t *testing.T) {
	t.Parallel()
	r := shop(t)
	c, err := client.New(r.nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fields, err := c.Understood(within(t), "shop")
	if err != nil || !slices.Contains(fields, "filter") || !slices.Contains(fields, "row") || slices.Contains(fields, "must") {
		t.Errorf("understood: %v, %v", fields, err)
	}
	if _, err := c.Understood(within(t), "nobody"); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("an index that nobody serves: %v", err)
	}
	// A worker of before the fields were told, beside it.
	old, err := micro.AddService(r.nc, micro.Config{Name: "geniemq", Version: "0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Stop() }()
	if err := old.AddEndpoint("search-shop", micro.HandlerFunc(func(micro.Request) {}), micro.WithEndpointSubject("genie.search.shop"), micro.WithEndpointQueueGroup("aside")); err != nil {
		t.Fatal(err)
	}
	fields, err = c.Understood(within(t), "shop")
	if err != nil || slices.Contains(fields, "filter") || !slices.Contains(fields, "row") {
		t.Errorf("understood with an old worker: %v, %v", fields, err)
	}
}

package tests

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// A batch that is sent as a table has the answer that it has as a list, value by value: stored and directly, in both codecs, small and decoded in parts, of a user and
// in bulk, with ids, explanations, parts of its own and queries that are wrong alone.
func TestTablesAreAnsweredAsLists(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	people := func(n int, more func(*client.Query, int)) (queries []client.Query) {
		for i := range n {
			q := client.Query{ID: fmt.Sprint("q", i), K: 3, Row: []client.Condition{client.Equal("sex", "Female"), client.Between("age", float64(20+i%30), float64(50+i%40))}}
			if more != nil {
				more(&q, i)
			}
			queries = append(queries, q)
		}
		return queries
	}
	cases := map[string]struct {
		index   string
		queries []client.Query
	}{
		"rows":   {"people", people(5, nil)},
		"many":   {"people", people(3000, nil)}, // in parts, and their answers too
		"no ids": {"people", people(4, func(q *client.Query, _ int) { q.ID = "" })},
		"refined": {"people", people(7, func(q *client.Query, i int) {
			q.WithPayload, q.Matched, q.Total, q.Explain, q.HitsForm = true, true, true, true, wire.HitsKeyedColumns
			q.Filter = []client.Condition{client.Between("age", 0, float64(30+i))}
		})},
		"some wrong": {"people", people(6, func(q *client.Query, i int) {
			if q.K = 2; i == 4 {
				q.Row[1].Min, q.Row[1].Max = wire.String("old"), wire.String("older")
			}
		})},
		"no such attribute": {"people", people(3, func(q *client.Query, i int) { q.Row[1].Attr = "agee" })},
		"words":             {"words", []client.Query{{Text: "aple", K: 5, Certify: true}, {Text: "ornage", K: 4, Certify: true}}},
		"papers":            {"papers", []client.Query{{Text: "Inverted index for GPU"}, {Text: "index"}}},
	}
	for _, opts := range []client.Options{{}, {JSON: true}, {User: "bob"}, {Class: client.ClassBulk}} {
		list := newClient(t, r.srv.NATSURL(), opts)
		opts.Tables = true
		table := newClient(t, r.srv.NATSURL(), opts)
		ways := map[string][2]func(context.Context, string, []client.Query) ([]client.Result, error){"stored": {list.RequestBatch, table.RequestBatch}}
		if opts.Class == "" {
			ways["direct"] = [2]func(context.Context, string, []client.Query) ([]client.Result, error){list.SearchBatch, table.SearchBatch}
		}
		for name, tt := range cases {
			if body, ok := wire.AppendTable(nil, wire.MessagePack, tt.queries); !ok || name == "many" && 5*len(body) > len(wire.AppendQueries(nil, wire.MessagePack, tt.queries)) {
				t.Fatalf("%s are no table, or a large one, of %d bytes", name, len(body))
			}
			for way, ask := range ways {
				want, err := ask[0](within(t), tt.index, tt.queries)
				if err != nil {
					t.Fatal(name, way, err)
				}
				got, err := ask[1](within(t), tt.index, tt.queries)
				if err != nil {
					t.Fatal(name, way, err)
				}
				for _, results := range [][]client.Result{got, want} {
					for i := range results {
						results[i].Took, results[i].Explain = wire.Took{}, nil // which tells times
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s, %+v:\nas a table %+v\nas a list  %+v", name, way, opts, got, want)
				}
			}
		}
	}
}

// A table that does not hold together has one answer, an error, whether it is stored or asked directly; workers say that they understand tables.
func TestWrongTableHasOneAnswer(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	const body = `{"table":{"rows":2,"row":[{"attrs":["age"],"value":[30]}]}}`
	const want = "table.row: the conditions on \\\"age\\\", value: 1 elements for 2 queries: each has 1"
	reply, err := r.nc.Request("genie.search.people", []byte(body), 10*time.Second)
	if err != nil || !strings.Contains(string(reply.Data), want) || strings.Contains(string(reply.Data), "results") {
		t.Errorf("directly: %v %s", err, reply.Data)
	}
	sub, err := r.nc.SubscribeSync("genie.result.people")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.nc.Publish("genie.query.people", []byte(body)); err != nil {
		t.Fatal(err)
	}
	answer, err := sub.NextMsgWithContext(within(t))
	if err != nil || !strings.Contains(string(answer.Data), want) {
		t.Errorf("stored: %v %s", err, answer.Data)
	}
	fields, err := newClient(t, r.srv.NATSURL(), client.Options{}).Understood(within(t), "people")
	if err != nil || !strings.Contains(strings.Join(fields, " "), "table") {
		t.Errorf("understood are %v, %v", fields, err)
	}
}

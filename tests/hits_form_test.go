package tests

import (
	"context"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Whoever asks for columns gets the answer that a list of hits says, value by value, stored and directly, in both codecs: keys if asked for, payloads, distances, matched columns,
// warnings, explanations, errors.
func TestHitsAsColumns(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	female := []client.Condition{client.Equal("sex", "Female"), client.Between("age", 30, 40)}
	cases := []struct {
		index string
		query client.Query
	}{
		{"people", client.Query{K: 3, Row: female}},
		{"people", client.Query{K: 3, Row: female, WithPayload: true, Matched: true, Total: true}},
		{"people", client.Query{K: 3, Row: []client.Condition{client.Equal("sex", "Neither")}, Explain: true}},
		{"people", client.Query{K: 3, Row: []client.Condition{client.Equal("agee", 1)}}},
		{"words", client.Query{K: 5, Text: "aple", Certify: true, WithPayload: true}},
		{"papers", client.Query{K: 4, Text: "Inverted index for GPU", Filter: []client.Condition{client.Equal("title", "index")}}},
	}
	for _, json := range []bool{false, true} {
		c, err := client.New(r.nc, client.Options{JSON: json})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i, test := range cases {
			queries := []client.Query{test.query, test.query, test.query}
			queries[1].HitsForm, queries[2].HitsForm = wire.HitsColumns, wire.HitsKeyedColumns
			for _, ask := range []func(context.Context, string, []client.Query) ([]client.Result, error){c.SearchBatch, c.RequestBatch} {
				got, err := ask(within(t), test.index, queries)
				if err != nil {
					t.Fatal(err)
				}
				want := got[0]
				for j, form := range []wire.HitsForm{wire.HitsList, wire.HitsColumns, wire.HitsKeyedColumns} {
					res := got[j]
					if (want.Err != nil) != (i == 3) || i < 2 && len(want.Hits) != 3 {
						t.Fatalf("case %d: %+v", i, want)
					}
					if res.Err == nil && res.HitsForm != form {
						t.Errorf("case %d: hits have form %d, want %d", i, res.HitsForm, form)
					}
					for h := range res.Hits {
						if form == wire.HitsColumns {
							if res.Hits[h].Key != "" {
								t.Errorf("case %d: there are keys nobody asked for", i)
							}
							res.Hits[h].Key = want.Hits[h].Key
						}
					}
					res.HitsForm, res.Took, res.Explain = want.HitsForm, want.Took, nil // which tells times
					plain := want
					plain.Explain = nil
					if !reflect.DeepEqual(res, plain) || (want.Explain == nil) != (got[j].Explain == nil) {
						t.Errorf("case %d, JSON %t, form %d:\ngot  %+v\nwant %+v", i, json, form, res, plain)
					}
				}
			}
		}
	}
}

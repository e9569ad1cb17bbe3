package translate

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/wire"
)

// texts is the translator of an index of texts that have the order of BM25, without keys.
func texts(t *testing.T) *Translator {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: n\nrescore: {by: bm25, column: a, candidates: 100}\ncolumns: [{name: a, type: text}, {name: c, type: category}]"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := onebyone.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		cells := []schema.Cell{{Values: []string{fmt.Sprintf("red w%d w%d", i%7, i%5)}}, {Values: []string{fmt.Sprint(i % 3)}}}
		if err := o.Add(&schema.Record{Cells: cells}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "n.gmq")
	if err := o.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	e, err := New("n", x, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestOrderOfTheSchema: hits come in the schema's order unless the query says otherwise, of the schema's candidates unless the query gives others.
func TestOrderOfTheSchema(t *testing.T) {
	e := texts(t)
	red := []wire.Condition{{Attr: "a", Value: wire.String("red w3")}}
	for name, c := range map[string]struct {
		query wire.Query
		k     int    // of the plan; 0: it is in the order of counts
		fails string // part of the refusal
	}{
		"as the schema says":          {wire.Query{Row: red}, 100, ""},
		"as text":                     {wire.Query{Text: "red"}, 100, ""},
		"k above candidates":          {wire.Query{Row: red, K: 300}, 300, ""},
		"own candidates":              {wire.Query{Row: red, Candidates: 60}, 60, ""},
		"certified":                   {wire.Query{Row: red, Certify: true}, 100, ""},
		"another measure":             {wire.Query{Row: red, Rescore: &wire.Rescore{By: "dice"}}, 80, ""},
		"by count":                    {wire.Query{Row: red, Rescore: &wire.Rescore{By: "count"}}, 0, ""},
		"by count of a column":        {wire.Query{Row: red, Rescore: &wire.Rescore{By: "count", Column: "a"}}, 0, "leave rescore.column out"},
		"the column is not asked":     {wire.Query{Row: []wire.Condition{{Attr: "c", Value: wire.String("1")}}}, 0, ""},
		"a filter alone":              {wire.Query{Filter: red}, 0, ""},
		"an unknown measure":          {wire.Query{Row: red, Rescore: &wire.Rescore{By: "counts"}}, 0, "is no measure"},
		"the column only in a filter": {wire.Query{Row: []wire.Condition{{Attr: "c", Value: wire.String("1")}}, Filter: red}, 0, ""},
	} {
		c.query.EnsureDefaults()
		var to Query
		e.Plan(&to, &c.query)
		if c.fails != "" {
			if to.Err == nil || !strings.Contains(to.Err.Message, c.fails) {
				t.Errorf("%s: %v", name, to.Err)
			}
			continue
		}
		if to.Err != nil || (to.Plan.Rescore != nil) != (c.k > 0) || c.k > 0 && to.Plan.K != c.k || to.Plan.Certify != c.query.Certify {
			t.Errorf("%s: %+v, %v", name, to.Plan, to.Err)
		}
	}
}

// TestHitsAreTheirAnswers: what is told of the hits of one answer of a message is not told of the next one's, whose memory it is. What has nothing to compare has no score, whatever the
// measure says of it.
func TestHitsAreTheirAnswers(t *testing.T) {
	e := texts(t)
	red := []wire.Condition{{Attr: "a", Value: wire.String("red w3")}}
	hits := func() []gpuexec.Hit {
		return []gpuexec.Hit{{ID: 7, Count: 2, Score: .75}, {ID: 9, Count: 1, Score: .5}, {ID: 11, Count: 1, Score: math.Inf(1)}}
	}
	queries := make([]Query, 2)
	for i, by := range []string{"bm25", "count"} {
		e.Plan(&queries[i], &wire.Query{Row: red, K: 2, Rescore: &wire.Rescore{By: by}, Candidates: 16})
		if queries[i].Err != nil {
			t.Fatal(queries[i].Err)
		}
		queries[i].Answer = gpuexec.Answer{Hits: hits(), Scored: i == 0}
	}
	a := e.Answer(Message{Batch: true, Len: 2, Query: func(i int) *Query { return &queries[i] }}, 1<<20)
	defer a.Encoded()
	for i, scored := range []bool{true, false} {
		for _, h := range a.Results.At(i, 0).Hits {
			if h.HasScore != (scored && h.ID != 11) || h.HasDistance || h.HasSimilarity {
				t.Errorf("query %d: %+v", i, h)
			}
		}
	}
}

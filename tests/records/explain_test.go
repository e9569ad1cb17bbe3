package records

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit/jsonlines"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// asked is an index that queries are asked of one by one, on the CPU engine.
type asked struct {
	t          *testing.T
	x          *index.Index
	translator *translate.Translator
	session    gpuexec.Searcher
}

// build makes an index of a schema and lines of JSON.
func build(t *testing.T, text string, lines ...string) *asked {
	t.Helper()
	x, err := index.OpenBytes(jsonlines.Build(t, text, strings.Join(lines, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{t: t, x: x}
	if a.translator, err = translate.New("n", x, 0); err != nil {
		t.Fatal(err)
	}
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	if a.session, err = engine.Load(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.session.Close(); err != nil {
			t.Error(err)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// ask asks a query and returns its result.
func (a *asked) ask(text string) *wire.Result {
	a.t.Helper()
	m, err := wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
	if err != nil {
		a.t.Fatalf("%.200s: %v", text, err)
	}
	if refused := m.Queries[0].Err; refused != nil {
		return &wire.Result{Err: refused}
	}
	q := new(translate.Query)
	if a.translator.Plan(q, &m.Queries[0].Query); q.Err == nil {
		answers := make([]gpuexec.Answer, 1)
		if err := a.session.Search(a.t.Context(), []gpuexec.Plan{q.Plan}, answers, nil); err != nil {
			a.t.Fatalf("%.200s: %v", text, err)
		}
		q.Answer = answers[0]
	}
	made := a.translator.Answer(translate.Message{Codec: wire.JSON, Arrived: time.Now(), Len: 1, Query: func(int) *translate.Query { return q }}, 1<<28)
	return made.Results.At(0, 0)
}

// TestExplainedSums: however much of a query an explanation leaves out, what it tells of a hit adds up to the hit's count, a column of few items is told beside one of many, and it keeps to its bound.
func TestExplainedSums(t *testing.T) {
	var words, long, all []string
	for i := range 200 {
		words = append(words, fmt.Sprintf("w%d", i))
		long = append(long, fmt.Sprintf(`%03d%s`, i, strings.Repeat(`"`, 70)))
	}
	list := func(values []string) string {
		b, _ := json.Marshal(values)
		return string(b)
	}
	for i := range 8000 {
		all = append(all, fmt.Sprint(i))
	}
	columns := ""
	for i := range 80 {
		columns += fmt.Sprintf(", {name: c%d, type: category}", i)
	}
	row := func(values int) string {
		text := `"c0":"a"`
		for i := 1; i < values; i++ {
			text += fmt.Sprintf(`,"c%d":"a"`, i)
		}
		return text
	}
	a := build(t, "{name: n, columns: [{name: v, type: vector}, {name: w, type: vector, functions: 4000}, {name: b, type: category}, {name: text, type: text, idf: true}, {name: n, type: number, edges: exact}, "+
		"{name: long, type: category}"+columns+"]}",
		`{"v":[1,2,3,4],"w":[1,2],"b":"x","n":4,"text":"`+strings.Join(words, " ")+`","long":`+list(long)+`,`+row(80)+`}`, `{"b":"x","text":"w199","n":7998}`, `{"v":[4,3,2,1],"w":[2,1],"b":"y","text":"w7 w150","n":[`+strings.Join(all, ",")+`],`+row(70)+`}`)
	var in, items []string
	for i := range 4000 {
		in = append(in, fmt.Sprint(2*i))
	}
	for i := range 60 {
		items = append(items, fmt.Sprintf(`{"attr":"long","in":%s,"weight":%d}`, list(slices.Concat(long[i:i+8], long[100+i:108+i])), i+1))
	}
	numbers := "[" + strings.Join(in, ",") + "]"
	for _, c := range []struct {
		query   string
		columns []string // that are told
		whole   bool
	}{
		{`{"row":{"v":[1,2,3,4],"b":"x"},"explain":true}`, []string{"v", "b"}, true},
		{`{"items":[{"attr":"v","value":[1,2,3,4],"weight":2},{"attr":"v","value":[4,3,2,1]},{"attr":"b","value":"x","weight":9}],"explain":true}`, []string{"v", "v", "b"}, true},
		{`{"row":{"text":"` + strings.Join(words, " ") + `","b":"x","c0":"a"},"explain":true}`, []string{"text", "b", "c0"}, false},
		{`{"row":{"n":{"in":` + numbers + `},"b":"x"},"explain":true}`, []string{"b"}, false},
		{`{"row":{"w":[1,2],"b":"x","n":{"in":[4,7998]}},"explain":true}`, []string{"b", "n"}, false},
		{`{"items":[` + strings.Join(items, ",") + `,{"attr":"b","value":"x"}],"explain":true}`, []string{"long", "b"}, false},
		{`{"row":{"v":[1,2,3,4],` + row(80) + `},"explain":true}`, []string{"v", "c0"}, false},
		{`{"row":{"v":[1,2,3,4],"b":{"missing":false},"text":{"missing":true}},"explain":true}`, []string{"v", "b"}, true},
	} {
		r := a.ask(c.query)
		if r.Err != nil || len(r.Hits) == 0 {
			t.Fatalf("%.200s: %v, %d hits", c.query, r.Err, len(r.Hits))
		}
		var x translate.Explanation
		if err := json.Unmarshal(r.Explain, &x); err != nil {
			t.Fatalf("%.200s: %v", c.query, err)
		}
		if len(r.Explain) > 64<<10 || len(x.Hits) != len(r.Hits) || len(x.Items) > 64 || (x.ItemsMore == 0) != c.whole {
			t.Errorf("%.200s: %d bytes, %d hits of %d, %d entries and %d items more", c.query, len(r.Explain), len(x.Hits), len(r.Hits), len(x.Items), x.ItemsMore)
		}
		for _, name := range c.columns {
			if !slices.ContainsFunc(x.Items, func(item translate.ExplainedItem) bool { return item.Column == name }) {
				t.Errorf("%.200s: %s is not told: %.2000s", c.query, name, r.Explain)
			}
		}
		if x.ItemsMore > 0 && len(x.MoreColumns) == 0 {
			t.Errorf("%.200s: of which columns are %d items more?", c.query, x.ItemsMore)
		}
		for i, h := range x.Hits {
			sum := h.More
			for _, counts := range h.Items {
				sum += counts.Count
			}
			for _, at := range h.Presences {
				sum += uint64(x.Presences[at].Weight)
			}
			if h.Count != r.Hits[i].Count || sum != uint64(h.Count) {
				t.Errorf("%.200s: hit %d counts %d, and %d are explained", c.query, h.ID, r.Hits[i].Count, sum)
			}
		}
	}
}

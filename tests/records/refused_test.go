package records

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// TestRefusals: what is said of a query names its fault, and not another one that the way to it passes by.
func TestRefusals(t *testing.T) {
	const shop = "{name: n, columns: [{name: title, type: text}, {name: body, type: text}, {name: tags, type: set}, {name: part, type: string}, {name: c, type: category}]}"
	const row = `{"title":"w1 w2","body":"w3","tags":["red","blue"],"part":"abc","c":"x"}`
	const vectors = `{"a":[1,2],"b":[2,1],"c":[1,1]}`
	several := "several columns of vectors (a, b, c): name the one to ask in column"
	for _, index := range []struct {
		schema, line string
		queries      [][2]string // "" where the query is answered
	}{
		{shop, row, [][2]string{
			{`{"row":{"titel":"w1"},"rescore":{"by":"bm25"}}`, `attribute "titel" is not in index n (did you mean title?)`},
			{`{"row":{"titel":"w1","title":"w1"},"rescore":{"by":"jaccard"}}`, `attribute "titel" is not in index n (did you mean title?)`},
			{`{"vector":[1,2],"rescore":{"by":"l2"}}`, "no column of type vector"},
			{`{"filter":{"tags":{"all":["red"],"any":["blue"]}}}`, `column "tags": all and any are conditions of their own: write an object for each`},
			{`{"filter":{"c":{"all":["x"],"any":["y"]}}}`, `column "c": all and any are conditions of their own: write an object for each`},
			{`{"exclude":{"title":{"any":"w1","all":"w2"}}}`, `column "title": all and any are conditions of their own: write an object for each`},
			{`{"filter":[{"tags":{"all":["red"]}},{"tags":{"any":["blue"]}}]}`, ""},
			{`{"items":[{"attr":"part","value":"p1"},{"attr":"part","value":"p2"}],"rescore":{"by":"edit"}}`, `one value of column "part", and the query asks it for 2`},
			{`{"items":[{"attr":"part","missing":true},{"attr":"title","value":"w1"}],"rescore":{"by":"edit"}}`, `column "part", and the query asks only whether it has a value`},
			{`{"items":[{"attr":"part","missing":false},{"attr":"part","value":"abd"}],"rescore":{"by":"edit"}}`, ""},
			{`{"items":[{"attr":"tags","missing":true},{"attr":"title","value":"w1"}],"rescore":{"by":"jaccard","column":"tags"}}`, ""},
			{`{"text":"w1","column":"title"}`, `ask column "title" in row`},
			{`{"text":"w1","column":"titel"}`, "did you mean title?"},
			{`{"text":"w1"}`, "several columns of texts (title, body, part): name the one to ask in row"},
			{`{"text":"abc","column":"part","radius":1}`, ""},
		}},
		{"{name: n, kind: rows, columns: [{name: a, type: number}, {name: b, type: number, store: true}]}", `{"a":1.5,"b":1.5}` + "\n" + `{"a":9,"b":9}`, [][2]string{
			{`{"filter":{"a":{"min":1.7}}}`, "the column with store: true or edges: exact"},
			{`{"filter":{"b":{"min":1.7}}}`, ""},
			{`{"filter":{"a":{"all":[1],"any":[2]}}}`, `column "a" takes no all: write {"in":[...]}`},
		}},
		{"{name: n, columns: [{name: a, type: vector, metric: l2}, {name: b, type: vector, metric: l2}, {name: c, type: vector, metric: l2, index: [cells]}]}", vectors, [][2]string{
			{`{"vector":[1,2],"k":1}`, several},
			{`{"vector":[1,2],"radius":3}`, several},
			{`{"vector":[1,2],"method":"lsh"}`, several},
			{`{"vector":[1,2],"column":"a"}`, ""},
			{`{"vector":[1,2],"column":"a","method":"lsh"}`, `column "a" of index n has no lsh`},
			{`{"vector":[1,2],"column":"a","method":"lsh","recall":0.9}`, "knows no recall: use scan"},
			{`{"vector":[1,2],"column":"a","method":"lsh","radius":2,"fraction":0.5}`, "knows no radius or fraction: use scan"},
			{`{"vector":[1,2],"column":"c","method":"cells","radius":2,"k":0}`, "method cells does not count how many are within a radius, with a recall or without"},
			{`{"vector":[1,2],"column":"c","method":"cells","radius":2}`, ""},
		}},
		{"{name: n, columns: [{name: a, type: vector, functions: 8}, {name: b, type: vector, functions: 8}, {name: c, type: vector, metric: l2}]}", vectors, [][2]string{
			{`{"vector":[1,2]}`, several},
			{`{"vector":[1,2],"method":"lsh"}`, several},
			{`{"vector":[1,2],"method":"lsh","column":"b"}`, ""},
			{`{"vector":[1,2],"column":"b"}`, ""},
		}},
		{"{name: n, columns: [{name: a, type: vector, functions: 8}, {name: c, type: vector, metric: l2}]}", vectors, [][2]string{
			{`{"vector":[1,2]}`, ""},
			{`{"vector":[1,2],"method":"lsh"}`, ""},
		}},
		{"{name: n, columns: [{name: s, type: string}]}", `{"s":"abcd"}`, [][2]string{
			{`{"text":"abc","method":"lsh","k":1}`, "method lsh compares vectors, and a text has no hash functions"},
			{`{"text":"abc","method":"ngram","k":1}`, ""},
			{`{"text":"abc","method":"ngram","recall":0.5}`, "knows no recall: use scan"},
			{`{"text":"abc","column":"s"}`, ""},
			{`{"text":"abc","column":"t"}`, `attribute "t" is not in index n`},
		}},
		{"{name: n, kind: sequences, columns: [{name: s, type: text}]}", `{"s":"abcd"}`, [][2]string{
			{`{"text":"abc","method":"lsh","k":1}`, "method lsh compares vectors, and a text has no hash functions"},
			{`{"text":"abc","idf":true}`, "leave idf out"},
			{`{"text":"abc","idf":false}`, ""},
		}},
		{"{name: n, kind: documents, columns: [{name: title, type: text}, {name: body, type: text}]}", `{"title":"w1"}`, [][2]string{
			{`{"text":"w1","column":"title"}`, `ask column "title" in row`},
			{`{"text":"w1","idf":true}`, ""},
		}},
	} {
		a := build(t, index.schema, index.line)
		for _, q := range index.queries {
			switch r := a.ask(q[0]); {
			case q[1] == "" && r.Err != nil:
				t.Errorf("%s of %s: %v", q[0], index.schema, r.Err)
			case q[1] != "" && (r.Err == nil || r.Err.Code != wire.BadRequest && r.Err.Code != wire.Unsupported || !strings.Contains(r.Err.Message, q[1])):
				t.Errorf("%s of %s: %v, and not: %s", q[0], index.schema, r.Err, q[1])
			}
		}
	}
}

// TestCertifyLimitOfDistances: texts that may have to be compared with too many are refused by whatever method they are asked, as it is said.
func TestCertifyLimitOfDistances(t *testing.T) {
	a := build(t, "{name: n, columns: [{name: s, type: string, index: [tree, permutation, ngram]}]}", `{"s":"abcd"}`+"\n"+`{"s":"abce"}`)
	for _, limit := range []int64{1, 1000} {
		var err error
		if a.translator, err = translate.New("n", a.x, limit); err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"auto", "scan", "tree", "permutation", "ngram"} {
			query := fmt.Sprintf(`{"text":"abc","radius":1,"method":%q}`, method)
			if r := a.ask(query); limit > 1 && r.Err != nil || limit == 1 && (r.Err == nil || r.Err.Code != wire.TooLarge || !strings.Contains(r.Err.Message, "by whichever method")) {
				t.Errorf("%s with certify-limit %d: %v", query, limit, r.Err)
			}
		}
	}
}

// TestNoFilter: nobody is told that nothing passes a filter that is not there.
func TestNoFilter(t *testing.T) {
	a := build(t, "{name: n, columns: [{name: s, type: string}, {name: c, type: category}]}", "")
	for _, c := range []struct {
		query string
		none  bool
	}{
		{`{"total":true}`, false}, {`{"row":{"c":"x"},"total":true}`, false}, {`{"text":"abc","radius":1,"total":true}`, false},
		{`{"filter":{"c":"x"}}`, true}, {`{"filter":{"c":{"missing":true}},"total":true}`, true}, {`{"exclude":{"c":"x"},"total":true}`, true},
		{`{"text":"abc","radius":1,"total":true,"filter":{"c":"x"}}`, true},
	} {
		if r := a.ask(c.query); r.Err != nil || slices.Contains(r.Warnings, nonePass) != c.none {
			t.Errorf("%s of no objects: %v, warnings %q", c.query, r.Err, r.Warnings)
		}
	}
}

// TestNearNames: a name that was meant is found where two letters changed places, and up to two are wrong.
func TestNearNames(t *testing.T) {
	a := build(t, "{name: n, columns: [{name: title, type: text}, {name: age, type: number}, {name: sex, type: category}]}", `{"title":"x","age":1,"sex":"y"}`)
	for wrong, meant := range map[string]string{
		"titel": "title", "Title": "title", "TITEL": "title", "itle": "title", "titles": "title", "tjtlf": "title", "tle": "", "aeg": "age", "gae": "age", "agee": "age", "esx": "sex", "body": "", "xyz": "", "": "",
	} {
		r := a.ask(fmt.Sprintf(`{"row":{%q:1}}`, wrong))
		if r.Err == nil || strings.Contains(r.Err.Message, "did you mean") != (meant != "") || meant != "" && !strings.Contains(r.Err.Message, "(did you mean "+meant+"?)") {
			t.Errorf("%q: %v, and %q is meant", wrong, r.Err, meant)
		}
	}
}

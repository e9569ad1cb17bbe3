package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Random searches by distance through a worker, in JSON and MessagePack: hits, their distances and the number within are those of the flat definition.
func TestDistancesAreServed(t *testing.T) {
	rng := seeded.Rand(t)
	dir := t.TempDir()
	for round := range 3 {
		w := enginetest.RandomDistanceWorld(t, rng, []int{300, 1, 0}[round], round == 0)
		name := fmt.Sprint("world", round)
		if round == 2 { // without an object nothing is learned, and nothing has to be
			w.Places = nil
		}
		path := buildFile(t, dir, name+".jsonl", strings.Replace(w.Schema(), "name: world", "name: "+name, 1), w.JSONLines())
		r := start(t, config.Config{Engine: "cpu", Indexes: []config.IndexSource{{Path: path}}}, service.Options{})
		for range 150 {
			near := w.Random(rng)
			column := []string{"vector", "point", "text"}[rng.IntN(3)]
			c := w.Index.Distances().Column(column)
			query := map[string]any{"method": "scan"}
			asked := &distance.Query{Column: c, K: 10, Most: math.Inf(1)}
			switch column {
			case "vector":
				query["vector"], asked.Vector = near.Vector, near.Vector
			case "point":
				query["point"], asked.Point = near.Point, distance.Point{Lat: near.Point[0], Lon: near.Point[1]}
			case "text":
				query["text"], asked.Text = near.Text, near.Text
			}
			space, err := c.Space()
			if err != nil {
				t.Fatal(err)
			}
			asker, err := asked.Asker(space)
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(2) == 0 {
				asked.K = 1 + rng.IntN(400)
				query["k"] = asked.K
			}
			if rng.IntN(2) == 0 {
				radius := rng.Float64() * 4
				if column == "point" {
					radius = 2e7 * rng.Float64()
				}
				if n := len(w.Places); n > 0 && rng.IntN(2) == 0 {
					if id := rng.Uint32N(uint32(n)); c.Has(id) {
						radius = c.Metric.Report(asker.Value(id))
					}
				}
				query["radius"], asked.Most = radius, c.Metric.Within(radius)
				if _, given := query["k"]; !given {
					asked.K = wire.DefaultWithin
				}
				if rng.IntN(4) == 0 {
					asked.K, query["k"] = 0, 0
				}
				query["total"] = true
			}
			class := -1
			if rng.IntN(3) == 0 {
				class = rng.IntN(5)
				query["filter"] = map[string]any{"class": enginetest.ClassName(class)}
			}
			hits, within := flatscan.Nearest(asker, uint32(len(w.Places)), metric.Want{K: asked.K, Most: asked.Most}, func(id uint32) bool {
				return c.Has(id) && (class < 0 || w.Places[id].Class == class)
			})
			text, err := json.Marshal(query)
			if err != nil {
				t.Fatal(err)
			}
			got := ask(t, r, name, string(text))
			_, ranged := query["radius"]
			if got.Err != nil || len(got.Hits) != len(hits) || got.Method != distance.Scan || !got.Exact || got.HasInRange != ranged || ranged && got.InRange != within {
				t.Fatalf("%s: %d hits of %d, %d of %d within: %+v", text, len(got.Hits), len(hits), got.InRange, within, got)
			}
			for i, h := range got.Hits {
				if h.ID != hits[i].ID || !h.HasDistance || h.Distance != c.Metric.Report(hits[i].Value) || h.Count != 0 {
					t.Fatalf("%s: hit %d is %+v, want %+v", text, i, h, hits[i])
				}
			}
		}
	}
}

// Which queries are searches by distance, and what does not go with one.
func TestWhichQueriesAreByDistance(t *testing.T) {
	dir := t.TempDir()
	data := `{"v":[0,0],"h":[0,0],"b":[1,2],"at":[1,2],"s":"abcd","n":"abcd","c":"x"}
{"v":[3,4],"h":[3,4],"b":[1,3],"at":[3,4],"s":"abxd","n":"abxd","c":"y"}
`
	build := func(name, columns string) config.IndexSource {
		return config.IndexSource{Path: buildFile(t, dir, name+".jsonl", "name: "+name+"\ncolumns:\n- {name: c, type: category}\n"+columns, data)}
	}
	r := start(t, config.Config{Engine: "cpu", CertifyLimit: 1000, Indexes: []config.IndexSource{
		build("all", "- {name: v, type: vector, metric: l2, store: true}\n- {name: h, type: vector}\n- {name: b, type: vector, index: [scan, lsh]}\n"+
			"- {name: at, type: point, store: true}\n- {name: s, type: string}"),
		build("metric", "- {name: v, type: vector, metric: l1}"),
		build("products", "- {name: v, type: vector, metric: ip}"),
		build("both", "- {name: b, type: vector, index: [scan, lsh]}"),
		build("hashed", "- {name: h, type: vector}"),
		build("edit", "- {name: s, type: string, metric: edit}"),
		build("grams", "- {name: n, type: string}"),
		{Path: buildFile(t, dir, "words.txt", "name: words\nkind: sequences", "abcd\nabxd\nzzzz\n")},
	}}, service.Options{})
	for _, c := range []struct {
		index, query, method string // "": matches are counted
		ids                  []uint32
	}{
		{"metric", `{"vector":[3,3]}`, "scan", []uint32{1, 0}},
		{"products", `{"vector":[1,1]}`, "scan", []uint32{1, 0}},
		{"products", `{"vector":[-1,-1]}`, "scan", []uint32{0, 1}},
		{"products", `{"vector":[1,1],"radius":-7}`, "scan", []uint32{1}},
		{"products", `{"vector":[1,1],"radius":-7.000000000000001}`, "scan", nil},
		{"products", `{"vector":[-1,-1],"radius":7}`, "scan", []uint32{0, 1}},
		{"both", `{"vector":[1,3]}`, "scan", []uint32{1, 0}},
		{"both", `{"vector":[1,3],"method":"lsh","k":1}`, "", []uint32{1}},
		{"hashed", `{"vector":[3,4],"k":1}`, "", []uint32{1}},
		{"all", `{"vector":[3,4],"k":1,"column":"v"}`, "scan", []uint32{1}},
		{"all", `{"vector":[3,4],"k":1,"column":"h"}`, "", []uint32{1}},
		{"all", `{"vector":[1,2],"k":1,"column":"b","method":"lsh"}`, "", []uint32{0}},
		{"all", `{"point":[3,4.1],"k":1}`, "scan", []uint32{1}},
		{"all", `{"text":"abcd","radius":0}`, "scan", []uint32{0}},
		{"edit", `{"text":"abxx"}`, "scan", []uint32{1, 0}},
		{"edit", `{"text":"abxd","method":"ngram","k":1}`, "", []uint32{1}},
		{"edit", `{"row":{"s":"abxd"},"k":1}`, "", []uint32{1}},
		{"grams", `{"text":"abxd","k":1}`, "", []uint32{1}},
		{"grams", `{"text":"abxd","k":1,"method":"auto"}`, "scan", []uint32{1}},
		{"grams", `{"text":"abxd","column":"n","k":1}`, "", []uint32{1}},
		{"words", `{"text":"abxd","radius":1}`, "scan", []uint32{1, 0}},
		{"words", `{"text":"abxd","method":"scan"}`, "scan", []uint32{1, 0, 2}},
		{"words", `{"text":"abxd","method":"ngram","radius":1}`, "ngram", []uint32{1, 0}},
		{"words", `{"text":"abxd","method":"ngram","radius":3}`, "scan", []uint32{1, 0}},
		{"grams", `{"text":"abcd","method":"ngram","radius":1,"filter":{"c":"y"}}`, "ngram", []uint32{1}},
		{"words", `{"text":"abxd","k":1}`, "", []uint32{1}},
		{"metric", `{"vector":[3,3],"filter":{"c":"x"},"explain":true,"matched":true}`, "scan", []uint32{0}},
	} {
		var got *wire.Result
		if strings.Contains(c.query, "explain") { // which has times
			got = askIn(t, r, c.index, wire.JSON, []byte(c.query))
			if !strings.Contains(string(got.Explain), `"distance":{"column":"v","metric":"l1","method":"scan","methods":["scan"],"distances":2,"blocks":1,"objects":2,"why":"it takes least of those that find all","took_us":`) ||
				!strings.Contains(string(got.Explain), `"ways":[{"method":"scan","predicted_us":`) ||
				len(got.Hits) != 1 || !slices.Equal(got.Hits[0].Detail.Matched, []string{"v"}) {
				t.Errorf("explained: %s %+v", got.Explain, got.Hits)
			}
		} else {
			got = ask(t, r, c.index, c.query)
		}
		var ids []uint32
		for _, h := range got.Hits {
			ids = append(ids, h.ID)
		}
		if got.Err != nil || got.Method != c.method || !slices.Equal(ids, c.ids) {
			t.Errorf("%s %s: %v by %q, %v; want %v by %q", c.index, c.query, ids, got.Method, got.Err, c.ids, c.method)
		}
	}
	for _, c := range []struct {
		index, query, want string
		code               wire.Code
	}{
		{"all", `{"vector":[3,4],"radius":1}`, "several columns of vectors (v, b): name the one to ask in column", wire.BadRequest},
		{"all", `{"vector":[3,4],"radius":1,"column":"h"}`, "not searched by distance: build the index with a metric", wire.Unsupported},
		{"all", `{"vector":[3,4],"radius":1,"column":"at"}`, "holds points", wire.BadRequest},
		{"all", `{"vector":[3,4],"radius":1,"column":"vv"}`, "a vector can ask v, b", wire.BadRequest},
		{"all", `{"vector":[3],"column":"v"}`, "has 1 elements", wire.BadRequest},
		{"all", `{"row":{"v":[3,4]}}`, "is searched by distance alone", wire.BadRequest},
		{"all", `{"row":{"at":[3,4]}}`, "is searched by distance alone", wire.BadRequest},
		{"hashed", `{"vector":[3,4],"radius":1}`, "no column of which a vector could ask distances: build the index with a metric", wire.Unsupported},
		{"hashed", `{"point":[3,4]}`, "no column of which a point", wire.Unsupported},
		{"metric", `{"vector":[3,4],"radius":-0.5}`, "no distance by the metric l1 of column \"v\" is below 0", wire.BadRequest},
		{"all", `{"point":[3,4],"radius":-1}`, "no distance by the metric geo", wire.BadRequest},
		{"words", `{"text":"abxd","radius":-1}`, "no distance by the metric edit", wire.BadRequest},
		{"metric", `{"vector":[3,4],"method":"tree"}`, "has no tree: it has scan", wire.Unsupported},
		{"metric", `{"vector":[3,4],"method":"lsh"}`, "has no lsh: it has scan", wire.Unsupported},
		{"metric", `{"vector":[3,4],"method":"ngram"}`, "a vector has no n-grams", wire.BadRequest},
		{"hashed", `{"vector":[3,4],"method":"ngram"}`, "a vector has no n-grams", wire.BadRequest},
		{"metric", `{"vector":[3,4],"method":"quickly"}`, "method \"quickly\" is unknown", wire.BadRequest},
		{"metric", `{"vector":[3,4],"fraction":0.9}`, "fraction is of method permutation", wire.BadRequest},
		{"metric", `{"vector":[3,4],"min_count":1}`, "min_count and certify do not go", wire.BadRequest},
		{"metric", `{"vector":[3,4],"candidates":50}`, "candidates does not go", wire.BadRequest},
		{"metric", `{"vector":[3,4],"weights":{"v":2}}`, "weights", wire.BadRequest},
		{"metric", `{"vector":[3,4],"rescore":{"by":"l2"}}`, "rescore", wire.BadRequest},
		{"words", `{"text":"abxd","recall":0.5,"method":"ngram"}`, "method ngram without a radius counts n-grams", wire.Unsupported},
		{"words", `{"text":"abxd","radius":1,"recall":0.5,"method":"ngram"}`, "and ngram finds all", wire.BadRequest},
		{"both", `{"vector":[1,3],"radius":1,"method":"ngram"}`, "has no ngram: it has scan", wire.Unsupported},
		{"words", `{"text":"` + strings.Repeat("a", 100) + `","radius":1}`, "certify-limit (1000)", wire.TooLarge},
	} {
		got := ask(t, r, c.index, c.query)
		if got.Err == nil || got.Err.Code != c.code || !strings.Contains(got.Err.Message, c.want) {
			t.Errorf("%s %s: %v, want %s %q", c.index, c.query, got.Err, c.code, c.want)
		}
	}
	got := ask(t, r, "all", `{"point":[3,4],"k":1,"with_payload":true}`)
	if len(got.Hits) != 1 || string(got.Hits[0].Payload) != `{"v":[3,4],"at":[3,4]}` {
		t.Errorf("what was stored of a hit: %+v", got)
	}
}

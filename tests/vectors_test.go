package tests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Vectors beside categories, from JSON Lines through a worker: by form, by row, mixed, rescored, filtered; what hits tell of similarities, and the recall that
// is expected.
func TestVectorsAreServed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var data strings.Builder
	points := make([][4]float64, 400)
	for i := range points {
		for j := range points[i] {
			points[i][j] = math.Round(1000*rng.NormFloat64()) / 100
		}
		p := points[i]
		fmt.Fprintf(&data, "{\"at\":[%g,%g,%g,%g],\"colour\":\"%c\"}\n", p[0], p[1], p[2], p[3], 'a'+i%3)
	}
	dir := t.TempDir()
	r := start(t, config.Config{Engine: "cpu", Indexes: []config.IndexSource{
		{Path: buildFile(t, dir, "points.jsonl", "name: points\ncolumns:\n- {name: at, type: vector, recall: 0.5, store: true}\n- {name: colour, type: category}", data.String())},
	}}, service.Options{})
	vector := fmt.Sprintf("[%g,%g,%g,%g]", points[7][0], points[7][1], points[7][2], points[7][3])

	result := ask(t, r, "points", `{"k":5,"vector":`+vector+`}`)
	if result.Err != nil || len(result.Hits) != 5 || result.Hits[0].ID != 7 {
		t.Fatalf("%+v", result)
	}
	hit := &result.Hits[0]
	if !hit.HasSimilarity || hit.Similarity != 1 || hit.Detail == nil || len(hit.Detail.Columns) != 1 || hit.Detail.Columns[0].Similarity != 1 ||
		hit.Detail.Columns[0].Column != "at" || !(hit.Detail.Columns[0].Bound > .05 && hit.Detail.Columns[0].Bound <= 1) {
		t.Errorf("%+v %+v", hit, hit.Detail)
	}
	if !result.HasExpectedRecall || !(result.ExpectedRecall > .2 && result.ExpectedRecall <= 1) {
		t.Errorf("expected recall %v", result.ExpectedRecall)
	}

	result = ask(t, r, "points", `{"k":3,"row":{"at":`+vector+`},"rescore":{"by":"l2"},"candidates":100,"with_payload":true}`)
	if result.Err != nil || result.Hits[0].ID != 7 || !result.Hits[0].HasDistance || result.Hits[0].Distance != 0 || !result.HasExpectedRecall {
		t.Fatalf("%+v", result)
	}
	for i, hit := range result.Hits {
		sum := 0.0
		for j, x := range points[hit.ID] {
			d := float64(float32(x)) - float64(float32(points[7][j]))
			sum += d * d
		}
		if math.Abs(hit.Distance-math.Sqrt(sum)) > 1e-9 || i > 0 && hit.Distance < result.Hits[i-1].Distance {
			t.Errorf("hit %d: %+v, want distance %v", i, hit, math.Sqrt(sum))
		}
	}

	// Among other conditions the similarity is that of the column's own count, and no recall is known.
	result = ask(t, r, "points", `{"k":5,"row":{"at":`+vector+`,"colour":"b"},"weights":{"at":2,"colour":1000},"matched":true}`)
	if result.Err != nil || result.HasExpectedRecall || result.Hits[0].ID != 7 {
		t.Fatalf("%+v", result)
	}
	if s := result.Hits[0].Detail.Columns[0].Similarity; s != 1 {
		t.Errorf("similarity %v among other conditions", s)
	}
	for _, query := range []string{`{"vector":` + vector + `,"filter":{"colour":"b"}}`, `{"vector":` + vector + `,"rescore":{"by":"ip"}}`, `{"k":101,"vector":` + vector + `}`,
		`{"min_count":5,"vector":` + vector + `}`, `{"vector":` + vector + `,"rescore":{"by":"l2"},"certify":true}`} {
		if result := ask(t, r, "points", query); result.Err != nil || result.HasExpectedRecall {
			t.Errorf("%s: %+v, %v", query, result.Err, result.HasExpectedRecall)
		}
	}
	if result := ask(t, r, "points", `{"vector":[1,2,3]}`); result.Err == nil || result.Err.Code != wire.BadRequest || !strings.Contains(result.Err.Message, "have 4") {
		t.Errorf("wrong dimensions: %+v", result.Err)
	}
	// Many in a message are hashed together, and answered as one by one.
	var queries []string
	for _, p := range points[:9] {
		queries = append(queries, fmt.Sprintf(`{"k":6,"vector":[%g,%g,%g,%g]}`, p[0], p[1], p[2], p[3]+1))
	}
	m := nats.NewMsg("genie.search.points")
	m.Data = []byte(`{"queries":[` + strings.Join(queries, ",") + `,{"vector":[1]}]}`)
	reply, err := r.nc.RequestMsg(m, patience)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := wire.DecodeAnswer(wire.JSON, reply.Data)
	if err != nil || len(answer.Results) != len(queries)+1 || answer.Results[len(queries)].Err == nil {
		t.Fatalf("%v in %s", err, reply.Data)
	}
	for i, query := range queries {
		one := askIn(t, r, "points", wire.JSON, []byte(query))
		if !reflect.DeepEqual(answer.Results[i].Hits, one.Hits) {
			t.Errorf("%s: %+v among others, %+v alone", query, answer.Results[i].Hits, one.Hits)
		}
	}
}

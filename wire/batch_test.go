package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A message of many queries is scanned, however its queries are given, with the exact number of conditions; and whatever
// becomes of it by a few wrong bytes or a missing end, it is decoded in parts as it is as a whole, or not in parts.
func TestScan(t *testing.T) {
	for _, codec := range []ContentType{JSON, MessagePack} {
		t.Run(codec.String(), func(t *testing.T) { testScan(t, codec) })
	}
}

func testScan(t *testing.T, codec ContentType) {
	random := seeded.Rand(t)
	var queries []Query
	for i := range 40 {
		conds := make([]Condition, 1+random.IntN(40))
		for j := range conds {
			conds[j].Attr = fmt.Sprintf("attribute %d", j)
			switch random.IntN(4) {
			case 0:
				conds[j].Value = Number(random.NormFloat64())
			case 1:
				conds[j].Min, conds[j].Weight = Number(float64(i)), 7
			case 2:
				conds[j].In = []Value{String("a"), Number(70_000), Bool(true)}
			default:
				conds[j].Value = String("Ä")
			}
		}
		q := Query{ID: fmt.Sprintf(`%d"]}\`, i), K: 1 + random.IntN(5)}
		switch i % 5 {
		case 0:
			q.Row = conds
		case 1:
			q.Text = "text"
		case 2:
			q.Vector = make([]float32, 20)
		case 3:
			q.Set = []Value{Number(1), String("b")}
		default:
			q.Items = conds
		}
		queries = append(queries, q)
	}
	body := AppendQueries(nil, codec, queries)
	limits := Limits{SumK: 120} // which about half of the messages exceed
	var d Decoder
	b, ok := d.Scan(codec, body, limits)
	if !ok || b.Len() != len(queries) {
		t.Fatalf("scanned %v", ok)
	}
	for i := range queries {
		if n, want := b.Conditions(i+1)-b.Conditions(i), len(queries[i].Row)+len(queries[i].Items); n != want {
			t.Errorf("query %d has %d conditions, not %d", i, n, want)
		}
	}
	check := func(body []byte) bool {
		t.Helper()
		m, err := DecodeMessage(codec, body, limits)
		return checkBatch(t, &d, codec, body, limits, m, err)
	}
	if !check(body) {
		t.Errorf("not decoded in parts")
	}
	for range 2000 {
		wrong := append([]byte(nil), body...)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(wrong))
			if wrong[at] = byte(random.Uint32()); codec == JSON && random.IntN(2) == 0 {
				wrong[at] = `{}[],:"\ 0`[random.IntN(10)]
			}
		}
		if random.IntN(4) == 0 {
			wrong = wrong[:random.IntN(len(wrong))]
		}
		if check(wrong); t.Failed() {
			t.Fatalf("%q", wrong)
		}
	}
	for _, limits := range []Limits{{Queries: 39}, {Body: len(body) - 1}, {Depth: 1}, {Depth: 2}, {Depth: 4}} {
		m, err := DecodeMessage(codec, body, limits)
		if checkBatch(t, &d, codec, body, limits, m, err) {
			t.Errorf("decoded in parts with %+v", limits)
		}
	}
	if _, ok := d.Scan(JSON, []byte(`{"queries":[{"row":{`+strings.Repeat(",", 100)+`}}]}`), limits); ok {
		t.Error("scanned conditions of one byte")
	}
	if _, ok := d.Scan(codec, append(body, 1), limits); ok {
		t.Error("scanned with a byte too many")
	}
	if _, ok := d.Scan(codec, AppendQuery(nil, codec, &queries[0]), limits); ok {
		t.Error("scanned a single query")
	}
}

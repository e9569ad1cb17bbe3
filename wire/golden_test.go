package wire

import (
	"reflect"
	"testing"
	"time"
)

// The examples of the protocol's description, word for word but for their dots.
func TestGoldenQueries(t *testing.T) {
	tests := []struct {
		name, body string
		want       Query
	}{
		{
			"row", `{"id":"q1","k":10,"row":{"age":{"min":30,"max":40},"sex":"Female","state":{"in":["WA","OR"]}}}`,
			Query{ID: "q1", K: 10, Candidates: 80, Row: []Condition{
				{Attr: "age", Min: Number(30), Max: Number(40)},
				{Attr: "sex", Value: String("Female")},
				{Attr: "state", In: []Value{String("WA"), String("OR")}},
			}},
		},
		{
			"text", `{"id":"q2","k":5,"text":"generic inverted indx framework"}`,
			Query{ID: "q2", K: 5, Candidates: 40, Text: "generic inverted indx framework"},
		},
		{
			"vector", `{"id":"q3","k":100,"vector":[0.1,0.2]}`,
			Query{ID: "q3", K: 100, Candidates: 800, Vector: []float32{0.1, 0.2}},
		},
		{
			"set", `{"id":"q4","k":10,"set":["a","b","c"]}`,
			Query{ID: "q4", K: 10, Candidates: 80, Set: []Value{String("a"), String("b"), String("c")}},
		},
		{
			"items", `{"id":"q5","k":10,"items":[{"attr":"age","min":30,"max":39},{"attr":"sex","value":"Male","weight":2}]}`,
			Query{ID: "q5", K: 10, Candidates: 80, Items: []Condition{
				{Attr: "age", Min: Number(30), Max: Number(39)},
				{Attr: "sex", Value: String("Male"), Weight: 2},
			}},
		},
		{
			"integer id", `{"id":9007199254740993,"text":"x"}`,
			Query{ID: "9007199254740993", K: 10, Candidates: 80, Text: "x"},
		},
		{
			"options", `{"text":"x","k":2,"candidates":9,"certify":true,"min_count":3,"with_payload":true,"timeout_ms":250}`,
			Query{K: 2, Candidates: 9, Certify: true, MinCount: 3, WithPayload: true, TimeoutMS: 250, Text: "x"},
		},
		{
			"bucket unit", `{"row":{"age":{"min":3,"unit":"bucket"}}}`,
			Query{K: 10, Candidates: 80, Row: []Condition{{Attr: "age", Min: Number(3), Bucket: true}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := DecodeMessage(JSON, []byte(tt.body), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if m.Batch || len(m.Queries) != 1 || m.Queries[0].Err != nil {
				t.Fatalf("got %+v", m)
			}
			if got := m.Queries[0].Query; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			for _, ct := range []ContentType{JSON, MessagePack} {
				m, err := DecodeMessage(ct, AppendQuery(nil, ct, &tt.want), Limits{})
				if err != nil || m.Queries[0].Err != nil {
					t.Fatal(ct, err, m)
				}
				if got := m.Queries[0].Query; !reflect.DeepEqual(got, tt.want) {
					t.Errorf("through %v: got  %+v\nwant %+v", ct, got, tt.want)
				}
			}
		})
	}
}

func TestGoldenBatch(t *testing.T) {
	body := `{"queries":[{"id":"a","text":"x"},{"id":"b","k":0,"text":"y"},{"k":"3","id":"c","row":{}},{"id":"d","vector":[1]}]}`
	m, err := DecodeMessage(JSON, []byte(body), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if !m.Batch || len(m.Queries) != 4 {
		t.Fatalf("got %+v", m)
	}
	for i, id := range []string{"a", "b", "c", "d"} {
		if m.Queries[i].Query.ID != id {
			t.Errorf("query %d has id %q, want %q", i, m.Queries[i].Query.ID, id)
		}
		if bad := m.Queries[i].Err != nil; bad != (i == 1 || i == 2) {
			t.Errorf("query %d: error %v", i, m.Queries[i].Err)
		}
	}
}

func TestGoldenResults(t *testing.T) {
	tests := []struct {
		name   string
		answer Answer
		json   string
	}{
		{
			"hits", Answer{Results: []Result{{
				ID: "q1", Index: "adult", Version: "9f3c000000000000",
				Hits: []Hit{{ID: 17, Key: "17", Count: 12}}, MCK: 11, Exact: true,
				Took: Took{Queue: 310 * time.Microsecond, Batch: 900 * time.Microsecond,
					Engine: 420 * time.Microsecond, Total: 1700 * time.Microsecond},
			}}},
			`{"id":"q1","index":"adult","version":"9f3c000000000000","hits":[{"id":17,"key":"17","count":12}],` +
				`"mc_k":11,"exact":true,"took_us":{"queue":310,"batch":900,"engine":420,"verify":0,"total":1700}}`,
		},
		{
			"error", Answer{Results: []Result{{ID: "q9",
				Err: Errorf(BadRequest, `attribute "agee" is not in index adult (did you mean age?)`)}}},
			`{"id":"q9","error":{"code":"bad_request","message":"attribute \"agee\" is not in index adult (did you mean age?)"}}`,
		},
		{
			"batch", Answer{Batch: true, First: 2, Results: []Result{{ID: "a", Hits: []Hit{}}, {ID: "b", Err: Errorf(TooLarge, "x")}}},
			`{"first":2,"results":[{"id":"a","hits":[],"mc_k":0,"exact":false,` +
				`"took_us":{"queue":0,"batch":0,"engine":0,"verify":0,"total":0}},` +
				`{"id":"b","error":{"code":"too_large","message":"x"}}]}`,
		},
		{
			"no n-gram in common", Answer{Results: []Result{{
				Hits: []Hit{{ID: 0, Key: "0", Distance: 3, HasDistance: true}}, Exact: true,
			}}},
			`{"hits":[{"id":0,"key":"0","count":0,"distance":3}],"mc_k":0,"exact":true,` +
				`"took_us":{"queue":0,"batch":0,"engine":0,"verify":0,"total":0}}`,
		},
		{
			"scores and payload", Answer{Results: []Result{{Hits: []Hit{
				{ID: 1, Key: "a\"b", Count: 3, Distance: 2, HasDistance: true, Payload: []byte(`{"note":["x",1.5,null,true],"n":18446744073709551615}`)},
				{ID: 2, Key: "2", Count: 3, Similarity: 0.25, HasSimilarity: true},
			}}}},
			`{"hits":[{"id":1,"key":"a\"b","count":3,"distance":2,"payload":{"note":["x",1.5,null,true],"n":18446744073709551615}},` +
				`{"id":2,"key":"2","count":3,"similarity":0.25}],"mc_k":0,"exact":false,` +
				`"took_us":{"queue":0,"batch":0,"engine":0,"verify":0,"total":0}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(AppendAnswer(nil, JSON, &tt.answer)); got != tt.json {
				t.Errorf("got  %s\nwant %s", got, tt.json)
			}
			for _, ct := range []ContentType{JSON, MessagePack} {
				got, err := DecodeAnswer(ct, AppendAnswer(nil, ct, &tt.answer))
				if err != nil {
					t.Fatal(ct, err)
				}
				if !reflect.DeepEqual(*got, tt.answer) {
					t.Errorf("through %v:\ngot  %+v\nwant %+v", ct, *got, tt.answer)
				}
			}
		})
	}
}

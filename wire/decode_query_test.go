package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// toMessagePack writes a JSON message as MessagePack, so that every case runs through both codecs.
func toMessagePack(t testing.TB, body string) []byte {
	t.Helper()
	e := encoder{msgpack: true}
	e.transcode([]byte(body))
	if len(e.dst) == 1 && e.dst[0] == msgpack.Nil && body != "null" {
		t.Fatalf("not JSON: %s", body)
	}
	return e.dst
}

// decodeBoth decodes a JSON text in both codecs.
func decodeBoth(t *testing.T, body string, l Limits, check func(t *testing.T, m *Message, err error)) {
	t.Helper()
	t.Run("json", func(t *testing.T) {
		m, err := DecodeMessage(JSON, []byte(body), l)
		check(t, m, err)
	})
	t.Run("msgpack", func(t *testing.T) {
		m, err := DecodeMessage(MessagePack, toMessagePack(t, body), l)
		check(t, m, err)
	})
}

// How strings compare is the column's business: of dates with offsets, and a year that is all its days, the first may be the greater text.
func TestRangesOfStrings(t *testing.T) {
	for _, ends := range []string{`"min":"1991-02-24","max":"1991"`, `"min":"2024-05-17T23:00-05:00","max":"2024-05-17T22:00-08:00"`, `"min":"b","max":1`} {
		decodeBoth(t, `{"row":{"a":{`+ends+`}}}`, Limits{}, func(t *testing.T, m *Message, err error) {
			if err != nil || m.Queries[0].Err != nil {
				t.Errorf("%s: %v %v", ends, err, m.Queries[0].Err)
			}
		})
	}
}

// What is wrong with one query fails that query, with its id and a sentence that says what to do.
func TestRefusedQueries(t *testing.T) {
	tests := []struct {
		query   string // without braces and id
		code    Code
		message string // a part of it
	}{
		{`"text":"x","kk":3`, BadRequest, `unknown field "kk"`},
		{`"text":"x","Text":"y"`, BadRequest, `unknown field "Text" (did you mean text?)`},
		{`"text":"x","minCount":3`, BadRequest, `did you mean min_count?`},
		{`"text":"x","candidats":3`, BadRequest, `did you mean candidates?`},
		{`"row":{"a":1},"rescore":{"eq":"x"}`, BadRequest, `rescore: unknown field "eq"`},
		{`"text":"x","text":"y"`, BadRequest, `field "text" is there twice`},
		{`"text":"x","k":-1`, BadRequest, "k: must be an integer between 1 and 65536, not -1"},
		{`"text":"x","k":0`, BadRequest, "not 0"},
		{`"text":"x","k":65537`, BadRequest, "not 65537"},
		{`"text":"x","k":1.5`, BadRequest, "not 1.5"},
		{`"text":"x","k":"3"`, BadRequest, "k: must be a number, not a string"},
		{`"text":"x","k":null`, BadRequest, "k: must be a number, not null"},
		{`"text":"x","k":1e300`, BadRequest, "not 1e+300"},
		{`"text":"x","k":10,"candidates":9`, BadRequest, "candidates must be between k = 10"},
		{`"text":"x","candidates":65537`, BadRequest, "candidates: must be an integer between 1 and 65536, not 65537"},
		{`"text":"x","min_count":-1`, BadRequest, "min_count: must be"},
		{`"text":"x","timeout_ms":0`, BadRequest, "timeout_ms: must be"},
		{`"text":"x","certify":1`, BadRequest, "certify: must be a bool, not a number"},
		{`"text":"x","with_payload":"yes"`, BadRequest, "with_payload: must be a bool"},
		{`"k":5`, BadRequest, "asks for nothing: give one of row, text, vector, set, items"},
		{`"text":""`, BadRequest, "text: is empty"},
		{`"text":7`, BadRequest, "text: must be a string, not a number"},
		{`"text":["x"]`, BadRequest, "text: must be a string, not an array"},
		{`"text":"x","row":{"a":1}`, BadRequest, "row and text exclude each other"},
		{`"row":{}`, BadRequest, "row is empty"},
		{`"row":[]`, BadRequest, "row: must be an object of conditions"},
		{`"row":{"a":1,"b":2,"a":3}`, BadRequest, `row names "a" twice`},
		{`"row":{"a":1},"filter":7`, BadRequest, "filter: must be an object of conditions by attribute, or a list of such"},
		{`"row":{"a":1},"filter":[{"b":1},7]`, BadRequest, "filter[1]: must be an object"},
		{`"row":{"a":1},"filter":{}`, BadRequest, "filter is empty"},
		{`"row":{"a":1},"filter":{"b":1,"c":2,"b":3}`, BadRequest, `filter: names "b" twice: give a list of objects, one for each condition`},
		{`"row":{"a":1},"exclude":[{"b":1},{"b":2,"b":3}]`, BadRequest, `exclude[1]: names "b" twice`},
		{`"row":{"a":1},"exclude":{"b":{"value":1,"weight":2}}`, BadRequest, "exclude.b has a weight"},
		{`"row":{"a":1},"exclude":[{"b":1},{"b":{"min":2,"max":1}}]`, BadRequest, "exclude.b: min 2 is greater"},
		{`"filter":{"a":1},"min_count":1`, BadRequest, "min_count needs counts"},
		{`"total":true,"certify":true`, BadRequest, "certify needs counts"},
		{`"filter":{"a":1},"rescore":{"by":"bm25"}`, BadRequest, "rescore needs counts"},
		{`"row":{"a":1},"rescore":{}`, BadRequest, "rescore.by is missing"},
		{`"row":{"a":1},"rescore":{"by":"bm25","of":"x"}`, BadRequest, `rescore: unknown field "of"`},
		{`"row":{"a":1},"weights":{"a":0}`, BadRequest, "weights.a: must be an integer between 1 and 65535"},
		{`"row":{"a":1},"weights":{"a":1,"a":2}`, BadRequest, `weights names "a" twice`},
		{`"row":{"a":1},"weights":[1]`, BadRequest, "weights: must be an object of weights by column"},
		{`"total":false`, BadRequest, "asks for nothing"},
		{`"row":{"":1}`, BadRequest, "attr is missing"},
		{`"row":{"a":{}}`, BadRequest, "row.a: empty condition"},
		{`"row":{"a":{"min":2,"max":1}}`, BadRequest, "row.a: min 2 is greater than max 1"},
		{`"row":{"a":{"min":true}}`, BadRequest, "min is a bool"},
		{`"row":{"a":{"min":1,"value":1}}`, BadRequest, "exclude each other"},
		{`"row":{"a":{"in":[]}}`, BadRequest, "row.a: in is empty"},
		{`"row":{"a":{"value":1,"weight":0}}`, BadRequest, "row.a.weight: must be an integer between 1 and 65535"},
		{`"row":{"a":{"value":1,"weight":65536}}`, BadRequest, "row.a.weight"},
		{`"row":{"a":{"value":1.5,"unit":"bucket"}}`, BadRequest, "1.5 is not a bucket"},
		{`"row":{"a":{"value":-1,"unit":"bucket"}}`, BadRequest, "-1 is not a bucket"},
		{`"row":{"a":{"in":[4294967296],"unit":"bucket"}}`, BadRequest, "is not a bucket"},
		{`"row":{"a":{"min":-1.5,"unit":"bucket"}}`, BadRequest, "-1.5 is not a bucket"},
		{`"row":{"a":{"min":5,"max":-5,"unit":"bucket"}}`, BadRequest, "min 5 is greater than max -5"},
		{`"row":{"a":{"value":"x","unit":"bucket"}}`, BadRequest, `"x" is not a bucket`},
		{`"items":[]`, BadRequest, "items is empty"},
		{`"items":[{"value":1}]`, BadRequest, "items[0]: attr is missing"},
		{`"items":[{"attr":"a","value":1},7]`, BadRequest, "items[1]: must be a condition"},
		{`"items":[{"attr":"a","value":1,"value":2}]`, BadRequest, `items[0]: field "value" is there twice`},
		{`"set":[]`, BadRequest, "set is empty"},
		{`"set":[true]`, BadRequest, "set[0] is a bool"},
		{`"vector":[]`, BadRequest, "vector is empty"},
		{`"vector":[1,"x"]`, BadRequest, "vector[1]: must be a number, not a string"},
		{`"vector":[1e39]`, BadRequest, "vector[0]"},
		{`"vector":7`, BadRequest, "vector: must be an array of numbers"},
		{`"text":"x","k":0,"method":"scan"`, BadRequest, "not 0; with a radius it may be 0"},
		{`"text":"x","radius":"far"`, BadRequest, "radius: must be a number, not a string"},
		{`"text":"x","radius":1,"min_count":2`, BadRequest, "min_count does not go with a search by distance"},
		{`"text":"x","radius":1,"certify":true`, BadRequest, "certify does not go with a search by distance"},
		{`"row":{"a":1},"radius":1`, BadRequest, "they go with text, vector or point"},
		{`"total":true,"radius":1`, BadRequest, "they go with text, vector or point"},
		{`"point":[91,0]`, BadRequest, "the latitude is 91"},
		{`"point":[1]`, BadRequest, "point: takes two numbers, latitude and longitude"},
		{`"point":[1,2,3]`, BadRequest, "point: takes two numbers, latitude and longitude"},
		{`"point":{"lat":1}`, BadRequest, "point: takes two numbers"},
		{`"point":{"lat":1,"lat":2}`, BadRequest, `point: field "lat" is there twice`},
		{`"point":{"lat":1,"lng":2}`, BadRequest, `point: unknown field "lng"`},
		{`"point":"here"`, BadRequest, "point: must be [latitude, longitude]"},
		{`"point":[1,2],"text":"x"`, BadRequest, "text and point exclude each other"},
		{`"text":"x","fraction":1.5`, BadRequest, "fraction must be above 0 and at most 1"},
		{`"text":"x","fraction":0`, BadRequest, "fraction: must be above 0"},
		{`"text":"x","recall":1`, BadRequest, "recall must be above 0 and below 1"},
		{`"text":"x","recall":0.5,"fraction":0.5`, BadRequest, "fraction and recall exclude each other"},
		{`"text":"x","method":""`, BadRequest, "method: is empty"},
		{`"text":"x","must":[]`, Unsupported, `field "must" is reserved`},
		{`"text":"x","offset":1`, Unsupported, "reserved"},
		{`"text":"x","version":"1"`, Unsupported, "reserved"},
		{`"text":"x","offset":1`, Unsupported, "reserved"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			check := func(t *testing.T, m *Message, err error) {
				t.Helper()
				if err != nil {
					t.Fatal("the whole message failed:", err)
				}
				got := m.Queries[len(m.Queries)/2]
				if got.Err == nil {
					t.Fatalf("was accepted: %+v", got.Query)
				}
				if got.Err.Code != tt.code || !strings.Contains(got.Err.Message, tt.message) {
					t.Errorf("got %v, want %s ... %s", got.Err, tt.code, tt.message)
				}
				if got.Query.ID != "q1" {
					t.Errorf("the id is lost: %+v", got.Query)
				}
			}
			decodeBoth(t, `{"id":"q1",`+tt.query+`}`, Limits{}, check)
			decodeBoth(t, `{`+tt.query+`,"id":"q1"}`, Limits{}, check)
			batch := fmt.Sprintf(`{"queries":[{"text":"a"},{%s,"id":"q1"},{"text":"b"}]}`, tt.query)
			decodeBoth(t, batch, Limits{}, func(t *testing.T, m *Message, err error) {
				check(t, m, err)
				if len(m.Queries) != 3 || m.Queries[0].Query.Text != "a" || m.Queries[2].Query.Text != "b" {
					t.Errorf("its neighbours suffered: %+v", m.Queries)
				}
			})
		})
	}
}

// What JSON cannot say arrives by MessagePack.
func TestRefusedMessagePack(t *testing.T) {
	item := func(v float64) []byte {
		q := Query{Items: []Condition{{Attr: "a", Min: Number(v)}}}
		return AppendQuery(nil, MessagePack, &q)
	}
	bin := func(n int) []byte {
		return append([]byte("\x81\xa6vector\xc4"), append([]byte{byte(n)}, make([]byte, n)...)...)
	}
	tests := []struct {
		name, message string
		body          []byte
	}{
		{"NaN", "items[0].min: NaN", item(math.NaN())},
		{"infinity", "items[0].min: +Inf", item(math.Inf(1))},
		{"NaN in a vector", "vector[1] is NaN", AppendQuery(nil, MessagePack, &Query{Vector: []float32{1, float32(math.NaN())}})},
		{"odd binary", "has 7 bytes", bin(7)},
		{"empty binary", "vector is empty", bin(0)},
		{"binary for text", "must be a string, not binary", []byte("\x81\xa4text\xc4\x01x")},
		{"extension", "not an extension type", []byte("\x81\xa1k\xd4\x01\x01")},
		{"not UTF-8", "text: is not valid UTF-8", []byte("\x81\xa4text\xa2\xff\xfe")},
		{"name is no string", "the name of a field: must be a string, not a number", []byte("\x81\x01\x02")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := DecodeMessage(MessagePack, tt.body, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Queries[0].Err; got == nil || got.Code != BadRequest || !strings.Contains(got.Message, tt.message) {
				t.Errorf("got %v, want %q", got, tt.message)
			}
		})
	}
}

func TestRefusedJSON(t *testing.T) {
	for _, body := range []string{"{\"text\":\"\xff\"}", `{"text":"\ud800"}`, "{\"id\":\"q\",\"row\":{\"\xff\":1}}"} {
		m, err := DecodeMessage(JSON, []byte(body), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Queries[0].Err; got == nil || !strings.Contains(got.Message, "UTF-8") {
			t.Errorf("%q: got %v", body, got)
		}
	}
}

// What cannot be read fails the message.
func TestRefusedMessages(t *testing.T) {
	tests := []struct {
		body    string
		message string
	}{
		{``, "the body is empty"},
		{`[]`, "a message is an object"},
		{`"x"`, "a message is an object"},
		{`null`, "a message is an object"},
		{`{"queries":[]}`, "queries is empty"},
		{`{"queries":{}}`, "queries: must be an array of queries"},
		{`{"queries":[{"text":"x"}],"k":3}`, "queries must be the only field"},
		{`{"k":3,"queries":[{"text":"x"}]}`, "queries must be the only field"},
	}
	for _, tt := range tests {
		t.Run(tt.body, func(t *testing.T) {
			check := func(t *testing.T, m *Message, err error) {
				if !errors.Is(err, BadRequest) || !strings.Contains(err.Error(), tt.message) {
					t.Errorf("got %v, %v", m, err)
				}
			}
			if tt.body == "" {
				for _, ct := range []ContentType{JSON, MessagePack} {
					m, err := DecodeMessage(ct, nil, Limits{})
					check(t, m, err)
				}
				return
			}
			decodeBoth(t, tt.body, Limits{}, check)
		})
	}
	for _, body := range []string{
		`{`, `{"text":"x"`, `{"text":"x"}}`, `{"text":"x"} {"text":"y"}`, `{"text":x}`, `{text:"x"}`, `{"text":"x",}`,
		`{"queries":[{"text":"x"},{]}`, "\x00", `{"k":01,"text":"x"}`, `nul`, ` `, `{"kk":[1,2`, `{"queries":[{"kk":[}]}]}`,
		`nonsense`, `true story`, `7 dwarfs`, `"no" end`, `[1,`, `{"k":nonsense,"text":"x"}`,
	} {
		if m, err := DecodeMessage(JSON, []byte(body), Limits{}); !errors.Is(err, BadRequest) || !strings.Contains(err.Error(), "JSON") {
			t.Errorf("%s: got %+v, %v", body, m, err)
		}
	}
	whole := AppendQueries(nil, MessagePack, []Query{{ID: "a", Text: "x"}, {Items: []Condition{{Attr: "a", Value: Number(1.5)}}}})
	for n := range whole {
		if m, err := DecodeMessage(MessagePack, whole[:n], Limits{}); !errors.Is(err, BadRequest) {
			t.Errorf("the first %d bytes of %d: got %+v, %v", n, len(whole), m, err)
		}
	}
	for _, body := range []string{string(whole) + "\x00", "\xc1", "\x81\xa4text\xc1", "\xdf\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff", "\x81\xa4text\xdb\xff\xff\xff\xff"} {
		if m, err := DecodeMessage(MessagePack, []byte(body), Limits{}); !errors.Is(err, BadRequest) {
			t.Errorf("%q: got %+v, %v", body, m, err)
		}
	}
}

func TestEmptyBatchInBatch(t *testing.T) {
	decodeBoth(t, `{"queries":[{"id":"a","queries":[]},7,{"text":"x"}]}`, Limits{}, func(t *testing.T, m *Message, err error) {
		if err != nil || len(m.Queries) != 3 {
			t.Fatal(m, err)
		}
		for i, want := range []string{"a batch cannot hold a batch", "a query must be an object, not a number", ""} {
			got := m.Queries[i].Err
			if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Message, want) {
				t.Errorf("query %d: got %v, want %q", i, got, want)
			}
		}
		if m.Queries[0].Query.ID != "a" {
			t.Error("the id is lost")
		}
	})
}

// Each limit lets through what is at it, and stops what is one beyond.
func TestLimits(t *testing.T) {
	l := Limits{Body: 4000, Queries: 5, Items: 7, Depth: 8, String: 40, SumK: 100}
	repeat := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	whole := func(t *testing.T, m *Message, err error) error { return err }
	first := func(t *testing.T, m *Message, err error) error {
		if err != nil {
			t.Fatal("the whole message failed:", err)
		}
		if e := m.Queries[0].Err; e != nil {
			return e
		}
		return nil
	}
	tests := []struct {
		name  string
		body  func(n int) string
		limit int
		fails func(t *testing.T, m *Message, err error) error
	}{
		{"queries", func(n int) string { return `{"queries":[` + repeat(n, `{"text":"x"}`) + `]}` }, 5, whole},
		{"sum of k", func(n int) string { return fmt.Sprintf(`{"queries":[{"k":40,"text":"x"},{"k":%d,"text":"x"}]}`, n-40) }, 100, whole},
		{"sum of k, one query", func(n int) string { return fmt.Sprintf(`{"k":%d,"text":"x"}`, n) }, 100, whole},
		{"items", func(n int) string { return `{"items":[` + repeat(n, `{"attr":"a","value":1}`) + `]}` }, 7, first},
		{"values", func(n int) string { return `{"items":[{"attr":"a","in":[` + repeat(n-1, `1`) + `]}]}` }, 7, first},
		{"set", func(n int) string { return `{"set":[` + repeat(n, `"x"`) + `]}` }, 7, first},
		{"vector", func(n int) string { return `{"vector":[` + repeat(n, `0.5`) + `]}` }, 7, first},
		{"row", func(n int) string {
			var s []string
			for i := range n {
				s = append(s, fmt.Sprintf(`"a%d":1`, i))
			}
			return `{"row":{` + strings.Join(s, ",") + `}}`
		}, 7, first},
		{"text", func(n int) string { return `{"text":"` + strings.Repeat("x", n) + `"}` }, 40, first},
		{"escaped text", func(n int) string { return `{"text":"` + strings.Repeat(`\u0041`, n) + `"}` }, 40, first},
		{"id", func(n int) string { return `{"text":"x","id":"` + strings.Repeat("x", n) + `"}` }, 40, first},
		{"attr", func(n int) string { return `{"row":{"` + strings.Repeat("x", n) + `":1}}` }, 40, first},
		{"value", func(n int) string { return `{"row":{"a":"` + strings.Repeat("x", n) + `"}}` }, 40, first},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			decodeBoth(t, tt.body(tt.limit), l, func(t *testing.T, m *Message, err error) {
				if err := tt.fails(t, m, err); err != nil {
					t.Error("at the limit:", err)
				}
			})
			decodeBoth(t, tt.body(tt.limit+1), l, func(t *testing.T, m *Message, err error) {
				if err := tt.fails(t, m, err); !errors.Is(err, TooLarge) {
					t.Error("one beyond the limit:", err)
				}
			})
		})
	}
	t.Run("depth", func(t *testing.T) {
		nested := func(n int) string { // as an unknown field, the only place where anything may nest
			return `{"x":` + strings.Repeat(`[`, n-1) + strings.Repeat(`]`, n-1) + `,"id":"q1"}`
		}
		decodeBoth(t, nested(8), l, func(t *testing.T, m *Message, err error) {
			if err := first(t, m, err); !errors.Is(err, BadRequest) || m.Queries[0].Query.ID != "q1" {
				t.Error("at the limit:", err)
			}
		})
		decodeBoth(t, nested(9), l, func(t *testing.T, m *Message, err error) {
			if !errors.Is(err, TooLarge) {
				t.Error("one beyond the limit:", err)
			}
		})
	})
	t.Run("body", func(t *testing.T) {
		for _, ct := range []ContentType{JSON, MessagePack} {
			l := Limits{}
			q := Query{Text: "x"}
			body := AppendQuery(nil, ct, &q)
			l.Body = len(body)
			if _, err := DecodeMessage(ct, body, l); err != nil {
				t.Error("at the limit:", err)
			}
			l.Body--
			if _, err := DecodeMessage(ct, body, l); !errors.Is(err, TooLarge) {
				t.Error("one beyond the limit:", err)
			}
		}
	})
	t.Run("binary vector", func(t *testing.T) {
		for n, want := range map[int]error{7: nil, 8: TooLarge} {
			q := Query{Vector: make([]float32, n)}
			m, err := DecodeMessage(MessagePack, AppendQuery(nil, MessagePack, &q), l)
			if err := first(t, m, err); !errors.Is(err, want) {
				t.Errorf("%d elements: %v", n, err)
			}
		}
	})
}

// The default limits are those of the protocol, and a full message at them is accepted.
func TestDefaultLimits(t *testing.T) {
	var l Limits
	l.EnsureDefaults()
	if l != (Limits{Body: 8 << 20, Queries: 65_536, Items: 65_536, Depth: 16, String: 65_536, SumK: 1_048_576}) {
		t.Errorf("got %+v", l)
	}
	queries := make([]Query, 65_536)
	for i := range queries {
		queries[i] = Query{Text: "x", K: 16} // 65,536 x 16 hits are the most there may be
	}
	for _, ct := range []ContentType{JSON, MessagePack} {
		if m, err := DecodeMessage(ct, AppendQueries(nil, ct, queries), l); err != nil || len(m.Queries) != len(queries) {
			t.Error(err)
		}
		queries[7].K++
		if _, err := DecodeMessage(ct, AppendQueries(nil, ct, queries), l); !errors.Is(err, TooLarge) {
			t.Error("one hit more:", err)
		}
		queries[7].K--
		if _, err := DecodeMessage(ct, AppendQueries(nil, ct, append(queries, Query{Text: "x", K: 1})), l); !errors.Is(err, TooLarge) {
			t.Error("one query more:", err)
		}
	}
	for maxPayload, body := range map[int64]int{0: 8 << 20, 1 << 20: 1<<20 - 64<<10, 8<<20 + 64<<10: 8 << 20, 64 << 20: 8 << 20, 1000: 500} {
		if got := LimitsFor(maxPayload).Body; got != body {
			t.Errorf("max_payload %d: body %d, want %d", maxPayload, got, body)
		}
	}
}

// A length prefix claims; only bytes that are there count.
func TestClaimsAllocateNothing(t *testing.T) {
	claim := func(head string, n uint32) []byte {
		return binary.BigEndian.AppendUint32([]byte(head), n)
	}
	bodies := map[string][]byte{
		"map":         claim("\xdf", math.MaxUint32),
		"array":       claim("\x81\xa7queries\xdd", math.MaxUint32),
		"items":       claim("\x81\xa5items\xdd", math.MaxUint32),
		"vector":      claim("\x81\xa6vector\xdd", 1<<30),
		"binary":      claim("\x81\xa6vector\xc6", 1<<30),
		"string":      claim("\x81\xa4text\xdb", 1<<30),
		"extension":   claim("\x81\xa4text\xc9", 1<<30),
		"nested":      append([]byte("\x81\xa1x"), bytes.Repeat([]byte{0x91}, 1<<20)...),
		"nested JSON": append([]byte(`{"x":`), bytes.Repeat([]byte{'['}, 1<<20)...),
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			ct := MessagePack
			if strings.HasSuffix(name, "JSON") {
				ct = JSON
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := DecodeMessage(ct, body, Limits{})
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("was accepted")
			}
			if got, most := after.TotalAlloc-before.TotalAlloc, uint64(2*len(body)+64<<10); got > most {
				t.Errorf("%d bytes took %d bytes of memory", len(body), got)
			}
		})
	}
}

func TestErrorsAreTyped(t *testing.T) {
	_, err := DecodeMessage(JSON, []byte("{"), Limits{})
	var typed *Error
	if !errors.As(err, &typed) || typed.Code != BadRequest || !errors.Is(err, BadRequest) || errors.Is(err, TooLarge) {
		t.Errorf("got %#v", err)
	}
}

// Every k has candidates that are allowed, asked for or not.
func TestCandidatesOfEveryK(t *testing.T) {
	for _, tt := range []struct{ k, want int }{{0, 80}, {1, 32}, {4, 32}, {5, 40}, {8_192, MaxCandidates}, {8_193, MaxCandidates}, {MaxK, MaxCandidates}} {
		q := Query{Text: "x", K: tt.k}
		if err := q.Validate(Limits{}); err != nil {
			t.Errorf("k %d: %v", tt.k, err)
		}
		if q.EnsureDefaults(); q.Candidates != tt.want {
			t.Errorf("k %d has %d candidates, want %d", tt.k, q.Candidates, tt.want)
		}
		again := Query{Text: "x", K: q.K, Candidates: MaxCandidates + 1}
		if err := again.Validate(Limits{}); err == nil || !strings.Contains(err.Error(), "not 65537") {
			t.Errorf("k %d with too many candidates: %v", tt.k, err)
		}
	}
}

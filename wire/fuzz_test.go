package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/wire/value"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
)

var fuzzSeeds = []string{
	`{"id":"q1","k":10,"row":{"age":{"min":30,"max":40},"sex":"Female","state":{"in":["WA","OR"]}}}`,
	`{"id":"q2","k":5,"text":"generic inverted indx framework"}`,
	`{"id":"q3","k":100,"vector":[0.1,0.2]}`,
	`{"set":["a",1,true],"candidates":99,"certify":true,"min_count":3,"with_payload":false,"timeout_ms":9}`,
	`{"queries":[{"items":[{"attr":"age","min":30,"max":39,"unit":"bucket"},{"attr":"sex","value":"Male","weight":2}]},{"k":0},7]}`,
	`{"id":"q1","index":"adult","version":"9f3c","hits":[{"id":17,"key":"17","count":12,"payload":{"a":[1,2.5,"x"]}}],` +
		`"mc_k":11,"exact":true,"took_us":{"queue":310,"total":1700}}`,
	`{"first":3,"results":[{"id":"q9","error":{"code":"bad_request","message":"x"}},{"hits":[]}]}`,
	`{"x":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]],"id":"q"}`,
	`{"k":1e400,"text":"\ud800"}`,
	"{ \"queries\" :\n[ {\"id\":\"a\\\"]}\",\"k\":3,\"text\":\"\\\\\"} ,\t{\"row\":{ }}, {\"items\":[ {\"attr\":\"x\",\"in\":[1, 2]}, {\"attr\":\"y\",\"value\":3}]} ]\r}\n",
	`{"queries":[{"row":{"a":[1}]},{"k":7}]}`,
	`{"queries":[{"id":"1","id":"2"},{"text":"x","k":900},{"text":"y","k":900}]} x`,
	`{"id":18446744073709551616,"text":"x"}`,
	`{"row":{"v":[0.1,2,-3e7,1e400,18446744073709551616],"p":{"near":{"lat":52.5,"lon":[null,true]},"within":20,"weight":3},"n":null}}`,
	`{"items":[{"attr":"a","value":[[[1]]],"weight":2},{"near":1,"attr":"b"},{"attr":"c","in":[[1]],"unit":"km","weight":1,"weight":2}]}`,
	`{"point":[52.5,-13.25],"radius":1e5,"k":0,"total":true,"column":"at","method":"scan"}`,
	`{"queries":[{"vector":[1,2],"radius":0,"method":"permutation","fraction":0.5},{"text":"x","recall":0.9,"k":3},{"point":{"lat":91,"lon":1}},{"k":0}]}`,
	`{"hits":[{"id":1,"key":"1","count":0,"distance":2.5}],"mc_k":0,"exact":true,"in_range":7,"method":"cells","fraction":0.25,"took_us":{}}`,
	`{"queries":[{"form":"columns","text":"x"},{"keys":true,"text":"x","form":"columns"},{"keys":false,"text":"x"},{"form":"rows","text":"x"},{"form":"columns","keys":false,"form":"columns"}]}`,
	`{"hits":{"ids":"AgAAAAAAAAA=","counts":"AwI=","keys":["2","x"],"matched":[["a"],null],"payloads":[null,{"a":[1]}],"scores":"AAAAAAAAwH8="},"mc_k":2,"first_hit":3,"all_hits":5,"took_us":{}}`,
	`{"first":1,"results":[{"hits":{}},{"hits":{"ids":"AgAAAA==","similarities":"AAAAPw==","distances":"AAAAAAAA8D8=","columns":[{"v":{"similarity":1,"bound":0.5}}]}}]}`,
	`{"hits":{"ids":"AgAA"}}`, `{"hits":{"ids":"AgAAAA==","counts":"AgAA"}}`, `{"hits":{"ids":"AgAAAA==","keys":[]}}`, `{"hits":[],"first_hit":1}`,
	`{"queries":[{"id":7,"text":"x"},{"k":0,"id":-9007199254740993},{"id":1.5},{"id":1e3},{"id":null}]}`,
}

// tableSeeds are tables, some of which are wrong.
var tableSeeds = []string{
	`{"table":{"rows":2,"query":{"k":5},"id":["a","b"],"row":[{"attrs":["age","size"],"value":{"u8":"HiAjJQ=="}}]}}`,
	`{"table":{"id":{"u16":"AQACAAMA"},"k":[1,null,0],"rows":3,"row":[{"attrs":["a"],"min":[1,2,null],"max":{"f32":"AADAfwAAgD8AAABA"}},{"attrs":["b"],"value":["x",true,7],"weight":3}]}}`,
	`{"table":{"rows":2,"vector":{"f32":"AACAPwAAAEAAAEBAAACAQA=="},"radius":{"f64":"AAAAAAAA8D8AAAAAAAAAQA=="},"filter":[{"attrs":["p"],"max":{"i32":"/////wIAAAA="}}]}}`,
	`{"table":{"rows":2,"text":["x",""],"query":{"exclude":{"a":{"in":[1,2]}},"filter":[{"a":1},{"a":2}]}}}`,
	`{"table":{"rows":1,"point":[52.5,13.25],"query":{"k":3,"form":"columns"},"items":[{"attrs":["a","a"],"value":[1,2],"unit":"bucket"}]}}`,
	`{"table":{"rows":20,"query":{"row":{"a":[1,2],"b":1}}}}`,
	`{"table":{"rows":2,"row":[{"attrs":["a"],"value":{"u8":"AQ=="}}]}}`, `{"table":{"rows":2,"row":[{"attrs":["a"]}]}}`, `{"table":{"query":{}}}`,
	`{"table":{"rows":2,"id":["a","b"],"query":{"id":"c"}}}`, `{"table":{"rows":2},"k":1}`, `{"k":1,"table":{"rows":2}}`, `{"queries":[{"table":{"rows":1}}]}`,
	` { "table" : { "rows" : 1 , "text" : [ "x" ] } } `, `{"t\u0061ble":{"rows":3,"text":["x","y","z"]}}`,
}

func addSeeds(f *testing.F) {
	for _, s := range slices.Concat(fuzzSeeds, tableSeeds) {
		f.Add(false, []byte(s))
		e := encoder{msgpack: true}
		e.transcode([]byte(s))
		f.Add(true, e.dst)
	}
	r := newRandom(f)
	for form := range HitsKeyedColumns + 1 {
		result := r.result()
		result.HitsForm = form
		f.Add(true, AppendResult(nil, MessagePack, &result))
	}
	for range 10 {
		queries := r.alike(1 + r.IntN(5))
		for _, ct := range []ContentType{JSON, MessagePack} {
			if body, ok := AppendTable(nil, ct, queries); ok && len(body) < 1<<12 {
				f.Add(ct == MessagePack, body)
			}
		}
	}
	f.Add(true, []byte("\xdf\xff\xff\xff\xff"))
	f.Add(true, []byte("\x81\xa6vector\xc4\x04abcd"))
	f.Add(true, AppendQueries(nil, MessagePack, []Query{
		{Row: []Condition{{Attr: "a", Value: Number(1)}, {Attr: "b", Value: String("x")}}},
		{K: 400, Items: []Condition{{Attr: "a", Min: Number(1), Max: Number(2)}, {Attr: "a", In: []Value{Number(3), Bool(true)}}}},
		{Row: []Condition{{Attr: "a", Value: Number(2)}, {Attr: "b", Value: Number(-2)}}},
		{K: 700, Set: []Value{Number(300), String("y")}},
	}))
}

func codecOf(mp bool) ContentType {
	if mp {
		return MessagePack
	}
	return JSON
}

// Whatever is accepted is valid, and survives being sent on in either codec.
func FuzzDecodeMessage(f *testing.F) {
	addSeeds(f)
	limits := Limits{Body: 1 << 16, Queries: 20, Items: 50, String: 100, SumK: 1000, Depth: 8}
	f.Fuzz(func(t *testing.T, mp bool, body []byte) {
		m, err := DecodeMessage(codecOf(mp), body, limits)
		if len(body) > 0 && len(body) <= limits.Body {
			filled := limits
			filled.EnsureDefaults()
			plain := queryDecoder{atHand: atHand{r: newReader(codecOf(mp), body, filled.Depth), limits: &filled}} // without the short cut
			if got, fault := plain.whole(); !reflect.DeepEqual(got, m) || !reflect.DeepEqual(fault, err) {
				t.Fatalf("token by token it is %+v %v, not %+v %v", got, fault, m, err)
			}
		}
		var decoder Decoder
		for range 3 { // the second and third time in memory that is used again
			got, fault := decodedWhole(&decoder, codecOf(mp), body, limits)
			if !reflect.DeepEqual(got, m) || !reflect.DeepEqual(fault, err) {
				t.Fatalf("a decoder has %+v %v, not %+v %v", got, fault, m, err)
			}
		}
		checkBatch(t, &decoder, codecOf(mp), body, limits, m, err)
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) || typed.Code == "" || typed.Message == "" {
				t.Fatalf("untyped error %#v", err)
			}
			return
		}
		if len(m.Queries) == 0 || !m.Batch && len(m.Queries) != 1 {
			t.Fatalf("got %+v", m)
		}
		sumK := 0
		for _, q := range m.Queries {
			if q.Err != nil {
				if q.Err.Code != BadRequest && q.Err.Code != TooLarge && q.Err.Code != Unsupported {
					t.Fatalf("error %v", q.Err)
				}
				if want := (Query{ID: q.Query.ID}); !reflect.DeepEqual(q.Query, want) {
					t.Fatalf("a failed query keeps %+v", q.Query)
				}
				continue
			}
			sumK += q.Query.K
			if err := q.Query.Validate(limits); err != nil {
				t.Fatalf("accepted, but %v: %+v", err, q.Query)
			}
			for _, ct := range []ContentType{JSON, MessagePack} {
				again, err := DecodeMessage(ct, AppendQuery(nil, ct, &q.Query), Limits{})
				if err != nil || again.Queries[0].Err != nil || !reflect.DeepEqual(unrefused(again.Queries[0].Query), unrefused(q.Query)) {
					if ct == JSON && hasBinary(&q.Query) {
						continue // which JSON has no word for
					}
					t.Fatalf("through %v: %v %+v, was %+v", ct, err, again, q.Query)
				}
			}
		}
		if m.Batch {
			queries := make([]Query, len(m.Queries))
			for i := range queries {
				queries[i] = m.Queries[i].Query
			}
			checkTable(t, codecOf(mp), queries)
		}
		if sumK > limits.SumK || len(m.Queries) > limits.Queries {
			t.Fatalf("over the limits: %d hits, %d queries", sumK, len(m.Queries))
		}
	})
}

// decodedWhole is what a decoder makes of a message, and of the queries of a table in one group.
func decodedWhole(d *Decoder, ct ContentType, body []byte, limits Limits) (*Message, error) {
	m, err := d.Decode(ct, body, limits)
	if err != nil || m.Table == nil {
		return m, err
	}
	b := m.Table
	queries, sumK, _ := d.Group(b, 0, b.Len())
	if err := b.CheckSumK(sumK); err != nil {
		return nil, err
	}
	return &Message{Batch: m.Batch, Queries: queries}, nil
}

// checkBatch checks that a batch whose queries are decoded in parts, by two decoders in turns and the last part first, is
// what it is when decoded as a whole, or is found to be malformed, which is then true as a whole. It says whether it could be.
func checkBatch(t testing.TB, d *Decoder, ct ContentType, body []byte, limits Limits, m *Message, whole error) (inParts bool) {
	t.Helper()
	b, ok := d.Scan(ct, body, limits)
	if !ok {
		return false
	}
	got := make([]QueryOrError, b.Len())
	sumK, other := 0, new(Decoder)
	for part, end := range []int{b.Len(), b.Len() - 1, b.Len() / 2} {
		first := []int{b.Len() - 1, b.Len() / 2, 0}[part]
		take := func(i int, q *QueryOrError) {
			if n := len(q.Query.Row) + len(q.Query.Items); n > b.Conditions(i+1)-b.Conditions(i) {
				t.Fatalf("query %d has %d conditions, not at most %d", i, n, b.Conditions(i+1)-b.Conditions(i))
			}
			got[i] = *q
			for l := range conditionLists {
				*got[i].Query.conditions(l) = keep(*q.Query.conditions(l))
			}
			got[i].Query.Set = slices.Clone(q.Query.Set)
		}
		var k int
		var ok bool
		if part < 2 {
			k, ok = []*Decoder{other, d}[part].Queries(b, first, end, take)
		} else {
			var group []QueryOrError
			group, k, ok = other.Group(b, first, end)
			for i := range group {
				take(first+i, &group[i])
			}
		}
		if !ok {
			if ct == MessagePack || whole == nil {
				t.Fatalf("malformed in parts, but as a whole it is %+v %v", m, whole)
			}
			return false
		}
		sumK += k
	}
	if err := b.CheckSumK(sumK); !reflect.DeepEqual(err, whole) {
		t.Fatalf("in parts it is refused with %v, not %v", err, whole)
	}
	if whole == nil && (!m.Batch || !reflect.DeepEqual(got, m.Queries)) {
		t.Fatalf("in parts it is %+v, not %+v", got, m)
	}
	return true
}

// unrefused is a query without what its conditions of other shapes are refused with, which depends on their spelling.
func unrefused(q Query) Query {
	for _, conds := range []*[]Condition{&q.Row, &q.Items, &q.Filter, &q.Exclude} {
		*conds = slices.Clone(*conds)
		for i := range *conds {
			if c := &(*conds)[i]; c.Other != nil {
				c.Other = &Other{Value: c.Other.Value}
			}
		}
	}
	return q
}

func hasBinary(q *Query) bool {
	for _, c := range slices.Concat(q.Row, q.Items, q.Filter, q.Exclude) {
		if c.Other != nil && bytesWithin(c.Other.Value) {
			return true
		}
	}
	return false
}

func bytesWithin(t value.Tree) bool {
	found := t.Kind() == value.Bytes
	for e := range t.Elements() {
		found = found || bytesWithin(e)
	}
	for _, e := range t.Members() {
		found = found || bytesWithin(e)
	}
	return found
}

func keep(conds []Condition) []Condition {
	conds = slices.Clone(conds)
	for i := range conds {
		conds[i].In = slices.Clone(conds[i].In)
	}
	return conds
}

// A decoded answer encodes and decodes to itself.
func FuzzDecodeAnswer(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, mp bool, body []byte) {
		a, err := DecodeAnswer(codecOf(mp), body)
		if err != nil {
			return
		}
		for i := range a.Results {
			for _, h := range a.Results[i].Hits {
				if h.Payload != nil && !json.Valid(h.Payload) {
					t.Fatalf("payload %q is not JSON", h.Payload)
				}
			}
		}
		first, err := DecodeAnswer(JSON, AppendAnswer(nil, JSON, a))
		if err != nil {
			t.Fatalf("%v: %+v", err, a)
		}
		second, err := DecodeAnswer(MessagePack, AppendAnswer(nil, MessagePack, first))
		if err != nil {
			t.Fatalf("%v: %+v", err, first)
		}
		dropPayloads(first)
		dropPayloads(second)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("JSON    %+v\nMsgPack %+v", first, second)
		}
	})
}

// dropPayloads leaves out what the two codecs spell differently.
func dropPayloads(a *Answer) {
	for i := range a.Results {
		for j := range a.Results[i].Hits {
			a.Results[i].Hits[j].Payload = nil
		}
	}
}

// The scan of MessagePack agrees with the library on where a value ends, and never panics. (What the scan refuses is
// not shown to the library: it would take the memory that the input claims.)
func FuzzScanMessagePack(f *testing.F) {
	for _, s := range fuzzSeeds {
		e := encoder{msgpack: true}
		e.transcode([]byte(s))
		f.Add(e.dst)
	}
	f.Add([]byte("\x93\xd4\x01\x02\xc7\x02\x01ab\xc4\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &msgpackReader{text: string(body), maxDepth: 32}
		skip(r)
		if r.failed() != nil {
			return
		}
		buf := bytes.NewReader(body)
		if err := vmihailenco.NewDecoder(buf).Skip(); err != nil && err != io.EOF {
			t.Skip("the library knows no such extension: ", err)
		}
		if end := len(body) - buf.Len(); end != r.off {
			t.Fatalf("the value ends at %d, the library says %d", r.off, end)
		}
		j := &msgpackReader{text: string(body), maxDepth: 32}
		if text, err := j.json(nil); err == nil && !json.Valid(text) {
			t.Fatalf("transcoded to %q, which is not JSON", text)
		}
	})
}

func FuzzReplySubject(f *testing.F) {
	f.Add("_INBOX.abc", "_INBOX.>")
	f.Add("a..b", "*.*")
	f.Fuzz(func(t *testing.T, subject, pattern string) {
		if ValidateReplySubject(subject, []string{pattern}) == nil {
			if len(subject) > 255 || bytes.ContainsAny([]byte(subject), " *>\r\n\t\x00") || !MatchSubject(pattern, subject) {
				t.Fatalf("%q was accepted for %q", subject, pattern)
			}
		}
	})
}

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	vmihailenco "github.com/vmihailenco/msgpack/v5"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/value"
)

// A condition of another shape is no fault of the query. It is there as it was written, but for attr and weight, together with
// what an index answers whose columns know no such shape.
func TestOtherShapes(t *testing.T) {
	tests := []struct {
		query   string // without braces
		tree    string // of its last condition, as JSON
		weight  uint32
		refusal string // whole, or its beginning where it ends in "..."
	}{
		{`"row":{"a":null}`, `null`, 0, "row.a: must be a number, a string or a bool, not null"},
		{`"row":{"a":["x"]}`, `["x"]`, 0, `row.a: must be a value or a condition, not an array: write {"in":[...]} for any of several values`},
		{`"row":{"a":{"attr":"b","value":1}}`, `{"attr":"b","value":1}`, 0, `row.a: unknown field "attr"`},
		{`"row":{"a":{"val":1}}`, `{"val":1}`, 0, `row.a: unknown field "val"...`},
		{`"row":{"a":{"min":{"x":1}}}`, `{"min":{"x":1}}`, 0, "row.a.min: must be a number, a string or a bool, not an object"},
		{`"row":{"a":{"in":"x"}}`, `{"in":"x"}`, 0, "row.a.in: must be an array of values, not a string"},
		{`"row":{"a":{"in":["x",[1]]}}`, `{"in":["x",[1]]}`, 0, "row.a.in[1]: must be a number, a string or a bool, not an array"},
		{`"row":{"a":{"value":1,"unit":"years"}}`, `{"value":1,"unit":"years"}`, 0, `row.a.unit: must be "bucket"; leave it out for the attribute's own unit`},
		{`"row":{"a":{"value":1,"unit":7}}`, `{"value":1,"unit":7}`, 0, `row.a.unit: must be a string, not a number`},
		{`"row":{"b":1,"a":{"value":[1,[],{}]}}`, `[1,[],{}]`, 0, "row.a.value: must be a number, a string or a bool, not an array"},
		{`"row":{"a":{"weight":7,"value":[1,2.5]}}`, `[1,2.5]`, 7, "row.a.value: must be..."},
		{`"row":{"a":{"near":[52.5,13.4],"weight":7,"within":20}}`, `{"near":[52.5,13.4],"within":20}`, 7, `row.a: unknown field "near"...`},
		{`"row":{"a":{"value":{"min":1,"max":2}}}`, `{"min":1,"max":2}`, 0, "row.a.value: must be..."},
		{`"items":[{"attr":"b","value":1},{"near":1,"weight":3,"attr":"a"}]`, `{"near":1}`, 3, `items[1]: unknown field "near"...`},
		{`"items":[{"attr":"a","value":{"x":[{"y":null}]}}]`, `{"x":[{"y":null}]}`, 0, `items[0]: unknown field "x"...`},
		{`"row":{"a":{"gte":30}}`, `{"gte":30}`, 0, `row.a: unknown field "gte" (did you mean min?)`},
		{`"row":{"a":{"value":{"$lte":30}}}`, `{"$lte":30}`, 0, `row.a: unknown field "$lte" (did you mean max?)`},
		{`"row":{"a":{"eq":"x","weight":2}}`, `{"eq":"x"}`, 2, `row.a: unknown field "eq" (did you mean value?)`},
		{`"items":[{"attr":"a","any_of":["x"]}]`, `{"any_of":["x"]}`, 0, `items[0]: unknown field "any_of" (did you mean in?)`},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			for _, form := range []string{`{"id":"q1",%s}`, `{"queries":[{"text":"a"},{%s,"id":"q1"},{"text":"b"}]}`} {
				var trees []value.Tree
				decodeBoth(t, fmt.Sprintf(form, tt.query), Limits{}, func(t *testing.T, m *Message, err error) {
					if err != nil {
						t.Fatal("the whole message failed:", err)
					}
					got := m.Queries[len(m.Queries)/2]
					if got.Err != nil {
						t.Fatal(got.Err)
					}
					c := append(got.Query.Row, got.Query.Items...)[len(got.Query.Row)+len(got.Query.Items)-1]
					if c.Attr != "a" || c.Weight != tt.weight || c.Other == nil {
						t.Fatalf("got %+v", c)
					}
					if text := string(c.Other.Value.AppendJSON(nil)); text != tt.tree {
						t.Errorf("got %s, want %s", text, tt.tree)
					}
					begin, _ := strings.CutSuffix(tt.refusal, "...")
					if r := c.Other.Refusal; r == nil || r.Code != BadRequest || !strings.HasPrefix(r.Message, begin) || begin == tt.refusal && r.Message != begin {
						t.Errorf("refused with %v, want %s", r, tt.refusal)
					}
					trees = append(trees, c.Other.Value)
				})
				if len(trees) == 2 && trees[0] != trees[1] {
					t.Errorf("JSON and MessagePack give %v and %v", trees[0], trees[1])
				}
			}
		})
	}
}

// What is wrong whatever the shape is still refused.
func TestRefusedOtherShapes(t *testing.T) {
	l := Limits{Items: 12, String: 6, Depth: 9}
	tests := []struct {
		query   string
		code    Code
		message string
	}{
		{`"row":{"a":{"near":1,"weight":0}}`, BadRequest, "row.a.weight: must be an integer between 1 and 65535"},
		{`"row":{"a":{"near":1,"weight":[2]}}`, BadRequest, "row.a.weight: must be a number"},
		{`"row":{"a":{"near":1,"weight":2,"weight":2}}`, BadRequest, `row.a: field "weight" is there twice`},
		{`"row":{"a":{"near":1,"near":1}}`, BadRequest, `row.a: field "near" is there twice`},
		{`"row":{"a":[{"x":{"y":1,"z":2,"y":3}}]}`, BadRequest, `row.a: field "y" is there twice`},
		{`"row":{"":[1]}`, BadRequest, "attr is missing"},
		{`"items":[{"near":1}]`, BadRequest, "items[0]: attr is missing"},
		{`"items":[{"near":1,"attr":1}]`, BadRequest, "items[0].attr: must be a string, not a number"},
		{`"row":{"a":[1,2,3,4,5,6,7,8,9,10,11]}`, TooLarge, "more than 12 items"},
		{`"row":{"a":{"near":[1,2,3,4,5,6,7,8,9,10]}}`, TooLarge, "more than 12 items"},
		{`"row":{"a":["seven77"]}`, TooLarge, "row.a: a string of 7 bytes, the limit is 6"},
		{`"row":{"a":{"seven77":1}}`, TooLarge, "a string of 7 bytes, the limit is 6"},
		{`"row":{"a":{"near":[{"seven77":1}]}}`, TooLarge, "a string of 7 bytes, the limit is 6"},
		{`"row":{"a":[123456789012345678901234567890]}`, TooLarge, "row.a: a string of 30 bytes, the limit is 6"},
		{`"row":{"a":[[[[[1]]]]]}`, TooLarge, "deeper than 9 levels"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			decodeBoth(t, `{"id":"q1",`+tt.query+`}`, l, func(t *testing.T, m *Message, err error) {
				if err != nil {
					t.Fatal("the whole message failed:", err)
				}
				if got := m.Queries[0].Err; got == nil || got.Code != tt.code || !strings.Contains(got.Message, tt.message) {
					if strings.Contains(tt.query, "1234567890") && strings.HasSuffix(t.Name(), "msgpack") {
						return // which was rounded on the way
					}
					t.Errorf("got %v, want %s", got, tt.message)
				}
			})
		})
	}
	for _, query := range []string{`"row":{"a":[1,2,3,4,5,6,7,8,9,10]}`, `"row":{"a":{"near":[1,2,3,4,5,6,7,8,9]}}`, `"row":{"a":["sixsix"]}`, `"row":{"a":[[[[1]]]]}`} {
		decodeBoth(t, `{`+query+`}`, l, func(t *testing.T, m *Message, err error) {
			if err != nil || m.Queries[0].Err != nil {
				t.Errorf("%s is at the limit, but %v %v", query, err, m.Queries[0].Err)
			}
		})
	}
	binary := append([]byte("\x81\xa3row\x81\xa1a\xc4\x31"), make([]byte, 49)...)
	for _, tt := range []struct {
		name string
		body []byte
		want error
	}{
		{"binary that is too long", binary, TooLarge},
		{"binary at the limit", append([]byte("\x81\xa3row\x81\xa1a\xc4\x30"), make([]byte, 48)...), nil},
		{"NaN", []byte("\x81\xa3row\x81\xa1a\x91\xca\x7f\xc0\x00\x00"), BadRequest},
		{"extension", []byte("\x81\xa3row\x81\xa1a\x91\xd4\x05\x01"), BadRequest},
		{"decimal", []byte("\x81\xa3row\x81\xa1a\x91\xc7\x06\x011e+400"[:18]), nil},
		{"decimal that is none", []byte("\x81\xa3row\x81\xa1a\x91\xd5\x01ab"), BadRequest},
		{"bad UTF-8", []byte("\x81\xa3row\x81\xa1a\x91\xa1\xff"), BadRequest},
		{"a name that is none", []byte("\x81\xa3row\x81\xa1a\x91\x81\x01\x02"), BadRequest},
	} {
		m, err := DecodeMessage(MessagePack, tt.body, l)
		if err != nil {
			t.Fatalf("%s: the whole message failed: %v", tt.name, err)
		}
		if got := m.Queries[0].Err; (got == nil) != (tt.want == nil) || got != nil && !errors.Is(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	for _, c := range []Condition{
		{Attr: "a", Other: &Other{}}, {Attr: "a", Other: &Other{Value: built(t, func(b *value.Builder) { b.Int(1) })}},
		{Attr: "a", Value: Number(1), Other: &Other{Value: built(t, func(b *value.Builder) { b.Null() })}},
		{Attr: "a", Bucket: true, Other: &Other{Value: built(t, func(b *value.Builder) { b.Null() })}},
	} {
		if err := (&Query{Items: []Condition{c}}).Validate(Limits{}); !errors.Is(err, BadRequest) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

func built(t *testing.T, add func(*value.Builder)) value.Tree {
	t.Helper()
	var b value.Builder
	add(&b)
	tree, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// The same value is the same tree, whichever library has written it in whichever codec, and has what was written.
func TestTreesOfBothCodecs(t *testing.T) {
	seed := seeded.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	var make func(depth int) any
	make = func(depth int) any {
		switch r.IntN(7 + min(depth, 1)*3) {
		case 0:
			return nil
		case 1:
			return r.IntN(2) == 0
		case 2:
			return r.Int64() >> r.IntN(64)
		case 3:
			return r.Uint64() >> r.IntN(64)
		case 4:
			return r.NormFloat64()
		case 5:
			return float32(r.NormFloat64())
		case 6:
			return strings.Repeat("ä\"", r.IntN(30))
		case 7, 8:
			list := []any{}
			for range r.IntN(30) {
				list = append(list, make(depth-1))
			}
			return list
		}
		members := map[string]any{}
		for i := range r.IntN(30) {
			members[fmt.Sprint("m", i)] = make(depth - 1)
		}
		return members
	}
	for range 2000 {
		v := []any{make(4)}
		asJSON, err := json.Marshal(widened(v))
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		e := vmihailenco.NewEncoder(&packed)
		e.SetSortMapKeys(true)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		one := decodedTree(t, JSON, []byte(`{"row":{"a":`+string(asJSON)+`}}`))
		two := decodedTree(t, MessagePack, append([]byte("\x81\xa3row\x81\xa1a"), packed.Bytes()...))
		if one != two {
			t.Fatalf("%s\nis %s\nand %s", asJSON, one.AppendJSON(nil), two.AppendJSON(nil))
		}
		var got any
		if err := json.Unmarshal(one.AppendJSON(nil), &got); err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal(asJSON, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// widened turns float32 into float64 of the same value, which encoding/json would else write with fewer digits.
func widened(v any) any {
	switch v := v.(type) {
	case float32:
		return float64(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = widened(v[i])
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(v))
		for name := range v {
			members[name] = widened(v[name])
		}
		return members
	}
	return v
}

func decodedTree(t *testing.T, ct ContentType, body []byte) value.Tree {
	t.Helper()
	return decodedWithin(t, ct, body, Limits{})
}

func decodedWithin(t *testing.T, ct ContentType, body []byte, l Limits) value.Tree {
	t.Helper()
	m, err := DecodeMessage(ct, body, l)
	if err != nil || m.Queries[0].Err != nil || m.Queries[0].Query.Row[0].Other == nil {
		t.Fatalf("%.200q: %+v %v", body, m, err)
	}
	return m.Queries[0].Query.Row[0].Other.Value
}

// treeFactor is how many times its length a condition of another shape takes while it is decoded: a copy of the message, the tree, the
// same as it grows, and the names of its maps while they are compared.
const treeFactor = 32

// Of whatever a tree is composed, it takes no more than that, and is no longer than 3 times its text.
func TestTreesTakeAMultiple(t *testing.T) {
	const n = 100_000
	l := Limits{Items: 4 * n, Body: 64 << 20, String: 1 << 20}
	repeat := func(s string) string { return strings.TrimSuffix(strings.Repeat(s+",", n), ",") }
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"%x":0`, i)
	}
	for name, text := range map[string]string{
		"integers": `[` + repeat("0") + `]`, "floats": `[` + repeat("0.1") + `]`, "decimals": `[` + repeat("1e400") + `]`, "empty": `[` + repeat("[]") + `]`,
		"maps": `[` + repeat(`{"":0}`) + `]`, "names": `{` + strings.Join(names, ",") + `}`, "escapes": `["` + strings.Repeat(`\u0041`, n) + `"]`,
		"nested": `[[[[[[` + repeat(`[0]`) + `]]]]]]`,
	} {
		for _, ct := range []ContentType{JSON, MessagePack} {
			body := []byte(`{"row":{"a":` + text + `}}`)
			if ct == MessagePack {
				tree := decodedWithin(t, JSON, body, l)
				body = append([]byte("\x81\xa3row\x81\xa1a"), tree.AppendMessagePack(nil)...)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tree := decodedWithin(t, ct, body, l)
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			t.Logf("%s, %v: %d bytes took %d (%.1f each), the tree has %d", name, ct, len(body), took, float64(took)/float64(len(body)), tree.Size())
			if took > uint64(treeFactor*len(body)+256<<10) || tree.Size() > 3*len(body) {
				t.Errorf("%s, %v: %d bytes took %d, the tree has %d", name, ct, len(body), took, tree.Size())
			}
		}
	}
}

// A condition of any shape that is accepted goes through both codecs unchanged, and takes a small multiple of its length.
func FuzzOtherShape(f *testing.F) {
	for _, s := range []string{`[1,2.5,"x",null,true,{"a":[]}]`, `{"near":[52.5,13.4],"within":20,"weight":3}`, `{"value":[1e400,-0,18446744073709551616]}`,
		`{"a":1,"a":2}`, `[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]`, `{"in":[1,[2]]}`, `"\ud800"`, `null`, ` [ ] `, `{"x":` + strings.Repeat(`{"":0},`, 40)[:279] + `}`} {
		f.Add(false, []byte(s))
		e := encoder{msgpack: true}
		e.transcode([]byte(s))
		f.Add(true, e.dst)
	}
	f.Add(true, []byte("\x93\xc4\x03abc\xc7\x07\x011e+4000\xca\x80\x00\x00\x00"))
	f.Add(true, []byte("\xdd\x00\x00\xff\xff"))
	f.Fuzz(func(t *testing.T, mp bool, text []byte) {
		body := append([]byte(`{"row":{"a":`), append(bytes.Clone(text), "}}"...)...)
		if mp {
			body = append([]byte("\x81\xa3row\x81\xa1a"), text...)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := DecodeMessage(codecOf(mp), body, Limits{})
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(treeFactor*len(body)+256<<10); took > most {
			t.Fatalf("%d bytes took %d", len(body), took)
		}
		if err != nil || m.Queries[0].Err != nil || m.Queries[0].Query.Row == nil || m.Queries[0].Query.Row[0].Other == nil {
			return
		}
		q := m.Queries[0].Query
		tree := q.Row[0].Other.Value
		if tree.Size() > 3*len(text) {
			t.Fatalf("%q becomes a tree of %d bytes", text, tree.Size())
		}
		for _, ct := range []ContentType{JSON, MessagePack} {
			if ct == JSON && bytesWithin(tree) {
				continue // JSON has no word for it
			}
			for _, form := range []Query{{Row: q.Row}, {Items: q.Row}} {
				again, err := DecodeMessage(ct, AppendQuery(nil, ct, &form), Limits{})
				if err != nil || again.Queries[0].Err != nil {
					t.Fatalf("%v %v", err, again)
				}
				if got := append(again.Queries[0].Query.Row, again.Queries[0].Query.Items...)[0]; got.Other == nil || got.Other.Value != tree || got.Weight != q.Row[0].Weight {
					t.Fatalf("through %v %q is %+v", ct, text, got)
				}
			}
		}
	})
}

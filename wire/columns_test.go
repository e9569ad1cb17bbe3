package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inForm is what a result written in a form is read as, where as a list it is read as plain.
func inForm(plain Result, form HitsForm) Result {
	plain.HitsForm = form
	if plain.Err != nil {
		plain.HitsForm = HitsList
	}
	plain.Hits = slices.Clone(plain.Hits)
	for i := range plain.Hits {
		if form == HitsColumns {
			plain.Hits[i].Key = ""
		}
	}
	return plain
}

// Columns say the same as a list, value by value, with errors and all that goes with hits.
func TestColumnsSayTheSame(t *testing.T) {
	r := newRandom(t)
	for range 120 {
		result := r.result()
		if len(result.Hits) > 0 && r.maybe() { // what the service sends: all hits have it, or none
			for i := range result.Hits {
				result.Hits[i].HasDistance, result.Hits[i].Distance = true, float64(r.IntN(9))
				most := []int{255, 256, 65_535, 65_536}[len(result.Hits)%4]
				result.Hits[i].Payload, result.Hits[i].Count = nil, uint32(most-r.IntN(2))
			}
		}
		for _, ct := range []ContentType{JSON, MessagePack} {
			plain, err := decodeResult(ct, AppendResult(nil, ct, &result))
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []HitsForm{HitsColumns, HitsKeyedColumns} {
				columns := result
				columns.HitsForm = form
				body := AppendResult(nil, ct, &columns)
				got, err := decodeResult(ct, body)
				if want := inForm(*plain, form); err != nil || !reflect.DeepEqual(*got, want) {
					t.Fatalf("%v, form %d: %v\ngot  %+v\nwant %+v\nof   %q", ct, form, err, got, want, body)
				}
				a := Answer{Batch: true, Results: []Result{result, columns, result}}
				both, err := DecodeAnswer(ct, AppendAnswer(nil, ct, &a))
				if err != nil || !reflect.DeepEqual(both.Results, []Result{*plain, *got, *plain}) {
					t.Fatalf("%v, form %d beside lists: %v", ct, form, err)
				}
			}
		}
	}
}

// The bytes that docs/protocol.md shows.
func TestColumnsGolden(t *testing.T) {
	r := Result{Index: "people", Version: "a1b2", HitsForm: HitsColumns, Hits: []Hit{{ID: 2, Count: 3}, {ID: 0, Count: 2}}, MCK: 2, Exact: true}
	const took = `"took_us":{"queue":0,"batch":0,"engine":0,"verify":0,"total":0}}`
	want := `{"index":"people","version":"a1b2","hits":{"ids":"AgAAAAAAAAA=","counts":"AwI="},"mc_k":2,"exact":true,` + took
	if got := string(AppendResult(nil, JSON, &r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.HitsForm, r.Hits[1].HasDistance, r.Hits[1].Distance, r.FirstHit, r.AllHits = HitsKeyedColumns, true, 2.5, 7, 9
	want = `{"index":"people","version":"a1b2","first_hit":7,"all_hits":9,"hits":{"ids":"AgAAAAAAAAA=","counts":"AwI=","distances":"AADAfwAAIEA=","keys":["2","0"]},"mc_k":2,"exact":true,` + took
	if got := string(AppendResult(nil, JSON, &r)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.Hits = nil
	if got := string(AppendResult(nil, JSON, &r)); !strings.Contains(got, `"hits":{"ids":"","keys":[]}`) {
		t.Errorf("without hits it is %s", got)
	}
}

func TestFormOfHitsIsChecked(t *testing.T) {
	for _, test := range []struct{ query, want string }{
		{`{"text":"x","form":"rows"}`, `form: "rows" is no form of hits`},
		{`{"text":"x","form":""}`, `form: "" is no form`},
		{`{"text":"x","form":7}`, "form: must be a string"},
		{`{"text":"x","keys":true}`, "keys goes with form"},
		{`{"text":"x","keys":false}`, "keys goes with form"},
		{`{"text":"x","form":"columns","form":"columns"}`, `"form" is there twice`},
		{`{"text":"x","form":"columns","keys":1}`, "keys: must be a bool"},
		{`{"form":"columns","queries":[{"text":"x"}]}`, "queries must be the only field"},
	} {
		m, err := DecodeMessage(JSON, []byte(test.query), Limits{})
		if err == nil {
			err = m.Queries[0].Err.orNil()
		}
		if !errors.Is(err, BadRequest) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.query, err, test.want)
		}
	}
	batch := `{"queries":[{"text":"x","form":"columns"},{"keys":true,"text":"x","form":"columns"},{"text":"x"},{"form":"columns","keys":false,"text":"x"}]}`
	m, err := DecodeMessage(JSON, []byte(batch), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []HitsForm{HitsColumns, HitsKeyedColumns, HitsList, HitsColumns} {
		if q := m.Queries[i]; q.Err != nil || q.Query.HitsForm != want {
			t.Errorf("query %d has form %d and %v, want %d", i, q.Query.HitsForm, q.Err, want)
		}
	}
	if err := (&Query{Text: "x", HitsForm: 9}).Validate(Limits{}); err == nil {
		t.Error("a form that is none is valid")
	}
}

// What is not of one length is refused, and so are more hits than anybody can ask for, before there is memory for them.
func TestColumnsOfOtherLengths(t *testing.T) {
	ids := string(make([]byte, 4*(MaxK+1)))
	body := AppendResult(nil, MessagePack, &Result{HitsForm: HitsColumns, Hits: make([]Hit, MaxK+1)})
	if _, err := decodeResult(MessagePack, body); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("%d hits: %v", len(ids)/4, err)
	}
	for _, hits := range []string{`"ids":"AAA="`, `"counts":"AAA="`, `"ids":"AAAAAA==","counts":"AAAA"`, `"ids":"AAAAAA==","similarities":"AAAAAAAAAAA="`, `"ids":"AAAAAA==","distances":"AAA="`,
		`"ids":"AAAAAA==","scores":"AACAfw=="`, `"ids":"AAAAAA==","keys":["a","b"]`, `"ids":"AAAAAA==","keys":[null]`, `"ids":"AAAAAA==","matched":[]`, `"ids":"AAAAAA==","payloads":{}`, `"ids":"A"`, `"ids":[0]`} {
		if _, err := decodeResult(JSON, []byte(`{"hits":{`+hits+`}}`)); !errors.Is(err, BadRequest) {
			t.Errorf("%s is taken: %v", hits, err)
		}
	}
}

// Columns stop at the limit of a message, as lists do.
func TestColumnsAreBounded(t *testing.T) {
	hits := make([]Hit, 2000)
	for i := range hits {
		hits[i] = Hit{ID: uint32(i), Key: strings.Repeat("k", 50_000), Payload: []byte(`{"a":"` + strings.Repeat("x", 50_000) + `"}`)}
	}
	for _, ct := range []ContentType{JSON, MessagePack} {
		a := Answer{Results: []Result{{HitsForm: HitsKeyedColumns, Hits: hits}}}
		parts := splitAnswer(ct, &a, 1<<20)
		if got, err := decodeResult(ct, parts[0].Body); err != nil || !errors.Is(got.Err, TooLarge) || cap(parts[0].Body) > 4<<20 {
			t.Errorf("%v: %v, %v, in %d bytes", ct, got, err, cap(parts[0].Body))
		}
	}
}

// hitsFrom makes hits of any bytes: a byte that says what a hit has, then values, bit by bit.
func hitsFrom(data []byte) []Hit {
	hits := []Hit{}
	next := func(n int) []byte {
		var b [8]byte
		data = data[copy(b[:n], data):]
		return b[:]
	}
	float := func(n int) (float64, bool) {
		v := math.Float64frombits(binary.LittleEndian.Uint64(next(n)))
		if n == 4 {
			v = float64(math.Float32frombits(uint32(math.Float64bits(v))))
		}
		return v, v-v == 0
	}
	for len(data) > 0 {
		has := next(1)[0]
		h := Hit{ID: binary.LittleEndian.Uint32(next(4)), Count: binary.LittleEndian.Uint32(next(int(has >> 6)))}
		if has&1 != 0 {
			h.Distance, h.HasDistance = float(8)
		}
		if has&2 != 0 {
			h.Score, h.HasScore = float(4)
		}
		if has&4 != 0 {
			v, ok := float(4)
			h.Similarity, h.HasSimilarity = float32(v), ok
		}
		if has&8 != 0 {
			h.Key = strings.ToValidUTF8(string(next(3)[:3]), "?")
		}
		if has&16 != 0 {
			h.Detail = &HitDetail{Matched: []string{strings.ToValidUTF8(string(next(2)[:2]), "?")}}
		}
		if has&32 != 0 {
			h.Payload = fmt.Appendf(nil, `{"n":%d}`, next(1)[0])
		}
		if !h.HasDistance {
			h.Distance = 0
		}
		if !h.HasScore {
			h.Score = 0
		}
		if !h.HasSimilarity {
			h.Similarity = 0
		}
		hits = append(hits, h)
	}
	return hits
}

// Whatever hits there are, columns say what a list says.
func FuzzColumns(f *testing.F) {
	f.Add([]byte("\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x7f\xc0\x01\x00\x00\x00\xff\xff\xff"))
	f.Add([]byte("\x3f0123456789abcdef\x0001230101234567"))
	f.Fuzz(func(t *testing.T, data []byte) {
		hits := hitsFrom(data[:min(len(data), 4096)])
		for _, ct := range []ContentType{JSON, MessagePack} {
			plain, err := decodeResult(ct, AppendResult(nil, ct, &Result{Hits: hits}))
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range []HitsForm{HitsColumns, HitsKeyedColumns} {
				got, err := decodeResult(ct, AppendResult(nil, ct, &Result{Hits: hits, HitsForm: form}))
				if want := inForm(*plain, form); err != nil || !reflect.DeepEqual(*got, want) {
					t.Fatalf("%v, form %d: %v\ngot  %+v\nwant %+v", ct, form, err, got, want)
				}
			}
		}
	})
}

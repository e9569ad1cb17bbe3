package wire

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	vmihailenco "github.com/vmihailenco/msgpack/v5"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/value"
)

// random makes queries and results that use everything the protocol has.
type random struct{ *rand.Rand }

func newRandom(t testing.TB) random {
	return random{seeded.Rand(t)}
}

func (r random) maybe() bool { return r.IntN(2) == 0 }

func (r random) str() string {
	const letters = "ab \"\\/\n\t\u0001\u007fé€😀\u2028<>&"
	var b strings.Builder
	for range r.IntN(12) {
		runes := []rune(letters)
		b.WriteRune(runes[r.IntN(len(runes))])
	}
	if r.IntN(20) == 0 {
		b.WriteString(strings.Repeat("x", r.IntN(70_000)))
	}
	s := b.String()
	return s[:min(len(s), 65_536)]
}

func (r random) float() float64 {
	switch r.IntN(6) {
	case 0:
		return float64(r.IntN(300) - 150)
	case 1:
		return float64(r.Int64() - r.Int64())
	case 2:
		return float64(float32(r.NormFloat64()))
	case 3:
		return math.Copysign(0, -1)
	case 4:
		return r.NormFloat64() * math.Pow(10, float64(r.IntN(600)-300))
	}
	return r.NormFloat64()
}

func (r random) value(kinds int) Value {
	switch r.IntN(kinds) {
	case 0:
		return Number(r.float())
	case 1:
		return String(r.str())
	}
	return Bool(r.maybe())
}

func (r random) values() []Value {
	vs := make([]Value, 1+r.IntN(20))
	for i := range vs {
		vs[i] = r.value(2)
	}
	return vs
}

func (r random) condition(attr string) Condition {
	c := Condition{Attr: attr}
	if r.maybe() {
		c.Weight = uint32(1 + r.IntN(MaxWeight))
	}
	if r.IntN(4) == 0 {
		c.Bucket = true
		c.Min = Number(float64(r.Uint32()))
		return c
	}
	switch r.IntN(5) {
	case 4:
		var b value.Builder
		b.Array()
		for range r.IntN(4) {
			r.tree(&b, 3)
		}
		t, err := b.End().Tree()
		if err != nil {
			panic(err)
		}
		c.Other = &Other{Value: t}
	case 0:
		c.Value = r.value(3)
	case 1:
		c.In = r.values()
	case 2:
		c.Max = r.value(2)
	default:
		c.Min, c.Max = Number(r.float()), Number(r.float())
		if c.Min.Number > c.Max.Number {
			c.Min, c.Max = c.Max, c.Min
		}
	}
	return c
}

// tree adds a value that nests so deeply at most, and has no binary.
func (r random) tree(b *value.Builder, depth int) {
	switch r.IntN(6 + min(depth, 1)*2) {
	case 0:
		b.Null()
	case 1:
		b.Bool(r.maybe())
	case 2:
		b.Float(r.float())
	case 3:
		b.Int(r.Int64() - r.Int64())
	case 4:
		b.Number(fmt.Sprintf("%d.%de%d", r.IntN(1000), r.IntN(1000), r.IntN(100)-50))
	case 5:
		b.String(r.str())
	case 6:
		b.Array()
		for range r.IntN(20) {
			r.tree(b, depth-1)
		}
		b.End()
	case 7:
		b.Map()
		for i := range r.IntN(20) {
			b.Name(fmt.Sprintf("%02d", i))
			r.tree(b, depth-1)
		}
		b.End()
	}
}

func (r random) query() Query {
	q := Query{ID: r.str()}
	if r.maybe() {
		q.K = 1 + r.IntN(100)
		q.Candidates = q.K + r.IntN(1000)
	}
	if r.maybe() {
		q.Certify, q.WithPayload = r.maybe(), r.maybe()
		q.MinCount, q.TimeoutMS = r.Uint32(), uint32(r.IntN(MaxTimeoutMS+1))
	}
	r.refine(&q)
	q.HitsForm = HitsForm(r.IntN(3))
	switch r.IntN(7) {
	case 6:
		r.near(&q)
	case 5:
		if q.Total = true; r.maybe() {
			q.MinCount, q.Certify, q.Rescore = 0, false, nil
			break
		}
		fallthrough
	case 0:
		for i := range 1 + r.IntN(40) {
			q.Row = append(q.Row, r.condition(fmt.Sprint(i, r.str()[:0])))
		}
	case 1:
		q.Text = "x" + r.str()
		q.Text = q.Text[:min(len(q.Text), 65_536)]
	case 2:
		q.Vector = make([]float32, 1+r.IntN(200))
		for i := range q.Vector {
			q.Vector[i] = float32(r.NormFloat64())
		}
	case 3:
		q.Set = r.values()
	default:
		for range 1 + r.IntN(40) {
			q.Items = append(q.Items, r.condition("a"+r.str()[:0]))
		}
	}
	return q
}

// near makes a search by distance.
func (r random) near(q *Query) {
	q.Certify, q.MinCount = false, 0
	switch r.IntN(3) {
	case 0:
		q.Text = "x"
	case 1:
		q.Vector = []float32{1, float32(r.NormFloat64())}
	case 2:
		q.Point = &Point{180*r.Float64() - 90, 1000 * r.NormFloat64()}
	}
	if q.HasRadius = r.maybe(); q.HasRadius {
		if q.Radius = r.ExpFloat64(); r.IntN(4) == 0 {
			q.Radius = 0
		}
		if r.IntN(3) == 0 {
			q.K, q.Candidates, q.CountOnly = 0, 0, true
		}
	}
	q.Column, q.Method = []string{"", "at"}[r.IntN(2)], []string{"", "scan", "cells"}[r.IntN(3)]
	switch r.IntN(4) {
	case 0:
		q.Fraction = 1 - r.Float64()
	case 1:
		q.Recall = (r.Float64() + 0.001) / 2
	}
}

// refine adds what changes how a form is answered.
func (r random) refine(q *Query) {
	filter := func() (conds []Condition) {
		for range r.IntN(4) {
			c := r.condition(fmt.Sprint("f", r.IntN(3)))
			c.Weight = 0
			conds = append(conds, c)
		}
		return conds
	}
	if r.maybe() {
		return
	}
	q.Filter, q.Exclude, q.Total, q.IDF = filter(), filter(), r.maybe(), Choice(r.IntN(3))
	for i := range r.IntN(3) {
		q.Weights = append(q.Weights, ColumnWeight{fmt.Sprint("w", i, r.str()[:0]), 1 + r.Uint32N(MaxWeight)})
	}
	if r.maybe() {
		q.Rescore = &Rescore{By: "by" + r.str()[:0], Column: []string{"", "title"}[r.IntN(2)]}
	}
	q.Matched, q.Explain = r.maybe(), r.maybe()
}

func (r random) result() Result {
	res := Result{ID: r.str(), Index: "adult", Version: "0123456789abcdef"}
	if r.IntN(4) == 0 {
		res.Err = Errorf(BadRequest, "%s", r.str())
		return res
	}
	res.Hits = make([]Hit, r.IntN(40))
	for i := range res.Hits {
		h := Hit{ID: r.Uint32() >> r.IntN(32), Count: r.Uint32() >> r.IntN(32)}
		h.Key = fmt.Sprint(h.ID)
		if r.IntN(4) == 0 {
			h.Key = "k" + r.str()
		}
		if r.IntN(4) == 0 {
			h.HasDistance, h.Distance = true, math.Abs(r.float())
		}
		if r.IntN(4) == 0 {
			h.HasSimilarity, h.Similarity = true, r.Float32()
		}
		if r.IntN(4) == 0 {
			h.HasScore, h.Score = true, r.float()
		}
		if r.IntN(4) == 0 {
			h.Detail = &HitDetail{Matched: []string{r.str(), r.str()}, Columns: []ColumnEstimate{{"a" + r.str(), r.Float64(), r.Float64()}}}
		}
		if r.IntN(4) == 0 {
			h.Payload = []byte(`{"a":[1,-2,2.5,{"b":"\n"}],"c":null,"d":{},"e":[],"f":-9223372036854775808,"g":[[],{}]}`)
		}
		res.Hits[i] = h
	}
	if r.maybe() {
		res.Total, res.HasTotal = r.Uint64()>>11>>r.IntN(53), true
		res.ExpectedRecall, res.HasExpectedRecall = r.Float64(), true
		res.Warnings = []string{r.str(), r.str()}
		res.Found = Found{InRange: r.Uint64() >> 11 >> r.IntN(53), HasInRange: true, Method: "m" + r.str(), Fraction: r.Float64()}
		res.Explain = []byte(`{"items":[{"weight":3,"words":["a"]}],"kernel":"bound"}`)
	}
	res.MCK, res.Exact = r.Uint32(), r.maybe()
	for _, p := range res.Took.parts() {
		*p.d = time.Duration(r.Int64N(1<<50)>>r.IntN(50)) * time.Microsecond
	}
	return res
}

func TestQueriesSurviveBothCodecs(t *testing.T) {
	r := newRandom(t)
	for range 300 {
		want := r.query()
		if err := want.Validate(Limits{}); err != nil {
			t.Fatalf("the test made a bad query: %v", err)
		}
		filled := want
		filled.EnsureDefaults()
		for _, ct := range []ContentType{JSON, MessagePack} {
			body := AppendQueries(nil, ct, []Query{want, want})
			m, err := DecodeMessage(ct, body, Limits{})
			if err != nil {
				t.Fatal(ct, err)
			}
			for _, got := range m.Queries {
				if got.Err != nil || !reflect.DeepEqual(unrefused(got.Query), filled) {
					t.Fatalf("%v: %v\ngot  %+v\nwant %+v", ct, got.Err, got.Query, filled)
				}
			}
		}
	}
}

// A decoder used again and again gives what DecodeMessage does, whatever it decoded before, and Forget leaves nothing.
func TestDecoderIsUsedAgain(t *testing.T) {
	r := newRandom(t)
	var decoder Decoder
	for range 300 {
		ct := ContentType(r.IntN(2))
		queries := make([]Query, 1+r.IntN(30))
		for i := range queries {
			queries[i] = r.query()
		}
		body := AppendQueries(nil, ct, queries)
		if r.IntN(5) == 0 {
			body = body[:r.IntN(len(body))]
		}
		want, wantErr := DecodeMessage(ct, body, Limits{})
		got, err := decoder.Decode(ct, body, Limits{})
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
			t.Fatalf("got %+v %v\nwant %+v %v", got, err, want, wantErr)
		}
	}
	decoder.Forget()
	for _, block := range decoder.d.conds.blocks {
		for _, c := range block[:cap(block)] {
			if !reflect.DeepEqual(c, Condition{}) {
				t.Fatalf("a condition is left: %+v", c)
			}
		}
	}
	for _, q := range decoder.d.queries[:cap(decoder.d.queries)] {
		if !reflect.DeepEqual(q, QueryOrError{}) {
			t.Fatalf("a query is left: %+v", q)
		}
	}
}

func TestResultsSurviveBothCodecs(t *testing.T) {
	r := newRandom(t)
	for range 300 {
		want := Answer{Batch: true, First: r.IntN(1000), Results: []Result{r.result(), r.result()}}
		for _, ct := range []ContentType{JSON, MessagePack} {
			got, err := DecodeAnswer(ct, AppendAnswer(nil, ct, &want))
			if err != nil {
				t.Fatal(ct, err)
			}
			for i := range want.Results {
				if want.Results[i].Err == nil && want.Results[i].Hits == nil {
					want.Results[i].Hits = []Hit{}
				}
			}
			if !reflect.DeepEqual(*got, want) {
				t.Fatalf("%v:\ngot  %+v\nwant %+v", ct, *got, want)
			}
		}
	}
}

// The usual MessagePack library reads what is written here as what JSON says, and what it writes is read here.
func TestAgainstMsgpackLibrary(t *testing.T) {
	r := newRandom(t)
	for range 200 {
		a := Answer{Batch: true, First: r.IntN(100_000), Results: []Result{r.result()}}
		body := AppendAnswer(nil, MessagePack, &a)
		var got any
		if err := vmihailenco.Unmarshal(body, &got); err != nil {
			t.Fatalf("the library cannot read an answer: %v", err)
		}
		again, err := marshalSorted(got)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeAnswer(MessagePack, again)
		if err != nil {
			t.Fatal(err)
		}
		want, err := DecodeAnswer(MessagePack, body)
		if err != nil || !reflect.DeepEqual(back, want) {
			t.Fatalf("%v\ngot  %+v\nwant %+v", err, back, want)
		}

		q := r.query()
		body, got = AppendQuery(nil, MessagePack, &q), nil
		if err := vmihailenco.Unmarshal(body, &got); err != nil {
			t.Fatalf("the library cannot read a query: %v", err)
		}
		if again, err = marshalSorted(got); err != nil {
			t.Fatal(err)
		}
		m, err := DecodeMessage(MessagePack, again, Limits{})
		q.EnsureDefaults()
		if err != nil || m.Queries[0].Err != nil {
			t.Fatal(err, m)
		}
		if len(q.Row)+len(q.Filter)+len(q.Exclude)+len(q.Weights) == 0 && !reflect.DeepEqual(unrefused(m.Queries[0].Query), q) { // the attributes of a row come back sorted
			t.Fatalf("got  %+v\nwant %+v", m.Queries[0].Query, q)
		}
	}
}

func marshalSorted(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := vmihailenco.NewEncoder(&buf)
	enc.SetSortMapKeys(true) // it shuffles them otherwise
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// Large containers in a payload take the long heads.
func TestPayloadOfManyMembers(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 70_000} {
		list := "[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]"
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf(`"m%d":[]`, i))
		}
		payload := `{"l":` + list + `,"o":{` + strings.Join(members, ",") + `}}`
		a := Answer{Results: []Result{{Hits: []Hit{{Key: "x", Payload: []byte(payload)}}}}}
		body := AppendAnswer(nil, MessagePack, &a)
		var check any
		if err := vmihailenco.Unmarshal(body, &check); err != nil {
			t.Fatal(err)
		}
		got, err := DecodeAnswer(MessagePack, body)
		if err != nil {
			t.Fatal(err)
		}
		if p := string(got.Results[0].Hits[0].Payload); p != payload {
			t.Errorf("%d members: %.100s became %.100s", n, payload, p)
		}
	}
}

// A payload that is no JSON costs its hit the payload, and nothing else.
func TestBrokenPayload(t *testing.T) {
	a := Answer{Results: []Result{{Hits: []Hit{{Key: "x", Payload: []byte(`{"a":[1,`)}, {ID: 7, Key: "y"}}}}}
	got, err := DecodeAnswer(MessagePack, AppendAnswer(nil, MessagePack, &a))
	if err != nil || string(got.Results[0].Hits[0].Payload) != "null" || got.Results[0].Hits[1].Key != "y" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnknownResultFieldsAreSkipped(t *testing.T) {
	text := `{"new":{"a":[1,{"b":null}]},"id":"q","hits":[{"id":1,"new":[[]],"key":"a","count":2}],"took_us":{"gpu":7,"total":3},` +
		`"exact":true,"mc_k":1,"error_hint":"x"}`
	for ct, body := range map[ContentType][]byte{JSON: []byte(text), MessagePack: toMessagePack(t, text)} {
		got, err := decodeResult(ct, body)
		if err != nil {
			t.Fatal(err)
		}
		want := &Result{ID: "q", Hits: []Hit{{ID: 1, Key: "a", Count: 2}}, MCK: 1, Exact: true, Took: Took{Total: 3 * time.Microsecond}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v", ct, got)
		}
	}
}

func TestDecodeResultRefusesABatch(t *testing.T) {
	if _, err := decodeResult(JSON, []byte(`{"first":0,"results":[]}`)); err == nil {
		t.Error("no error")
	}
}

func TestNumbersOfResultsAreFinite(t *testing.T) {
	for _, h := range []Hit{
		{Key: "x", HasDistance: true, Distance: math.NaN()},
		{Key: "x", HasDistance: true, Distance: math.Inf(1)},
		{Key: "x", HasSimilarity: true, Similarity: float32(math.Inf(-1))},
	} {
		if a, err := decodeResult(MessagePack, AppendResult(nil, MessagePack, &Result{Hits: []Hit{h}})); err == nil {
			t.Errorf("got %+v", a)
		}
	}
}

// What another service said is no result without hits.
func TestNoResult(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"id":"geniemq","type":"io.nats.micro.v1.ping_response","version":"0.1.0"}`, `{"first":0,"results":[{"id":"x"}]}`,
	} {
		if a, err := DecodeAnswer(JSON, []byte(body)); err == nil {
			t.Errorf("%s is read as %+v", body, a)
		}
	}
}

// decodeResult decodes a body that holds one result.
func decodeResult(ct ContentType, body []byte) (*Result, error) {
	a, err := DecodeAnswer(ct, body)
	switch {
	case err != nil:
		return nil, err
	case a.Batch:
		return nil, badRequest("decoding a result: the body answers a batch")
	}
	return &a.Results[0], nil
}

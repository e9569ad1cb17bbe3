package wire

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	vmihailenco "github.com/vmihailenco/msgpack/v5"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// Numbers of every MessagePack format are read for what they are.
func TestNumberFormats(t *testing.T) {
	for _, v := range []any{
		int8(-128), int8(-33), int8(-32), int8(-1), int8(0), int8(127), uint8(128), uint8(255), int16(-32768), int16(-129), uint16(65535),
		int32(math.MinInt32), uint32(math.MaxUint32), int64(-1 << 53), uint64(1 << 53), float32(0.5), 0.1, math.MaxFloat64,
	} {
		for _, compact := range []bool{true, false} {
			var buf strings.Builder
			enc := vmihailenco.NewEncoder(&buf)
			enc.UseCompactInts(compact)
			if err := enc.Encode(v); err != nil {
				t.Fatal(err)
			}
			want := reflect.ValueOf(v).Convert(reflect.TypeFor[float64]()).Float()
			r := &msgpackReader{text: buf.String(), maxDepth: 1}
			if got, err := r.number(); err != nil || got != want {
				t.Errorf("%T(%v): got %v, %v", v, v, got, err)
			}
			r.finish()
			if err := r.failed(); err != nil {
				t.Error(err)
			}
			r = &msgpackReader{text: string(msgpack.AppendNumber(nil, want)), maxDepth: 1}
			if got, err := r.number(); err != nil || got != want {
				t.Errorf("own %v: got %v, %v", want, got, err)
			}
		}
	}
}

func TestPayloadNumbersKeepTheirDigits(t *testing.T) {
	for _, payload := range []string{
		`{"n":18446744073709551615}`, `{"n":-9223372036854775808}`, `{"n":9007199254740993}`, `{"n":1.5}`, `{"n":1e-7}`, `{"n":0.1}`,
	} {
		a := Answer{Results: []Result{{Hits: []Hit{{Key: "x", Payload: []byte(payload)}}}}}
		got, err := DecodeAnswer(MessagePack, AppendAnswer(nil, MessagePack, &a))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Replace(payload, "1e-7", "1e-07", 1)
		if p := string(got.Results[0].Hits[0].Payload); p != want {
			t.Errorf("%s became %s", want, p)
		}
	}
}

// TestIntegersKeepTheirDigits: integers that no float64 holds are what they are in conditions of all shapes, alone and in tables, in both codecs.
func TestIntegersKeepTheirDigits(t *testing.T) {
	read := func(ct ContentType, body []byte) (queries []Query) {
		m, err := DecodeMessage(ct, body, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Queries {
			if m.Queries[i].Err != nil {
				t.Fatal(m.Queries[i].Err)
			}
			queries = append(queries, m.Queries[i].Query)
		}
		return queries
	}
	for _, c := range []struct{ written, digits string }{
		{"9007199254740993", "9007199254740993"}, {"-9007199254740993", "-9007199254740993"}, {"18446744073709551615", "18446744073709551615"},
		{"-9223372036854775807", "-9223372036854775807"}, {"123456789012345678901234567890", "123456789012345678901234567890"},
		{"9007199254740992", ""}, {"100000000000000000000", ""}, {"9007199254740991", ""}, {"9007199254740993.0", ""}, {"1e300", ""}, {"0.1", ""},
	} {
		number, err := strconv.ParseFloat(c.written, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := Value{Kind: NumberValue, Number: number, String: c.digits}
		if !strings.ContainsAny(c.written, ".e") && Integer(c.written) != want {
			t.Errorf("%s is %+v", c.written, Integer(c.written))
		}
		body := []byte(strings.ReplaceAll(`{"queries":[{"row":{"a":N,"b":{"in":["x",N]},"c":{"min":N}},"filter":{"d":N}},{"row":{"a":N,"b":{"in":["x",N]},"c":{"min":N}},"filter":{"d":N}}]}`, "N", c.written))
		queries := read(JSON, body)
		for _, ct := range []ContentType{JSON, MessagePack} {
			for _, tables := range []bool{false, true} {
				sent := AppendQueries(nil, ct, queries)
				if tables {
					if sent, _ = AppendTable(nil, ct, queries); sent == nil {
						t.Fatalf("%s are no table", c.written)
					}
				}
				for _, q := range read(ct, sent) {
					for i, v := range []Value{q.Row[0].Value, q.Row[1].In[1], q.Row[2].Min, q.Filter[0].Value} {
						if v != want {
							t.Errorf("%s, %v, tables %v: value %d is %+v, want %+v", c.written, ct, tables, i, v, want)
						}
					}
				}
			}
		}
	}
	for _, digits := range []string{"", "-", "1x", "0x10", "01", "1.5", "--1"} {
		q := Query{Row: []Condition{{Attr: "a", Value: Value{Kind: NumberValue, Number: 1, String: digits}}}}
		if err := q.Validate(Limits{}); (err == nil) != (digits == "") {
			t.Errorf("a number with the digits %q: %v", digits, err)
		}
	}
}

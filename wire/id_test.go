package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	vmihailenco "github.com/vmihailenco/msgpack/v5"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// An id may be an integer, which is kept digit by digit; anything else is refused by its name, and in a batch alone.
func TestIntegerIDs(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":7,"text":"x"}`:                          "7",
		`{"id":0,"text":"x"}`:                          "0",
		`{"text":"x","id":-12}`:                        "-12",
		`{"id":9007199254740993,"text":"x"}`:           "9007199254740993", // no float64
		`{"id":18446744073709551616,"text":"x"}`:       "18446744073709551616",
		`{"id":"7","text":"x"}`:                        "7",
		`{"id":7,"k":0,"text":"x"}`:                    "7", // also that of a query that fails
		`{"k":0,"text":"x","id":7}`:                    "7",
		`{"queries":[{"k":0,"id":12345678901234567}]}`: "12345678901234567",
	} {
		m, err := DecodeMessage(JSON, []byte(body), Limits{})
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if got := m.Queries[0].Query.ID; got != want {
			t.Errorf("%s has id %q, want %q", body, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"id":1.5,"text":"x"}`:                                   `id: must be an integer, not 1.5`,
		`{"id":1e3,"text":"x"}`:                                   `id: must be an integer, not 1e3`,
		`{"id":true,"text":"x"}`:                                  `id: must be a string or an integer, not a bool`,
		`{"id":null,"text":"x"}`:                                  `id: must be a string or an integer, not null`,
		`{"id":[1],"text":"x"}`:                                   `id: must be a string or an integer, not an array`,
		`{"id":` + strings.Repeat("1", 70_000) + `,"text":"x"}`:   `id: a string of 70000 bytes, the limit is 65536`,
		`{"queries":[{"id":1.5,"text":"x"},{"id":2,"text":"x"}]}`: `id: must be an integer, not 1.5`,
	} {
		m, err := DecodeMessage(JSON, []byte(body), Limits{})
		if err != nil {
			t.Errorf("%.60s: the message fails: %v", body, err)
		} else if fault := m.Queries[0].Err; fault == nil || fault.Code == "" || !strings.Contains(fault.Message, want) {
			t.Errorf("%.60s: %v, want %s", body, fault, want)
		} else if len(m.Queries) > 1 && (m.Queries[1].Err != nil || m.Queries[1].Query.ID != "2") {
			t.Errorf("%s: the other query: %+v", body, m.Queries[1])
		}
	}
}

// In MessagePack every width of integer is its digits, as the library writes them and whatever follows.
func TestIntegerIDsInMessagePack(t *testing.T) {
	values := []any{int8(-128), int16(-32768), int32(math.MinInt32), int64(math.MinInt64), uint8(255), uint16(65535), uint32(math.MaxUint32),
		uint64(math.MaxUint64), int64(math.MaxInt64), int8(-32), int8(-33), uint8(0), uint8(127), uint8(128)}
	rng := seeded.Rand(t)
	for range 1000 {
		values = append(values, rng.Int64()>>rng.IntN(64), -(rng.Int64() >> rng.IntN(64)), rng.Uint64()>>rng.IntN(64))
	}
	for _, v := range values {
		for _, compact := range []bool{false, true} {
			var body bytes.Buffer
			e := vmihailenco.NewEncoder(&body)
			e.UseCompactInts(compact)
			if err := e.Encode(map[string]any{"id": v, "text": "x"}); err != nil {
				t.Fatal(err)
			}
			digits, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			m, err := DecodeMessage(MessagePack, body.Bytes(), Limits{})
			if err != nil || m.Queries[0].Err != nil || m.Queries[0].Query.ID != string(digits) {
				t.Errorf("%T %v: %v %+v", v, v, err, m)
			}
			if _, ok := new(big.Int).SetString(string(digits), 10); !ok {
				t.Fatalf("%s is no integer", digits)
			}
		}
	}
	for _, v := range []any{1.5, float32(3), math.NaN(), true, nil, []byte("7")} {
		body, err := vmihailenco.Marshal(map[string]any{"id": v})
		if err != nil {
			t.Fatal(err)
		}
		m, err := DecodeMessage(MessagePack, body, Limits{})
		if err != nil || m.Queries[0].Err == nil || !strings.Contains(m.Queries[0].Err.Message, "id: must be ") {
			t.Errorf("%T %v: %v %+v", v, v, err, m)
		}
	}
}

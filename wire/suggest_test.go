package wire

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
)

// A message may have a mistake in each of its queries. To say of each what was meant takes little: no work that a sender gets for a few bytes.
func TestManyWrongNames(t *testing.T) {
	const queries, most = 1000, 4 << 10 // bytes for each
	for _, query := range []string{`{"texx":1}`, `{"Text":1}`, `{"row":{"a":{"atl":1}}}`, `{"row":{"a":{"gte":1}}}`, `{"nothing_that_is_known":1}`} {
		body := append(append([]byte(`{"queries":[`), bytes.Join(slices.Repeat([][]byte{[]byte(query)}, queries), []byte(","))...), "]}"...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := DecodeMessage(JSON, body, Limits{})
		runtime.ReadMemStats(&after)
		if err != nil || len(m.Queries) != queries {
			t.Fatalf("%s: %+v %v", query, m, err)
		}
		if each := (after.TotalAlloc - before.TotalAlloc) / queries; each > most {
			t.Errorf("%s takes %d bytes, want %d at most", query, each, most)
		}
	}
}

package dead

import (
	"testing"

	"github.com/geniemq/geniemq/wire"
)

// TestReadable: whatever body a letter has, people can read it, and what is neither a text nor a message stays whole.
func TestReadable(t *testing.T) {
	q := wire.Query{ID: "東京", K: 3, Candidates: 32, Row: []wire.Condition{{Attr: "brand", Value: wire.String("acme")}}}
	other := wire.Query{K: 5, Candidates: 40, Text: "red"}
	for body, want := range map[string]string{
		`{"row":{"a":1}}`: `{"row":{"a":1}}`,
		"\xff\x00":        "/wA=",
		string(wire.AppendQuery(nil, wire.MessagePack, &q)):                       string(wire.AppendQuery(nil, wire.JSON, &q)),
		string(wire.AppendQueries(nil, wire.MessagePack, []wire.Query{q, other})): string(wire.AppendQueries(nil, wire.JSON, []wire.Query{q, other})),
	} {
		if got := readable([]byte(body)); got != want {
			t.Errorf("%q is read as %s, want %s", body, got, want)
		}
	}
}

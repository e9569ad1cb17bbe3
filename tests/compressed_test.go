package tests

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Any client may compress by the headers alone. Who does not say that it reads compressed answers gets none; a few bytes that claim to be many are refused; both ways of asking.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{}, service.Options{})
	plain := `{"queries":[` + strings.TrimSuffix(strings.Repeat(`{"k":5,"row":{"age":{"min":30,"max":60},"sex":"Female"}},`, 50), ",") + `]}`
	pack := func(body []byte) string {
		packed, ok := wire.Compress(make([]byte, 0, wire.CompressRoom(len(body))), body)
		if !ok {
			t.Fatal("it does not shrink")
		}
		return string(packed)
	}
	packed := wire.JSON.Compressed()
	n := 0
	ask := func(body string, headers ...string) []*nats.Msg {
		t.Helper()
		m := message("genie.search.people", body, headers...)
		direct, err := r.nc.RequestMsg(m, patience)
		if err != nil {
			t.Fatal(err)
		}
		m.Subject = "genie.query.people"
		if _, err := r.js.PublishMsg(within(t), m); err != nil {
			t.Fatal(err)
		}
		n++
		stored := r.stored("genie.result.people", n)
		return []*nats.Msg{direct, {Header: stored.Header, Data: stored.Data}}
	}
	for _, test := range []struct {
		body    string
		headers []string
		packed  bool
	}{
		{plain, nil, false},
		{plain, []string{wire.HeaderAccept, "zstd"}, false},
		{plain, []string{wire.HeaderAccept, "s2"}, true},
		{pack([]byte(plain)), []string{wire.HeaderContentType, packed}, false},
		{pack([]byte(plain)), []string{wire.HeaderContentType, packed, wire.HeaderAccept, "parts,s2"}, true},
	} {
		for _, m := range ask(test.body, test.headers...) {
			got := m.Header.Get(wire.HeaderContentType)
			if (got == packed) != test.packed || (m.Header.Get(wire.HeaderAccept) == "s2") != (strings.Contains(strings.Join(test.headers, " "), wire.HeaderAccept)) {
				t.Errorf("asked with %v the answer has %v", test.headers, m.Header)
			}
			a, err := wire.DecodeBody(got, m.Data)
			if err != nil || len(a.Results) != 50 || len(a.Results[49].Hits) != 5 {
				t.Fatalf("asked with %v: %v, %d bytes", test.headers, err, len(m.Data))
			}
		}
	}
	huge := "\x80\x80\x80\x80\x08xxxx" // says 2 GiB
	for _, test := range []struct {
		body, contentType string
		want              wire.Code
	}{
		{huge, packed, wire.TooLarge},
		{pack(bytes.Repeat([]byte{' '}, wire.MaxCompressed)), packed, wire.BadRequest},
		{pack(append([]byte(plain), bytes.Repeat([]byte{' '}, wire.MaxCompressed-len(plain))...)), packed, ""},
		{plain, packed, wire.BadRequest},
		{plain, "application/json+zstd", wire.Unsupported},
	} {
		for _, m := range ask(test.body, wire.HeaderContentType, test.contentType) {
			a, err := wire.DecodeAnswer(wire.JSON, m.Data)
			if err != nil {
				t.Fatal(err)
			}
			if fault := a.Results[0].Err; fault == nil && test.want != "" || fault != nil && fault.Code != test.want {
				t.Errorf("%.20q of %s: %v, want %q", test.body, test.contentType, fault, test.want)
			}
		}
	}
	r.settled()
}

package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// bodyTypes notes the Content-Type of every message on a subject. The connection's reader itself hands messages over, so that those published on this
// connection are there once it has flushed; of those from elsewhere it waits for as many as are wanted.
func bodyTypes(t *testing.T, nc *nats.Conn, subject string) func(wanted int) []string {
	t.Helper()
	messages := make(chan *nats.Msg, 64)
	sub, err := nc.ChanSubscribe(subject, messages)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	return func(wanted int) []string {
		t.Helper()
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, fmt.Sprint(wanted, " messages on ", subject), func() bool { return len(messages) >= wanted })
		var seen []string
		for len(messages) > 0 {
			seen = append(seen, (<-messages).Header.Get(wire.HeaderContentType))
		}
		return seen
	}
}

// A client that wants compression gets the same answers, and compresses queries when a worker has said that it reads that. One that does not is never
// sent what is compressed.
func TestCompressedBothWays(t *testing.T) {
	f := setUpReal(t, 0)
	queries := make([]client.Query, 40)
	for i := range queries {
		queries[i] = client.Query{K: 5, Text: "beleive"}
	}
	packed := wire.MessagePack.Compressed()
	for _, compress := range []bool{true, false} {
		c, err := client.New(f.nc, client.Options{Compress: compress})
		if err != nil {
			t.Fatal(err)
		}
		asked, answered := bodyTypes(t, f.nc, "genie.*."+testIndex), bodyTypes(t, f.nc, "genie.result.>")
		for i, ask := range []func() ([]client.Result, error){
			func() ([]client.Result, error) { return c.SearchBatch(f.ctx, testIndex, queries) },
			func() ([]client.Result, error) { return c.RequestBatch(f.ctx, testIndex, queries) },
		} {
			results, err := ask()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Err != nil || len(r.Hits) != 5 || r.Hits[0].Key != results[0].Hits[0].Key {
					t.Fatalf("ask %d: %+v", i, r)
				}
			}
		}
		if a, b := asked(2), answered(1); !compress && (slices.Contains(a, packed) || slices.Contains(b, packed)) ||
			compress && (!slices.Equal(a, []string{"application/msgpack", packed}) || !slices.Equal(b, []string{packed})) {
			t.Errorf("compress %t: asked with %q, the stored answer is %q", compress, a, b)
		}
		c.Close()
	}
}

// Of two workers one is older. It refuses what is compressed, and gets it once more as it is.
func TestCompressedToAnOlderWorker(t *testing.T) {
	f := setUp(t, 0, nil)
	newer := true
	f.service.direct = func(m *nats.Msg) bool {
		if !newer {
			return false
		}
		out := nats.NewMsg(m.Reply)
		out.Header.Set(wire.HeaderAccept, m.Header.Get(wire.HeaderAccept))
		out.Data = wire.AppendResult(nil, wire.JSON, &wire.Result{Hits: []wire.Hit{}})
		_ = m.RespondMsg(out)
		return true
	}
	c, err := client.New(f.nc, client.Options{Compress: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := strings.Repeat("believe", 200)
	packed := wire.MessagePack.Compressed()
	for _, ask := range []func() (*client.Result, error){
		func() (*client.Result, error) { return c.Search(f.ctx, testIndex, client.Query{Text: text}) },
		func() (*client.Result, error) { return c.Request(f.ctx, testIndex, client.Query{Text: text}) },
	} {
		newer = true
		if _, err := c.Search(f.ctx, testIndex, client.Query{Text: "x"}); err != nil {
			t.Fatal(err)
		}
		newer = false
		asked := bodyTypes(t, f.nc, "genie.*."+testIndex)
		for range 2 {
			if r, err := ask(); err != nil || len(r.Hits) != len(dictionary) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		if got := asked(3); !slices.Equal(got, []string{packed, "application/msgpack", "application/msgpack"}) {
			t.Errorf("asked with %q", got)
		}
	}
}

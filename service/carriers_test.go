package service

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// Nothing of bulk passes the connections on which others wait, and the worker is not ready while one of them is lost.
func TestBulkHasItsOwnConnections(t *testing.T) {
	b := testkit.StartBroker(t)
	s, nc, js := startService(t, config.Config{NATS: b.URL()}, Options{})
	const messages, size = 20, 50_000
	ask := func(class string) {
		t.Helper()
		for i := range messages {
			body := `{"k":100,"row":{"n":{"min":0}}}`
			body += strings.Repeat(" ", size-len(body))
			if _, err := js.Publish(t.Context(), "genie."+class+".rows", []byte(body)); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
		}
	}
	results, err := nc.SubscribeSync("genie.result.>")
	if err != nil {
		t.Fatal(err)
	}
	answered := func() {
		t.Helper()
		for i := range messages {
			if m, err := results.NextMsg(patience); err != nil || len(m.Data) < 1000 {
				t.Fatalf("answer %d: %v", i, err)
			}
		}
	}
	connections := func() map[string]*server.ConnInfo {
		t.Helper()
		all, err := b.Server().Connz(&server.ConnzOptions{})
		if err != nil {
			t.Fatal(err)
		}
		by := make(map[string]*server.ConnInfo)
		for _, c := range all.Conns {
			by[c.Name] = c
		}
		return by
	}
	carried := func(before, after map[string]*server.ConnInfo, of string) (brought, taken int64) {
		for name, c := range after {
			if rest, ok := strings.CutPrefix(name, of); ok && (strings.HasPrefix(rest, " queries") || strings.HasPrefix(rest, " answers")) {
				brought += c.OutBytes - before[name].OutBytes
				taken += c.InBytes - before[name].InBytes
			}
		}
		return brought, taken
	}
	for _, test := range []struct{ class, on, not string }{{"query", "geniemq", "geniemq bulk"}, {"bulk", "geniemq bulk", "geniemq"}} {
		before := connections()
		ask(test.class)
		answered()
		after := connections()
		if brought, taken := carried(before, after, test.on); brought < messages*size || taken < messages*1000 {
			t.Errorf("%s: %d bytes came and %d went on the connections of %s", test.class, brought, taken, test.on)
		}
		if brought, taken := carried(before, after, test.not); brought > size || taken > size {
			t.Errorf("%s: %d bytes came and %d went on the connections of %s", test.class, brought, taken, test.not)
		}
		if own, old := after["geniemq"], before["geniemq"]; own.OutBytes-old.OutBytes > size {
			t.Errorf("%s: %d bytes came on the connection of direct queries", test.class, own.OutBytes-old.OutBytes)
		}
	}

	lost := connections()["geniemq bulk queries"]
	var down chan nats.Status
	for _, one := range s.conns {
		if one.Opts.Name == lost.Name {
			down = one.StatusChanged(nats.RECONNECTING)
		}
	}
	if err := b.Server().DisconnectClientByID(lost.Cid); err != nil {
		t.Fatal(err)
	}
	<-down // it waits for half a second before it comes again
	if state := ready(s)(); state == nil || !strings.Contains(state.Error(), "the connection to NATS is") || s.connected() {
		t.Errorf("without the connection of bulk: %v", state)
	}
	testkit.Eventually(t, ready(s))
	ask("bulk")
	answered()
}

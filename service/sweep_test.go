package service

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// An index is served that this worker has, or that somebody answers for who is asked directly.
func TestAlive(t *testing.T) {
	nc := testkit.Connect(t, testkit.StartBroker(t).URL())
	s := &Service{nc: nc, indexes: []*served{{name: "own"}}}
	if _, err := nc.Subscribe(wire.Subjects{}.Search("other"), func(m *nats.Msg) { m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"own": true, "other": true, "nobody": false} {
		if got, err := s.alive(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	nc.Close()
	if _, err := s.alive(t.Context(), "nobody"); err == nil {
		t.Error("without a connection nobody knows, and it says so")
	}
}

package served

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// An index is served that this worker has, or that somebody answers for who is asked directly.
func TestAlive(t *testing.T) {
	nc := testkit.Connect(t, testkit.StartBroker(t).URL())
	s := New(Options{})
	s.link.NC = nc
	s.entries = []*Entry{{Name: "own", state: serving}, {Name: "coming"}, {Name: "going", state: going}}
	if _, err := nc.Subscribe(wire.Subjects{}.Search("other"), func(m *nats.Msg) { m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"own": true, "coming": true, "going": false, "other": true, "nobody": false} {
		if got, err := s.Alive(t.Context(), name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	nc.Close()
	if _, err := s.Alive(t.Context(), "nobody"); err == nil {
		t.Error("without a connection nobody knows, and it says so")
	}
}

package broker

import (
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
)

// A server that has turned JetStream off, as nats-server does when it may not write to its folder, is started anew: on the same
// address, with what it has stored, and clients find it by themselves.
func TestBrokerIsMended(t *testing.T) {
	b, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Shutdown()
	url := b.URL()
	js := testkit.JetStream(t, url)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Load().ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the server takes messages again", func() bool {
		_, err := js.Publish(t.Context(), "s", []byte("new"))
		return err == nil && b.Fault() == nil
	})
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.GetMsg(t.Context(), 1); err != nil || string(m.Data) != "kept" {
		t.Errorf("the message did not survive: %v", err)
	}
	if b.URL() != url {
		t.Errorf("the server was at %s and is at %s", url, b.URL())
	}
}

// A server that cannot be started anew is reported, once.
func TestBrokerIsLost(t *testing.T) {
	lost := make(chan error, 2)
	b, err := Start(t.Context(), Options{Listen: "127.0.0.1:0", DataDir: t.TempDir(), OnLost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	var taken net.Listener
	testkit.Until(t, "the server's address is free", func() bool { // it may be started anew in between, on a busy machine
		b.end()
		taken, err = net.Listen("tcp", strings.TrimPrefix(b.URL(), "nats://"))
		return err == nil
	})
	defer taken.Close()
	if err := <-lost; !strings.Contains(err.Error(), "could not be started anew") {
		t.Errorf("the reason is %v", err)
	}
	if err := b.Shutdown(); err != nil {
		t.Error(err)
	}
	if len(lost) > 0 {
		t.Errorf("it is reported again: %v", <-lost)
	}
}

package broker

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if err := b.server.ShutdownJetStream(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if _, err := js.Publish(t.Context(), "s", []byte("new")); err != nil {
			return err
		}
		return b.Fault()
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
	eventually(t, func() error { // the server may be started anew in between, on a busy machine
		b.end()
		taken, err = net.Listen("tcp", strings.TrimPrefix(b.URL(), "nats://"))
		return err
	})
	defer taken.Close()
	select {
	case err := <-lost:
		if !strings.Contains(err.Error(), "could not be started anew") {
			t.Errorf("the reason is %v", err)
		}
	case <-time.After(patience):
		t.Fatal("nobody hears that the server is lost")
	}
	if err := b.Shutdown(); err != nil {
		t.Error(err)
	}
	if len(lost) > 0 {
		t.Errorf("it is reported again: %v", <-lost)
	}
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Package testkit is what tests of several packages need: a NATS server that can fail, connections to it, waiting. No product package
// imports it.
package testkit

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is for what takes as long as the machine is busy. Nothing is measured by it.
const patience = time.Minute

// Broker is a NATS server with JetStream in this process, on a free port, which can be stopped and started again at the same
// address with the same store. It belongs to one goroutine.
type Broker struct {
	Options server.Options
	server  *server.Server
}

// StartBroker starts a server for a test, at whose end it is stopped. Options may be changed before.
func StartBroker(t testing.TB, change ...func(*server.Options)) *Broker {
	t.Helper()
	b, err := NewBroker(t.TempDir(), change...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b
}

// NewBroker starts a server for whoever stops it, with its store in dir.
func NewBroker(dir string, change ...func(*server.Options)) (*Broker, error) {
	b := &Broker{Options: server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		JetStreamMaxStore: 1 << 40, // what streams reserve, and tests do not fill: by default it is what the machine's disk has free just then
	}}
	for _, c := range change {
		c(&b.Options)
	}
	if err := b.start(); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Broker) start() error {
	options := b.Options // the server changes them
	s, err := server.NewServer(&options)
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		s.Shutdown()
		return fmt.Errorf("the NATS server is not ready after %v", patience)
	}
	b.server, b.Options.Port = s, s.Addr().(*net.TCPAddr).Port
	return nil
}

// Start starts a server that was stopped.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the server, which may have been stopped before. What it stored is kept.
func (b *Broker) Stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// Remove stops the server and removes its store.
func (b *Broker) Remove() error {
	b.Stop()
	return os.RemoveAll(b.Options.StoreDir)
}

// Address is where the server listens, as host:port; URL is the same as a URL.
func (b *Broker) Address() string {
	return net.JoinHostPort(b.Options.Host, strconv.Itoa(b.Options.Port))
}

// URL is the address of the server.
func (b *Broker) URL() string { return "nats://" + b.Address() }

// Server is the server that runs.
func (b *Broker) Server() *server.Server { return b.server }

// Connect makes a connection for a test, which tries for ever to reconnect and is closed at the test's end.
func Connect(t testing.TB, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(10 * time.Millisecond)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// JetStream makes a connection for a test and returns its JetStream.
func JetStream(t testing.TB, url string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(Connect(t, url, options...))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Eventually waits until a check succeeds.
func Eventually(t testing.TB, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(5 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Until waits until a condition holds, as long as the test may run.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for !holds() {
		select {
		case <-t.Context().Done():
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

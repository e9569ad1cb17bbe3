// Package cluster runs several embedded servers as one cluster, for tests.
package cluster

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/service/broker"
)

// Cluster is three servers in this process.
type Cluster struct {
	Servers []*broker.Broker
}

// Start starts three servers with JetStream, each a broker.Broker as a worker embeds it, and ends them with the test.
//
// A route needs an address before the server that it leads to has one. So routes lead to listeners of the test's own, which are there first, and pass on what
// comes: no port is chosen that somebody else may take meanwhile.
func Start(t testing.TB, change ...func(*broker.Options)) *Cluster {
	t.Helper()
	c := &Cluster{Servers: make([]*broker.Broker, 3)}
	doors := make([]*door, len(c.Servers))
	var routes []string
	for i := range doors {
		doors[i] = openDoor(t)
		routes = append(routes, "nats://"+doors[i].listener.Addr().String())
	}
	faults := make([]error, len(c.Servers))
	var starting sync.WaitGroup
	for i := range c.Servers {
		opts := broker.Options{
			Listen: "127.0.0.1:0", DataDir: t.TempDir(), Name: fmt.Sprintf("s%d", i+1),
			Cluster: &broker.Cluster{Name: "test", Listen: "127.0.0.1:0", Routes: routes, OnListen: doors[i].lead},
		}
		for _, f := range change {
			f(&opts)
		}
		starting.Go(func() { c.Servers[i], faults[i] = broker.Start(t.Context(), opts) })
	}
	starting.Wait()
	t.Cleanup(func() {
		for i := range c.Servers {
			c.Stop(i)
		}
	})
	for _, err := range faults {
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Stop ends a server.
func (c *Cluster) Stop(i int) {
	if s := c.Servers[i]; s != nil {
		c.Servers[i] = nil
		_ = s.Shutdown()
	}
}

// URL names all servers that run.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		if s != nil {
			urls = append(urls, s.URL())
		}
	}
	return strings.Join(urls, ",")
}

// door is a listener that passes on what comes to a server, once that has an address. What comes earlier is hung up on, and tried again.
type door struct {
	listener net.Listener
	mu       sync.Mutex
	to       string
	open     map[net.Conn]struct{} // nil when closed
	passing  sync.WaitGroup
}

func openDoor(t testing.TB) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener: l, open: make(map[net.Conn]struct{})}
	d.passing.Go(d.run)
	t.Cleanup(d.close)
	return d
}

func (d *door) lead(to string) {
	d.mu.Lock()
	d.to = to
	d.mu.Unlock()
}

func (d *door) close() {
	_ = d.listener.Close()
	d.mu.Lock()
	for conn := range d.open {
		_ = conn.Close()
	}
	d.open = nil
	d.mu.Unlock()
	d.passing.Wait()
}

// keep says whether a connection may live, and has it closed with the door.
func (d *door) keep(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		_ = conn.Close()
		return false
	}
	d.open[conn] = struct{}{}
	return true
}

func (d *door) run() {
	for {
		in, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		to := d.to
		d.mu.Unlock()
		if to == "" || !d.keep(in) {
			_ = in.Close()
			continue
		}
		out, err := net.Dial("tcp", to)
		if err != nil || !d.keep(out) {
			_ = in.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			d.passing.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
			})
		}
	}
}

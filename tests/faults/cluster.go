package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/geniemq/geniemq/tests/faults/disk"
	"github.com/geniemq/geniemq/tests/faults/history"
	"github.com/geniemq/geniemq/tests/faults/proxy"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serverRole does what nats-server's own main does.
func serverRole(args []string) error {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	opts, err := server.ConfigureOptions(flags, args, func() {}, func() {}, func() {})
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

// cluster is the nats-servers. Servers reach each other through proxies only, so that they can be parted.
type cluster struct {
	nodes []*node
}

type node struct {
	*part
	name           string
	client, routes string       // addresses it listens at
	monitor        string       // where it says how it is
	others         *proxy.Proxy // in front of routes; nil for a single server
	disk           *disk.Disk   // its streams'; nil if it has none of its own
	freed          time.Time    // when its disk had room again, until all is answered or it is started anew
	clock          *clock       // nil if it cannot be stepped
}

// newCluster starts servers. Each has a disk and a clock of its own, where faults need them.
func newCluster(dir string, n int, h *host) (*cluster, error) {
	c := &cluster{}
	for i := range n {
		s := &node{name: fmt.Sprintf("n%d", i+1)}
		for _, address := range []*string{&s.client, &s.routes, &s.monitor} {
			var err error
			if *address, err = h.ports.free(); err != nil {
				return nil, err
			}
		}
		if n > 1 {
			var err error
			if s.others, err = proxy.New(s.name, s.routes); err != nil {
				return nil, err
			}
		}
		s.part = &part{name: s.name, role: "server", dir: dir, args: []string{"-c", filepath.Join(dir, s.name+".conf")}}
		c.nodes = append(c.nodes, s)
		var err error
		if h.needed[disks] {
			if s.disk, err = disk.New(s.store()); err != nil {
				return c, err
			}
		}
		if h.stepped != "" {
			if s.clock, err = newClock(s.part, h.stepped); err != nil {
				return c, err
			}
		}
	}
	for _, s := range c.nodes {
		conf := fmt.Sprintf("server_name: %s\nlisten: %q\nhttp: %q\nmax_payload: 8454144\nlame_duck_duration: 30s\nlame_duck_grace_period: 1s\njetstream { store_dir: %q, max_file_store: 200GB }\n",
			s.name, s.client, s.monitor, s.store())
		if n > 1 {
			var routes []string
			for _, o := range c.nodes {
				if o != s {
					routes = append(routes, "nats-route://"+o.others.Address())
				}
			}
			conf += fmt.Sprintf("cluster { name: faults, listen: %q, cluster_advertise: %q, no_advertise: true, routes: [%s] }\n",
				s.routes, s.others.Address(), strings.Join(routes, ", "))
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".conf"), []byte(conf), 0o644); err != nil {
			return c, err
		}
		if err := s.start(); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (s *node) store() string { return filepath.Join(s.dir, s.name) }

// start starts a server, and tells the judge.
func (s *node) start() error {
	off := time.Duration(0)
	if s.clock != nil {
		off = s.clock.off
	}
	if err := s.note(history.Started, off); err != nil {
		return err
	}
	return s.part.start()
}

// note writes down what happens to a server's clock.
func (s *node) note(what string, off time.Duration) error {
	return history.Append(s.dir, history.ServersLog, history.Turn{At: time.Now(), Server: s.name, What: what, Ahead: off}.Line())
}

// setClock steps a server's clock, and writes that down for the judge.
func (s *node) setClock(off time.Duration) error {
	if err := s.note(history.ClockSet, off); err != nil {
		return err
	}
	return s.clock.set(off)
}

// urls of all servers, for who goes to them without proxies.
func (c *cluster) urls() string {
	var urls []string
	for _, s := range c.nodes {
		urls = append(urls, "nats://"+s.client)
	}
	return strings.Join(urls, ",")
}

// partOff cuts a server off from the others, or lets it back.
func (c *cluster) partOff(s *node, on bool) {
	for _, o := range c.nodes {
		o.others.SetCut(s.name, on)
	}
}

// awake waits until a server answers. One that has ended, since somebody else has its port for a moment, is started again.
func (s *node) awake(ctx context.Context) error {
	for {
		conn, err := net.DialTimeout("tcp", s.client, time.Second)
		if err == nil {
			conn.Close()
			return nil
		}
		if !s.running() {
			if err := s.start(); err != nil {
				return err
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("%s does not listen: %w", s.name, err)
		}
	}
}

// end ends all servers. Streams that are on disks of their own go with them, unless they are to be kept.
func (c *cluster) end(keep bool) {
	for _, s := range c.nodes {
		if s.cmd != nil {
			s.kill()
		}
		if s.disk != nil {
			to := ""
			if keep {
				to = s.store() + ".kept"
			}
			if err := s.disk.Remove(to); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		}
		if s.clock != nil {
			s.clock.file.Close()
		}
		if s.others != nil {
			s.others.Close()
		}
	}
}

// connect goes to any of the servers and never gives up.
func connect(urls string) (jetstream.JetStream, error) {
	nc, err := nats.Connect(urls, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(100*time.Millisecond),
		nats.IgnoreDiscoveredServers(), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	return jetstream.New(nc)
}

// pause waits, or says why not.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

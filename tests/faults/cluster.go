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
	client, routes string // addresses it listens at
	others         *proxy // in front of routes; nil for a single server
}

func newCluster(dir string, n int) (*cluster, error) {
	c := &cluster{}
	for i := range n {
		s := &node{name: fmt.Sprintf("n%d", i+1)}
		for _, address := range []*string{&s.client, &s.routes} {
			var err error
			if *address, err = freeAddress(); err != nil {
				return nil, err
			}
		}
		if n > 1 {
			var err error
			if s.others, err = newProxy(s.name, s.routes); err != nil {
				return nil, err
			}
		}
		s.part = &part{name: s.name, role: "server", dir: dir, args: []string{"-c", filepath.Join(dir, s.name+".conf")}}
		c.nodes = append(c.nodes, s)
	}
	for _, s := range c.nodes {
		conf := fmt.Sprintf("server_name: %s\nlisten: %q\nmax_payload: 8454144\nlame_duck_duration: 30s\nlame_duck_grace_period: 1s\njetstream { store_dir: %q, max_file_store: 200GB }\n",
			s.name, s.client, filepath.Join(dir, s.name))
		if n > 1 {
			var routes []string
			for _, o := range c.nodes {
				if o != s {
					routes = append(routes, "nats-route://"+o.others.address())
				}
			}
			conf += fmt.Sprintf("cluster { name: faults, listen: %q, cluster_advertise: %q, no_advertise: true, routes: [%s] }\n",
				s.routes, s.others.address(), strings.Join(routes, ", "))
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".conf"), []byte(conf), 0o644); err != nil {
			return nil, err
		}
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	return c, nil
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
		o.others.setCut(s.name, on)
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

func (c *cluster) end() {
	for _, s := range c.nodes {
		if s.cmd != nil {
			s.kill()
		}
		if s.others != nil {
			s.others.close()
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

// Package broker runs a nats-server with JetStream inside this process and keeps it running.
package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/geniemq/geniemq/internal/lock"
)

// MaxPayload is the largest message the embedded server takes: the largest body of the protocol and
// room for its headers, which count towards the payload.
const MaxPayload = 8<<20 + 64<<10

// readyWait bounds the start of the embedded server, which recovers its streams first.
const readyWait = 2 * time.Minute

// tlsTimeout bounds the handshake of a client.
const tlsTimeout = 5 * time.Second

// Broker is a nats-server with JetStream inside this process, for use without any other server. It is the real server: other
// processes may connect to it, and what a stream has acknowledged survives in the data folder. A lock on the folder keeps a
// second process out.
//
// A Broker owns its server, the lock, and one goroutine, which looks after the server until Shutdown. A server whose disk was
// full refuses messages even when there is room again. The goroutine starts such a server anew, on the same address and with
// what it has stored (see lookAfter), so the server of a Broker changes while its URL stays. Fault says what is wrong meanwhile.
type Broker struct {
	opts     server.Options
	dir      string
	url      string
	log      *slog.Logger
	onListen func(string)
	lost     func(error)
	mended   func(context.Context)
	unlock   func() error
	stop     context.CancelFunc // of the goroutine that looks after the server
	ended    chan struct{}

	server atomic.Pointer[server.Server]
	fault  atomic.Pointer[error] // which may be nil
}

// Options say where a Broker listens and stores.
type Options struct {
	// Listen is the client address; port 0 takes a free one. Default 127.0.0.1:4222.
	Listen string
	// DataDir holds the streams; made when it does not exist.
	DataDir string
	// Name is the server's. Default geniemq. In a cluster each server needs its own.
	Name string
	// Cluster makes it one of the servers of a cluster. Default: it is alone.
	Cluster *Cluster
	// SyncAlways has it write each message to the disk before it acknowledges it. Default: within two minutes, so that a loss of power takes what is younger.
	SyncAlways bool
	// Token is what clients must show. Default: none, everybody is let in.
	Token string
	// TLS is how the server speaks with clients, and then with no one else. Default: nil, without.
	TLS *tls.Config
	// Logger takes the server's own messages. Default: none.
	Logger *slog.Logger
	// OnLost is called when the server had to be started anew and could not be: there is none any longer. Default: none.
	OnLost func(error)
	// OnMended is called after the server was started anew, on the Broker's goroutine. Default: none.
	OnMended func(context.Context)
}

// Cluster is a cluster of servers.
type Cluster struct {
	// Name is the same for all of them.
	Name string
	// Listen is the address for the others; port 0 takes a free one. Default 0.0.0.0:6222.
	Listen string
	// Routes are URLs of the others, nats://host:6222. That of the server itself may be among them.
	Routes []string
	// OnListen is told where the server listens for the others, before it waits for them. Default: none.
	OnListen func(address string)
}

// Start starts the server and waits until it takes connections. The Broker must be shut down. The error for an address that
// is taken wraps syscall.EADDRINUSE, that for a folder in use [lock.ErrHeld].
func Start(ctx context.Context, opts Options) (*Broker, error) {
	opts.Listen = cmp.Or(opts.Listen, "127.0.0.1:4222")
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	host, port, err := listenAddress(opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w", err)
	}
	// The server would only log that its address is taken; asking first makes it an error.
	probe, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w; choose another address with --nats-listen, or name the server that is there with --nats", err)
	}
	probe.Close()

	if err := os.MkdirAll(opts.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("embedded nats-server: its data folder: %w", err)
	}
	unlock, err := lockFolder(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: folder %s: %w", opts.DataDir, err)
	}
	b := &Broker{
		opts: server.Options{
			ServerName: cmp.Or(opts.Name, "geniemq"),
			Host:       host,
			Port:       port,
			MaxPayload: MaxPayload,
			JetStream:  true,
			StoreDir:   opts.DataDir,
			SyncAlways: opts.SyncAlways,
			NoSigs:     true,

			Authorization: opts.Token,
			TLSConfig:     opts.TLS,
			TLSTimeout:    tlsTimeout.Seconds(),
		},
		dir: opts.DataDir, log: opts.Logger.With("part", "nats-server"), lost: opts.OnLost, mended: opts.OnMended, unlock: unlock, ended: make(chan struct{}),
	}
	b.fault.Store(new(error))
	err = b.join(opts.Cluster)
	if err == nil {
		err = b.start(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded nats-server: %w", err), unlock())
	}
	srv := b.server.Load()
	b.url, b.opts.Port = srv.ClientURL(), srv.Addr().(*net.TCPAddr).Port
	if addr := srv.ClusterAddr(); addr != nil { // it has the same when it is started anew
		b.opts.Cluster.Port = addr.Port
	}
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.ended)
		b.lookAfter(ctx)
	}()
	return b, nil
}

// join says of which cluster the server is.
func (b *Broker) join(c *Cluster) (err error) {
	if c == nil {
		return nil
	}
	b.onListen = c.OnListen
	b.opts.Cluster.Name = c.Name
	if b.opts.Cluster.Host, b.opts.Cluster.Port, err = listenAddress(cmp.Or(c.Listen, "0.0.0.0:6222")); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	for _, route := range c.Routes {
		u, err := url.Parse(route)
		if err != nil {
			return errors.New("cluster: a route is no URL") // which may hold a secret
		}
		b.opts.Routes = append(b.opts.Routes, u)
	}
	return nil
}

// start starts a server and waits until it takes connections.
func (b *Broker) start(ctx context.Context) error {
	opts := b.opts // a server writes into its own
	srv, err := server.NewServer(&opts)
	if err != nil {
		return err
	}
	log := &serverLog{log: b.log, failed: make(chan struct{})}
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	if err := b.waitReady(ctx, srv, log); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return err
	}
	b.server.Store(srv)
	return nil
}

func (b *Broker) waitReady(ctx context.Context, srv *server.Server, log *serverLog) error {
	deadline := time.After(readyWait)
	for !srv.ReadyForConnections(10 * time.Millisecond) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-log.failed:
			return errors.New(log.reason)
		case <-deadline:
			return fmt.Errorf("not ready after %v", readyWait)
		default:
		}
	}
	if !srv.JetStreamEnabled() {
		return errors.New("JetStream did not start")
	}
	if addr := srv.ClusterAddr(); addr != nil && b.onListen != nil {
		b.onListen(addr.String())
	}
	for srv.JetStreamIsClustered() && !srv.JetStreamIsCurrent() { // the cluster has no leader yet, or none that this server knows
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return fmt.Errorf("the cluster has no leader after %v: are most of its servers up, and do the routes lead there?", readyWait)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// URL is where clients connect.
func (b *Broker) URL() string { return b.url }

// Shutdown stops the server, syncs its streams and frees the data folder.
func (b *Broker) Shutdown() error {
	b.stop()
	<-b.ended
	b.end()
	return b.unlock()
}

// end stops the server.
func (b *Broker) end() {
	srv := b.server.Load()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// listenAddress splits an address for the server. Its port 0 stands for the default port, and -1 for a free one.
func listenAddress(addr string) (host string, port int, err error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(portText); err != nil {
		return "", 0, fmt.Errorf("address %s: the port must be a number", addr)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// lockFolder takes the folder for this process until unlock is called or the process ends.
func lockFolder(dir string) (unlock func() error, err error) {
	file, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock.File(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}

// serverLog sends the server's log to slog. Its notices do not interest people who started no server,
// so they are debug messages here.
type serverLog struct {
	log    *slog.Logger
	once   sync.Once
	failed chan struct{} // closed after reason is set
	reason string
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  {}
func (l *serverLog) Tracef(format string, v ...any)  {}
func (l *serverLog) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.once.Do(func() {
		l.reason = fmt.Sprintf(format, v...)
		close(l.failed)
	})
}

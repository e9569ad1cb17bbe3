// Package broker runs a nats-server with JetStream inside this process and keeps it running.
package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// MaxPayload is the largest message the embedded server takes: the largest body of the protocol and
// room for its headers, which count towards the payload.
const MaxPayload = 8<<20 + 64<<10

// brokerReadyWait bounds the start of the embedded server, which recovers its streams first.
const brokerReadyWait = 2 * time.Minute

// Broker is a nats-server with JetStream inside this process, for use without any other server. It is the
// real server, so other processes may connect to it, and its streams survive in the data folder, which one
// process at a time may use.
//
// It looks after its server: one that a full disk has made refuse messages, and that would go on refusing them when there is
// room again, is started anew, on the same address and with what it has stored; see mend.
type Broker struct {
	opts   server.Options
	dir    string
	url    string
	log    *slog.Logger
	lost   func(error)
	mended func(context.Context)
	unlock func() error
	stop   context.CancelFunc // of the goroutine that looks after the server
	ended  chan struct{}

	mu     sync.Mutex
	server *server.Server
	fault  error
}

// Options say where a Broker listens and stores.
type Options struct {
	// Listen is the client address; port 0 takes a free one. Default 127.0.0.1:4222.
	Listen string
	// DataDir holds the streams; made when it does not exist. Default ./geniemq-data.
	DataDir string
	// Logger takes the server's own messages. Default: none.
	Logger *slog.Logger
	// OnLost is called when the server had to be started anew and that failed: there is none any longer. Default: none.
	OnLost func(error)
	// OnMended is called when the server was started anew. Default: none.
	OnMended func(context.Context)
}

// ErrDataDirInUse says that another process runs a broker on the same folder.
var ErrDataDirInUse = errors.New("the data folder is in use by another process")

// Start starts the server and waits until it takes connections. The error of an address that is
// taken wraps syscall.EADDRINUSE.
func Start(ctx context.Context, opts Options) (*Broker, error) {
	opts.Listen = cmp.Or(opts.Listen, "127.0.0.1:4222")
	opts.DataDir = cmp.Or(opts.DataDir, "./geniemq-data")
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	host, port, err := listenAddress(opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w", err)
	}
	// The server would only log that its address is taken; asking first makes it an error.
	probe, err := net.Listen("tcp", opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: %w", err)
	}
	probe.Close()

	if err := os.MkdirAll(opts.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("embedded nats-server: making its data folder: %w", err)
	}
	unlock, err := lockFolder(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded nats-server: folder %s: %w", opts.DataDir, err)
	}
	b := &Broker{
		opts: server.Options{
			ServerName: "geniemq",
			Host:       host,
			Port:       port,
			MaxPayload: MaxPayload,
			JetStream:  true,
			StoreDir:   opts.DataDir,
			NoSigs:     true,
		},
		dir: opts.DataDir, log: opts.Logger.With("part", "nats-server"), lost: opts.OnLost, mended: opts.OnMended, unlock: unlock, ended: make(chan struct{}),
	}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded nats-server: %w", err), unlock())
	}
	b.url, b.opts.Port = b.server.ClientURL(), b.server.Addr().(*net.TCPAddr).Port
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(b.ended)
		b.lookAfter(ctx)
	}()
	return b, nil
}

// start starts a server and waits until it takes connections.
func (b *Broker) start(ctx context.Context) error {
	opts := b.opts // a server writes into its own
	srv, err := server.NewServer(&opts)
	if err != nil {
		return err
	}
	log := &brokerLog{log: b.log, failed: make(chan struct{})}
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	if err := waitReady(ctx, srv, log); err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return err
	}
	b.mu.Lock()
	b.server = srv
	b.mu.Unlock()
	return nil
}

func waitReady(ctx context.Context, srv *server.Server, log *brokerLog) error {
	deadline := time.NewTimer(brokerReadyWait)
	defer deadline.Stop()
	for !srv.ReadyForConnections(10 * time.Millisecond) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-log.failed:
			return errors.New(log.reason)
		case <-deadline.C:
			return fmt.Errorf("not ready after %v", brokerReadyWait)
		default:
		}
	}
	if !srv.JetStreamEnabled() {
		return errors.New("JetStream did not start")
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
	b.mu.Lock()
	srv := b.server
	b.mu.Unlock()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// listenAddress splits an address for the server, to whom port 0 means the default port and -1 a free one.
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
	if err := lockFile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}

// brokerLog sends the server's log to slog. Its notices are of no interest to someone who did not start
// a server, so they are debug messages here.
type brokerLog struct {
	log    *slog.Logger
	once   sync.Once
	failed chan struct{} // closed after reason is set
	reason string
}

func (l *brokerLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *brokerLog) Warnf(format string, v ...any)   { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *brokerLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *brokerLog) Debugf(format string, v ...any)  {}
func (l *brokerLog) Tracef(format string, v ...any)  {}
func (l *brokerLog) Fatalf(format string, v ...any) {
	l.Errorf(format, v...)
	l.once.Do(func() {
		l.reason = fmt.Sprintf(format, v...)
		close(l.failed)
	})
}

// Package connection makes connections to NATS servers and hears what servers forbid on them.
package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/natscontext"

	"github.com/geniemq/geniemq/service/config"
)

// Stay connects to the NATS server, uses its JetStream, and stays: a connection that is lost is made again for as long as it takes. The first attempt
// must succeed, so that a wrong address is an error and not a worker that waits for ever. The name tells the connections of a
// process apart, on the server and in the log.
func Stay(servers, name string, cfg *config.Config, log *slog.Logger) (*nats.Conn, jetstream.JetStream, error) {
	log = log.With("connection", name)
	opts := []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // else the second refusal closes it for good, though a secret may be on its way to its file
		nats.ReconnectWait(500 * time.Millisecond),
		nats.Timeout(5 * time.Second),
		nats.PingInterval(10 * time.Second), // a dead peer is noticed within half a minute, not four
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			if !nc.IsClosed() {
				log.Warn("connection to NATS lost, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connected to NATS again", "server", ServerURL(nc))
		}),
	}
	return connect(servers, cfg, opts)
}

// Connect connects to the server of cfg.NATS with the credentials of cfg, for commands that ask, and uses its JetStream. The name is that of the
// connection.
func Connect(cfg *config.Config, name string, opts ...nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	return connect(cfg.NATS, cfg, append([]nats.Option{nats.Name(name)}, opts...))
}

func connect(servers string, cfg *config.Config, opts []nats.Option) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := dial(servers, cfg, opts)
	if err != nil {
		return nil, nil, err
	}
	js, err := JetStreamOf(nc, cfg)
	if err != nil {
		nc.Close()
	}
	return nc, js, err
}

func dial(servers string, cfg *config.Config, opts []nats.Option) (*nats.Conn, error) {
	if cfg.NATSContext != "" {
		return dialContext(cfg, opts)
	}
	if err := config.CheckServers(servers); err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	credentials, err := cfg.NATSOptions()
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	nc, err := nats.Connect(servers, append(opts, credentials...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w%s", config.RedactServers(servers), config.WithoutSecrets(err), connectAdvice(err))
	}
	return nc, nil
}

// JetStreamOf is the use of JetStream over a connection that was made by cfg, in the domain that it says, or under the prefix.
func JetStreamOf(nc *nats.Conn, cfg *config.Config, opts ...jetstream.JetStreamOpt) (js jetstream.JetStream, err error) {
	switch at := &cfg.Streams; {
	case at.Domain != "":
		js, err = jetstream.NewWithDomain(nc, at.Domain, opts...)
	case at.Prefix != "":
		js, err = jetstream.NewWithAPIPrefix(nc, at.Prefix, opts...)
	default:
		js, err = jetstream.New(nc, opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("using JetStream: %w", err)
	}
	return js, nil
}

// dialContext connects as a context of the nats command says. The JetStream domain of the context, or else its API prefix, becomes that of cfg, unless
// cfg names a domain.
func dialContext(cfg *config.Config, opts []nats.Option) (*nats.Conn, error) {
	name := cfg.NATSContext
	nc, settings, err := natscontext.Connect(name, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS by the context %s: %w%s", name, config.WithoutSecrets(err), connectAdvice(err))
	}
	if at := &cfg.Streams; at.Domain == "" && at.Prefix == "" { // and not once more: others read it by then
		switch {
		case settings.JSDomain != "":
			at.Domain = settings.JSDomain
		case settings.JSAPIPrefix != "":
			at.Prefix = settings.JSAPIPrefix
		}
	}
	return nc, nil
}

// ServerURL is the address of the server that a connection has, "" while it has none.
func ServerURL(nc *nats.Conn) string {
	scheme, rest, ok := strings.Cut(nc.ConnectedUrl(), "://")
	if !ok {
		return ""
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}

// connectAdvice says what to do about a failed connection, where the error does not say it itself.
func connectAdvice(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		return "; give credentials with --nats-creds, --nats-token-file, --nats-user and --nats-password-file, or --nats-nkey-file"
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.As(err, &network):
		return "; is a nats-server listening there? (geniemq serve and geniemq demo each start one, unless told of another)"
	}
	return "" // above all a file of --nats-creds or --nats-ca that cannot be read, which the error names
}

// Close sends what is buffered, the last acknowledgements above all, and closes.
func Close(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	var err error
	if nc.IsConnected() {
		err = nc.FlushWithContext(ctx)
	}
	if !nc.IsConnected() {
		err = nil // lost meanwhile, which is no more a fault of this end than if it had been lost before
	}
	closed := nc.StatusChanged(nats.CLOSED)
	nc.Close()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return err
}

// LogErrors logs the errors of a connection. Whoever may publish can cause one per message, so the logger should be limited.
func LogErrors(nc *nats.Conn, log *slog.Logger) {
	nc.SetErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
		log := log
		if sub != nil {
			log = log.With("subject", sub.Subject)
		}
		log.Error("NATS: "+kindOf(err), "error", err)
	})
}

// kindOf is what an error of a connection has in common with others like it: its text up to what it quotes.
func kindOf(err error) string {
	kind, _, _ := strings.Cut(err.Error(), `"`)
	return strings.TrimSpace(strings.TrimPrefix(kind, "nats: "))
}

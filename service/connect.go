package service

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// connect connects to the NATS server and stays: a connection that is lost is made again for as long as it takes.
// The first one must succeed, so that a wrong address is an error and not a service that waits for ever. The name tells a
// process's connections apart, on the server and in the log.
func connect(servers, name string, cfg *Config, log *slog.Logger) (*nats.Conn, error) {
	log = log.With("connection", name)
	opts := []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
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
			log.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
		}),
	}
	if cfg.NATSCreds != "" {
		opts = append(opts, nats.UserCredentials(cfg.NATSCreds))
	}
	if cfg.NATSCA != "" {
		opts = append(opts, nats.RootCAs(cfg.NATSCA))
	}
	nc, err := nats.Connect(servers, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w%s", redacted(servers), err, connectAdvice(err))
	}
	return nc, nil
}

// connectAdvice says what to do about a failed connection, where the error does not say it itself.
func connectAdvice(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired):
		return "; give credentials in the URL or with --nats-creds"
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.As(err, &network):
		return "; is a nats-server listening there?"
	}
	return "" // above all a file of --nats-creds or --nats-ca that cannot be read, which the error names
}

// redacted is a list of server URLs without passwords.
func redacted(servers string) string {
	list := splitList(servers)
	for i, server := range list {
		if u, err := url.Parse(server); err == nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}

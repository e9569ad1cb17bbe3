package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

func (c *cli) serveCommand() *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	var configFile string
	cmd := &cobra.Command{
		Use:   "serve --index NAME=FILE...",
		Short: "Answer queries on indexes",
		Long: `Serve answers the queries that arrive for its indexes: stored ones on the subject
genie.query.NAME, which are never lost, and requests on genie.search.NAME. Any number
of workers may serve the same index; they share the work.

Without --nats it starts a NATS server with JetStream of its own, which other
processes may use. Scripts wait for /readyz on the admin address.

Each setting is a flag (--drain-timeout), an environment variable
(GENIEMQ_DRAIN_TIMEOUT) and a key of the YAML file (drain-timeout); in this order
the first that is given counts. SIGTERM stops pulling, answers what was pulled and
ends; a second one ends at once. SIGHUP takes the new files of the indexes, which were
renamed over the old ones; 'geniemq swap' takes any. On a terminal SIGHUP means that it
is gone, and is the same as SIGTERM.

Exit codes: 0 after SIGTERM or SIGINT, 1 when the service failed, 2 for wrong usage.`,
		Example: `  # everything in one process, with an embedded NATS server
  geniemq serve --index adult=adult.gmq --index words=words.gmq

  # a worker beside others on a NATS cluster; secrets are in files, since others can read the command line (ps)
  geniemq serve --index adult=adult.gmq --nats nats://a:4222,nats://b:4222 --nats-creds geniemq.creds

  # settings from a file, one of them overruled
  cat > geniemq.yaml <<EOF
  index:
    adult: /srv/adult.gmq
  nats: nats://127.0.0.1:4222
  admin: 0.0.0.0:9464
  log-format: json
  EOF
  GENIEMQ_LOG_LEVEL=debug geniemq serve --config geniemq.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.warnOfSecrets(cmd)
			if !cmd.Flags().Changed("config") {
				if path, ok := c.lookupEnv(config.EnvName("config")); ok {
					configFile = path
				}
			}
			err := config.Resolve(cmd.Flags(), c.lookupEnv, configFile)
			cfg.HTTPToken, _ = c.lookupEnv(config.HTTPTokenEnv)
			if err := errors.Join(err, cfg.Validate()); err != nil { // all faults at once
				return usageError{err}
			}
			return c.serve(cmd.Context(), cfg)
		},
	}
	cfg.Flags(cmd.Flags())
	cmd.Flags().StringVar(&configFile, "config", "", "YAML `file` with settings")
	cmd.Flags().SortFlags = false
	return cmd
}

func (c *cli) serve(ctx context.Context, cfg config.Config) error {
	log := c.logger(cfg)
	var running atomic.Pointer[service.Service]
	ctx, stop := c.untilHungUp(ctx, func(ctx context.Context) {
		log.Info("SIGHUP: looking for new files of the indexes; settings are not read anew")
		if srv := running.Load(); srv == nil {
			log.Warn("SIGHUP is ignored: the worker is starting")
		} else if err := srv.Refresh(ctx); err != nil {
			log.Error("not all new files are served", "error", err)
		}
	})
	defer stop()
	srv, err := service.Start(ctx, cfg, service.Options{Logger: log})
	if err != nil {
		return err
	}
	running.Store(srv)
	for _, x := range srv.Status().Indexes {
		fmt.Fprintf(c.err, "index  %s: %s, %s, %s, version %s\n", x.Name, x.Kind, human.Count(x.Objects, "object"), x.Size, x.Version)
	}
	fmt.Fprintf(c.err, "NATS   %s\n", srv.NATSURL())
	if srv.Status().Embedded {
		fmt.Fprintf(c.err, "data   %s\n", cfg.DataDir)
		if old, err := os.Stat(config.EarlierDataFolder); err == nil && old.IsDir() && cfg.DataDir == config.DataFolder() && cfg.DataDir != config.EarlierDataFolder {
			fmt.Fprintf(c.err, "note: the streams of earlier versions in %[1]s are not used; --data-dir %[1]s goes on with them\n", config.EarlierDataFolder)
		}
	}
	if url := srv.AdminURL(); url != "" {
		fmt.Fprintf(c.err, "admin  %s\n", url)
	}
	if url := srv.HTTPURL(); url != "" {
		fmt.Fprintf(c.err, "HTTP   %s/v1/openapi.json\n", url)
	}
	return c.untilStopped(ctx, srv, cfg)
}

// untilStopped waits for the end of ctx or of the service and shuts it down.
func (c *cli) untilStopped(ctx context.Context, srv *service.Service, cfg config.Config) error {
	select {
	case <-ctx.Done():
		fmt.Fprintf(c.err, "stopping: answering what was pulled, up to %v; again to stop at once\n", cfg.DrainTimeout)
	case <-srv.Failed():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.DrainTimeout)
	defer cancel()
	return errors.Join(srv.Err(), srv.Shutdown(stop))
}

// logger writes the service's log beside the messages for people.
func (c *cli) logger(cfg config.Config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.SlogLevel()}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(redacting{c.err}, opts))
	}
	return slog.New(slog.NewTextHandler(redacting{c.err}, opts))
}

// redacting writes lines, each in one call as slog's handlers do, without the secrets that what they quote may hold.
type redacting struct{ to io.Writer }

func (w redacting) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, config.Redact(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

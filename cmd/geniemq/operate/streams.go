// Package operate is what operators do to a deployment.
package operate

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// Around is what a command has of the command line that it is part of.
type Around struct {
	Out io.Writer
	// Settings takes settings from the environment, those of names.
	Settings func(cmd *cobra.Command, names ...string) error
	// Environment is Settings for who asks a worker and no server.
	Environment func(cmd *cobra.Command, names ...string) error
	// Usage makes an error a mistake of the user's.
	Usage func(error) error
}

// Command is `geniemq admin`.
func Command(a Around) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "Look after a deployment",
		Long:  `Admin is for who operates a deployment: it shows and changes what workers share.`,
		Example: `  geniemq admin streams
  geniemq admin streams --replicas 3 --apply`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(streamsCommand(a))
	return cmd
}

// wait bounds what a server is asked for.
const wait = 30 * time.Second

func streamsCommand(a Around) *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	apply := false
	cmd := &cobra.Command{
		Use:   "streams [--apply]",
		Short: "Show the streams, and change them",
		Long: `Streams shows the streams of a deployment: what they hold, who keeps them, and what the
settings that are given would change of them. With --apply it changes them.

The settings are those with which 'serve' makes streams: replicas, stream-bytes,
stream-age, stream-messages, placement-cluster and placement-tags. A worker never
changes a stream that exists. Only what is given is changed; all else stays as it is.

Exit codes: 0 when the streams are as the settings say, or are now; 1 when something is
left to change, or could not be changed; 2 for wrong usage.`,
		Example: `  geniemq admin streams
  geniemq admin streams --replicas 3 --nats nats://a:4222
  geniemq admin streams --replicas 3 --stream-age results=2h --apply`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.Settings(cmd); err != nil {
				return err
			}
			if err := errors.Join(cfg.ValidateAsked(cmd.Flags()), cfg.Streams.Validate()); err != nil {
				return a.Usage(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return showStreams(ctx, a.Out, &cfg, apply)
		},
	}
	flags := cmd.Flags()
	cfg.NATSFlags(flags)
	cfg.Streams.Flags(flags)
	flags.StringVar(&cfg.Prefix, "prefix", cfg.Prefix, "first `token` of all subjects and streams")
	flags.BoolVar(&apply, "apply", false, "change the streams")
	flags.SortFlags = false
	return cmd
}

// ErrLeft says that streams are not as the settings say.
var ErrLeft = errors.New("not all streams are as the settings say: --apply changes them")

func showStreams(ctx context.Context, out io.Writer, cfg *config.Config, apply bool) error {
	subjects, err := wire.NewSubjects(cfg.Prefix)
	if err != nil {
		return err
	}
	nc, js, err := connection.Connect(cfg, "geniemq admin")
	if err != nil {
		return err
	}
	defer nc.Close()
	settings := cfg.Streams.Settings()
	existing, missing, err := settings.Look(ctx, js, subjects)
	if err != nil {
		return err
	}
	t := table.New(table.Text("stream").Whole().Kept(), table.Number("messages").Kept(), table.Number("holds").Kept(), table.Number("of"), table.Number("age"), table.Number("replicas"), table.Text("leader"))
	for _, s := range existing {
		age, leader := "no limit", "-"
		if s.Config.MaxAge > 0 {
			age = s.Config.MaxAge.String()
		}
		if s.Cluster != nil {
			leader = s.Cluster.Leader
		}
		t.Row(s.Config.Name, s.State.Msgs, human.Bytes(int64(s.State.Bytes)), bound(s.Config.MaxBytes), age, s.Config.Replicas, leader)
	}
	page := table.On(out)
	t.Print(page)
	for _, name := range missing {
		page.Say("%s does not exist: a worker makes it when it starts\n", name)
	}
	var faults []error
	left := 0
	for _, s := range existing {
		if len(s.Changes) == 0 {
			continue
		}
		err := error(nil)
		if apply {
			err = streams.Change(ctx, js, s)
		}
		for _, d := range s.Changes {
			switch {
			case err != nil:
			case apply:
				page.Say("%s: %s is %s now, it was %s\n", d.Of, d.Setting, d.Want, d.Have)
			default:
				left++
				page.Say("%s: %s is %s, --apply makes it %s\n", d.Of, d.Setting, d.Have, d.Want)
			}
		}
		faults = append(faults, err)
	}
	if left > 0 {
		return ErrLeft
	}
	return errors.Join(faults...)
}

func bound(bytes int64) string {
	if bytes <= 0 {
		return "no limit"
	}
	return human.Bytes(bytes)
}

package operate

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Indexes are the commands that change what a running worker serves: swap, add and remove.
func (a Around) Indexes() []*cobra.Command { return []*cobra.Command{a.Swap(), a.Add(), a.Remove()} }

// workerFlags are how the worker is found that is to do something.
func workerFlags(cmd *cobra.Command, cfg *config.Config) *cobra.Command {
	cmd.Flags().StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of the worker's admin page")
	cfg.AdminTokenFlag(cmd.Flags())
	return cmd
}

// worker checks how the worker is found, and an index's name unless it is "", and returns the worker's token.
func (a Around) worker(cmd *cobra.Command, cfg *config.Config, name string) (token string, err error) {
	if err := a.Environment(cmd, "admin", "admin-token-file"); err != nil {
		return "", err
	}
	if name != "" && wire.CheckIndexName(name) != nil {
		return "", a.Usage(fmt.Errorf("%q cannot be an index: names are 1 to %d of A-Z a-z 0-9 _ -", name, wire.MaxIndexName))
	}
	if cfg.Admin == config.Off {
		return "", a.Usage(fmt.Errorf("--admin is off: a worker without an admin server takes new files by SIGHUP only, and its indexes neither come nor go"))
	}
	if token, err = cfg.ReadAdminToken(); err != nil {
		return "", a.Usage(err)
	}
	return token, nil
}

// Swap is `geniemq swap`.
func (a Around) Swap() *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	cmd := &cobra.Command{
		Use:   "swap INDEX FILE",
		Short: "Have a running worker serve another file",
		Long: `Swap has a worker on this machine serve the index in FILE under the name INDEX, in the
place of the one that it serves now, while queries are answered. The worker opens the
file, loads it and asks it a query; from then on new queries go to it, and those that
were taken before are answered by the old one.

What is wrong with the file (damaged, another kind, an attribute that is missing) leaves
the old one serving. So does the end of this command before the new one answers.

The worker keeps the file open, and goes back to the one in its settings when it is
started again. SIGHUP has serve take what was renamed over its files.

Exit codes: 0 when the new version answers, 1 when nothing was swapped, 2 for wrong usage.`,
		Example: `  geniemq build --schema people.yaml --input people.csv --output people.gmq
  geniemq swap people people.gmq
  geniemq swap people people-2.gmq --admin 127.0.0.1:9465`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := filepath.Abs(args[1]) // the worker may be in another folder
			if err != nil {
				return fmt.Errorf("finding %s: %w", args[1], err)
			}
			token, err := a.worker(cmd, &cfg, args[0])
			if err != nil {
				return err
			}
			done, err := admin.Swap{Index: args[0], File: file}.Ask(cmd.Context(), cfg.Admin, token)
			if err != nil {
				return fmt.Errorf("index %s: %w", args[0], err)
			}
			fmt.Fprintf(a.Out, "%s: version %s answers, %s did before\n", args[0], done.Version, done.Was)
			return nil
		},
	}
	return workerFlags(cmd, &cfg)
}

// Add is `geniemq add`.
func (a Around) Add() *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	return workerFlags(&cobra.Command{
		Use:   "add [INDEX] FILE",
		Short: "Have a running worker serve one more index",
		Long: `Add has a worker on this machine serve the index in FILE beside those that it serves
now, under the name INDEX, or under the one that is in the file. The worker opens the
file, loads it and asks it a query; when this command ends, queries are answered, also
those that wait in the stream.

A FILE of nats: or nats:NAME stands for what was pushed under INDEX or NAME (geniemq
push): the worker fetches it, and follows what is pushed and rolled back later.

What is wrong with the file, or a name that is served already, leaves all as it is. So
does the end of this command before the index answers.

The worker keeps the file open. When it is started again it serves the indexes of its
settings: add the index to these too if it is to stay.

Exit codes: 0 when the index answers, 1 when nothing was added, 2 for wrong usage.`,
		Example: `  geniemq add cities.gmq
  geniemq add nats:cities
  geniemq add towns cities.gmq --admin 127.0.0.1:9465`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 2 {
				name = args[0]
			}
			file := args[len(args)-1]
			token, err := a.worker(cmd, &cfg, name)
			if err != nil {
				return err
			}
			if _, pushed := (config.IndexSource{Path: file}).Pushed(); !pushed {
				if file, err = filepath.Abs(file); err != nil { // the worker may be in another folder
					return fmt.Errorf("finding %s: %w", args[len(args)-1], err)
				}
			}
			done, err := admin.Add{Index: name, File: file}.Ask(cmd.Context(), cfg.Admin, token)
			if err != nil {
				return fmt.Errorf("adding %s: %w", args[len(args)-1], err)
			}
			fmt.Fprintf(a.Out, "%s: version %s answers\n", done.Index, done.Version)
			return nil
		},
	}, &cfg)
}

// Remove is `geniemq remove`.
func (a Around) Remove() *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	return workerFlags(&cobra.Command{
		Use:   "remove INDEX",
		Short: "Have a running worker serve an index no longer",
		Long: `Remove has a worker on this machine serve INDEX no longer, while it serves the others.
What it took in of the index's queries is answered first, for as long as its setting
drain-timeout says; what is not answered then is given back. Queries in the stream, and
those that come later, wait there for a worker that serves the index, now or when it is
added again. Nobody tells their senders that there is none: the index's durable stays in
the server, and with it the promise to answer. Who wants them answered unknown_index
deletes the durable: nats consumer rm GENIE_QUERIES geniemq-INDEX.

The worker is started with the indexes of its settings again: take the index out of these
too if it is to stay away.

Exit codes: 0 when the index is gone, 1 when it is not, 2 for wrong usage.`,
		Example: `  geniemq remove cities
  geniemq remove cities --admin 127.0.0.1:9465`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, err := a.worker(cmd, &cfg, args[0])
			if err != nil {
				return err
			}
			done, err := admin.Remove{Index: args[0]}.Ask(cmd.Context(), cfg.Admin, token)
			if err != nil {
				return fmt.Errorf("index %s: %w", args[0], err)
			}
			fmt.Fprintf(a.Out, "%s: version %s answers no longer; stored queries wait for a worker that serves it\n", args[0], done.Version)
			if done.Note != "" {
				fmt.Fprintf(a.Out, "%s: %s\n", args[0], done.Note)
			}
			return nil
		},
	}, &cfg)
}

package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

func (c *cli) swapCommand() *cobra.Command {
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
			if err := c.environment(cmd, "admin"); err != nil {
				return err
			}
			if wire.CheckIndexName(args[0]) != nil {
				return usagef("%q cannot be an index: names are 1 to %d of A-Z a-z 0-9 _ -", args[0], wire.MaxIndexName)
			}
			if cfg.Admin == config.Off {
				return usagef("--admin is off: a worker without an admin server takes new files by SIGHUP only")
			}
			file, err := filepath.Abs(args[1]) // the worker may be in another folder
			if err != nil {
				return fmt.Errorf("finding %s: %w", args[1], err)
			}
			done, err := admin.Swap{Index: args[0], File: file}.Ask(cmd.Context(), cfg.Admin)
			if err != nil {
				return fmt.Errorf("index %s: %w", args[0], err)
			}
			fmt.Fprintf(c.out, "%s: version %s answers, %s did before\n", args[0], done.Version, done.Was)
			return nil
		},
	}
	cmd.Flags().StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of the worker's admin page")
	return cmd
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/cmd/geniemq/top"
	"github.com/geniemq/geniemq/service/config"
)

func (c *cli) topCommand() *cobra.Command {
	var cfg config.Config
	cfg.EnsureDefaults()
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what a running worker does",
		Long: `Top shows a worker live: queries per second, how long they take by stage (half of them,
and all but a hundredth), how large batches are and why they were cut, what waits, dead
letters, and who has the engine's memory. Figures are those of the last ten seconds. q ends.

With --once, and where the output is no terminal, it prints the figures of one second.`,
		Example: `  geniemq top
  geniemq top --admin 10.0.0.7:9464
  geniemq top --once --json | jq '.figures.indexes[] | {name, rate}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.environment(cmd, "admin", "admin-token-file"); err != nil {
				return err
			}
			if cfg.Admin == config.Off {
				return usagef("--admin is off: a worker without an admin server does not tell what it does")
			}
			token, err := cfg.ReadAdminToken()
			if err != nil {
				return usageError{err}
			}
			page, worker := table.On(c.out), top.Worker{Addr: cfg.Admin, Token: token}
			if once || asJSON || !page.Terminal() {
				return top.Once(cmd.Context(), page, worker, asJSON)
			}
			return top.Live(cmd.Context(), page, c.in, worker)
		},
	}
	cmd.Flags().StringVar(&cfg.Admin, "admin", cfg.Admin, "`address` of the worker's admin page")
	cfg.AdminTokenFlag(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "print the figures of one second and end")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as JSON")
	return cmd
}

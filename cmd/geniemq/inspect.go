package main

import (
	"bufio"
	"errors"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/inspect"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
)

func (c *cli) inspectCommand() *cobra.Command {
	var verify bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is in an index file",
		Long: `Inspect shows the sizes of an index file, its attributes, how long their postings
lists are, where the bytes go, and what it would take of a GPU's memory in each
of its forms. With --verify it also reads every byte: the
checksum of each section, and that each posting is in range and in order.`,
		Example: `  geniemq inspect adult.gmq
  geniemq inspect --verify adult.gmq          exit code 1 when the file is damaged
  geniemq inspect --json adult.gmq | jq '.attributes[] | {name, bits_per_posting}'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			x, err := index.Open(args[0])
			if err != nil {
				return err
			}
			report, err := inspect.Of(cmd.Context(), x, args[0])
			if err != nil {
				return errors.Join(err, x.Close())
			}
			var fault error
			if verify {
				fault = x.Validate()
				intact := fault == nil
				report.Verified = &intact
			}
			return errors.Join(fault, c.report(cmd, report, report.Table), x.Close())
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "check every section's checksum and every posting")
	reportFlag(cmd)
	return cmd
}

// reportFlag adds the flag by which report goes.
func reportFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("json", false, "JSON (default when the output is no terminal; --json=false for a table)")
}

// report prints what a command found as JSON, or as the tables that it writes for people.
func (c *cli) report(cmd *cobra.Command, found any, tables func(*table.Page)) error {
	asJSON, err := cmd.Flags().GetBool("json")
	if err != nil {
		return err
	}
	if asJSON || !isTerminal(c.out) && !cmd.Flags().Changed("json") {
		return table.On(c.out).JSON(found, "  ")
	}
	out := bufio.NewWriter(c.out)
	tables(table.On(c.out).To(out))
	return out.Flush()
}

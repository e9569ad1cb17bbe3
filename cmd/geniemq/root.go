package main

import (
	"github.com/geniemq/geniemq/service"
	"github.com/spf13/cobra"
)

// root is the command with all its subcommands.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "geniemq",
		Short: "Top-k similarity search behind a message queue",
		Long: `geniemq answers top-k similarity queries that arrive as messages: "most conditions
matched" search on tables, typo-tolerant lookup, near-duplicate detection. Queries
go into NATS JetStream, are accumulated into batches, run against a compressed
inverted index on the CPU or a GPU, and the results come back on reply subjects.`,
		Example: `  geniemq demo                                    see it work, in one process
  geniemq build --schema s.yaml --input data.csv --output adult.gmq
  geniemq serve --index adult=adult.gmq
  geniemq query --index adult '{"row":{"age":{"min":30,"max":40}},"k":5}'`,
		Version:       service.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		c.demoCommand(),
		c.buildCommand(),
		c.inspectCommand(),
		c.serveCommand(),
		c.swapCommand(),
		c.queryCommand(),
		c.benchCommand(),
	)
	return root
}

// Command geniemq builds indexes, serves them over NATS and asks them. `geniemq demo` shows all of it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/dead"
	"github.com/geniemq/geniemq/cmd/geniemq/depots"
	"github.com/geniemq/geniemq/cmd/geniemq/match"
	"github.com/geniemq/geniemq/cmd/geniemq/operate"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service"
)

func main() {
	ctx, stop := signalContext(context.Background())
	code := newCLI(os.Stdin, os.Stdout, os.Stderr, os.LookupEnv).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// signalContext returns a context that ends with the first SIGINT or SIGTERM. A second one ends the
// process at once, for people who do not want to wait for a graceful end.
func signalContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, ok := <-signals; !ok {
			return
		}
		cancel()
		if _, ok := <-signals; ok {
			os.Exit(exitFailed)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}

// matching is what the commands match and dedupe have of this program.
func (c *cli) matching() *match.Host {
	return &match.Host{
		In: c.in, Out: c.out, Err: c.err, Terminal: isTerminal(c.err), Environment: c.environment, Warn: c.warnOfSecrets,
		Usage: func(err error) error { return usageError{err} },
	}
}

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
  geniemq query adult '{"row":{"age":{"min":30,"max":40}},"k":5}'`,
		Version:       service.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.CompletionOptions.HiddenDefaultCmd = true
	around := operate.Around{Out: c.out, Settings: c.natsEnvironment, Environment: c.environment, Usage: func(err error) error { return usageError{err} }}
	root.AddCommand(around.Indexes()...)
	root.AddCommand(
		c.demoCommand(),
		c.initCommand(),
		c.buildCommand(),
		c.inspectCommand(),
		c.serveCommand(),
		operate.Command(around),
		c.planCommand(),
		c.queryCommand(),
		c.explainCommand(),
		c.topCommand(),
		dead.Command(dead.Shell{Settings: c.natsEnvironment, Usage: func(err error) error { return usageError{err} }}),
		c.matching().Match(),
		c.matching().Dedupe(),
		c.benchCommand(),
		c.versionCommand(),
	)
	root.AddCommand(depots.Shell{Out: c.out, Report: c.report, Usage: func(err error) error { return usageError{err} }, Prepare: c.natsEnvironment}.Commands()...)
	root.SetFlagErrorFunc(flagFault)
	inWords(root)
	return root
}

// fitHelp has the help of all commands fit a terminal of so many columns, 0 for none. Examples, which are to be copied, stay as they are.
func fitHelp(root *cobra.Command, width int) {
	if width == 0 {
		return
	}
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "FlagUsages ", fmt.Sprintf("FlagUsagesWrapped %d ", width)))
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.Long = table.Flow(cmd.Long, width)
		help(cmd, args)
	})
}

// versionCommand is --version as a command, as many programs have it.
func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Example: "  geniemq version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.out, "geniemq version %s\n", service.Version())
			return err
		},
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench"
)

func (c *cli) benchBesideCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.BesideOptions
	cmd := &cobra.Command{
		Use:   "beside",
		Short: "Measure who waits for answers beside a bulk user",
		Long: `Beside runs broker, worker and two users in one process over loopback. The interactive user asks at a steady
rate, one query in a message; the bulk user has millions of queries (genie.bulk.<index>.<user>), published as fast as
the stream takes them. The latency of the interactive user is measured alone and beside the bulk, in turns.`,
		Example: `  geniemq bench beside
  geniemq bench beside --workload w4 --bulk 50000000 --rate 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.warnOfSecrets(cmd)
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.Bulk < 1 || opts.BulkMessage < 1 || opts.Rate <= 0 || opts.Rounds < 1 || opts.Time <= 0 {
				return usagef("--bulk, --messages-of, --rate, --rounds and --time must be positive")
			}
			if err := flags.engine.ValidateNATS(); err != nil {
				return usageError{err}
			}
			opts.Config = flags.engine.Config
			return c.benchBeside(cmd.Context(), &flags, opts, c.showing(cmd))
		},
	}
	flags.registerSmall(cmd)
	set := cmd.Flags()
	flags.engine.NATSFlags(set)
	set.IntVar(&opts.Bulk, "bulk", 10_000_000, "queries of the bulk user, over all rounds")
	set.IntVar(&opts.BulkMessage, "messages-of", 256, "queries per message of the bulk user")
	set.Float64Var(&opts.Rate, "rate", 100, "queries per second of the interactive user")
	set.IntVar(&opts.Rounds, "rounds", 5, "rounds of alone and beside, in turns")
	set.DurationVar(&opts.Time, "time", 10*time.Second, "time for which a round measures alone, and the least for which it measures beside bulk")
	return cmd
}

func (c *cli) benchBeside(ctx context.Context, flags *measurementFlags, opts bench.BesideOptions, to *showing) error {
	defer to.End()
	opts.Progress = to.Say
	w, err := c.makeWorkload(ctx, flags, to)
	if err != nil {
		return err
	}
	r, err := bench.Beside(ctx, w, opts)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	r.Command = commandLine()
	if err := to.show(r); err != nil {
		return err
	}
	if r.Wrong > 0 {
		return fmt.Errorf("%d answers differ from the engine's own", r.Wrong)
	}
	return nil
}

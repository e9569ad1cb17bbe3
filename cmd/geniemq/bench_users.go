package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench"
	"github.com/geniemq/geniemq/bench/workload"
)

// benchUserCommands are the measurements of users of a service.
func (c *cli) benchUserCommands() []*cobra.Command {
	return []*cobra.Command{c.benchDirectCommand(), c.benchBesideCommand(), c.benchSoakCommand()}
}

// benchUsers measures users of a service, of its own or another's: one result, and how many answers are wrong.
func (c *cli) benchUsers(cmd *cobra.Command, flags *measurementFlags, measure func(context.Context, *workload.Workload, func(string, ...any)) (any, int, error)) error {
	c.warnOfSecrets(cmd)
	if err := flags.resolve(c, cmd); err != nil {
		return err
	}
	if err := flags.engine.ValidateNATS(); err != nil {
		return usageError{err}
	}
	return c.benchWith(cmd, flags, func(ctx context.Context, w *workload.Workload, say func(string, ...any)) (results []any, fault, err error) {
		r, wrong, err := measure(ctx, w, say)
		if err != nil {
			return nil, nil, err
		}
		return []any{r}, differ(wrong), nil
	})
}

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
			if opts.Bulk < 1 || opts.BulkMessage < 1 || opts.Rate <= 0 || opts.Rounds < 1 || opts.Time <= 0 {
				return usagef("--bulk, --messages-of, --rate, --rounds and --time must be positive")
			}
			return c.benchUsers(cmd, &flags, func(ctx context.Context, w *workload.Workload, say func(string, ...any)) (any, int, error) {
				opts.Config, opts.Progress = flags.engine.Config, say
				r, err := bench.Beside(ctx, w, opts)
				if err != nil {
					return nil, 0, err
				}
				r.Command = commandLine()
				return r, r.Wrong, nil
			})
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

func (c *cli) benchDirectCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.DirectOptions
	cmd := &cobra.Command{
		Use:   "direct",
		Short: "Measure direct search by many callers",
		Long: `Direct runs broker, worker and callers in one process over loopback. Each caller asks one query after the other
(genie.search.<index>), as soon as it has its answer. In turns the same callers ask a NATS micro service that answers
with as many bytes and does nothing else.`,
		Example: `  geniemq bench direct
  geniemq bench direct --workload w4 --callers 256 --connections 32`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Callers < 1 || opts.Connections < 1 || opts.Rounds < 1 || opts.Time <= 0 {
				return usagef("--callers, --connections, --rounds and --time must be positive")
			}
			return c.benchUsers(cmd, &flags, func(ctx context.Context, w *workload.Workload, say func(string, ...any)) (any, int, error) {
				opts.Config, opts.Progress = flags.engine.Config, say
				r, err := bench.Direct(ctx, w, opts)
				if err != nil {
					return nil, 0, err
				}
				r.Command = commandLine()
				return r, r.Wrong, nil
			})
		},
	}
	flags.registerSmall(cmd)
	set := cmd.Flags()
	flags.engine.NATSFlags(set)
	set.IntVar(&opts.Callers, "callers", 64, "callers, each with one query at a time")
	set.IntVar(&opts.Connections, "connections", 8, "connections that the callers share")
	set.IntVar(&opts.Rounds, "rounds", 5, "rounds of service and echo in turns")
	set.DurationVar(&opts.Time, "time", 2*time.Second, "how long a round lasts")
	return cmd
}

func (c *cli) benchSoakCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.SoakOptions
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Watch a worker's memory, goroutines and descriptors at half load",
		Long: `Soak starts geniemq serve as a process of its own, finds out how many queries it answers, asks for half as many and watches
it: resident memory, heap, goroutines and file descriptors. Each is flat, grows or is unclear, by a line through all samples
with its 95 % interval: flat is less than 1 % an hour. The NATS server is not in the process that is watched. The first 5
minutes, or half of the time, are not counted. It ends with 1 if anything grows, or any answer that is compared is wrong.`,
		Example: `  geniemq bench soak
  geniemq bench soak --for 8h --workload w4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.For <= 0 || opts.Load <= 0 || opts.Load > 1 || opts.QueriesPerMessage < 1 || opts.Interval <= 0 {
				return usagef("--for, --messages-of and --interval must be positive, --load more than 0 and at most 1")
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			opts.Serve, opts.Config = []string{self, "serve"}, flags.engine.Config
			return c.benchWith(cmd, &flags, func(ctx context.Context, w *workload.Workload, say func(string, ...any)) (results []any, fault, err error) {
				opts.Progress = say
				r, err := bench.Soak(ctx, w, opts)
				if err != nil {
					return nil, nil, err
				}
				r.Command = commandLine()
				fault = differ(r.Wrong)
				if r.Grows() {
					fault = errors.Join(fault, errors.New("the worker grows: see the figures whose verdict is so"))
				}
				return []any{r}, fault, nil
			})
		},
	}
	flags.registerSmall(cmd)
	set := cmd.Flags()
	set.DurationVar(&opts.For, "for", time.Hour, "how long the worker is watched")
	set.Float64Var(&opts.Load, "load", 0.5, "share of what the worker answers that it is asked for")
	set.IntVar(&opts.QueriesPerMessage, "messages-of", 16, "queries per message")
	set.DurationVar(&opts.Interval, "interval", 5*time.Second, "time between two looks")
	return cmd
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/bench"
	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/cmd/geniemq/measured"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

func (c *cli) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure an engine, or the whole service",
		Long: `Bench makes a workload with a fixed seed, measures, compares a sample of the answers with
brute force, and prints a table per measurement on a terminal, JSON otherwise, one line per
measurement. Times are medians of several runs.`,
		Example: `  geniemq bench engine --workload w4
  geniemq bench service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().Bool("json", false, "JSON, a line per measurement (default when the output is no terminal; --json=false for tables)")
	cmd.AddCommand(c.benchEngineCommand(), c.benchScaleCommand(), c.benchServiceCommand())
	cmd.AddCommand(c.benchUserCommands()...)
	cmd.AddCommand(c.benchNearCommands()...)
	return cmd
}

// showing shows measurements as a command of bench was told.
func (c *cli) showing(cmd *cobra.Command) *measured.Showing {
	flag := cmd.Flags().Lookup("json")
	return measured.NewShowing(c.out, c.err, flag.Value.String() == "true", flag.Changed)
}

// engineFlags are the settings of an engine as serve has them.
type engineFlags struct {
	config.Config
	untried bool
}

// register adds the flags, with an engine and a number of cores (0: all) that are usual.
func (f *engineFlags) register(set *pflag.FlagSet, engine string, threads int) {
	f.EnsureDefaults()
	f.Engine, f.EngineThreads = engine, threads
	f.EngineFlags(set)
	if threads != 0 {
		set.Lookup("engine-threads").Usage = "cores of this host that the engine uses (0: all)"
	}
	set.BoolVar(&f.untried, "untried", false, "take what nobody has measured on a device yet, too")
}

// open opens the engine, and says why it is the CPU's where another was hoped for.
func (f *engineFlags) open(c *cli) (gpuexec.Engine, error) {
	opts, err := f.EngineOptions()
	if err != nil {
		return nil, usageError{err}
	}
	opts.CUDA.Untried = f.untried
	e, err := open.Engine(f.Engine, opts)
	if err != nil {
		return nil, err
	}
	if info := e.Info(); info.Note != "" {
		table.On(c.err).Say("engine: %s on %s%s\n", info.Kind, info.Device, noteOf(info.Note))
	}
	return e, nil
}

// measurementFlags are what measurements of workloads have in common.
type measurementFlags struct {
	workload string
	opts     workload.Options
	engine   engineFlags
}

func (m *measurementFlags) register(cmd *cobra.Command, usual string) {
	flags := cmd.Flags()
	flags.StringVar(&m.workload, "workload", usual, "workload: "+strings.Join(workload.Names(), ", "))
	flags.IntVar(&m.opts.Objects, "objects", 0, "objects (default: the workload's own number)")
	flags.IntVar(&m.opts.Queries, "queries", 0, "queries in the batch (default 1024)")
	flags.IntVar(&m.opts.K, "k", 0, "hits per query; for w2 the candidates (default: the workload's own)")
	flags.Uint64Var(&m.opts.Seed, "seed", 1, "seed of the data and the queries")
	flags.StringVar(&m.opts.Data, "data", filepath.Join("..", "shared", "data"),
		"folder of the real data that w2 (headlines/), w4 (adult/) and w5sift (sift_bigann10k/) grow from")
	flags.IntVar(&m.opts.Reach, "reach", 0, "how many buckets on either side an item of w1 or a number of w4 asks for too (default: the workload's own; negative: none)")
	flags.Float64Var(&m.opts.Filter, "filter", 0, "share of the objects that pass each query's filter, of w6 and w6words (default: no filter)")
	flags.BoolVar(&m.opts.IDF, "idf", false, "weigh the keywords of w3, w6, w6words and w7 by how few objects have them")
	flags.IntVar(&m.opts.IDFScale, "idf-scale", 0, "with --idf, how finely the words of w3 weigh (default: that of columns)")
	flags.Float64Var(&m.opts.Recall, "recall", 0, "share of the nearest neighbours that the index of w5 and w5sift is built for (default 0.95)")
	flags.StringVar(&m.opts.Rescore, "rescore", "", "order the hits of w3, w6, w6words and w7 by a `measure`: bm25, jaccard, dice, cosine, containment (default: by count)")
	flags.IntVar(&m.opts.Candidates, "candidates", 0, "objects that are rescored per query (default 8 for each hit)")
	flags.StringVar(&m.opts.Cache, "cache", "", "`folder` where index files are kept and found again, by workload, objects and seed: empty it after a change to what builds them")
	flags.StringVar(&m.opts.Method, "method", "", "how w1points is searched: scan, tree, cells, permutation (default scan)")
	m.engine.register(flags, gpuexec.Auto, 0)
}

// registerSmall adds the flags with a workload that is small beside the service around it.
func (m *measurementFlags) registerSmall(cmd *cobra.Command) {
	m.register(cmd, "w3")
	// The usage of the other measurements names another default.
	objects, k := cmd.Flags().Lookup("objects"), cmd.Flags().Lookup("k")
	objects.Usage, objects.DefValue, m.opts.Objects = "objects (0: the workload's own number)", "100000", 100_000
	k.Usage, k.DefValue, m.opts.K = "hits per query; for w2 the candidates (0: the workload's own)", "10", 10
}

// resolve takes what the environment says and reports mistakes.
func (m *measurementFlags) resolve(c *cli, cmd *cobra.Command) error {
	if err := c.environment(cmd); err != nil {
		return err
	}
	if !slices.Contains(workload.Names(), m.workload) {
		return usagef("--workload %q is unknown: use one of %s", m.workload, strings.Join(workload.Names(), ", "))
	}
	if m.opts.Objects < 0 || m.opts.Queries < 0 || m.opts.K < 0 {
		return usagef("--objects, --queries and --k must not be negative")
	}
	if uint64(m.opts.Objects) > store.MaxObjects {
		return usagef("--objects is at most %d: an index holds no more", uint32(store.MaxObjects))
	}
	if m.opts.K > gpuexec.MaxK {
		return usagef("--k is at most %d", gpuexec.MaxK)
	}
	if err := m.opts.Check(m.workload); err != nil {
		return usageError{err}
	}
	if m.opts.Reach != 0 && !slices.Contains(bench.RangeWorkloads(), m.workload) {
		return usagef("--reach: the items of %s are no ranges; use --workload %s", m.workload, strings.Join(bench.RangeWorkloads(), " or "))
	}
	if _, err := m.engine.EngineOptions(); err != nil {
		return usageError{err}
	}
	return nil
}

// noteOf is a remark for the end of a line, or nothing.
func noteOf(note string) string {
	if note == "" {
		return ""
	}
	return " (" + note + ")"
}

func (c *cli) benchEngineCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.EngineOptions
	var limits string
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure an engine on a workload",
		Long: `Engine measures batches on an engine without broker or service around it.

Workloads: w1, signatures of SIFT-like vectors (4.5 M objects x 237); w1points, these vectors by distance; w2, titles grown from real
headlines, as sequences (5 M); w3, short documents (6.8 M x 17 words); w4, the Adult census 20 times over
(0.98 M rows x 14) with ranges of +-50 of 1,024 buckets; w4x100, the same to 100 M rows; w5, clustered vectors, and
w5sift, grown from SIFT features (1 M x 128), in the order of their distances; w6, goods with a title, a brand, a
price, tags and a picture of 96 dimensions (5 M), which --filter passes a share of; w6words, those without pictures; w7, market baskets (5 M). They need memory for the objects
and the index: --objects makes them smaller.`,
		Example: `  geniemq bench engine --workload w4 --baseline 64 --scaling
  geniemq bench engine --workload w3 --objects 500000
  geniemq bench engine --workload w6 --filter 0.05
  geniemq bench engine --workload w1 --engine cuda
  geniemq bench engine --workload w1points --engine cuda --untried
  geniemq bench engine --workload w1 --engine cuda --devices 0,1 --device-mode capacity --callers 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.Runs < 0 || opts.Checks < 0 || opts.Callers < 0 || opts.Baseline < 0 {
				return usagef("--runs, --checks, --callers and --baseline must not be negative")
			}
			if limits != "" {
				var err error
				if opts.Limits, err = bench.ReadLimits(limits); err != nil {
					return err
				}
			}
			e, err := flags.engine.open(c)
			if err != nil {
				return err
			}
			return errors.Join(c.benchEngine(cmd.Context(), &flags, e, opts, c.showing(cmd)), e.Close())
		},
	}
	flags.register(cmd, "w4")
	set := cmd.Flags()
	set.IntVar(&opts.Runs, "runs", 7, "measured batches")
	set.IntVar(&opts.Callers, "callers", 0, "also measure the rate of this many callers whose batches overlap")
	set.IntVar(&opts.Checks, "checks", 8, "answers compared with brute force")
	set.IntVar(&opts.Baseline, "baseline", 0, "also compare one core with a flat-array scan, on this many queries")
	set.StringVar(&limits, "limits", "", "`file` with the device's limits, as docs/benchmarks/limits.cu prints them")
	set.StringVar(&opts.Export, "export", "", "`folder` for the vectors and answers of w1, w5 or w5sift, for docs/benchmarks/knn.py")
	set.BoolVar(&opts.Scaling, "scaling", false, "also measure the CPU engine with 1, 2, 4, ... threads")
	return cmd
}

func (c *cli) benchEngine(ctx context.Context, flags *measurementFlags, e gpuexec.Engine, opts bench.EngineOptions, to *measured.Showing) error {
	defer to.End()
	opts.Progress = to.Say
	w, err := c.makeWorkload(ctx, flags, to)
	if err != nil {
		return err
	}
	r, err := bench.Engine(ctx, w, e, opts)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	r.Command = commandLine()
	if err := to.Show(r); err != nil {
		return err
	}
	if wrong := r.Mismatches; wrong > 0 {
		return fmt.Errorf("%d of %d checked answers differ from brute force", wrong, r.Checked)
	}
	if b := r.Baseline; b != nil && b.Mismatches > 0 {
		return fmt.Errorf("%d of %d answers differ from the flat scan", b.Mismatches, b.Queries)
	}
	return nil
}

func (c *cli) benchServiceCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.ServiceOptions
	var profile string
	var columns bool
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Measure the whole service, from publish to answer",
		Long: `Service runs broker, worker and load in one process over loopback and measures durable queries:
throughput with a window of unanswered queries, against an echo worker that only pulls, publishes an answer
of the same size and acks, in turns; then latency at a share of that throughput.`,
		Example: `  geniemq bench service
  geniemq bench service --workload w4 --messages-of 1,16,256 --rounds 9`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.warnOfSecrets(cmd)
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.Queries < 0 || opts.RoundTime < 0 || opts.Rounds < 0 || opts.Window < 0 || opts.Load < 0 || opts.LoadTime < 0 {
				return usagef("--round, --round-time, --rounds, --window, --load and --load-time must not be negative")
			}
			if err := flags.engine.ValidateNATS(); err != nil {
				return usageError{err}
			}
			opts.Config = flags.engine.Config
			if columns {
				opts.HitsForm = wire.HitsColumns
			}
			for _, size := range opts.QueriesPerMessage {
				if size < 1 {
					return usagef("--messages-of takes numbers of queries from 1")
				}
			}
			if profile == "" {
				return c.benchService(cmd, &flags, opts)
			}
			f, err := os.Create(profile)
			if err != nil {
				return err
			}
			if err := pprof.StartCPUProfile(f); err != nil {
				return errors.Join(err, f.Close())
			}
			err = c.benchService(cmd, &flags, opts)
			pprof.StopCPUProfile()
			return errors.Join(err, f.Close())
		},
	}
	flags.registerSmall(cmd)
	set := cmd.Flags()
	flags.engine.NATSFlags(set)
	set.IntSliceVar(&opts.QueriesPerMessage, "messages-of", []int{1, 256}, "queries per message, one measurement each")
	set.BoolVar(&columns, "columns", false, "ask for hits as columns")
	set.BoolVar(&opts.Tables, "tables", false, "send messages of many queries as tables")
	set.IntVar(&opts.Queries, "round", 20_000, "least queries per round")
	set.DurationVar(&opts.RoundTime, "round-time", time.Second, "least time that a round lasts")
	set.IntVar(&opts.Rounds, "rounds", 5, "rounds of service and echo worker in turns")
	set.IntVar(&opts.Window, "window", 4096, "most queries that are sent and not yet answered")
	set.StringVar(&profile, "cpuprofile", "", "`file` for a CPU profile of the whole measurement")
	set.Float64Var(&opts.Load, "load", 0.7, "share of the throughput at which latency is measured")
	set.DurationVar(&opts.LoadTime, "load-time", 5*time.Second, "time for which latency is measured")
	return cmd
}

func (c *cli) benchService(cmd *cobra.Command, flags *measurementFlags, opts bench.ServiceOptions) error {
	return c.benchWith(cmd, flags, func(ctx context.Context, w *workload.Workload, say func(string, ...any)) (all []any, fault, err error) {
		opts.Progress = say
		results, err := bench.Service(ctx, w, opts)
		wrong := 0
		for _, r := range results {
			r.Command = commandLine()
			wrong += r.Wrong
			all = append(all, r)
		}
		return all, differ(wrong), err
	})
}

// benchWith makes the workload, measures with it, and shows the results and then what is wrong with them.
func (c *cli) benchWith(cmd *cobra.Command, flags *measurementFlags, measure func(context.Context, *workload.Workload, func(string, ...any)) (results []any, fault, err error)) error {
	to := c.showing(cmd)
	defer to.End()
	w, err := c.makeWorkload(cmd.Context(), flags, to)
	if err != nil {
		return err
	}
	results, fault, err := measure(cmd.Context(), w, to.Say)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	for _, r := range results {
		if err := to.Show(r); err != nil {
			return err
		}
	}
	return fault
}

// differ is the fault of answers that are compared with the engine's own.
func differ(wrong int) error {
	if wrong > 0 {
		return fmt.Errorf("%d answers differ from the engine's own", wrong)
	}
	return nil
}

func (c *cli) makeWorkload(ctx context.Context, flags *measurementFlags, to *measured.Showing) (*workload.Workload, error) {
	to.Say("making workload %s", flags.workload)
	w, err := workload.New(ctx, flags.workload, flags.opts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: w2, w4 and w5sift grow from real data, say with --data where it lies; the others make their own", err)
	}
	return w, err
}

// commandLine is how the program was called, as a shell would take it for plain arguments, without secrets.
func commandLine() string {
	words := []string{filepath.Base(os.Args[0])}
	for i, arg := range os.Args[1:] {
		servers, ok := strings.CutPrefix(arg, "--nats=")
		switch {
		case ok:
			arg = "--nats=" + config.RedactServers(servers)
		case os.Args[i] == "--nats":
			arg = config.RedactServers(arg)
		}
		words = append(words, config.Redact(arg))
	}
	return strings.Join(words, " ")
}

// axisFlags are the flags of the other measurements that say what is a point here.
var axisFlags = map[string]string{bench.AxisObjects: "objects", bench.AxisQueries: "queries", bench.AxisK: "k", bench.AxisDensity: "reach"}

func (c *cli) benchScaleCommand() *cobra.Command {
	var flags measurementFlags
	var opts bench.EngineOptions
	var axis string
	var points []int
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure how an engine's time grows",
		Long: `Scale measures batches along an axis and prints one line per point: n, objects; q, queries in the batch;
k, hits per query; density, the buckets either way that an item asks for (w1, w4 and w4x100). The index is built once;
along n it grows from point to point. docs/benchmarks/plot.py draws the lines.`,
		Example: `  geniemq bench scale --workload w4 --axis q
  geniemq bench scale --workload w3 --axis n --points 500000,1000000,2000000 --engine cuda`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.resolve(c, cmd); err != nil {
				return err
			}
			if opts.Runs < 0 || opts.Checks < 0 {
				return usagef("--runs and --checks must not be negative")
			}
			if flag := axisFlags[axis]; cmd.Flags().Changed(flag) {
				return usagef("--%s does not go with --axis %s, whose points it would be: use --points", flag, axis)
			}
			if len(points) == 0 {
				points = bench.ScalePoints(axis)
			}
			if err := bench.CheckPoints(flags.workload, axis, points); err != nil {
				return usageError{err}
			}
			e, err := flags.engine.open(c)
			if err != nil {
				return err
			}
			wrong, to := 0, c.showing(cmd)
			opts.Progress = to.Say
			err = bench.Scale(cmd.Context(), flags.workload, flags.opts, e, axis, points, opts, func(r *bench.ScaleResult) error {
				wrong += r.Mismatches
				r.Command = commandLine()
				return to.Show(r)
			})
			if err := errors.Join(err, e.Close()); err != nil {
				return err
			}
			if wrong > 0 {
				return fmt.Errorf("%d checked answers differ from brute force", wrong)
			}
			return nil
		},
	}
	flags.register(cmd, "w4")
	set := cmd.Flags()
	set.StringVar(&axis, "axis", bench.AxisQueries, "axis: "+strings.Join(bench.Axes(), ", "))
	set.IntSliceVar(&points, "points", nil, "points of the axis, ascending (default: by axis)")
	set.IntVar(&opts.Runs, "runs", 7, "measured batches per point")
	set.IntVar(&opts.Checks, "checks", 2, "answers per point that are compared with brute force")
	return cmd
}

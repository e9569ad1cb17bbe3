package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/bench"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service"
)

func (c *cli) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure an engine, or the whole service",
		Long: `Bench makes a workload with a fixed seed, measures, compares a sample of the answers with
brute force, and prints JSON, one line a measurement. Times are medians of several runs.`,
		Example: `  geniemq bench engine --workload w4
  geniemq bench service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.benchEngineCommand(), c.benchScaleCommand(), c.benchServiceCommand())
	return cmd
}

// workloadFlags are the flags of both measurements.
type workloadFlags struct {
	name string
	opts bench.Options
}

func (w *workloadFlags) register(cmd *cobra.Command, workload string) {
	flags := cmd.Flags()
	flags.StringVar(&w.name, "workload", workload, "workload: "+strings.Join(bench.Names(), ", "))
	flags.IntVar(&w.opts.Objects, "objects", 0, "objects (default: the workload's own number)")
	flags.IntVar(&w.opts.Queries, "queries", 0, "queries in the batch (default 1024)")
	flags.IntVar(&w.opts.K, "k", 0, "hits a query; of w2 the candidates (default: the workload's own)")
	flags.Uint64Var(&w.opts.Seed, "seed", 1, "seed of the data and the queries")
	flags.StringVar(&w.opts.Data, "data", filepath.Join("..", "shared", "data"),
		"folder of the real data that w2 (headlines/) and w4 (adult/) grow from")
	flags.IntVar(&w.opts.Reach, "reach", 0, "buckets either way that an item of w1 and a number of w4 asks for (default: the workload's own; negative: none)")
	flags.StringVar(&w.opts.Cache, "cache", "", "`folder` where index files are kept and found again")
}

func (w *workloadFlags) check() error {
	if !slices.Contains(bench.Names(), w.name) {
		return usagef("--workload %q is unknown: use one of %s", w.name, strings.Join(bench.Names(), ", "))
	}
	if w.opts.Objects < 0 || w.opts.Queries < 0 || w.opts.K < 0 {
		return usagef("--objects, --queries and --k must not be negative")
	}
	if w.opts.K > gpuexec.MaxK {
		return usagef("--k is at most %d", gpuexec.MaxK)
	}
	return nil
}

func (c *cli) benchEngineCommand() *cobra.Command {
	var workload workloadFlags
	var opts bench.EngineOptions
	var engine, limits string
	var threads int
	var gpuMemory service.Bytes
	var devices deviceFlags
	cmd := &cobra.Command{
		Use:   "engine",
		Short: "Measure an engine on a workload",
		Long: `Engine measures batches on an engine without broker or service around it.

Workloads: w1, signatures of SIFT-like vectors (4.5 M objects x 237); w2, titles grown from real
headlines, as sequences (5 M); w3, short documents (6.8 M x 17 words); w4, the Adult census 20 times over
(0.98 M rows x 14) with ranges of +-50 of 1,024 buckets; w4x100, the same to 100 M rows. They need memory for
the objects and the index: --objects makes them smaller.`,
		Example: `  geniemq bench engine --workload w4 --baseline 64 --scaling
  geniemq bench engine --workload w3 --objects 500000
  geniemq bench engine --workload w1 --engine cuda
  geniemq bench engine --workload w1 --engine cuda --devices 0,1 --device-mode capacity --callers 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			if err := workload.check(); err != nil {
				return err
			}
			if limits != "" {
				var err error
				if opts.Limits, err = bench.ReadLimits(limits); err != nil {
					return err
				}
			}
			cuda, err := devices.options()
			if err != nil {
				return err
			}
			cuda.Memory = int64(gpuMemory)
			e, err := gpuexec.Open(engine, gpuexec.Options{
				CPU:  gpuexec.CPUOptions{Workers: threads},
				CUDA: cuda,
			})
			if err != nil {
				return err
			}
			return errors.Join(c.benchEngine(cmd.Context(), workload, e, opts), e.Close())
		},
	}
	workload.register(cmd, "w4")
	flags := cmd.Flags()
	flags.StringVar(&engine, "engine", gpuexec.Auto, "auto, cpu or cuda")
	flags.IntVar(&threads, "engine-threads", 0, "threads of the CPU engine (default: all cores)")
	flags.Var(&gpuMemory, "gpu-memory", "`memory` that the CUDA engine may use of a device, like 16GiB (default: nine tenths of what is free)")
	devices.register(cmd)
	flags.IntVar(&opts.Runs, "runs", 7, "measured batches")
	flags.IntVar(&opts.Callers, "callers", 0, "also measure the rate of so many callers whose batches overlap")
	flags.IntVar(&opts.Checks, "checks", 8, "answers compared with brute force")
	flags.IntVar(&opts.Baseline, "baseline", 0, "also compare one core with a flat-array scan on that many queries")
	flags.StringVar(&limits, "limits", "", "`file` with the device's limits, as docs/benchmarks/limits.cu prints them")
	flags.StringVar(&opts.Export, "export", "", "`folder` for the vectors and answers of w1, for docs/benchmarks/knn.py")
	flags.BoolVar(&opts.Scaling, "scaling", false, "also measure the CPU engine with 1, 2, 4, ... threads")
	return cmd
}

func (c *cli) benchEngine(ctx context.Context, workload workloadFlags, e gpuexec.Engine, opts bench.EngineOptions) error {
	w, err := c.makeWorkload(ctx, workload)
	if err != nil {
		return err
	}
	r, err := bench.Engine(ctx, w, e, opts)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	r.Command = commandLine()
	if err := json.NewEncoder(c.out).Encode(r); err != nil {
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
	var workload workloadFlags
	var opts bench.ServiceOptions
	var profile string
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
			if err := c.environment(cmd); err != nil {
				return err
			}
			if err := workload.check(); err != nil {
				return err
			}
			for _, size := range opts.QueriesPerMessage {
				if size < 1 {
					return usagef("--messages-of takes numbers of queries from 1")
				}
			}
			if profile == "" {
				return c.benchService(cmd.Context(), workload, opts)
			}
			f, err := os.Create(profile)
			if err != nil {
				return err
			}
			if err := pprof.StartCPUProfile(f); err != nil {
				return errors.Join(err, f.Close())
			}
			err = c.benchService(cmd.Context(), workload, opts)
			pprof.StopCPUProfile()
			return errors.Join(err, f.Close())
		},
	}
	workload.register(cmd, "w3")
	flags := cmd.Flags()
	flags.Lookup("objects").DefValue, workload.opts.Objects = "100000", 100_000
	flags.Lookup("k").DefValue, workload.opts.K = "10", 10
	flags.StringVar(&opts.Engine, "engine", gpuexec.Auto, "auto, cpu or cuda")
	flags.StringVar(&opts.NATS, "nats", "", "URL of an external server (default: an embedded one)")
	flags.IntSliceVar(&opts.QueriesPerMessage, "messages-of", []int{1, 256}, "queries a message, one measurement each")
	flags.IntVar(&opts.Queries, "round", 20_000, "queries a round")
	flags.IntVar(&opts.Rounds, "rounds", 5, "rounds of service and echo worker in turns")
	flags.IntVar(&opts.Window, "window", 4096, "queries sent and not answered")
	flags.StringVar(&profile, "cpuprofile", "", "`file` for a CPU profile of all of it")
	flags.Float64Var(&opts.Load, "load", 0.7, "share of the throughput at which latency is measured")
	return cmd
}

func (c *cli) benchService(ctx context.Context, workload workloadFlags, opts bench.ServiceOptions) error {
	w, err := c.makeWorkload(ctx, workload)
	if err != nil {
		return err
	}
	results, err := bench.Service(ctx, w, opts)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	wrong := 0
	for _, r := range results {
		r.Command = commandLine()
		wrong += r.Wrong
		if err := json.NewEncoder(c.out).Encode(r); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d answers differ from the engine's own", wrong)
	}
	return nil
}

func (c *cli) makeWorkload(ctx context.Context, workload workloadFlags) (*bench.Workload, error) {
	if isTerminal(c.err) {
		fmt.Fprintf(c.err, "making workload %s ...\n", workload.name)
	}
	return bench.New(ctx, workload.name, workload.opts)
}

// commandLine is how the program was called, as a shell would take it for plain arguments.
func commandLine() string {
	return strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
}

package tests

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// Queries with these k end the worker that runs them, for real.
const (
	markDecode = 60011 // while it is decoded: it is planned then
	markKill   = 60012 // on the engine
	markEncode = 60013 // while its answer is encoded
	markSlow   = 60014 // no harm, but it takes slowQuery on the engine
	markGone   = 60015 // the device is lost, which a worker ends for in an orderly way
)

const slowQuery = 300 * time.Millisecond

// runMortal is a worker, as `geniemq serve` is, with a real engine that dies where it is told to.
func runMortal() {
	var cfg config.Config
	cfg.EnsureDefaults()
	flags := pflag.NewFlagSet("worker", pflag.ExitOnError)
	cfg.Flags(flags)
	_ = flags.Parse(os.Args[1:]) // exits
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	srv, err := service.Start(ctx, cfg, service.Options{Logger: log, OpenEngine: openMortal})
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "NATS  ", srv.NATSURL())
	fmt.Fprintln(os.Stderr, "admin ", srv.AdminURL())
	select {
	case <-ctx.Done():
	case <-srv.Failed():
	}
	end, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	if err := srv.Shutdown(end); err != nil || srv.Err() != nil {
		fmt.Fprintln(os.Stderr, "error:", err, srv.Err())
		os.Exit(1)
	}
}

// startMortal starts such a worker.
func startMortal(t testing.TB, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"=mortal")
	return runCommand(t, cmd)
}

func openMortal(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	return mortal{engine}, err
}

type mortal struct{ gpuexec.Engine }

func (m mortal) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := m.Engine.Load(ctx, snapshot, later...)
	return mortalSearcher{s}, err
}

type mortalSearcher struct{ gpuexec.Searcher }

func die() {
	fmt.Fprintln(os.Stderr, "dying")
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

func (s mortalSearcher) Cost(plan *gpuexec.Plan) int64 {
	if plan.K == markDecode {
		die()
	}
	return s.Searcher.Cost(plan)
}

func (s mortalSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	for i := range plans {
		switch plans[i].K {
		case markKill:
			die()
		case markSlow:
			fmt.Fprintln(os.Stderr, "slow query")
			time.Sleep(slowQuery)
		case markGone:
			return &gpuexec.DeviceError{Op: "launching", Sticky: true, Err: fmt.Errorf("the device fell off the bus")}
		}
	}
	err := s.Searcher.Search(ctx, plans, answers, t)
	for i := range plans {
		if plans[i].K == markEncode { // whoever reads the hits gets a SIGSEGV that Go does not survive
			page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				return err
			}
			answers[i].Hits = unsafe.Slice((*gpuexec.Hit)(unsafe.Pointer(unsafe.SliceData(page))), 1)
		}
	}
	return err
}

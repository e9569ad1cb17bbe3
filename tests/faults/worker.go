package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// wishVariable names the file with what the engine of a worker is to do next. Who obeys removes it.
const wishVariable = "GENIEMQ_FAULTS_WISH"

// Wishes.
const (
	dieBefore = "die before" // in the middle of a batch: the engine has begun
	dieAfter  = "die after"  // the engine is done, no answer is written
	beSlow    = "be slow"    // longer than five times AckWait
	loseIt    = "lose it"    // the device is gone
	noMemory  = "no memory"  // of the device, once, for more than one query: one alone that does not fit is too large
)

// workerRole is a worker as `geniemq serve` is one, with a real engine that can be told to fail.
func workerRole(args []string) error {
	var cfg config.Config
	cfg.EnsureDefaults()
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	cfg.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	swaps := make(chan os.Signal, 1)
	signal.Notify(swaps, syscall.SIGHUP)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	srv, err := service.Start(ctx, cfg, service.Options{Logger: log, OpenEngine: func(kind string, o gpuexec.Options) (gpuexec.Engine, error) {
		e, err := open.Engine(kind, o)
		return frail{e, 6 * cfg.AckWait}, err
	}})
	if err != nil {
		return err
	}
	for ended := false; !ended; {
		select {
		case <-swaps:
			if err := srv.Refresh(ctx); err != nil {
				log.Error("no swap", "error", err)
			}
		case <-ctx.Done():
			ended = true
		case <-srv.Failed():
			ended = true
		}
	}
	end, cancel := context.WithTimeout(context.Background(), cfg.DrainTimeout)
	defer cancel()
	return errors.Join(srv.Shutdown(end), srv.Err())
}

// frail is an engine that can be told to fail.
type frail struct {
	gpuexec.Engine
	slow time.Duration
}

func (f frail) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := f.Engine.Load(ctx, snapshot, later...)
	return frailSearcher{s, f.slow}, err
}

type frailSearcher struct {
	gpuexec.Searcher
	slow time.Duration
}

func (s frailSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	wish := s.wish(len(plans))
	switch wish {
	case dieBefore:
		die()
	case beSlow:
		time.Sleep(s.slow)
	case loseIt:
		return &gpuexec.DeviceError{Op: "launching", Sticky: true, Err: errors.New("the device fell off the bus")}
	case noMemory:
		return &gpuexec.DeviceError{Op: "allocating", OutOfMemory: true, Err: errors.New("out of memory")}
	}
	err := s.Searcher.Search(ctx, plans, answers, t)
	if wish == dieAfter {
		die()
	}
	return err
}

func (s frailSearcher) wish(queries int) string {
	path := os.Getenv(wishVariable)
	text, err := os.ReadFile(path)
	if err != nil || queries == 1 && string(text) == noMemory || os.Remove(path) != nil {
		return ""
	}
	fmt.Fprintln(os.Stderr, "asked to", string(text))
	return string(text)
}

func die() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// Command faults breaks a running geniemq again and again and has an independent judge look at what came of it.
//
//	go run ./tests/faults --for 2h
//	go run ./tests/faults --for 30m --worlds 8
//
// It starts nats-servers (a cluster of three), workers and an asker as processes of their own, injects faults in a random order, and writes what was
// accepted and what was answered to files. The judge is a process that knows nothing but these files and the seed: every query whose publish was
// acknowledged must have exactly one answer, and the right one for the version of the index that the answer names.
//
// Who owns what: the conductor (this process) owns all others and ends them; the asker writes accepted.log, the reader answers.log, the conductor
// excused.log (what a fault withdrew on purpose, such as a purge) and servers.log (what happened to the servers' clocks). All are appended to, line by line, and never changed.
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// roleVariable makes this program one of its parts.
const roleVariable = "GENIEMQ_FAULTS_ROLE"

// Options are the command's.
type Options struct {
	For      time.Duration // how long faults go on; default 1 min
	Count    int           // end a world after so many faults; 0: whenever the time is up
	Seed     uint64        // of the table, the queries and the faults; default random
	Worlds   int           // that are broken at the same time, at least 1
	Servers  int           // of each world, 1 or 3; default 3
	Workers  int           // of each world; default 2
	Rate     int           // queries per second of each world; default 40
	Only     []string      // names of faults; default all
	Dir      string        // for histories, streams and logs; default a temporary one, which stays if anything failed
	AckWait  time.Duration // default 2 s
	Patience time.Duration // within which everything must be answered after a fault has ended; default 3 min
	Log      io.Writer
}

func main() {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		if err := role(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
		return
	}
	o := Options{Log: os.Stderr}
	flags := pflag.NewFlagSet("faults", pflag.ExitOnError)
	flags.DurationVar(&o.For, "for", time.Minute, "how long faults go on")
	flags.IntVar(&o.Count, "count", 0, "end after so many faults of each world")
	flags.IntVar(&o.Worlds, "worlds", 1, "independent worlds that are broken at the same time, each with servers and workers of its own; a core has room for one or two")
	flags.Uint64Var(&o.Seed, "seed", rand.Uint64(), "seed of table, queries and faults; each further world has the next")
	flags.IntVar(&o.Servers, "servers", 3, "nats-servers of each world: 1 or 3")
	flags.IntVar(&o.Workers, "workers", 2, "workers of each world")
	flags.IntVar(&o.Rate, "rate", 40, "queries per second of each world")
	flags.StringSliceVar(&o.Only, "only", nil, "faults to inject: "+strings.Join(names(faults), ", "))
	flags.StringVar(&o.Dir, "dir", "", "folder for histories, streams and logs (default a temporary one)")
	flags.DurationVar(&o.AckWait, "ack-wait", 2*time.Second, "AckWait of the workers")
	flags.DurationVar(&o.Patience, "patience", 3*time.Minute, "within which all is answered after a fault")
	_ = flags.Parse(os.Args[1:]) // exits
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // another interrupt ends it at once
	report, err := Run(ctx, o)
	if report != nil {
		report.Print(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// roles are the parts that are processes of their own.
var roles = map[string]func(args []string) error{
	"server": serverRole,
	"worker": workerRole,
	"asker":  askerRole,
	"reader": readerRole,
	"judge":  judgeRole,
	"clock":  clockRole,
}

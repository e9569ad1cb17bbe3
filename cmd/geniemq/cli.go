package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service/config"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// cli is what commands may touch of the process, so that tests run them with buffers.
type cli struct {
	in        io.Reader
	out       io.Writer // results, and nothing else
	err       io.Writer // messages for people, progress, logs
	lookupEnv func(string) (string, bool)
}

func newCLI(in io.Reader, out, err io.Writer, lookupEnv func(string) (string, bool)) *cli {
	return &cli{in: in, out: out, err: err, lookupEnv: lookupEnv}
}

// usageError is the user's mistake on the command line, in the environment or in a configuration file.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// run runs the command line and returns the exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	// What goes wrong before a command runs is a mistake in its words, flags or arguments.
	started := false
	root := c.root()
	fitHelp(root, table.On(c.out).Width)
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	indent := "geniemq: "
	for line := range strings.SplitSeq(config.Redact(err.Error()), "\n") { // several faults come joined, one per line
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintf(c.err, "%s%s\n", indent, table.Clean(line)) // which may quote what others wrote
			indent = "  "
		}
	}
	if usage := (usageError{}); !started || errors.As(err, &usage) {
		fmt.Fprintf(c.err, "Run '%s --help' for usage.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// inWords makes what cobra says of wrong flags and arguments tell what would be right, of a command and all below it.
func inWords(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w: the command is: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, below := range cmd.Commands() {
		inWords(below)
	}
}

// flagFault says what a flag takes, where cobra has Go's words for it.
func flagFault(_ *cobra.Command, err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	takes := ""
	switch flag := wrong.GetFlag(); flag.Value.Type() {
	case "int", "int64", "uint", "uint32", "uint64":
		takes = "a whole number, such as 10"
	case "float64":
		takes = "a number, such as 0.5"
	case "bool":
		takes = "true or false"
	case "duration":
		takes = "a duration, such as 500ms, 30s or 2h"
	default:
		return err
	}
	return fmt.Errorf("--%s %q: must be %s", wrong.GetFlag().Name, wrong.GetValue(), takes)
}

// isTerminal says whether a person looks at w.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// environment sets the flags named, or all, that the command line left alone from their environment variables.
func (c *cli) environment(cmd *cobra.Command, names ...string) error {
	if err := config.Resolve(cmd.Flags(), c.lookupEnv, "", names...); err != nil {
		return usageError{err}
	}
	return nil
}

// natsEnvironment is environment for a command that connects to a server.
func (c *cli) natsEnvironment(cmd *cobra.Command, names ...string) error {
	c.warnOfSecrets(cmd)
	return c.environment(cmd, names...)
}

// warnOfSecrets says that a secret is where others can see it. It must be called before the environment's settings are taken.
func (c *cli) warnOfSecrets(cmd *cobra.Command) {
	if f := cmd.Flags().Lookup("nats"); f.Changed && config.CommandLineSecret(f.Value.String()) {
		fmt.Fprintf(c.err, "warning: --nats holds a secret, which every user of this machine can read in the list of processes (ps): "+
			"put it into a file (--nats-creds, --nats-token-file, --nats-user with --nats-password-file, --nats-nkey-file) "+
			"or the URL into the environment (%s)\n", config.EnvName("nats"))
	}
}

// untilHungUp returns a context that ends with SIGHUP where that means that the terminal is gone on which the command was
// started: nobody is left to end it. A command without a terminal calls hup instead: operators send the signal to have something read
// anew, and to end without draining is what they want least. stop returns when hup has.
func (c *cli) untilHungUp(parent context.Context, hup func(context.Context)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	onTerminal := (isTerminal(c.in) || isTerminal(c.err)) && !signal.Ignored(syscall.SIGHUP) // which nohup does
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range signals {
			if onTerminal {
				cancel()
				continue
			}
			hup(ctx)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
		<-done
	}
}

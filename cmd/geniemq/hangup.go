package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilHungUp returns a context that ends with SIGHUP where that means that the terminal is gone on which the command was
// started: nobody is left to end it. A command without a terminal ignores the signal, and says so: operators send it to have
// settings and indexes read anew, which for now takes a restart, and to end without draining is what they want least.
func (c *cli) untilHungUp(parent context.Context, say func(string)) (ctx context.Context, stop func()) {
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
			say("SIGHUP is ignored: to have settings and indexes read anew, restart; SIGTERM answers what was pulled and ends")
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		<-done
		cancel()
	}
}

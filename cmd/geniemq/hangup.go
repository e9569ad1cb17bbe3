package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

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

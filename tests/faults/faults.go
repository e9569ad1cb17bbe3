package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// fault is a way to break something. What it breaks stays broken when it returns, or is whole again; the conductor heals everything afterwards.
type fault struct {
	name     string
	clusters bool // of several servers only
	inject   func(context.Context, *world) error
}

func names(all []fault) (names []string) {
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

var faults = []fault{
	{"worker killed: pulled", false, killAt([]byte("$JS.ACK.GENIE_QUERIES"), false, true, 0)},
	{"worker killed: decoding or batching", false, killAt([]byte("$JS.ACK.GENIE_QUERIES"), false, true, 3*time.Millisecond)},
	{"worker killed: executing", false, wish(dieBefore)},
	{"worker killed: executed", false, wish(dieAfter)},
	{"worker killed: before publishing", false, killAt([]byte("HPUB genie.result."), true, false, 0)},
	{"worker killed: published", false, killAt([]byte("HPUB genie.result."), true, true, 0)},
	{"worker killed: before ack", false, killAt([]byte("PUB $JS.ACK.GENIE_QUERIES"), true, false, 0)},
	{"all workers killed", false, killWorkers},
	{"worker stopped", false, stopWorker},
	{"worker cut off", false, cutWorker},
	{"worker not heard", false, holdWorker},
	{"engine slow", false, wish(beSlow)},
	{"device lost", false, wish(loseIt)},
	{"device without memory", false, wish(noMemory)},
	{"rolling restart", false, rollingRestart},
	{"swap", false, swap},
	{"server killed", false, killServer},
	{"leader killed", true, killLeader},
	{"server stopped", false, stopServer},
	{"server parted", true, partServer},
	{"lame duck", false, lameDuck},
	{"result stream full", false, fillResults},
	{"queries purged", false, purgeQueries},
	{"query stream deleted", false, deleteStream},
	{"result stream deleted", false, deleteResults},
	{"durable deleted", false, deleteDurable},
	{"durable changed", false, changeDurable},
}

func (w *world) anyWorker() *worker { return w.workers[w.rng.IntN(len(w.workers))] }
func (w *world) anyServer() *node   { return w.servers.nodes[w.rng.IntN(len(w.servers.nodes))] }

// about is a random time around AckWait: from a quarter of it to three times it.
func (w *world) about() time.Duration {
	return w.options.AckWait/4 + time.Duration(w.rng.Int64N(int64(w.options.AckWait*11/4)))
}

// killAt kills a worker when some bytes pass between it and a server.
func killAt(pattern []byte, upstream, forward bool, later time.Duration) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		own, sprung := w.anyWorker(), make(chan struct{}, len(w.servers.nodes))
		delay := time.Duration(0)
		if later > 0 {
			delay = time.Duration(w.rng.Int64N(int64(later)))
		}
		for _, p := range own.proxies {
			p.set(&trap{pattern: pattern, upstream: upstream, forward: forward, spring: func() {
				time.Sleep(delay)
				own.signal(syscall.SIGKILL)
				sprung <- struct{}{}
			}})
		}
		select {
		case <-sprung:
		case <-own.ended:
		case <-time.After(5 * w.options.AckWait): // the other one had all the work
			fmt.Fprintf(w.options.Log, "%s is killed without %q\n", own.name, pattern)
			own.signal(syscall.SIGKILL)
		}
		<-own.ended
		return nil
	}
}

// wish tells the engine of a worker to fail, and waits until it heard.
func wish(what string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		own := w.anyWorker()
		if err := os.WriteFile(own.wish+".new", []byte(what), 0o644); err != nil {
			return err
		}
		if err := os.Rename(own.wish+".new", own.wish); err != nil {
			return err
		}
		for range 500 {
			if _, err := os.Stat(own.wish); err != nil {
				break
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
}

func killWorkers(_ context.Context, w *world) error {
	for _, own := range w.workers {
		own.signal(syscall.SIGKILL)
	}
	for _, own := range w.workers {
		<-own.ended
	}
	return nil
}

func stopWorker(ctx context.Context, w *world) error {
	w.anyWorker().signal(syscall.SIGSTOP)
	return pause(ctx, w.about())
}

func cutWorker(ctx context.Context, w *world) error {
	for _, p := range w.anyWorker().proxies {
		p.setCut("", true)
	}
	return pause(ctx, w.about())
}

func holdWorker(ctx context.Context, w *world) error {
	for _, p := range w.anyWorker().proxies {
		p.hold(true)
	}
	return pause(ctx, w.about())
}

func rollingRestart(ctx context.Context, w *world) error {
	for _, own := range w.workers {
		own.signal(syscall.SIGTERM)
		select {
		case <-own.ended:
		case <-time.After(w.options.Patience):
			return fmt.Errorf("%s does not end", own.name)
		}
		if err := own.start(); err != nil {
			return err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func swap(_ context.Context, w *world) error {
	w.serving = 1 - w.serving
	if err := replace(w.live, w.versions[w.serving]); err != nil {
		return err
	}
	for _, own := range w.workers {
		own.signal(syscall.SIGHUP)
	}
	return nil
}

func killServer(ctx context.Context, w *world) error {
	w.anyServer().kill()
	return pause(ctx, time.Duration(w.rng.Int64N(int64(w.options.AckWait))))
}

func killLeader(ctx context.Context, w *world) error {
	victim := w.anyServer()
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if s, err := w.js.Stream(ask, w.subjects.QueryStream()); err == nil && s.CachedInfo().Cluster != nil {
		for _, n := range w.servers.nodes {
			if n.name == s.CachedInfo().Cluster.Leader {
				victim = n
			}
		}
	}
	victim.kill()
	return pause(ctx, w.about())
}

func stopServer(ctx context.Context, w *world) error {
	w.anyServer().signal(syscall.SIGSTOP)
	return pause(ctx, w.about())
}

func partServer(ctx context.Context, w *world) error {
	w.servers.partOff(w.anyServer(), true)
	return pause(ctx, 2*w.about())
}

func lameDuck(ctx context.Context, w *world) error {
	s := w.anyServer()
	s.meant.Store(true)
	s.signal(syscall.SIGUSR2)
	select {
	case <-s.ended:
		return nil
	case <-time.After(w.options.Patience):
		return fmt.Errorf("%s does not end", s.name)
	}
}

// fillResults leaves room for a few answers only, for a while.
func fillResults(ctx context.Context, w *world) error {
	limit := func(extra int64) error {
		return w.insist(ctx, "limit the results", func(ctx context.Context) error {
			s, err := w.js.Stream(ctx, w.subjects.ResultStream())
			if err != nil {
				return err
			}
			cfg := s.CachedInfo().Config
			if cfg.MaxMsgs = -1; extra >= 0 {
				cfg.MaxMsgs = int64(s.CachedInfo().State.Msgs) + extra
			}
			_, err = w.js.UpdateStream(ctx, cfg)
			return err
		})
	}
	if err := limit(w.rng.Int64N(20)); err != nil {
		return err
	}
	if err := pause(ctx, w.about()); err != nil {
		return err
	}
	return limit(-1)
}

func purgeQueries(ctx context.Context, w *world) error {
	if err := w.insist(ctx, "purge the queries", func(ctx context.Context) error {
		s, err := w.js.Stream(ctx, w.subjects.QueryStream())
		if err != nil {
			return err
		}
		return s.Purge(ctx)
	}); err != nil {
		return err
	}
	return w.excuse()
}

func deleteStream(ctx context.Context, w *world) error {
	return w.remake(ctx, w.subjects.QueryStream())
}
func deleteResults(ctx context.Context, w *world) error {
	return w.remake(ctx, w.subjects.ResultStream())
}

// remake deletes a stream and makes it anew. What was in it is gone.
func (w *world) remake(ctx context.Context, name string) error {
	if err := w.insist(ctx, "delete "+name, func(ctx context.Context) error {
		err := w.js.DeleteStream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	if err := w.ensureStreams(ctx); err != nil {
		return err
	}
	return w.excuse()
}

func deleteDurable(ctx context.Context, w *world) error {
	return w.insist(ctx, "delete the durable", func(ctx context.Context) error {
		err := w.js.DeleteConsumer(ctx, w.subjects.QueryStream(), w.subjects.Durable(indexName))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		return err
	})
}

// changeDurable does what an operator may: another AckWait and fewer messages at once.
func changeDurable(ctx context.Context, w *world) error {
	return w.insist(ctx, "change the durable", func(ctx context.Context) error {
		c, err := w.js.Consumer(ctx, w.subjects.QueryStream(), w.subjects.Durable(indexName))
		if err != nil {
			return err
		}
		cfg := c.CachedInfo().Config
		cfg.AckWait = w.options.AckWait + time.Duration(w.rng.IntN(1000))*time.Millisecond
		cfg.MaxAckPending = 50 + w.rng.IntN(1000)
		_, err = w.js.UpdateConsumer(ctx, w.subjects.QueryStream(), cfg)
		return err
	})
}

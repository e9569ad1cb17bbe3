package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/proxy"

	"github.com/nats-io/nats.go/jetstream"
)

// fault is a way to break something. What it breaks stays broken when it returns, or is whole again; the conductor heals everything afterwards.
type fault struct {
	name   string
	needs  need
	inject func(context.Context, *world) error
}

// need is what a fault cannot be without.
type need int

const (
	nothing need = iota
	several      // servers
	disks        // file systems of the servers' own, which root may mount
	clocks       // a program whose clock can be stepped, which the go command builds
)

func names(all []fault) (names []string) {
	for _, f := range all {
		names = append(names, f.name)
	}
	return names
}

var faults = []fault{
	{"worker killed: pulled", nothing, killAt([]byte("$JS.ACK.GENIE_QUERIES"), false, true, 0)},
	{"worker killed: decoding or batching", nothing, killAt([]byte("$JS.ACK.GENIE_QUERIES"), false, true, 3*time.Millisecond)},
	{"worker killed: executing", nothing, wish(dieBefore)},
	{"worker killed: executed", nothing, wish(dieAfter)},
	{"worker killed: before publishing", nothing, killAt([]byte("HPUB genie.result."), true, false, 0)},
	{"worker killed: published", nothing, killAt([]byte("HPUB genie.result."), true, true, 0)},
	{"worker killed: before ack", nothing, killAt([]byte("PUB $JS.ACK.GENIE_QUERIES"), true, false, 0)},
	{"all workers killed", nothing, killWorkers},
	{"worker stopped", nothing, stopWorker},
	{"worker cut off", nothing, cutWorker},
	{"worker not heard", nothing, holdWorker},
	{"engine slow", nothing, wish(beSlow)},
	{"device lost", nothing, wish(loseIt)},
	{"device without memory", nothing, wish(noMemory)},
	{"rolling restart", nothing, rollingRestart},
	{"swap", nothing, swap},
	{"server killed", nothing, killServer},
	{"leader killed", several, killLeader},
	{"server stopped", nothing, stopServer},
	{"server parted", several, partServer},
	{"lame duck", nothing, lameDuck},
	{"result stream full", nothing, fillResults},
	{"queries purged", nothing, purgeQueries},
	{"query stream deleted", nothing, deleteStream},
	{"result stream deleted", nothing, deleteResults},
	{"durable deleted", nothing, deleteDurable},
	{"durable changed", nothing, changeDurable},
	{"disk full", disks, fillDisk},
	{"all disks full", disks, fillDisks},
	{"worker's clock stepped", clocks, stepWorker},
	{"server's clock stepped", clocks, stepServer},
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
			p.Set(&proxy.Trap{Pattern: pattern, Upstream: upstream, Forward: forward, Spring: func() {
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
		p.SetCut("", true)
	}
	return pause(ctx, w.about())
}

func holdWorker(ctx context.Context, w *world) error {
	for _, p := range w.anyWorker().proxies {
		p.Hold(true)
	}
	return pause(ctx, w.about())
}

func rollingRestart(ctx context.Context, w *world) error {
	for _, own := range w.workers {
		own.signal(syscall.SIGTERM)
		own.signal(syscall.SIGCONT) // as systemd does: one that another fault has stopped would not hear
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
	s.signal(syscall.SIGCONT)
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

// remake deletes a stream and makes it anew, which needs all servers: another fault that is not over ends here. What was in it is gone.
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
	if err := w.heal(ctx); err != nil {
		return err
	}
	return w.excuse()
}

func deleteDurable(ctx context.Context, w *world) error {
	return w.insist(ctx, "delete the durable", func(ctx context.Context) error {
		err := w.js.DeleteConsumer(ctx, w.subjects.QueryStream(), w.subjects.Durable(crowd.IndexName))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		}
		return err
	})
}

// changeDurable does what an operator may: another AckWait and fewer messages at once.
func changeDurable(ctx context.Context, w *world) error {
	return w.insist(ctx, "change the durable", func(ctx context.Context) error {
		c, err := w.js.Consumer(ctx, w.subjects.QueryStream(), w.subjects.Durable(crowd.IndexName))
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

// fillDisk has one server run out of room. In a cluster it stays so until it is healed.
func fillDisk(ctx context.Context, w *world) error {
	s := w.anyServer()
	fmt.Fprintf(w.options.Log, "the disk of %s is full\n", s.name)
	return w.keepFull(ctx, []*node{s})
}

func fillDisks(ctx context.Context, w *world) error { return w.keepFull(ctx, w.servers.nodes) }

// keepFull leaves some servers no room for a while, whatever they remove.
func (w *world) keepFull(ctx context.Context, nodes []*node) error {
	for end := time.Now().Add(w.about()); time.Now().Before(end); {
		for _, s := range nodes {
			if err := s.disk.Fill(); err != nil {
				return err
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	if len(nodes) == len(w.servers.nodes) { // else nothing works until it is healed, and another fault may need something that does
		return w.freeDisks()
	}
	return nil
}

// step is a random one, forward or back: as many between 0.1 s and 1 s as between 6 min and 1 h.
func (w *world) step() time.Duration {
	const smallest = 100 * time.Millisecond
	d := time.Duration(float64(smallest) * math.Pow(float64(largestStep/smallest), w.rng.Float64()))
	if w.rng.IntN(2) == 0 {
		return -d
	}
	return d
}

func stepWorker(ctx context.Context, w *world) error {
	own, by := w.anyWorker(), w.step()
	fmt.Fprintf(w.options.Log, "the clock of %s is stepped by %v\n", own.name, by)
	if err := own.clock.set(by); err != nil {
		return err
	}
	return pause(ctx, w.about())
}

func stepServer(ctx context.Context, w *world) error {
	s, by := w.anyServer(), w.step()
	fmt.Fprintf(w.options.Log, "the clock of %s is stepped by %v\n", s.name, by)
	if err := s.setClock(by); err != nil {
		return err
	}
	w.setBack = true // now or when it is healed
	return pause(ctx, w.about())
}

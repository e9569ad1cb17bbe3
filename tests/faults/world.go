package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/history"
	"github.com/geniemq/geniemq/tests/faults/proxy"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/wire"
)

// world is everything that can be broken. The conductor's one goroutine owns it, but for what proxies do by themselves.
type world struct {
	options             Options
	dir                 string
	rng                 *rand.Rand
	servers             *cluster
	workers             []*worker
	asker               *part
	reader              *part
	askerEnd, readerEnd io.Closer // their standard inputs: closing them ends them in order
	js                  jetstream.JetStream
	subjects            wire.Subjects

	live     string   // the file that is served
	versions []string // files that it may be
	serving  int

	settled time.Time // all that was accepted before it was answered
	setBack bool      // a server's clock is or was set back since all was answered
	mended  time.Time // when servers were last asked how they are
	byHand  int       // durables that an operator would have deleted, and were

	accepted, answers history.Follower
	pending           map[string]history.Accepted // accepted, neither answered nor excused
	done              map[string]bool
}

// worker reaches each server through a proxy of its own.
type worker struct {
	*part
	wish    string // file
	clock   *clock // nil if it cannot be stepped
	proxies []*proxy.Proxy
}

// newWorld starts everything that the faults of a host need.
func newWorld(ctx context.Context, o Options, dir string, h *host) (w *world, err error) {
	w = &world{options: o, dir: dir, rng: rand.New(rand.NewPCG(o.Seed, 0)), settled: time.Now(), pending: make(map[string]history.Accepted), done: make(map[string]bool)}
	w.accepted, w.answers = history.Follow(dir, history.AcceptedLog), history.Follow(dir, history.AnswersLog)
	defer func() {
		if err != nil {
			w.end(false)
		}
	}()
	if err := w.buildVersions(); err != nil {
		return w, fmt.Errorf("build the indexes: %w", err)
	}
	if w.servers, err = newCluster(dir, o.Servers, h); err != nil {
		return w, fmt.Errorf("start the servers: %w", err)
	}
	for _, s := range w.servers.nodes {
		if err := s.awake(ctx); err != nil {
			return w, err
		}
	}
	if w.js, err = connect(w.servers.urls()); err != nil {
		return w, err
	}
	if err := w.ensureStreams(ctx); err != nil {
		return w, fmt.Errorf("make the streams: %w", err)
	}
	for i := range o.Workers {
		if err := w.addWorker(i, h.stepped); err != nil {
			return w, err
		}
	}
	common := []string{"--urls", w.servers.urls(), "--dir", dir}
	w.reader = &part{name: "reader", role: "reader", dir: dir, args: common}
	w.asker = &part{name: "asker", role: "asker", dir: dir, args: append(common[:len(common):len(common)], "--seed", fmt.Sprint(o.Seed), "--rate", fmt.Sprint(o.Rate))}
	if w.readerEnd, err = w.reader.startWithInput(); err != nil {
		return w, err
	}
	w.askerEnd, err = w.asker.startWithInput()
	return w, err
}

func (w *world) buildVersions() error {
	for i := range uint64(2) {
		path, version, err := crowd.New(w.options.Seed+i).Build(w.dir, fmt.Sprintf("version%d.gmq", i))
		if err != nil {
			return err
		}
		w.versions = append(w.versions, path)
		if err := history.Append(w.dir, history.VersionsLog, fmt.Sprintf("%s\t%d\n", version, w.options.Seed+i)); err != nil {
			return err
		}
	}
	w.live = filepath.Join(w.dir, "live.gmq")
	return replace(w.live, w.versions[0])
}

func (w *world) addWorker(i int, stepped string) (err error) {
	own := &worker{part: &part{name: fmt.Sprintf("w%d", i+1), role: "worker", dir: w.dir}}
	own.wish = filepath.Join(w.dir, own.name+".wish")
	var urls []string
	for _, s := range w.servers.nodes {
		p, err := proxy.New(s.name, s.client)
		if err != nil {
			return err
		}
		own.proxies = append(own.proxies, p)
		urls = append(urls, "nats://"+p.Address())
	}
	own.env = []string{wishVariable + "=" + own.wish}
	own.args = []string{"--index", crowd.IndexName + "=" + w.live, "--nats", strings.Join(urls, ","), "--admin", "off", "--engine", "cpu", "--engine-threads", "1",
		"--ack-wait", w.options.AckWait.String(), "--batch-size", "16"}
	w.workers = append(w.workers, own)
	if stepped != "" {
		if own.clock, err = newClock(own.part, stepped); err != nil {
			return err
		}
	}
	return own.start()
}

// ensureStreams makes the streams that are not there, with as many replicas as there are servers.
func (w *world) ensureStreams(ctx context.Context) error {
	return w.insist(ctx, "make the streams", func(ctx context.Context) error {
		settings := streams.Settings{Age: map[streams.Kind]time.Duration{streams.Results: 24 * time.Hour}} // by the server's clock, which may be stepped before they are read
		if _, err := streams.Ensure(ctx, w.js, settings.Configs(w.subjects, streams.Queries, streams.Results, streams.Dead)); err != nil {
			return err
		}
		for _, name := range []string{w.subjects.QueryStream(), w.subjects.ResultStream(), w.subjects.DeadStream()} {
			s, err := w.js.Stream(ctx, name)
			if err != nil {
				return err
			}
			cfg := s.CachedInfo().Config
			if cfg.Replicas == len(w.servers.nodes) {
				continue
			}
			cfg.Replicas = len(w.servers.nodes)
			if _, err := w.js.UpdateStream(ctx, cfg); err != nil {
				return err
			}
		}
		return nil
	})
}

// insist repeats what a server that is being broken may refuse. Where there is one server, a fault that has it stopped or down ends here: there is no other to ask.
func (w *world) insist(ctx context.Context, what string, try func(context.Context) error) error {
	if all := w.servers.nodes; len(all) == 1 {
		all[0].signal(syscall.SIGCONT)
		if !all[0].running() {
			if err := all[0].start(); err != nil {
				return err
			}
		}
		if err := all[0].awake(ctx); err != nil {
			return err
		}
	}
	end := time.Now().Add(w.options.Patience)
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := w.mend(ctx); err != nil {
			return err
		}
		if err := w.js.Conn().ForceReconnect(); err != nil { // to the next server: this one may be parted from the others
			return fmt.Errorf("%s: go to another server: %w", what, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// heal ends every fault: all that is stopped goes on, all that is cut is joined, all that ended is started again, as a supervisor would.
func (w *world) heal(ctx context.Context) error {
	for _, s := range w.servers.nodes {
		if s.others != nil {
			for _, o := range w.servers.nodes {
				s.others.SetCut(o.name, false)
			}
		}
		s.signal(syscall.SIGCONT)
	}
	if err := errors.Join(w.freeDisks(), w.rightClocks()); err != nil {
		return err
	}
	for _, own := range w.workers {
		for _, p := range own.proxies {
			p.Set(nil)
			p.Hold(false)
			p.SetCut("", false)
		}
		own.signal(syscall.SIGCONT)
		os.Remove(own.wish)
	}
	if err := w.restart(ctx); err != nil {
		return err
	}
	return w.ensureStreams(ctx)
}

// rightClocks ends all steps.
func (w *world) rightClocks() error {
	for _, own := range w.workers {
		if own.clock != nil && own.clock.off != 0 {
			if err := own.clock.set(0); err != nil {
				return err
			}
		}
	}
	for _, s := range w.servers.nodes {
		if s.clock != nil && s.clock.off != 0 {
			if err := s.setClock(0); err != nil {
				return err
			}
		}
	}
	return nil
}

// restart starts what has ended.
func (w *world) restart(ctx context.Context) error {
	for _, s := range w.servers.nodes {
		if !s.running() {
			if err := s.start(); err != nil {
				return err
			}
		}
		if err := s.awake(ctx); err != nil {
			return err
		}
	}
	if err := w.mend(ctx); err != nil {
		return err
	}
	for _, own := range w.workers {
		if !own.running() {
			if err := own.start(); err != nil {
				return err
			}
		}
	}
	if !w.asker.running() || !w.reader.running() {
		return errors.New("the asker or the reader has ended, which nobody told it to: see its log")
	}
	return nil
}

// look takes in what the histories have got.
func (w *world) look() error {
	if err := w.accepted.Next(func(f []string) error {
		a, err := history.ParseAccepted(f)
		if err == nil && !w.done[a.ID] {
			w.pending[a.ID] = a
		}
		return err
	}); err != nil {
		return err
	}
	return w.answers.Next(func(f []string) error {
		a, err := history.ParseAnswered(f)
		delete(w.pending, a.ID)
		w.done[a.ID] = true
		return err
	})
}

// lateLine is how long after its moment a line of the asker's may be written, on a machine that is busy.
const lateLine = 30 * time.Second

// excuse writes down that what was published since all was answered, and until now, may be withdrawn.
func (w *world) excuse() error {
	excuse := history.Excuse{From: w.settled.Add(-lateLine), To: time.Now()}
	if err := history.Append(w.dir, history.ExcusedLog, excuse.Line()); err != nil {
		return err
	}
	if err := w.look(); err != nil {
		return err
	}
	for id, a := range w.pending {
		if excuse.Covers(a) {
			delete(w.pending, id)
			w.done[id] = true
		}
	}
	return nil
}

// settle waits until everything that was accepted before a moment is answered, and says how long after the moment that was. Workers that end
// meanwhile are started again.
func (w *world) settle(ctx context.Context, moment time.Time) (time.Duration, error) {
	for {
		if err := w.look(); err != nil {
			return 0, err
		}
		var oldest *history.Accepted
		for _, a := range w.pending {
			if a.Stored.Before(moment) && (oldest == nil || a.Stored.Before(oldest.Stored)) {
				oldest = &a
			}
		}
		switch waited := time.Since(moment); {
		case oldest == nil:
			w.setBack, w.settled = false, moment
			for _, s := range w.servers.nodes {
				s.freed = time.Time{}
			}
			return waited, nil
		case w.setBack && waited > 5*w.options.AckWait:
			if err := w.redeliver(ctx); err != nil {
				return waited, err
			}
		case waited > w.options.Patience:
			return waited, fmt.Errorf("%s, accepted %v ago, has no answer", oldest.ID, time.Since(oldest.Stored))
		}
		if err := w.restart(ctx); err != nil {
			return 0, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// redeliver does what docs/delivery.md says of a server's clock that was set back: what was with a worker that died waits until the clock is again what it was. A durable
// that is deleted is made anew by the workers, and delivers all of it at once. It is done only if the oldest message that is not settled was delivered, and stays
// what it is: anything else that is not answered is a fault.
func (w *world) redeliver(ctx context.Context) error {
	first, err := w.oldestOut(ctx)
	if err != nil {
		return err
	}
	if err := pause(ctx, 2*w.options.AckWait); err != nil {
		return err
	}
	if second, err := w.oldestOut(ctx); err != nil || first == 0 || second != first {
		return err
	}
	w.setBack = false
	fmt.Fprintln(w.options.Log, "the durable is deleted, since a server's clock was set back")
	w.byHand++
	return deleteDurable(ctx, w)
}

// oldestOut is the oldest message that was delivered and is not settled, 0 if there is none.
func (w *world) oldestOut(ctx context.Context) (sequence uint64, err error) {
	return sequence, w.insist(ctx, "look at the durable", func(ctx context.Context) error {
		sequence = 0
		c, err := w.js.Consumer(ctx, w.subjects.QueryStream(), w.subjects.Durable(crowd.IndexName))
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		if info := c.CachedInfo(); info.NumAckPending > 0 {
			sequence = info.AckFloor.Stream + 1
		}
		return nil
	})
}

// finish lets the asker end, and waits for all answers.
func (w *world) finish(ctx context.Context) error {
	w.askerEnd.Close()
	select {
	case <-w.asker.ended:
	case <-time.After(w.options.Patience):
		return errors.New("the asker's last queries were never acknowledged")
	}
	w.asker.meant.Store(true)
	defer func() {
		w.readerEnd.Close()
		<-w.reader.ended
	}()
	for {
		if err := w.look(); err != nil {
			return err
		}
		if len(w.pending) == 0 {
			return pause(ctx, w.options.AckWait+time.Second) // for answers that should not be
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		// Whatever is still not answered, the judge will say.
		if w.tooLate() {
			return nil
		}
	}
}

func (w *world) tooLate() bool {
	for _, a := range w.pending {
		if time.Since(a.Stored) < w.options.Patience {
			return false
		}
	}
	return true
}

// end ends all parts. keep says that the streams may be looked at afterwards.
func (w *world) end(keep bool) {
	for _, own := range w.workers {
		if own.cmd != nil {
			own.kill()
		}
		if own.clock != nil {
			own.clock.file.Close()
		}
		for _, p := range own.proxies {
			p.Close()
		}
	}
	for _, p := range []*part{w.asker, w.reader} {
		if p != nil && p.cmd != nil {
			p.kill()
		}
	}
	if w.js != nil {
		w.js.Conn().Close()
	}
	if w.servers != nil {
		w.servers.end(keep)
	}
}

// replace puts a copy of a file in another's place, whole or not at all.
func replace(path, by string) error {
	data, err := os.ReadFile(by)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// Report is what a run found, of all its worlds.
//
// Worlds have nothing in common but the host: each has servers, workers, ports, a folder, a random order of faults and a judge of its own, and its seed is the run's plus
// its number less one. One that fails ends, and its folder stays; the others go on. So hours and faults add up over worlds: they are those of so many clusters, each
// for as long as its row says, and not of one cluster for the sum.
type Report struct {
	Took     time.Duration // of the whole run
	Outcomes []*Outcome    // by world
	Missing  map[string]error
}

// Run breaks worlds until the time is up. The folder stays if anything was wrong, or was named.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, temporary := o.Dir, o.Dir == ""
	var err error
	if temporary {
		dir, err = os.MkdirTemp("", "geniemq-faults-")
	} else if err = os.MkdirAll(dir, 0o755); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, err
	}
	h, err := newHost(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	r := &Report{Missing: h.missing}
	began := time.Now()
	log := &sharedLog{to: o.Log}
	var running sync.WaitGroup
	for i := range max(o.Worlds, 1) {
		own, out := o, &Outcome{World: i + 1, Seed: o.Seed + uint64(i), Dir: filepath.Join(dir, fmt.Sprintf("world%d", i+1)), Recovery: make(map[string][]time.Duration)}
		own.Seed, own.Log = out.Seed, log.of(out.World, o.Worlds)
		r.Outcomes = append(r.Outcomes, out)
		running.Go(func() {
			if out.Err = h.run(ctx, own, out); out.Err != nil {
				fmt.Fprintln(own.Log, "ends:", out.Err)
			}
		})
	}
	running.Wait()
	r.Took = time.Since(began)
	var failed []error
	for _, out := range r.Outcomes {
		if out.Err != nil {
			failed = append(failed, fmt.Errorf("world %d, see %s: %w", out.World, out.Dir, out.Err))
		} else if temporary {
			os.RemoveAll(out.Dir)
		}
	}
	if temporary && len(failed) == 0 {
		os.RemoveAll(dir)
	}
	return r, errors.Join(failed...)
}

// sharedLog is written to by all worlds, a line at a time.
type sharedLog struct {
	mu sync.Mutex
	to io.Writer
}

// of is the log of a world, which says its number if there are others.
func (l *sharedLog) of(world, worlds int) io.Writer {
	prefix := ""
	if worlds > 1 {
		prefix = fmt.Sprintf("world %d: ", world)
	}
	return worldLog{l, prefix}
}

type worldLog struct {
	*sharedLog
	prefix string
}

func (l worldLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := io.WriteString(l.to, l.prefix+string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Sum is what all worlds come to.
func (r *Report) Sum() *Outcome {
	sum := &Outcome{Recovery: make(map[string][]time.Duration)}
	for _, o := range r.Outcomes {
		sum.Took, sum.Faults, sum.ByHand = sum.Took+o.Took, sum.Faults+o.Faults, sum.ByHand+o.ByHand
		sum.Verdict.Add(o.Verdict)
		for name, all := range o.Recovery {
			sum.Recovery[name] = append(sum.Recovery[name], all...)
		}
	}
	return sum
}

// Print writes the report for people.
func (r *Report) Print(to io.Writer) {
	sum := r.Sum()
	v := &sum.Verdict
	fmt.Fprintf(to, "%d faults in %v of %d worlds, which took %v\n", sum.Faults, sum.Took.Round(time.Second), len(r.Outcomes), r.Took.Round(time.Second))
	fmt.Fprintf(to, "accepted %d, answered %d, withdrawn %d, by %d versions: lost %d, doubled %d, wrong %d\n",
		v.Accepted, v.Answered, v.Withdrawn, v.Versions, v.Lost, v.Doubled, v.Wrong)
	fmt.Fprintf(to, "by servers' clocks that were set: %d expired, %d answered again beyond the window, %d durables deleted by hand\n", v.Expired, v.Again, sum.ByHand)
	for _, name := range slices.Sorted(maps.Keys(r.Missing)) {
		fmt.Fprintf(to, "not injected: %s: %v\n", name, r.Missing[name])
	}
	for _, e := range v.Examples {
		fmt.Fprintln(to, e)
	}
	page := table.On(to)
	worlds := table.New(table.Number("world").Kept(), table.Number("seed").Kept(), table.Number("took").Kept(), table.Number("faults").Kept(), table.Number("accepted").Kept(),
		table.Number("answered").Kept(), table.Number("withdrawn").Kept(), table.Number("lost").Kept(), table.Number("doubled").Kept(), table.Number("wrong").Kept(), table.Text("end").Kept())
	for _, o := range r.Outcomes {
		worlds.Row(o.World, o.Seed, o.Took.Round(time.Second), o.Faults, o.Verdict.Accepted, o.Verdict.Answered, o.Verdict.Withdrawn, o.Verdict.Lost, o.Verdict.Doubled, o.Verdict.Wrong, o.end())
	}
	fmt.Fprintln(to)
	worlds.Print(page)
	times := table.New(table.Number("times").Kept(), table.Number("recovered p50").Kept(), table.Number("max").Kept(), table.Text("after").Kept())
	for _, name := range names(faults) {
		if all := slices.Sorted(slices.Values(sum.Recovery[name])); len(all) > 0 {
			times.Row(len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), name)
		}
	}
	fmt.Fprintln(to)
	times.Print(page)
}

// end says how a world ended, in a line.
func (o *Outcome) end() string {
	if o.Err == nil {
		return "time was up"
	}
	line, _, _ := strings.Cut(o.Err.Error(), "\n")
	return line
}

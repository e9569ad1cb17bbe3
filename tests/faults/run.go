package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/geniemq/geniemq/tests/faults/disk"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// Report is what a run found.
type Report struct {
	Seed     uint64
	Dir      string
	Took     time.Duration
	Faults   int
	Recovery map[string][]time.Duration // by fault, from its end until all that was accepted before is answered
	Missing  map[string]error           // faults that could not be injected here, and why
	ByHand   int                        // durables that were deleted as docs/delivery.md says
	Verdict  Verdict
}

// Run breaks things until the time is up, and has the judge look at it. The folder stays if anything was wrong, or was named.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	chosen, err := choose(o)
	if err != nil {
		return nil, err
	}
	dir, temporary := o.Dir, o.Dir == ""
	if temporary {
		if dir, err = os.MkdirTemp("", "geniemq-faults-"); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	fmt.Fprintf(o.Log, "seed %d, folder %s\n", o.Seed, dir)
	began := time.Now()
	r := &Report{Seed: o.Seed, Dir: dir, Recovery: make(map[string][]time.Duration), Missing: make(map[string]error)}
	chosen, needed := r.possible(ctx, chosen, dir, o.Log)
	if len(chosen) == 0 {
		return r, errors.New("none of these faults can be injected here")
	}
	w, err := newWorld(ctx, o, dir, needed)
	if err != nil {
		return nil, err
	}
	defer func() { w.end(err != nil) }()
	err = w.breakThings(ctx, chosen, r)
	err = errors.Join(err, w.finish(ctx))
	r.Took, r.ByHand = time.Since(began), w.byHand
	if judged := r.judge(); judged != nil {
		return r, errors.Join(err, judged)
	}
	if v := r.Verdict; v.Lost+v.Doubled+v.Wrong > 0 {
		err = errors.Join(err, errors.New("answers are lost, doubled or wrong"))
	}
	if err == nil && temporary {
		os.RemoveAll(dir)
	}
	return r, err
}

// choose gives the faults that are wanted and possible.
func choose(o Options) (chosen []fault, err error) {
	for _, name := range o.Only {
		if !slices.Contains(names(faults), name) {
			return nil, fmt.Errorf("there is no fault %q; there are %q", name, names(faults))
		}
	}
	for _, f := range faults {
		if (len(o.Only) == 0 || slices.Contains(o.Only, f.name)) && (f.needs != several || o.Servers > 1) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("none of these faults can happen to a single server")
	}
	return chosen, nil
}

// possible leaves out what cannot be injected here, says so, and says what the rest needs.
func (r *Report) possible(ctx context.Context, chosen []fault, dir string, log io.Writer) (left []fault, needed map[need]bool) {
	needed = make(map[need]bool)
	missing := make(map[need]error)
	for _, f := range chosen {
		if _, known := missing[f.needs]; !known {
			missing[f.needs] = f.needs.try(ctx, dir)
		}
		if err := missing[f.needs]; err != nil {
			fmt.Fprintf(log, "%s is not injected: %v\n", f.name, err)
			r.Missing[f.name] = err
			continue
		}
		needed[f.needs] = true
		left = append(left, f)
	}
	return left, needed
}

// try says why something cannot be had here, or nil.
func (n need) try(ctx context.Context, dir string) error {
	switch n {
	case disks:
		d, err := disk.New(filepath.Join(dir, "disk"))
		if err == nil {
			err = d.Remove("")
		}
		return err
	case clocks:
		return buildStepped(ctx, dir)
	}
	return nil
}

// breakThings injects all chosen faults, again and again, in another order each time; now and then two at once.
func (w *world) breakThings(ctx context.Context, chosen []fault, r *Report) error {
	if _, err := w.settle(ctx, time.Now()); err != nil {
		return fmt.Errorf("before any fault: %w", err)
	}
	end := time.Now().Add(w.options.For)
	for {
		for _, i := range w.rng.Perm(len(chosen)) {
			if w.options.Count > 0 && r.Faults >= w.options.Count || w.options.Count == 0 && time.Now().After(end) {
				return nil
			}
			f := chosen[i]
			r.Faults++
			if err := f.inject(ctx, w); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			if w.rng.IntN(6) == 0 { // another one before this one is over
				second := chosen[w.rng.IntN(len(chosen))]
				r.Faults++
				if err := second.inject(ctx, w); err != nil {
					return fmt.Errorf("%s during %s: %w", second.name, f.name, err)
				}
			}
			if err := w.heal(ctx); err != nil {
				return fmt.Errorf("after %s: %w", f.name, err)
			}
			took, err := w.settle(ctx, time.Now())
			if err != nil {
				return fmt.Errorf("after %s: %w", f.name, err)
			}
			r.Recovery[f.name] = append(r.Recovery[f.name], took)
			fmt.Fprintf(w.options.Log, "%d %s: recovered in %v\n", r.Faults, f.name, took.Round(time.Millisecond))
		}
	}
}

// judge lets a process that knows only the folder and the seed say what it finds.
func (r *Report) judge() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "--dir", r.Dir, "--seed", fmt.Sprint(r.Seed))
	cmd.Env = append(os.Environ(), roleVariable+"=judge")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the judge: %w", err)
	}
	return json.Unmarshal(out, &r.Verdict)
}

// Print writes the report for people.
func (r *Report) Print(to io.Writer) {
	v := r.Verdict
	fmt.Fprintf(to, "seed %d, %d faults in %v\n", r.Seed, r.Faults, r.Took.Round(time.Second))
	fmt.Fprintf(to, "accepted %d, answered %d, withdrawn %d, by %d versions: lost %d, doubled %d, wrong %d\n",
		v.Accepted, v.Answered, v.Withdrawn, v.Versions, v.Lost, v.Doubled, v.Wrong)
	fmt.Fprintf(to, "by servers' clocks that were set: %d expired, %d answered again beyond the window, %d durables deleted by hand\n\n", v.Expired, v.Again, r.ByHand)
	for _, name := range names(faults) {
		if err := r.Missing[name]; err != nil {
			fmt.Fprintf(to, "not injected: %s: %v\n", name, err)
		}
	}
	for _, e := range v.Examples {
		fmt.Fprintln(to, e)
	}
	times := table.New(table.Number("times").Kept(), table.Number("recovered p50").Kept(), table.Number("max").Kept(), table.Text("after").Kept())
	for _, name := range names(faults) {
		if all := slices.Sorted(slices.Values(r.Recovery[name])); len(all) > 0 {
			times.Row(len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), name)
		}
	}
	times.Print(table.On(to))
}

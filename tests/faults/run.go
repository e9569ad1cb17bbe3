package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/tests/faults/disk"
	"github.com/geniemq/geniemq/tests/faults/judge"
)

// Outcome is what came of one world.
type Outcome struct {
	World    int // from 1
	Seed     uint64
	Dir      string
	Took     time.Duration // from the first fault until the last one that was recovered from: waiting in vain counts for nothing
	Faults   int
	Recovery map[string][]time.Duration // by fault, from its end until all that was accepted before is answered
	ByHand   int                        // durables that were deleted as docs/delivery.md says
	Verdict  judge.Verdict
	Err      error // why it ended early, or what the judge found
}

// host is what the worlds of a run have in common.
type host struct {
	chosen  []fault
	needed  map[need]bool
	missing map[string]error // faults that cannot be injected here, and why
	stepped string           // the program whose clock can be stepped, if clocks are needed
	ports   ports
}

// newHost finds out what can be injected here, and builds what that takes.
func newHost(ctx context.Context, o Options, dir string) (*host, error) {
	chosen, err := choose(o)
	if err != nil {
		return nil, err
	}
	h := &host{needed: make(map[need]bool), missing: make(map[string]error)}
	missing := make(map[need]error)
	for _, f := range chosen {
		if _, known := missing[f.needs]; !known {
			missing[f.needs] = f.needs.try(ctx, dir)
		}
		if err := missing[f.needs]; err != nil {
			fmt.Fprintf(o.Log, "%s is not injected: %v\n", f.name, err)
			h.missing[f.name] = err
			continue
		}
		h.needed[f.needs] = true
		h.chosen = append(h.chosen, f)
	}
	if h.needed[clocks] {
		h.stepped = steppedProgram(dir)
	}
	if len(h.chosen) == 0 {
		return h, errors.New("none of these faults can be injected here")
	}
	return h, nil
}

// choose gives the faults that are wanted and can happen to so many servers.
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

// run breaks one world until its time is up or something does not recover, and has the judge look at it.
func (h *host) run(ctx context.Context, o Options, out *Outcome) error {
	if err := os.MkdirAll(out.Dir, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(o.Log, "seed %d, folder %s\n", o.Seed, out.Dir)
	w, err := newWorld(ctx, o, out.Dir, h)
	if err != nil {
		return err
	}
	defer func() { w.end(err != nil) }()
	err = w.breakThings(ctx, h.chosen, out)
	if ctx.Err() != nil { // who interrupts it wants to know what came of it so far
		ctx = context.WithoutCancel(ctx)
		err = w.heal(ctx)
	}
	err = errors.Join(err, w.finish(ctx))
	out.ByHand = w.byHand
	if judged := out.judge(); judged != nil {
		err = errors.Join(err, judged)
	} else if out.Verdict.Faulty() {
		err = errors.Join(err, errors.New("answers are lost, doubled or wrong"))
	}
	return err
}

// breakThings injects all chosen faults, again and again, in another order each time; now and then two at once.
func (w *world) breakThings(ctx context.Context, chosen []fault, out *Outcome) error {
	for began := time.Now(); len(w.done) == 0; {
		if _, err := w.settle(ctx, time.Now()); err != nil {
			return fmt.Errorf("before any fault: %w", err)
		}
		if time.Since(began) > w.options.Patience {
			return errors.New("before any fault: nothing is answered")
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	began := time.Now()
	end := began.Add(w.options.For)
	for {
		for _, i := range w.rng.Perm(len(chosen)) {
			if w.options.Count > 0 && out.Faults >= w.options.Count || w.options.Count == 0 && time.Now().After(end) {
				return nil
			}
			f := chosen[i]
			out.Faults++
			if err := f.inject(ctx, w); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			if w.rng.IntN(6) == 0 { // another one before this one is over
				second := chosen[w.rng.IntN(len(chosen))]
				out.Faults++
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
			out.Recovery[f.name], out.Took = append(out.Recovery[f.name], took), time.Since(began)
			fmt.Fprintf(w.options.Log, "%d %s: recovered in %v\n", out.Faults, f.name, took.Round(time.Millisecond))
		}
	}
}

// judge lets a process that knows only the folder and the seed say what it finds.
func (o *Outcome) judge() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "--dir", o.Dir, "--seed", fmt.Sprint(o.Seed))
	cmd.Env = append(os.Environ(), roleVariable+"=judge")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("the judge: %w", err)
	}
	return json.Unmarshal(out, &o.Verdict)
}

// judgeRole prints the verdict as JSON.
func judgeRole(args []string) error {
	flags := pflag.NewFlagSet("judge", pflag.ContinueOnError)
	dir, seed := flags.String("dir", "", ""), flags.Uint64("seed", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := judge.Judge(*dir, *seed)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

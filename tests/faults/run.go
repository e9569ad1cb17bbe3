package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"
	"time"
)

// Report is what a run found.
type Report struct {
	Seed     uint64
	Dir      string
	Took     time.Duration
	Faults   int
	Recovery map[string][]time.Duration // by fault, from its end until all that was accepted before is answered
	Verdict  Verdict
}

// Run breaks things until the time is up, and has the judge look at it. The folder stays if anything was wrong, or was named.
func Run(ctx context.Context, o Options) (*Report, error) {
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
	w, err := newWorld(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer w.end()
	r := &Report{Seed: o.Seed, Dir: dir, Recovery: make(map[string][]time.Duration)}
	err = w.breakThings(ctx, chosen, r)
	err = errors.Join(err, w.finish(ctx))
	r.Took = time.Since(began)
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
		if (len(o.Only) == 0 || slices.Contains(o.Only, f.name)) && (!f.clusters || o.Servers > 1) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("none of these faults can happen to a single server")
	}
	return chosen, nil
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
	fmt.Fprintf(to, "accepted %d, answered %d, withdrawn %d, by %d versions: lost %d, doubled %d, wrong %d\n\n",
		v.Accepted, v.Answered, v.Withdrawn, v.Versions, v.Lost, v.Doubled, v.Wrong)
	for _, e := range v.Examples {
		fmt.Fprintln(to, e)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "times\trecovered p50\tmax\t  after\t")
	for _, name := range names(faults) {
		if all := slices.Sorted(slices.Values(r.Recovery[name])); len(all) > 0 {
			fmt.Fprintf(table, "%d\t%v\t%v\t  %s\t\n", len(all), all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), name)
		}
	}
	table.Flush()
}

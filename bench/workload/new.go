package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/store"
)

var names = []string{"w1", "w2", "w3", "w4", "w4x100"}

// Names returns the names that New accepts.
func Names() []string { return slices.Clone(names) }

// New makes the workload of that name: w1 (sift-like signatures), w2 (title-like sequences), w3 (short documents),
// w4 (Adult rows 20 times over) or w4x100 (to 100 M rows).
func New(ctx context.Context, name string, opts Options) (*Workload, error) {
	if uint64(max(0, opts.Objects)) > store.MaxObjects {
		return nil, fmt.Errorf("an index holds at most %d objects, workload %s cannot have %d", uint32(store.MaxObjects), name, opts.Objects)
	}
	var w *Workload
	var err error
	opts.name = name
	switch name {
	case "w1":
		opts.ensureDefaults(4_500_000, 100)
		w, err = signatures(ctx, opts)
	case "w2":
		opts.ensureDefaults(5_000_000, 32)
		w, err = titles(ctx, opts)
	case "w3":
		opts.ensureDefaults(6_800_000, 100)
		w, err = documents(ctx, opts)
	case "w4":
		opts.ensureDefaults(20*adultRows, 100)
		opts.Reach = cmp.Or(opts.Reach, adultReach)
		w, err = adult(ctx, opts)
	case "w4x100":
		opts.ensureDefaults(100_000_000, 100)
		opts.Reach = cmp.Or(opts.Reach, adultReach)
		w, err = adult(ctx, opts)
	default:
		return nil, fmt.Errorf("no workload is called %q; there are %v", name, names)
	}
	if err != nil {
		return nil, fmt.Errorf("making workload %s: %w", name, err)
	}
	w.Name, w.Options = name, opts
	for _, a := range w.Index.Attributes() {
		w.Postings += a.Postings
	}
	return w, nil
}

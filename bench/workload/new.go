package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

var names = []string{"w1", "w1points", "w2", "w3", "w4", "w4x100", "w5", "w5sift", "w6", "w6words", "w7"}

// Names returns the names that New accepts.
func Names() []string { return slices.Clone(names) }

// New makes the workload of that name: w1 (sift-like signatures), w1points (their points), w2 (title-like sequences), w3 (short documents),
// w4 (Adult rows 20 times over), w4x100 (to 100 M rows), w5 and w5sift (vectors), w6 and w6words (mixed records with and without vectors) or w7 (baskets).
func New(ctx context.Context, name string, opts Options) (*Workload, error) {
	if uint64(max(0, opts.Objects)) > store.MaxObjects {
		return nil, fmt.Errorf("an index holds at most %d objects, workload %s cannot have %d", uint32(store.MaxObjects), name, opts.Objects)
	}
	kind, ok := map[string]struct {
		make              func(context.Context, Options) (*Workload, error)
		objects, k, reach int
	}{
		"w1":       {signatures, 4_500_000, 100, 0},
		"w1points": {points, 4_500_000, 10, 0},
		"w2":       {titles, 5_000_000, 32, 0},
		"w3":       {documents, 6_800_000, 100, 0},
		"w4":       {adult, 20 * adultRows, 100, adultReach},
		"w4x100":   {adult, 100_000_000, 100, adultReach},
		"w5":       {neighboursOf((*Options).clusters), 1_000_000, 10, 0},
		"w5sift":   {neighboursOf((*Options).sift), 1_000_000, 10, 0},
		"w6":       {mixedOf(true), 5_000_000, 100, 0},
		"w6words":  {mixedOf(false), 5_000_000, 100, 0},
		"w7":       {baskets, 5_000_000, 100, 0},
	}[name]
	if !ok {
		return nil, fmt.Errorf("no workload is called %q; there are %v", name, names)
	}
	opts.name = name
	opts.Objects, opts.K = cmp.Or(opts.Objects, kind.objects), cmp.Or(opts.K, kind.k)
	opts.Queries, opts.Seed, opts.Reach = cmp.Or(opts.Queries, 1024), cmp.Or(opts.Seed, 1), cmp.Or(opts.Reach, kind.reach)
	if err := opts.Check(name); err != nil {
		return nil, err
	}
	w, err := kind.make(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("making workload %s: %w", name, err)
	}
	w.Name, w.Options = name, opts
	if opts.Rescore != "" {
		w.rescore()
	}
	if err := w.plan(); err != nil {
		return nil, fmt.Errorf("planning the queries of workload %s: %w", name, err)
	}
	for _, a := range w.Index.Attributes() {
		w.Postings += a.Postings
	}
	return w, nil
}

// Check refuses what a workload of that name has not.
func (o *Options) Check(name string) error {
	if o.Filter != 0 && !slices.Contains(filtered, name) {
		return fmt.Errorf("workload %s has nothing to filter by: use w6", name)
	}
	if !(o.Filter >= 0 && o.Filter <= 1) {
		return fmt.Errorf("a filter passes a share of the objects, 0 to 1, not %v", o.Filter)
	}
	if o.IDF && !slices.Contains(weighed, name) {
		return fmt.Errorf("the keywords of workload %s do not weigh by rarity: those of %v do", name, weighed)
	}
	if o.IDFScale != 0 && (name != "w3" || !o.IDF || o.IDFScale < 1 || o.IDFScale > schema.MaxIDFScale) {
		return fmt.Errorf("a scale of weights is 1 to %d, and of w3 whose words weigh", schema.MaxIDFScale)
	}
	if o.Method != "" && name != "w1points" || !slices.Contains(methods, o.Method) {
		return fmt.Errorf("method %q: w1points is searched by %v", o.Method, methods[1:])
	}
	if o.Recall != 0 && !slices.Contains(vectored, name) && o.Method != "cells" && o.Method != "permutation" {
		return fmt.Errorf("workload %s is built for no recall: %v are", name, vectored)
	}
	if !(o.Recall >= 0 && o.Recall < 1) {
		return fmt.Errorf("a recall is above 0 and below 1, not %v", o.Recall)
	}
	if o.Rescore != "" && !slices.Contains(rescored, name) {
		return fmt.Errorf("the hits of workload %s are in no order but their own: %v can be rescored", name, rescored)
	}
	if measures := []string{"", "bm25", "jaccard", "dice", "cosine", "containment"}; !slices.Contains(measures, o.Rescore) {
		return fmt.Errorf("no workload is rescored by %q: use %s", o.Rescore, strings.Join(measures[1:], ", "))
	}
	if o.Candidates < 0 || o.Candidates > gpuexec.MaxK || o.Candidates > 0 && o.Rescore == "" && !slices.Contains(vectored, name) {
		return fmt.Errorf("%d candidates: 1 to %d are rescored, where hits are", o.Candidates, gpuexec.MaxK)
	}
	return nil
}

// vectored are the workloads of vectors.
var vectored = []string{"w5", "w5sift"}

// weighed are the workloads with Options.IDF.
var weighed = []string{"w3", "w6", "w6words", "w7"}

// filtered are the workloads with Options.Filter.
var filtered = []string{"w6", "w6words"}

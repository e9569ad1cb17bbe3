package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W1points are the points of w1 themselves, in the order of their distances (l2): what w1's signatures estimate. Options.Method says how they are searched; without,
// all are compared.

func points(ctx context.Context, opts Options) (*Workload, error) {
	paths := scanMethod
	if opts.Method != "" && opts.Method != scanMethod {
		paths += ", " + opts.Method
	}
	opts.name = fmt.Sprintf("%s-%s", opts.name, cmp.Or(opts.Method, scanMethod))
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "name: points\ncolumns:\n- {name: vector, type: vector, metric: l2, dims: %d, index: [%s]}\n", latentDims, paths))
	if err != nil {
		return nil, err
	}
	object := func(dst []float32, id int) []float32 {
		var x [latentDims]float32
		point(&x, opts.Seed, latentClusters, id)
		return append(dst[:0], x[:]...)
	}
	w, err := buildRecords(ctx, spec, opts, func(rec *schema.Record, id int) {
		rec.Cells[0].Values = rec.Cells[0].Values[:0]
		rec.Cells[0].Vector = object(rec.Cells[0].Vector, id)
	})
	if err != nil {
		return nil, err
	}
	w.vectors = &vectors{objects: opts.Objects, object: object}
	for i := range opts.Queries {
		var x [latentDims]float32
		src := newSource(opts.Seed, 'q', uint64(i))
		point(&x, opts.Seed, latentClusters, src.intn(opts.Objects))
		disturb(&x, &src)
		w.vectors.queries = append(w.vectors.queries, x[:])
		query := wire.Query{K: opts.K, Vector: x[:], Near: wire.Near{Method: cmp.Or(opts.Method, scanMethod), Recall: opts.Recall}}
		query.EnsureDefaults()
		w.Queries = append(w.Queries, query)
	}
	w.valued = true
	return w, nil
}

// scanMethod compares with all objects.
const scanMethod = "scan"

// methods are what Options.Method may be, of w1points.
var methods = []string{"", scanMethod, "tree", "cells", "permutation"}

// valueOf is what l2 orders by, as index/metric/sums says, written down plainly.
func valueOf(q, o []float32) float64 {
	var s [8]float64
	for i, e := range q {
		d := float64(e) - float64(o[i])
		s[i%8] += float64(d * d)
	}
	return float64(float64(s[0]+s[1])+float64(s[2]+s[3])) + float64(float64(s[4]+s[5])+float64(s[6]+s[7]))
}

// checkValues holds an answer against brute force, to the bit: of what is exact the hits, of anything else the value of each.
func (w *Workload) checkValues(i int, got gpuexec.Answer) error {
	query := w.vectors.queries[i]
	if !got.Exact {
		for j, h := range got.Hits {
			if v := valueOf(query, w.vectors.object(nil, int(h.ID))); v != h.Score {
				return fmt.Errorf("query %d: hit %d, object %d, has value %v, want %v", i, j, h.ID, h.Score, v)
			}
		}
		return nil
	}
	k := w.Options.K
	var want []gpuexec.Hit
	order := func(a, b gpuexec.Hit) int { return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.ID, b.ID)) }
	var mu sync.Mutex
	parallel(w.vectors.objects, func(lo, hi int) {
		var own []gpuexec.Hit
		var x []float32
		for id := lo; id < hi; id++ {
			x = w.vectors.object(x, id)
			own = append(own, gpuexec.Hit{ID: uint32(id), Score: valueOf(query, x)})
			if len(own) >= 4*k+1024 {
				slices.SortFunc(own, order)
				own = own[:k]
			}
		}
		mu.Lock()
		defer mu.Unlock()
		want = append(want, own...)
	})
	slices.SortFunc(want, order)
	want = want[:min(k, len(want))]
	if !slices.Equal(got.Hits, want) {
		return fmt.Errorf("query %d: the hits are %v, want %v", i, got.Hits[:min(10, len(got.Hits))], want[:min(10, len(want))])
	}
	return nil
}

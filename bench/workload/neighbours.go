package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W5, vectors: points in clusters in 32 dimensions, as those of w1 are, seen in 128 by a fixed random map; w5sift, the 10,000 SIFT
// features of BIGANN grown by perturbation. Hash functions are chosen for a recall, and hits rescored by their distances. A
// query is a disturbed object; w5sift's are disturbed copies of the data set's own.
const (
	neighbourDims     = 128
	neighbourClusters = 1_000
	neighbourRecall   = 0.95
	siftNoise         = 10.0 // standard deviation of an element of a copy
)

// cloud makes the vectors of a workload: of an object, or of a query. They are functions of the number.
type cloud struct {
	object, query func(dst []float32, id int) []float32
	keep          string
}

// clusters is the cloud of w5.
func (opts *Options) clusters() (*cloud, error) {
	var axes [neighbourDims][latentDims]float32
	src := newSource(opts.Seed, 'm')
	for i := range axes {
		for d := 0; d < latentDims; d += 2 {
			a, b := src.gauss()
			axes[i][d], axes[i][d+1] = float32(a/math.Sqrt(latentDims)), float32(b/math.Sqrt(latentDims))
		}
	}
	lift := func(dst []float32, x *[latentDims]float32) []float32 {
		dst = dst[:0]
		for i := range axes {
			sum := float32(0)
			for d, v := range x {
				sum += float32(axes[i][d] * v)
			}
			dst = append(dst, sum)
		}
		return dst
	}
	return &cloud{
		object: func(dst []float32, id int) []float32 {
			var x [latentDims]float32
			point(&x, opts.Seed, neighbourClusters, id)
			return lift(dst, &x)
		},
		query: func(dst []float32, i int) []float32 {
			var x [latentDims]float32
			src := newSource(opts.Seed, 'q', uint64(i))
			point(&x, opts.Seed, neighbourClusters, src.intn(opts.Objects))
			disturb(&x, &src)
			return lift(dst, &x)
		},
		keep: "f32",
	}, nil
}

// sift is the cloud of w5sift.
func (opts *Options) sift() (*cloud, error) {
	base, err := readVectors(filepath.Join(opts.Data, "sift_bigann10k", "base.bvecs.gz"))
	if err != nil {
		return nil, err
	}
	queries, err := readVectors(filepath.Join(opts.Data, "sift_bigann10k", "queries.bvecs"))
	if err != nil {
		return nil, err
	}
	copyOf := func(dst []float32, rows [][]float32, id int, stream uint64) []float32 {
		src := newSource(opts.Seed, stream, uint64(id))
		row := rows[id%len(rows)]
		dst = dst[:0]
		for d := 0; d < len(row); d += 2 {
			a, b := src.gauss()
			for j, noise := range [2]float64{a, b} {
				v := float64(row[d+j])
				if id >= len(rows) { // the first are those of the file
					v = min(max(math.Round(v+siftNoise*noise), 0), 255)
				}
				dst = append(dst, float32(v))
			}
		}
		return dst
	}
	return &cloud{
		object: func(dst []float32, id int) []float32 { return copyOf(dst, base, id, 'o') },
		query:  func(dst []float32, id int) []float32 { return copyOf(dst, queries, id, 'q') },
		keep:   "u8",
	}, nil
}

// readVectors reads a file of vectors.
func readVectors(path string) ([][]float32, error) {
	spec, err := index.Builtin().ParseSchema([]byte("name: vectors\ncolumns:\n- {name: vector, type: vector}\n"))
	if err != nil {
		return nil, err
	}
	r, err := load.Open(path, spec, load.Options{})
	if err != nil {
		return nil, err
	}
	records, err := r.All(nil)
	rows := make([][]float32, len(records))
	for i := range rows {
		rows[i] = records[i].Cells[0].Vector
	}
	return rows, errors.Join(err, r.Close())
}

func neighboursOf(make func(*Options) (*cloud, error)) func(context.Context, Options) (*Workload, error) {
	return func(ctx context.Context, opts Options) (*Workload, error) {
		cloud, err := make(&opts)
		if err != nil {
			return nil, err
		}
		return neighbours(ctx, opts, cloud)
	}
}

func neighbours(ctx context.Context, opts Options, cloud *cloud) (*Workload, error) {
	recall := cmp.Or(opts.Recall, neighbourRecall)
	opts.name = fmt.Sprintf("%s-%g", opts.name, recall)
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "name: vectors\ncolumns:\n- {name: vector, type: vector, recall: %g, keep: %s}\n", recall, cloud.keep))
	if err != nil {
		return nil, err
	}
	record := func(rec *schema.Record, id int) {
		rec.Cells[0].Values = rec.Cells[0].Values[:0]
		rec.Cells[0].Vector = cloud.object(rec.Cells[0].Vector, id)
	}
	w, err := buildLearned(ctx, spec, opts, record, true)
	if err != nil {
		return nil, err
	}
	w.vectors = &vectors{objects: opts.Objects, object: cloud.object}
	for i := range opts.Queries {
		asked := cloud.query(nil, i)
		w.vectors.queries = append(w.vectors.queries, asked)
		query := wire.Query{K: opts.K, Vector: asked, Rescore: &wire.Rescore{By: "l2"}, Candidates: opts.Candidates}
		query.EnsureDefaults()
		w.Queries = append(w.Queries, query)
	}
	w.near = true
	return w, nil
}

// buildLearned is buildRecords, for records with vectors after their hash functions were chosen.
func buildLearned(ctx context.Context, spec *schema.Schema, opts Options, record func(rec *schema.Record, id int), vectors bool) (*Workload, error) {
	start := time.Now()
	if vectors {
		if err := learn(spec, opts.Objects, record); err != nil {
			return nil, err
		}
	}
	w, err := buildRecords(ctx, spec, opts, record)
	if err == nil {
		w.Build = time.Since(start)
	}
	return w, err
}

// learn chooses hash functions from the first objects.
func learn(spec *schema.Schema, objects int, record func(rec *schema.Record, id int)) error {
	id := 0
	_, err := index.Builtin().Learn(spec, func(rec *schema.Record) error {
		if id == objects {
			return io.EOF
		}
		*rec = *newRecord(len(spec.Columns))
		record(rec, id)
		id++
		return nil
	}, nil)
	if err != nil {
		return fmt.Errorf("choosing hash functions: %w", err)
	}
	return nil
}

// euclid is the distance of two vectors, or one above most where it is farther.
func euclid(a, b []float32, most float64) float64 {
	const stretch = 32 // elements between two looks
	sum, farther := 0.0, most*most*(1+1e-12)
	for len(a) > 0 && sum <= farther {
		n := min(stretch, len(a))
		for i, v := range a[:n] {
			d := float64(v) - float64(b[i])
			sum += d * d
		}
		a, b = a[n:], b[n:]
	}
	return math.Sqrt(sum)
}

// neighbour is an object and how far it is.
type neighbour struct {
	id       uint32
	distance float64
}

// nearest keeps the k nearest of the neighbours that are added.
type nearest struct {
	k    int
	all  []neighbour
	most float64 // nothing farther is of interest
}

func (n *nearest) add(id uint32, distance float64) {
	if n.all = append(n.all, neighbour{id, distance}); len(n.all) >= 8*n.k {
		n.cut()
	}
}

func (n *nearest) cut() {
	slices.SortFunc(n.all, func(a, b neighbour) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.id, b.id)) })
	if n.all = n.all[:min(n.k, len(n.all))]; len(n.all) == n.k {
		n.most = n.all[n.k-1].distance
	}
}

// neighbours are the k objects nearest to each of some queries. Objects are made once for all queries, a block at a time.
func (w *Workload) neighbours(queries []int) []nearest {
	const block = 128
	k := w.Options.K
	empty := func() []nearest { return slices.Repeat([]nearest{{k: k, most: math.Inf(1)}}, len(queries)) }
	best := empty()
	var mu sync.Mutex
	parallel(w.vectors.objects, func(lo, hi int) {
		own := empty()
		objects := make([][]float32, block)
		for first := lo; first < hi; first += block {
			n := min(block, hi-first)
			for i := range n {
				objects[i] = w.vectors.object(objects[i], first+i)
			}
			for q, query := range queries {
				x, to := w.vectors.queries[query], &own[q]
				for i, object := range objects[:n] {
					if d := euclid(x, object, to.most); d <= to.most {
						to.add(uint32(first+i), d)
					}
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for q := range own {
			best[q].all = append(best[q].all, own[q].all...)
		}
	})
	for q := range best {
		best[q].cut()
	}
	return best
}

// Recall is the share of the nearest neighbours of some queries that their answers have. ok is false where a workload is not about such.
func (w *Workload) Recall(queries []int, answers []gpuexec.Answer) (share float64, ok bool) {
	if !w.near || len(queries) == 0 {
		return 0, false
	}
	for q, nearest := range w.neighbours(queries) {
		found := 0
		for _, h := range answers[queries[q]].Hits {
			// One as near as the last is as good.
			if n := len(nearest.all); n > 0 && h.Score <= nearest.all[n-1].distance+slightly {
				found++
			}
		}
		share += float64(found) / float64(max(1, len(nearest.all)))
	}
	return share / float64(len(queries)), true
}

// slightly is what distances differ by that were added in another order.
const slightly = 1e-4

// checkNear holds an answer against brute force: as many hits as there can be, in the order of their distances, which are right. Which of all
// objects they are is what Recall measures.
func (w *Workload) checkNear(i int, got []gpuexec.Hit) error {
	if want := min(w.Queries[i].K, w.Options.Objects); len(got) > want {
		return fmt.Errorf("query %d: %d hits, at most %d were asked for", i, len(got), want)
	}
	var x []float32
	for j, h := range got {
		x = w.vectors.object(x, int(h.ID))
		own := euclid(w.vectors.queries[i], x, math.Inf(1))
		if math.Abs(own-h.Score) > slightly {
			return fmt.Errorf("query %d: hit %d, object %d, claims distance %v, it is %v", i, j, h.ID, h.Score, own)
		}
		if j > 0 && got[j-1].Score > h.Score {
			return fmt.Errorf("query %d: hit %d is nearer than the one before it", i, j)
		}
	}
	return nil
}

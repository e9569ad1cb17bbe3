// Package workload makes what engines and the service are measured on: data of known kinds and sizes, their index, queries, and the
// right answers.
package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

// Workload is one index with queries against it and a way to know the right answers without any engine.
//
// A workload is a function of its options alone: the same seed and sizes give the same objects, the same index
// file and the same queries on every machine. The raw objects stay in memory next to the index, because the
// reference answers are counted on them and never on the index that is under test.
type Workload struct {
	Name    string
	Options Options // with the workload's defaults filled in
	Index   *index.Index
	File    []byte // the index file
	Queries []wire.Query
	// Plans are the queries as engines take them.
	Plans []gpuexec.Plan
	// Build is how long encoding and building the index took, without generating the objects.
	Build time.Duration
	// Postings is the number of postings in the index.
	Postings uint64

	// Reference counts query i against the objects lo to hi-1, by brute force: it calls visit for each with a count above zero,
	// in any order. Sequences have no reference by count; they set distances instead. Calls may run at the same time.
	Reference func(i, lo, hi int, visit func(id, count uint32))
	// distances, of sequences, gives the edit distance of every object to query i.
	distances func(i, lo, hi int, visit func(id uint32, distance int32))

	// near: hits are ordered by how far their vectors are.
	near bool
	// valued: they are by what a metric orders by, to the bit.
	valued bool
	// scored, of w3, w6 and w7, is what rescoring compares.
	scored *scored
	// vectors, of w1 and the workloads of vectors.
	vectors *vectors
}

// Options are the sizes of a workload. Zero means the workload's own size of the published table.
type Options struct {
	Objects int    // default: by workload, 4.5 M for w1
	Queries int    // default 1,024
	K       int    // default 100; the number of candidates K for w2, default 32
	Seed    uint64 // default 1
	// Data is the folder of the real data that w2, w4 and w5sift grow from: adult/, headlines/, sift_bigann10k/.
	Data string
	// Reach is by how many buckets either way an item of w1 or a number of w4 asks for more than its own: the lists
	// of an item become 2 x Reach + 1 times as dense. Default 0 for w1 and 50 for w4; negative means 0.
	Reach int
	// Filter, of w6, is the share of the objects that pass each query's filter. Default 0: queries have none.
	Filter float64
	// IDF weighs words, elements and categories of w3, w6 and w7 by how few objects have them.
	IDF bool
	// Rescore orders the hits of w3, w6 (by their titles) and w7 by a measure of their terms: bm25, jaccard, dice, cosine or containment. Default
	// none. Candidates is how many are scored, of w5 too; default 8 K.
	Rescore    string
	Candidates int
	// IDFScale is how finely they weigh, of w3. Default that of columns.
	IDFScale int
	// Recall, of w5 and w5sift, is the share of the nearest neighbours that the index is built for. Default 0.95.
	Recall float64
	// Method is how w1points is searched: scan, tree, cells or permutation. Default scan. Recall, of the last two, is what queries ask for.
	Method string
	// Cache is a folder where index files are kept and found again. Default: none.
	Cache string

	name string
	// grown, when not nil, keeps the builder, so that the same workload with more objects adds only those.
	grown *grown
}

// grown is a builder between workloads of growing size.
type grown struct {
	objects *index.Objects
}

// Grow makes the workloads that are made with these options next grow: each adds what it has more objects than the one before.
func (o *Options) Grow() { o.grown = new(grown) }

// Close releases the index.
func (w *Workload) Close() error { return w.Index.Close() }

// topK returns the true answer of plan i by brute force, or its true candidates: (count descending, id ascending).
func (w *Workload) topK(i int) []gpuexec.Hit {
	best := top{k: w.Plans[i].K}
	var mu sync.Mutex
	parallel(w.Options.Objects, func(lo, hi int) {
		of := top{k: best.k}
		w.Reference(i, lo, hi, of.add)
		mu.Lock()
		defer mu.Unlock()
		best.hits = append(best.hits, of.hits...)
	})
	best.cut()
	return best.hits
}

// top holds the k best of the hits added, among others until it is cut.
type top struct {
	k           int
	hits        []gpuexec.Hit
	full        bool
	least, last uint32 // count and id of the k-th, when full
}

func (t *top) add(id, count uint32) {
	if t.full && (count < t.least || count == t.least && id > t.last) {
		return // k hits precede it
	}
	if len(t.hits) >= 4*t.k {
		t.cut()
		t.full, t.least, t.last = true, t.hits[t.k-1].Count, t.hits[t.k-1].ID
	}
	t.hits = append(t.hits, gpuexec.Hit{ID: id, Count: count})
}

func (t *top) cut() {
	slices.SortFunc(t.hits, func(a, b gpuexec.Hit) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID))
	})
	t.hits = t.hits[:min(t.k, len(t.hits))]
}

// Check compares an answer with brute force. Match counts must be equal to the hit, ids and ties included. Scores
// are those of the best candidates. Of sequences the distances of an answer that claims to be exact must be the smallest there are; any answer's
// distances must be true.
func (w *Workload) Check(i int, got gpuexec.Answer) error {
	if got.Err != nil {
		return fmt.Errorf("query %d failed: %w", i, got.Err)
	}
	if w.near {
		return w.checkNear(i, got.Hits)
	}
	if w.valued {
		return w.checkValues(i, got)
	}
	if w.distances != nil {
		return w.checkDistances(i, got)
	}
	if w.Options.Rescore != "" {
		return w.scored.check(i, &w.Queries[i], w.topK(i), got.Hits)
	}
	want := w.topK(i)
	if len(got.Hits) != len(want) {
		return fmt.Errorf("query %d: %d hits, want %d", i, len(got.Hits), len(want))
	}
	for j, h := range got.Hits {
		if h.ID != want[j].ID || h.Count != want[j].Count {
			return fmt.Errorf("query %d: hit %d is object %d with count %d, want object %d with count %d",
				i, j, h.ID, h.Count, want[j].ID, want[j].Count)
		}
	}
	return nil
}

func (w *Workload) checkDistances(i int, got gpuexec.Answer) error {
	all := make([]int32, w.Options.Objects)
	parallel(len(all), func(lo, hi int) {
		w.distances(i, lo, hi, func(id uint32, d int32) { all[id] = d })
	})
	for j, h := range got.Hits {
		if h.Score != float64(all[h.ID]) {
			return fmt.Errorf("query %d: hit %d, object %d, claims distance %v, it is %d", i, j, h.ID, h.Score, all[h.ID])
		}
	}
	if !got.Exact {
		return nil
	}
	slices.Sort(all)
	for j, h := range got.Hits {
		if h.Score != float64(all[j]) {
			return fmt.Errorf("query %d: certified hit %d has distance %v, but the %d-th smallest is %d", i, j, h.Score, j+1, all[j])
		}
	}
	return nil
}

// mix is the finalizer of splitmix64: a good hash of one word, so that object i's content is a function of
// (seed, i) and objects can be made in any order by any number of goroutines.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// source is a counter-based generator: splitmix64 over a stream that starts at a hash of its name.
type source uint64

func newSource(seed uint64, stream ...uint64) source {
	s := mix(seed)
	for _, x := range stream {
		s = mix(s ^ mix(x))
	}
	return source(s)
}

func (s *source) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

func (s *source) float() float64 { return (float64(s.next()>>11) + 0.5) / (1 << 53) }

func (s *source) intn(n int) int { return int(s.next() % uint64(n)) }

// gauss returns two independent standard normal values (Box and Muller).
func (s *source) gauss() (float64, float64) {
	r := math.Sqrt(-2 * math.Log(s.float()))
	sin, cos := math.Sincos(2 * math.Pi * s.float())
	return r * cos, r * sin
}

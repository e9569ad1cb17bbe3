// Package permutation finds neighbours by how objects and queries rank a few objects.
package permutation

import (
	"cmp"
	"context"
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
	"github.com/geniemq/geniemq/internal/spread"
)

//go:generate go run ./asm -out distances_amd64.s -stubs stubs_amd64.go -pkg permutation

// Similarity is how two rank vectors are compared.
type Similarity string

// The similarities: Spearman's rho is the sum of the squares of the differences of ranks, the footrule the sum of their sizes.
const (
	Rho      Similarity = "rho"
	Footrule Similarity = "footrule"
)

// manyObjects are worth measuring with more of them.
const manyObjects = 1 << 16

// MaxPermutants is how many permutants there are at most: a rank is a byte.
const MaxPermutants = 255

// Parameters are what an index is made with.
type Parameters struct {
	Permutants int        // 1 to MaxPermutants; default 64
	Similarity Similarity // default Rho
	Seed       uint64
	// HeldOut is how many objects recall is measured with: default 256, of manyObjects and more 1,024; negative none. However many neighbours so many find, 256
	// prove no recall above .985, and 1,024 none above .996 (recall.Recall).
	HeldOut int
	// draws is how many objects are drawn for a permutant: default draws. Others are for measurements.
	draws int
}

func (p *Parameters) fill(objects uint32) error {
	p.Permutants = cmp.Or(p.Permutants, 64)
	p.Similarity = cmp.Or(p.Similarity, Rho)
	if p.HeldOut == 0 {
		if p.HeldOut = 256; objects >= manyObjects {
			p.HeldOut = 1024
		}
	}
	p.draws = cmp.Or(p.draws, draws)
	if p.Permutants < 1 || p.Permutants > MaxPermutants {
		return fmt.Errorf("%d permutants: there may be 1 to %d", p.Permutants, MaxPermutants)
	}
	if p.Similarity != Rho && p.Similarity != Footrule {
		return fmt.Errorf("similarity %q: use %q or %q", p.Similarity, Rho, Footrule)
	}
	return nil
}

// Index finds approximate neighbours in any metric space (permutation-index.txt; Chavez, Figueroa and Navarro 2008).
//
// # How
//
// A few objects are permutants: far from each other, each the farthest from those before of twelve that are drawn (choose; Gonzalez 1985), since permutants that are near each other tell
// objects apart in the same way. Each object ranks them: the rank of a permutant is how many permutants are nearer, in the order of (value, number).
// Objects that are near each other rank alike. A query is ranked in the same way, rank vectors are compared with its own, and the K objects that come first
// in the order of (rank distance, id) are candidates. They are compared with the query itself, so what is answered has the values and
// the order of every other method; neighbours may be missing, and nothing else is wrong.
//
// K is the larger of k and of the fraction times the number of objects, rounded up. Under a filter the candidates are the first K objects that
// pass it, so a filter that K objects pass or fewer makes the answer exact.
//
// # What differs from the paper
//
// Rank vectors are compared, that is the inverses of permutations: element j is the rank of permutant j. Comparing the permutations themselves,
// as the paper's figures look like, loses a fifth of the neighbours. The candidates are found by a histogram of rank distances and not by
// sorting all of them; an object at the radius is within it; distances are those of the metric, whichever it is; and permutants are no random choice.
//
// # Invariants
//
// Ranks lie by object, one byte per permutant. Those of an object are each of 0 to m-1 once, which Verify checks; that they
// are not makes answers wrong and nothing unsafe. Rank distances are even integers. The index is a function of the objects, their order and the
// parameters, whatever built it. Permutants are named by their numbers; they need not be live, only in memory, for they rank and are no
// hits by that. What permutants are chosen from and held-out objects are parts of one draw, so no query of the recall table is a permutant, and none was chosen by what it is like. How
// permutants were chosen is not in the file: this program reads those of older ones, which took what was drawn, as they are.
//
// An Index is immutable. It borrows what Open was given. A Searcher belongs to one goroutine.
type Index struct {
	parameters Parameters
	permutants []uint32 // object numbers; the position is the permutant's number
	ranks      []byte   // [object][permutant]
	objects    uint32
	recall     *recall.Table
	distances  distances
}

// fractions are those that recall is measured for.
func fractions() []float64 {
	return []float64{.001, .002, .003, .005, .007, .01, .015, .02, .03, .05, .07, .1, .15, .2, .3, .5}
}

// neighbours are the numbers of neighbours that recall is measured for.
func neighbours() []uint32 { return []uint32{1, 10, 100} }

// Build ranks all objects of a space and measures recall, with so many goroutines and the aid of a device if there is one. Of fewer objects than permutants all are permutants.
func Build(ctx context.Context, space metric.Space, p Parameters, workers int, aid *metric.Aid) (*Index, error) {
	if err := p.fill(space.Len()); err != nil {
		return nil, fmt.Errorf("building a permutation index: %w", err)
	}
	n := space.Len()
	m := min(uint32(p.Permutants), n)
	pool, held := p.lots(n, m)
	permutants, err := choose(ctx, space, pool, int(m), p.draws, workers)
	if err != nil {
		return nil, fmt.Errorf("building a permutation index: choosing %d permutants: %w", m, err)
	}
	x := &Index{parameters: p, permutants: permutants, objects: n}
	x.parameters.Permutants = int(m)
	x.distances = best(p.Similarity, int(m))
	x.ranks = make([]byte, uint64(n)*uint64(m))
	if err := x.rank(ctx, space, workers); err != nil {
		return nil, fmt.Errorf("building a permutation index: ranking %d objects: %w", n, err)
	}
	plan := recall.Plan{Queries: held, Ks: neighbours(), Efforts: fractions(), Aid: aid}
	if x.recall, err = recall.Measure(ctx, space, path{x}, plan, workers); err != nil {
		return nil, fmt.Errorf("building a permutation index: %w", err)
	}
	return x, nil
}

// part is how many objects are ranked at a time: their values from all permutants fit the nearest caches.
const part = 256

// rank finds the ranks of all objects.
func (x *Index) rank(ctx context.Context, space metric.Space, workers int) error {
	m := len(x.permutants)
	parts := int((uint64(x.objects) + part - 1) / part)
	return spread.Run(ctx, workers, parts, func() func(int) {
		askers := make([]metric.Asker, m)
		for j, id := range x.permutants {
			askers[j] = space.Of(id)
		}
		values, own, r := make([]float64, m*part), make([]float64, m), ranker{}
		return func(i int) {
			lo := uint32(i) * part
			count := min(part, x.objects-lo)
			for j, a := range askers {
				a.Values(lo, lo+count, values[j*part:][:count])
			}
			for o := range count {
				for j := range own {
					own[j] = values[uint32(j)*part+o]
				}
				at := (uint64(lo) + uint64(o)) * uint64(m)
				r.rank(x.ranks[at:at+uint64(m)], own)
			}
		}
	})
}

// Len is the number of objects.
func (x *Index) Len() uint32 { return x.objects }

// Parameters are what the index was made with; Permutants is how many there are.
func (x *Index) Parameters() Parameters { return x.parameters }

// Recall is the table that was measured.
func (x *Index) Recall() *recall.Table { return x.recall }

// Permutants are the numbers of the objects that are ranked, and Ranks the rank vectors, [object][permutant], for those who compare them elsewhere.
func (x *Index) Permutants() []uint32 { return x.permutants }

// Ranks are the rank vectors of all objects.
func (x *Index) Ranks() []byte { return x.ranks }

// Fraction returns the least fraction whose recall of k neighbours was share at least, by its lower bound. Where the table has none it is 1, which
// compares all objects: a scan does that for less.
func (x *Index) Fraction(k int, share float64) float64 {
	if fraction, _, ok := x.recall.Least(k, share); ok {
		return fraction
	}
	return 1
}

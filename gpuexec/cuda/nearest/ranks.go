package nearest

import (
	"math"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/permutation"
)

// Ranks are the rank vectors of a column's permutation index as they lie on a device: a column of bytes like any other, whose nearest are the candidates of a query.
type Ranks struct {
	Candidates
	*permutation.Index
	Guesses bool // limits may be guessed
}

// A Guess is how the limits of a piece are guessed (kernels/near_ranks.cu): by Sample objects, every Stride-th, for a wave whose candidates have room for so many beside those that are wanted.
type Guess struct{ Sample, Stride, Room int }

// guess is that of the first n asks: 0 and nil where none pays.
func (r *Ranks) guess(asks, asked []Ask, waves *profile.NearWaves) (n, lists int, g *Guess) {
	objects := int(r.Of.Objects)
	if !r.Guesses || objects < waves.Guessed {
		return 0, 0, nil
	}
	for n < len(asks) && !asks[n].Exact && asks[n].Set < 0 && asked[n].Query.K < objects/waves.GuessedShare {
		lists = max(lists, asked[n].Query.K)
		n++
	}
	if n == 0 {
		return 0, 0, nil
	}
	sample := min(abi.MostHeld, objects/waves.GuessedShare)
	g = &Guess{Sample: sample, Stride: objects / sample}
	mean := float64(lists) * float64(sample) / float64(objects)
	g.Room = max(sample, 2*int((mean+6*math.Sqrt(mean)+4)*float64(g.Stride)))
	return n, lists, g
}

// NewRanks are the rank vectors of a column on a device; nil where there are none, or not of all its objects. Each of these has a value.
func NewRanks(of *Column) *Ranks {
	if of == nil || of.Of.Permutation() == nil || of.Objects < of.Of.Objects {
		return nil
	}
	r := &Ranks{Candidates: Candidates{Of: of}, Index: of.Of.Permutation()}
	m := metric.Metric{Kind: metric.L2}
	if r.Parameters().Similarity == permutation.Footrule {
		m.Kind = metric.L1
	}
	r.Near = NewColumn(&distance.Column{
		Name: "ranks of " + of.Of.Name, Of: distance.Vectors, Metric: m, Dims: len(r.Permutants()), Storage: distance.StorageU8, Objects: of.Objects,
	}, of.Tiles)
	return r
}

// Takes says whether a query's candidates are found on the device: it wants some, not all objects are candidates, and how many are does not depend on what passes its filter.
func (r *Ranks) Takes(q *distance.Query, waves *profile.NearWaves) bool {
	steps := r.Steps(q)
	return q.K > 0 && !q.Total && (q.Filter == nil || q.Recall == 0) && steps < r.Of.Objects && int(steps) <= waves.RanksMost && (r.Of.texts == nil || r.Of.texts.takes(q.Text))
}

// Least is the smallest batch of which a query is the device's.
func (r *Ranks) Least(*distance.Query, *profile.NearWaves) int { return 1 }

// Steps is how many candidates a query has, of those that pass its filter.
func (r *Ranks) Steps(q *distance.Query) uint32 {
	return r.Index.Candidates(q.K, q.Column.Compares(q), r.Of.Objects)
}

// Asked is what an ask asks of rank vectors: the candidates of its query, whose ranks these are.
func (r *Ranks) Asked(a *Ask, ranks []byte) Ask {
	v := make([]float32, len(ranks))
	for i, rank := range ranks {
		v[i] = float32(rank)
	}
	own := *a
	own.Query = &distance.Query{Column: r.Near.Of, Vector: v, K: int(r.Steps(a.Query)), Most: math.Inf(1)}
	return own
}

// Plan makes a piece of the first asks, as many as fit; of none, if not even the first does. asked are theirs, of Asked.
func (r *Ranks) Plan(asks, asked []Ask, room plan.Room, waves *profile.NearWaves) *CandidatesPiece {
	if n, lists, guess := r.guess(asks, asked, waves); n > 0 {
		if p := r.plan(asks[:n], asked, search{lists: lists, waves: waves, first: waves, guess: guess}, room); len(p.Asks) > 0 {
			return p
		}
	}
	lists := 0
	for i := range asked {
		lists = max(lists, asked[i].Query.K)
	}
	p := r.plan(asks, asked, search{lists: lists, waves: waves, first: waves}, room)
	if len(p.Asks) == 0 && len(asks) > 1 {
		return r.Plan(asks[:1], asked[:1], room, waves) // others compare more, and it has room alone
	}
	return p
}

// Cost is the memory of the device that a query takes at least.
func (r *Ranks) Cost(q *distance.Query, waves *profile.NearWaves) int64 {
	steps := int64(r.Steps(q))
	return r.cost(q, steps, steps, waves)
}

// Fits says whether a query can be executed alone.
func (r *Ranks) Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	steps := int64(r.Steps(q))
	return r.fits(q, steps, steps, room, waves)
}

// Tell says what a search that compared so many has done, as one core does (permutation.Searcher.End).
func (r *Ranks) Tell(a *Ask, compared uint64) (did distance.Answer, enough bool) {
	steps, passing := r.Steps(a.Query), r.Of.Objects
	if a.Set >= 0 {
		passing = uint32(a.Passes.Len())
	}
	did = distance.Answer{
		Method: "permutation", Exact: passing <= steps, Distances: compared + uint64(len(r.Permutants())), Blocks: 1, Fraction: a.Query.Column.Compares(a.Query),
	}
	if a.Set < 0 && math.IsInf(a.Query.Most, 1) && !did.Exact {
		if expected, ok := r.Recall().At(a.Query.K, did.Fraction); ok {
			did.Recall = expected.Share
		}
	}
	return did, true
}

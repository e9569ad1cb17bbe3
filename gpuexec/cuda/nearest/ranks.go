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

// Ranks are the rank vectors of a column's permutation index as they lie on a device: a column of bytes like any other, whose nearest are the candidates of a query
// (kernels/near_ranks.cu).
type Ranks struct {
	*permutation.Index
	Column *Column // of rank vectors
	Of     *Column // whose objects they are of, all of them
}

// mostRanked is the most candidates of a query: those of more are cheaper to come by where they are compared, on the host.
const mostRanked = 8192

// NewRanks are the rank vectors of a column on a device; nil where there are none, or not of all its objects.
func NewRanks(of *Column, ids []uint32) *Ranks {
	if of == nil || of.Of.Permutation() == nil || ids != nil || of.Objects < of.Of.Objects {
		return nil
	}
	r := &Ranks{Index: of.Of.Permutation(), Of: of}
	m := metric.Metric{Kind: metric.L2}
	if r.Parameters().Similarity == permutation.Footrule {
		m.Kind = metric.L1
	}
	r.Column = NewColumn(&distance.Column{
		Name: "ranks of " + of.Of.Name, Of: distance.Vectors, Metric: m, Dims: len(r.Permutants()), Storage: distance.StorageU8, Objects: of.Objects,
	}, of.Tiles)
	return r
}

// Takes says whether a query's candidates are found on the device: it wants some, and not all objects are candidates.
func (r *Ranks) Takes(q *distance.Query) bool {
	steps := r.Steps(q)
	return q.K > 0 && !q.Total && steps < r.Of.Objects && steps <= mostRanked && (r.Of.texts == nil || r.Of.texts.takes(q.Text))
}

// Steps is how many candidates a query has, of those that pass its filter.
func (r *Ranks) Steps(q *distance.Query) uint32 {
	return r.Candidates(q.K, q.Column.Compares(q), r.Of.Objects)
}

// Asked is what an ask asks of rank vectors: the candidates of its query, whose ranks these are.
func (r *Ranks) Asked(a *Ask, ranks []byte) Ask {
	v := make([]float32, len(ranks))
	for i, rank := range ranks {
		v[i] = float32(rank)
	}
	own := *a
	own.Query = &distance.Query{Column: r.Column.Of, Vector: v, K: int(r.Steps(a.Query)), Most: math.Inf(1)}
	return own
}

// A RanksPiece is some queries of a batch whose candidates are found and compared together, and where everything of theirs lies.
//
//	arena (device)   what is sent of the search for candidates | and of that among them | its answers, lists, candidates | the others of the first
//
// Its bounds are those of two Pieces: one of rank vectors, whose hits are candidates, and one of the column, in which each query has a list with room for all of its own.
type RanksPiece struct {
	Piece
	Ranked Piece
}

// Plan makes a piece of the first asks, as many as fit; of none, if not even the first does. asked are theirs, of Asked.
func (r *Ranks) Plan(asks, asked []Ask, room plan.Room, waves *profile.NearWaves) *RanksPiece {
	p := &RanksPiece{Piece: Piece{Column: r.Of, waves: waves}, Ranked: Piece{Column: r.Column, waves: waves}}
	lists := 0
	for i := range asked {
		lists = max(lists, asked[i].Query.K)
	}
	wave := min(int64(waves.Least), int64(r.Column.Objects))
	p.fit(asks, plan.Room{Arena: 2 * slack, In: 2 * slack, Out: slack}, int64(lists), func(i int) (arena, in int64) {
		arena, in, _ = r.Column.need(int64(asked[i].Query.K), wave, 0)
		if asked[i].Set >= 0 {
			arena, in = arena+r.Column.setBytes(), in+r.Column.setBytes()
		}
		return arena + abi.WordBytes*int64(lists), in
	}, func(int) plan.Room { return room })
	p.Ranked.Asks = asked[:len(p.Asks)]
	for i := range p.Ranked.Asks {
		p.Ranked.take(&p.Ranked.Asks[i])
	}
	p.ListRoom = lists
	p.Ranked.placeSent(0)
	p.placeSent(abi.Align(p.Ranked.InBytes()))
	p.placeDerived(p.InBytes())
	p.waved(int64(lists))
	p.Ranked.placeDerived(abi.Align(p.Piece.End()))
	p.Ranked.waved(wave)
	return p
}

// End is the memory of all that lies in the arena.
func (p *RanksPiece) End() int64 { return p.Ranked.End() }

// Encode fills what is copied to the device.
func (p *RanksPiece) Encode(in []byte) {
	p.Ranked.Encode(in)
	p.Piece.Encode(in)
}

// Fits says whether a query can be executed alone.
func (r *Ranks) Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	return r.Cost(q, waves) <= room.Arena && 2*slack+r.sent(q) <= room.In && slack+abi.NearStateBytes+abi.NearEntryBytes*r.Of.hits(q) <= room.Out
}

// Cost is the memory of the device that a query takes at least, with a filter or without.
func (r *Ranks) Cost(q *distance.Query, waves *profile.NearWaves) int64 {
	steps := int64(r.Steps(q))
	own, _, _ := r.Of.need(r.Of.hits(q), steps, 0)
	ranked, _, _ := r.Column.need(steps, min(int64(waves.Least), int64(r.Column.Objects)), 0)
	return 2*slack + own + ranked + abi.WordBytes*steps + 2*r.Column.setBytes()
}

// sent is what is copied to the device of a query.
func (r *Ranks) sent(q *distance.Query) int64 {
	_, own, _ := r.Of.need(r.Of.hits(q), 0, 0)
	_, ranked, _ := r.Column.need(int64(r.Steps(q)), 0, 0)
	return own + ranked + 2*r.Column.setBytes()
}

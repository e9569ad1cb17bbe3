package nearest

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
)

// Visits say where in the arena lies what puts the queries of a piece together by the cells that they visit (kernels/near_visits.cu), behind all else of a CandidatesPiece:
//
//	queries of each cell, and how many groups and pairs there are | pairs of a cell and a query | groups
//
// # Bounds
//
// A query has a pair for each of its cells but the nearest. A group is full, or the last one of its cell: there are at most as many as full groups and cells.
type Visits struct {
	Counts, Pairs, Groups, End int64 // offsets
	Most                       int   // groups
}

// visitsBytes is the memory of a piece for this that does not depend on its queries, pairsBytes what a query takes that visits so many cells.
func (c *Cells) visitsBytes() int64 {
	return slack + (abi.WordBytes+abi.NearGroupBytes)*int64(c.Cells()+2)
}
func pairsBytes(probes int) int64 {
	return abi.WordBytes*int64(probes) + abi.NearGroupBytes*int64(probes/abi.VisitQueries+1)
}

// together is how many of the first asks visit cells together: 0 where each does alone, since too few do, or one has been given up.
func (c *Cells) together(asks, asked []Ask, waves *profile.NearWaves) (n int) {
	if !c.Together {
		return 0
	}
	pairs := 0
	for n < len(asks) && !asks[n].Exact {
		pairs += asked[n].Query.K - 1
		n++
	}
	if float64(pairs) < waves.CellsPairs*float64(c.Cells()) && pairs < waves.CellsEach*n {
		return 0
	}
	return n
}

// placeVisits places all that, behind what the piece has.
func (c *Cells) placeVisits(p *CandidatesPiece) {
	pairs := 0
	for i := range p.First.Asks {
		pairs += p.First.Asks[i].Query.K - 1
	}
	v := &Visits{Counts: abi.Align(p.First.End()), Most: min(pairs, pairs/abi.VisitQueries+c.Cells())}
	v.Pairs = abi.Align(v.Counts + abi.WordBytes*int64(c.Cells()+2))
	v.Groups = abi.Align(v.Pairs + abi.WordBytes*int64(pairs))
	v.End = v.Groups + abi.NearGroupBytes*int64(v.Most)
	p.Visits = v
}

// Padded is where each cell begins in what is compared together, by cell and one more: at a multiple of abi.VisitObjects.
func (c *Cells) Padded() []uint32 {
	padded := make([]uint32, len(c.Starts))
	for i := range c.Cells() {
		size := c.Starts[i+1] - c.Starts[i]
		padded[i+1] = padded[i] + (size+abi.VisitObjects-1)/abi.VisitObjects*abi.VisitObjects
	}
	return padded
}

// CellOf is each object's cell.
func (c *Cells) CellOf() []uint32 {
	of, order := make([]uint32, c.Of.Objects), c.Order()
	for cell := range c.Cells() {
		for _, object := range order[c.Starts[cell]:c.Starts[cell+1]] {
			of[object] = uint32(cell)
		}
	}
	return of
}

// planVisits makes a piece of the first asks that visit cells together, as Plan does, with lists of so many objects.
func (c *Cells) planVisits(asks, asked []Ask, lists int, room plan.Room, waves, first *profile.NearWaves) *CandidatesPiece {
	p := c.plan(asks, asked, search{lists: lists, waves: waves, first: first, sieved: true, beside: c.visitsBytes(), each: pairsBytes}, room)
	if len(p.Asks) > 0 {
		c.placeVisits(p)
	}
	return p
}

// Marks say where in the arena each query has a bit for each cell, set of those that it visits: where these have many of all objects, a scan of the column passes over the others, and finds
// the same hits in less.
type Marks struct {
	Sets, End int64 // offsets
	Words     int   // of a set
}

// scans says whether a scan takes less than visiting so many cells does.
func (c *Cells) scans(a *Ask, probes int) bool {
	if c.Scans == nil || !c.Of.Sieves(a, c.Scans) {
		return false
	}
	visiting := float64(c.visited(probes)) * float64(c.Of.Dims) * c.Scans.CellsElement
	return visiting > float64(c.Of.Objects)*float64(c.Of.Sieve.Steps)*c.Of.Sieve.step(c.Scans)
}

// marked says how many of the first asks are alike in that: a scan takes less, or it does not.
func (c *Cells) marked(asks, asked []Ask) (n int, marked bool) {
	marked = c.scans(&asks[0], asked[0].Query.K)
	for n = 1; n < len(asks) && c.scans(&asks[n], asked[n].Query.K) == marked; n++ {
	}
	return n, marked
}

// planMarked makes a piece of the first asks whose cells are marked, as Plan does.
func (c *Cells) planMarked(asks, asked []Ask, room plan.Room, waves, first *profile.NearWaves) *CandidatesPiece {
	words := (c.Cells() + 31) / 32
	set := func(int) int64 { return abi.WordBytes * int64(words) }
	p := c.plan(asks, asked, search{lists: waves.List, waves: waves, first: first, sieved: true, own: true, beside: slack, each: set}, room)
	if n := len(p.Asks); n > 0 {
		at := abi.Align(p.First.End())
		p.Marks = &Marks{Sets: at, End: at + int64(n)*set(0), Words: words}
	}
	return p
}

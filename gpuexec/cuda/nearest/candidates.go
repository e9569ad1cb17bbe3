package nearest

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
)

// Candidates are how an approximate path finds the objects of a column that a query compares: by the nearest of something that is fewer or smaller, which lies on the device as a
// column of its own, Near. What is near becomes the query's list in the column itself, Of (kernels/near_ranks.cu, near_cells.cu).
type Candidates struct{ Near, Of *Column }

// A CandidatesPiece is some queries of a batch whose candidates are found and compared together, and where everything of theirs lies.
//
//	arena (device)   what is sent of the first search | and of the second | its answers, lists, candidates | the others of the first | Visits or Marks
//
// Its bounds are those of two Pieces: one of what is near, and one of the column, in which each query has a list with room for all that it compares.
type CandidatesPiece struct {
	Piece
	First  Piece
	Visits *Visits // of cells that are visited together; nil: there are none
	Marks  *Marks  // of cells that a scan does not pass over; nil: there is no scan
}

// A search is what is wanted of a CandidatesPiece.
type search struct {
	lists        int                  // room of the list of a query in the column
	waves, first *profile.NearWaves   // of the column, and of what is near
	sieved       bool                 // lists are what a sieve of the column leaves
	own          bool                 // each query has a set of its own of what passes
	guess        *Guess               // of what is near, of which candidates have the room that it says; nil: none
	beside       int64                // memory of the device that is wanted beside all that
	each         func(hits int) int64 // and by an ask for so many that are near; nil: nothing
}

// plan makes a piece of the first asks, as many as fit; of none, if not even the first does. asked are theirs of the first search. Those that a sieve takes in the first search and those
// that it does not are in different pieces.
func (c *Candidates) plan(asks, asked []Ask, of search, room plan.Room) *CandidatesPiece {
	lists, first := of.lists, of.first
	p := &CandidatesPiece{Piece: Piece{Column: c.Of, waves: of.waves, listed: true, own: of.own, Sieved: of.sieved}, First: Piece{Column: c.Near, waves: first}}
	if of.sieved {
		p.ListRoom = lists
	}
	sieves := func(i int) bool { return !asks[i].Exact && c.Near.Sieves(&asked[i], first) }
	p.First.Sieved = sieves(0)
	wave := min(int64(first.Least), int64(c.Near.Objects))
	if p.First.Guess = of.guess; of.guess != nil {
		wave = int64(of.guess.Room)
	}
	if p.First.Sieved {
		p.First.ListRoom = first.List
		wave = int64(max(first.First, first.List))
	}
	end := 1
	for end < len(asks) && sieves(end) == p.First.Sieved {
		end++
	}
	p.fit(asks[:end], plan.Room{Arena: 2*slack + of.beside, In: 2 * slack, Out: slack}, int64(lists), func(i int) (arena, in int64) {
		arena, in, _ = c.Near.need(int64(asked[i].Query.K), wave, p.First.ListRoom)
		if asked[i].Set >= 0 {
			arena, in = arena+c.Near.setBytes(), in+c.Near.setBytes()
		}
		if of.each != nil {
			arena += of.each(asked[i].Query.K)
		}
		return arena + abi.WordBytes*int64(lists-p.ListRoom), in
	}, func(int) plan.Room { return room })
	p.First.Asks = asked[:len(p.Asks)]
	p.First.ends = make([]int64, 0, len(p.Asks))
	for i := range p.First.Asks {
		p.First.take(&p.First.Asks[i])
	}
	p.ListRoom = lists
	p.First.placeSent(0)
	p.placeSent(abi.Align(p.First.InBytes()))
	p.placeDerived(p.InBytes())
	p.waved(int64(lists))
	p.First.placeDerived(abi.Align(p.Piece.End()))
	p.First.waved(wave)
	return p
}

// End is the memory of all that lies in the arena.
func (p *CandidatesPiece) End() int64 {
	switch {
	case p.Visits != nil:
		return p.Visits.End
	case p.Marks != nil:
		return p.Marks.End
	}
	return p.First.End()
}

// Encode fills what is copied to the device.
func (p *CandidatesPiece) Encode(in []byte, each Each) {
	p.First.Encode(in, each)
	p.Piece.Encode(in, each)
}

// cost is the memory of the device that a query takes at least that asks for so many that are near, in waves of its own, with a filter or without, and compares so many at most.
func (c *Candidates) cost(q *distance.Query, near, lists int64, waves *profile.NearWaves) int64 {
	own, _, _ := c.Of.need(c.Of.hits(q), lists, 0)
	first, _, _ := c.Near.need(near, min(int64(waves.Least), int64(c.Near.Objects)), 0)
	if c.Near.Sieve != nil {
		sieved, _, _ := c.Near.need(near, int64(max(waves.First, waves.List)), waves.List)
		first = max(first, sieved)
	}
	return 2*slack + own + first + abi.WordBytes*lists + c.Of.setBytes() + c.Near.setBytes()
}

// fits says whether such a query can be executed alone.
func (c *Candidates) fits(q *distance.Query, near, lists int64, room plan.Room, waves *profile.NearWaves) bool {
	_, own, _ := c.Of.need(c.Of.hits(q), 0, 0)
	_, first, _ := c.Near.need(near, 0, 0)
	sent := 2*slack + own + first + c.Of.setBytes() + c.Near.setBytes()
	return c.cost(q, near, lists, waves) <= room.Arena && sent <= room.In && slack+abi.NearStateBytes+abi.NearEntryBytes*c.Of.hits(q) <= room.Out
}

// Left are those of what asks ask of what is searched first, in the order of asks, that belong to asks that are left: who was late, or is answered, is not.
func Left(asked, asks []Ask) []Ask {
	left := asked[:0]
	for i := 0; len(left) < len(asks); i++ {
		if asked[i].Job == asks[len(left)].Job {
			left = append(left, asked[i])
		}
	}
	return left
}

// GivenUp appends the jobs of those asks that had no room on a list, and returns the others.
func GivenUp(jobs []int, asks []Ask) (_ []int, others []Ask) {
	for i := range asks {
		if asks[i].Exact {
			jobs = append(jobs, asks[i].Job)
		} else {
			others = append(others, asks[i])
		}
	}
	return jobs, others
}

// AppendJobs appends the jobs of asks.
func AppendJobs(jobs []int, asks []Ask) []int {
	for i := range asks {
		jobs = append(jobs, asks[i].Job)
	}
	return jobs
}

package rescoring

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/verify"
)

// Terms say how the terms of a column lie on the device, of a range of an index's tiles: a table of where each tile begins, then tile after
// tile as in the file, records before terms (forward.TermsTile). So an object is one access to its record and one to its terms, as on the host, but
// a hundred thousand candidates wait for memory at the same time (kernels/terms.cu).
//
// Scores have the host's bits. Of sets the device adds up integers, and the host makes scores of them; BM25's sums are of the same products and
// quotients, in the same order, each rounded by itself, from gains that the host computes.
//
// The host compares queries of more than abi.MaxAskedTerms known terms, single objects of more than abi.MaxObjectTerms, and columns that are not on the
// device.
type Terms struct {
	Column *forward.Column
	Tiles  run.Tiles

	starts []uint64 // by tile of the range, in units behind the table; and the end
	lanes  int      // that compare an object
}

// shortTerms: columns whose objects have so many terms on average, or fewer, are compared by a lane each. A lane that reads one row after the other of
// its own touches as few sectors of memory as there are; a warp that shares a row waits for memory as often as it has lanes. So many they are, which nothing has measured.
const shortTerms = 32

// newTerms lays out the terms of a column.
func newTerms(column *forward.Column, tiles run.Tiles) *Terms {
	t := &Terms{Column: column, Tiles: tiles, lanes: 1}
	if column.Average() > shortTerms {
		t.lanes = abi.WarpLanes
	}
	at := uint64(0)
	for tile := tiles.First; tile < tiles.End; tile++ {
		own := column.TermsTile(tile)
		t.starts = append(t.starts, at)
		at += uint64(len(own.Records)) + uint64(abi.Units(4*len(own.Words))) // a record is a unit
	}
	t.starts = append(t.starts, at)
	return t
}

// Lanes is how many of a warp compare an object.
func (t *Terms) Lanes() int { return t.lanes }

// Objects is the number of objects that are here.
func (t *Terms) Objects() uint32 { return t.Tiles.Objects(t.Column.AllObjects()) }

// TableBytes is the size of the table, DeviceBytes of all.
func (t *Terms) TableBytes() int64 { return abi.Units(8*len(t.starts)) * abi.UnitBytes }
func (t *Terms) DeviceBytes() int64 {
	return t.TableBytes() + int64(t.starts[len(t.starts)-1])*abi.UnitBytes
}

// Each calls write with all arrays, one after the other, each of which begins in a unit of its own.
func (t *Terms) Each(write func(array []byte)) {
	write(abi.Bytes(t.starts))
	for tile := t.Tiles.First; tile < t.Tiles.End; tile++ {
		own := t.Column.TermsTile(tile)
		write(abi.Bytes(own.Records))
		write(abi.Bytes(own.Words))
	}
}

// scores is true where the device compares for a query.
func (t *Terms) scores(by *verify.TermsAsked) bool { return len(by.Terms) <= abi.MaxAskedTerms }

// share takes all candidates of a job, and the order of them where the device can make it.
func (t *Terms) share(column int, job *run.Job, by *verify.TermsAsked) Share {
	s := Share{
		kind: terms, launch: uint32(column), Scored: int32(job.K), words: int32(len(by.Terms)), tasks: int32((job.K + taskRanks - 1) / taskRanks),
		measure: measureOf(by), mean: meanOf(by),
	}
	if wanted := job.Rescore.Wanted(); job.Orderable && by.BM25 != nil && wanted <= abi.MostOrdered {
		s.hits = int32(min(wanted, job.K))
	}
	return s
}

// taskRanks is how many ranks of an answer a task has: so many that those of most queries are one, since one core writes all tasks.
const taskRanks = 1024

// termsRounds is how many objects a warp compares one after the other where it shares each.
const termsRounds = 8

// Ranks is how many of a task's ranks a block compares, Blocks how many blocks a launch has for each task of at most so many ranks.
func (t *Terms) Ranks() int {
	if t.lanes == 1 {
		return abi.TermsThreads
	}
	return abi.TermsThreads / t.lanes * termsRounds
}
func (t *Terms) Blocks(ranks int) int { return (ranks + t.Ranks() - 1) / t.Ranks() }

func measureOf(by *verify.TermsAsked) uint32 {
	switch {
	case by.BM25 != nil:
		return abi.TermsBM25
	case by.Summed:
		return abi.TermsSummed
	}
	return abi.TermsCounted
}

func meanOf(by *verify.TermsAsked) float64 {
	if by.BM25 == nil {
		return 1
	}
	return by.BM25.Mean()
}

// tasks writes those of a share of a query.
func (s *Share) termsTasks(to []abi.TermsTask, query, answer uint32) {
	task := abi.TermsTask{
		Query: query, Answer: answer, Scores: s.scores, First: s.first, Terms: uint32(s.words), Measure: s.measure, Mean: s.mean,
	}
	for i := range to {
		task.Ranks = min(taskRanks, uint32(s.Scored)-task.Rank)
		to[i] = task
		task.Rank += taskRanks
	}
}

// ask writes what a query asks.
func ask(to []abi.AskedTerm, s *verify.Scores) {
	by, _ := s.Terms()
	for i, term := range by.Terms {
		asked := abi.AskedTerm{Term: term, Weight: 1}
		if by.Weights != nil {
			asked.Weight = by.Weights[i]
		}
		if by.BM25 != nil {
			asked.Gain = by.BM25.Gain(i)
		}
		to[i] = asked
	}
}

package rescoring

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/verify"
)

// Orders are the queries of a Layout whose hits come back alone, in the order of scores (order_terms of kernels/terms.cu). Their candidates, and the scores of
// these, stay on the device: with eight candidates for each hit that is four times less to copy, and on the host nothing is left to put in order.
//
// A query is no longer among them once a candidate of it could not be compared there; it is executed again then (Disorder).
type Orders struct {
	Count       int
	Tasks       int64 // offsets in the arena, as of a Part
	Heads, Hits int64

	answers, scores int64 // of candidates, behind all that comes back
	candidates      int64
	hits            int64
	most            int32 // hits of a query
}

// Ordered is true of a share whose hits come back alone.
func (s *Share) Ordered() bool { return s.hits > 0 }

// Hits is how many come back at most.
func (s *Share) Hits() int { return int(s.hits) }

// Disorder makes it one whose candidates come back.
func (s *Share) Disorder() { s.hits = 0 }

func (o *Orders) add(s *Share) {
	o.Count++
	o.candidates += int64(s.Scored)
	o.hits += int64(s.hits)
	o.most = max(o.most, s.hits)
}

// Shared is the memory that a block shares (orderRoom of kernels/terms.cu).
func (o *Orders) Shared() int {
	room := abi.OrderLeastRoom
	for room < 2*int(o.most) {
		room *= 2
	}
	return abi.OrderedHitBytes * room
}

// back places what comes back, and stay what does not. They return the ends.
func (o *Orders) back(at int64) int64 {
	o.Heads = at
	o.Hits = o.Heads + abi.OrderedHeadBytes*int64(o.Count)
	return o.Hits + abi.OrderedHitBytes*o.hits
}
func (o *Orders) stay(at int64) int64 {
	o.answers = at
	o.scores = o.answers + topk.EntryBytes*o.candidates
	return o.scores + abi.TermsScoreBytes*o.candidates
}

// Answers is the place of the first candidate of all, counted from where answers begin that come back.
func (o *Orders) Answers(from int64) uint64 { return uint64(o.answers-from) / topk.EntryBytes }

// An orderEncoder writes the tasks.
type orderEncoder struct {
	to         []abi.TermsOrder
	scores     uint32 // the place of the next one
	order, hit uint32
}

func (o *Orders) encoder(in []byte) orderEncoder {
	return orderEncoder{to: abi.Array[abi.TermsOrder](in, o.Tasks, o.Count), scores: uint32(o.scores / abi.TermsScoreBytes)}
}

// add writes that of a share. from is the place of the first of all scores, from where places of scores count.
func (e *orderEncoder) add(s *Share, query, answer, from uint32) {
	s.scores, s.order, s.hit = e.scores-from, e.order, e.hit
	e.to[e.order] = abi.TermsOrder{Query: query, Answer: answer, Scores: s.scores, Hits: s.hit, Wanted: uint32(s.hits)}
	e.scores += uint32(s.Scored)
	e.order++
	e.hit += uint32(s.hits)
}

// Sound is false of a share whose order means nothing, since a candidate was not compared. out is what came back, which begins at an offset of the arena.
func (o *Orders) Sound(out []byte, from int64, s *Share) bool {
	return !s.Ordered() || o.head(out, from, s).Ordered != 0
}

func (o *Orders) head(out []byte, from int64, s *Share) *abi.OrderedHead {
	return &abi.Array[abi.OrderedHead](out, o.Heads-from, o.Count)[s.order]
}

// decode hands a job, which is Ordered and whose Found is there, its hits.
func (o *Orders) decode(out []byte, from int64, s *Share, job *run.Job) {
	job.Least = o.head(out, from, s).Least
	first := o.Hits - from + abi.OrderedHitBytes*int64(s.hit)
	hits := abi.Array[abi.OrderedHit](out, first, min(int(s.hits), job.Found))
	job.Best = slices.Grow(job.Best[:0], len(hits))
	for _, hit := range hits {
		entry := topk.Entry(hit.Entry)
		job.Best = append(job.Best, gpuexec.Hit{ID: entry.ID(), Count: entry.Count(), Score: verify.Known(hit.Score).Score()})
	}
}

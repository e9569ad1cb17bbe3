package cpu

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
)

// matcher counts in the postings of an index, or of some of its tiles: it splits a batch into units, each a chunk of jobs in a range of
// tiles, and puts the parts of a job together again.
type matcher struct {
	index     *postings.Lists
	tiles     run.Tiles         // that it counts in
	sliced    []slicedAttribute // by attribute
	listBytes int64             // of sliced attributes
	release   func()            // of these
	crew      *run.Crew
	scratch   []*scratch // by seat of the crew
	parts     sync.Pool  // of *[]matchPart
}

// matchPart is one job in one range of tiles: what one worker writes.
type matchPart struct {
	query    resolved
	gate     topk.Gate
	postings uint64
	err      error
}

// Scan leaves the jobs to the host, whose cores they would be done on.
func (m *matcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }

// chunkJobs is the most jobs of a unit. While a tile is at hand its postings come from a near cache for all of them but
// the first, and more would change little; the gates of all of them must stay near, too.
const chunkJobs = 64

func (m *matcher) Match(ctx context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	if len(jobs) == 0 {
		return nil
	}
	tiles, workers := m.tiles.Len(), m.crew.Size()
	ranges := run.Splits(len(jobs), tiles, workers)
	chunks := (len(jobs) + chunkJobs - 1) / chunkJobs
	if least := min(len(jobs), 4*workers); workers > 1 && chunks*ranges < least {
		chunks = (least + ranges - 1) / ranges
	}

	parts := m.takeParts(len(jobs) * ranges)
	defer m.parts.Put(parts)
	left := make([]atomic.Int32, chunks) // ranges that are not done
	for i := range left {
		left[i].Store(int32(ranges))
	}
	timed := slices.ContainsFunc(jobs, func(job *run.Job) bool { return !job.Deadline.IsZero() })
	epoch := m.index.Epoch()
	return m.crew.Run(ctx, chunks*ranges, func(s *run.Shift, unit int) {
		defer m.leave(s, epoch)
		chunk, r := unit%chunks, unit/chunks
		first, end := len(jobs)*chunk/chunks, len(jobs)*(chunk+1)/chunks
		own := (*parts)[r*len(jobs):][:len(jobs)]
		from, to := tiles*r/ranges, tiles*(r+1)/ranges
		for i := first; i < end; i++ {
			part := &own[i]
			part.gate.Reset(jobs[i].K, jobs[i].MinCount)
			part.postings = 0
			part.err = run.Catch(func() {
				part.query.resolve(m.index, jobs[i].Query.(*postings.MatchQuery), run.Tiles{First: m.tiles.First + from, End: m.tiles.First + to})
			})
			m.spend(s, epoch, len(part.query.rare))
		}
		for tile := from; tile < to; tile++ {
			if ctx.Err() != nil {
				return
			}
			if timed {
				now := time.Now()
				for i := first; i < end; i++ {
					if deadline := jobs[i].Deadline; own[i].err == nil && !deadline.IsZero() && !now.Before(deadline) {
						own[i].err = gpuexec.ErrDeadline
					}
				}
			}
			for i := first; i < end; i++ {
				m.matchTile(s, epoch, tile, from, jobs[i], &own[i])
			}
		}
		for i := first; i < end; i++ {
			own[i].query.release()
		}
		// Who finishes the last range of a chunk joins all. The order in which the ranges ended does not matter.
		if left[chunk].Add(-1) == 0 {
			for i := first; i < end; i++ {
				m.finish(jobs[i], (*parts)[i:], len(jobs), ranges)
			}
		}
	})
}

// matchTile counts one job in one of the matcher's tiles; the job's range begins with tile first. A panic ends this job only.
func (m *matcher) matchTile(s *run.Shift, epoch store.Epoch, tile, first int, job *run.Job, part *matchPart) {
	if part.err != nil {
		return
	}
	postings, own := 0, m.scratch[s.Seat]
	part.err = run.Catch(func() {
		postings = own.ways.gather(m.index, m.sliced, m.tiles.First+tile, tile, tile-first, &part.query)
		if postings > 0 {
			tile := m.tiles.First + tile
			own.ways.count(&own.counters, &own.sums, &part.gate, counterWidth(job.Bound), postings,
				uint32(tile)*store.TileObjects, m.index.TileLen(tile))
		}
	})
	if part.err != nil {
		own.counters = counters{} // in an unknown state
	}
	part.postings += uint64(postings)
	m.spend(s, epoch, postings+tileCost)
}

// spend is shift.spend for who has counted in an index.
func (m *matcher) spend(s *run.Shift, epoch store.Epoch, work int) {
	if s.Due(work) {
		m.leave(s, epoch)
	}
	s.Spend(work)
}

// leave makes sure that the seat's counters are zero for whoever has it next, which may be another index: postings that changed
// between counting and harvesting leave what was not cleared. epoch is from before the first posting was read.
func (m *matcher) leave(s *run.Shift, epoch store.Epoch) {
	if m.index.Unchanged(epoch) != nil {
		m.scratch[s.Seat].counters = counters{}
	}
}

// tileCost is what a query costs in a tile whatever its postings, in postings.
const tileCost = 500

// finish joins the parts of a job, which are stride apart.
func (m *matcher) finish(job *run.Job, parts []matchPart, stride, ranges int) {
	all := &parts[0]
	for r := range ranges {
		part := &parts[r*stride]
		job.Units += part.postings
		if part.err != nil {
			job.Err = part.err
			return
		}
		if r > 0 {
			all.gate.Add(&part.gate)
		}
	}
	job.Candidates += all.gate.Passed
	job.Entries = all.gate.Finish(job.Entries[:0])
}

// takeParts returns n parts, with the memory of earlier ones.
func (m *matcher) takeParts(n int) *[]matchPart {
	parts, ok := m.parts.Get().(*[]matchPart)
	if !ok {
		parts = new([]matchPart)
	}
	if cap(*parts) < n {
		*parts = append((*parts)[:cap(*parts)], make([]matchPart, n-cap(*parts))...)
	}
	*parts = (*parts)[:n]
	return parts
}

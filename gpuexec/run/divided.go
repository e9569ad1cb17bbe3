package run

import (
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/topk"
)

// Divided is a query that may be executed as several, of objects that they have not in common: what a matcher cannot count is then the same for
// all objects of one.
type Divided interface {
	// Parts is how many there are; 0: it is executed as it is.
	Parts() int
	// Part is one of them: what counts in it, nil if nothing does; all of its objects, as a query that is nothing but a filter; and what is
	// added to each count. One of the two gives the part's total, the first unless it is nil.
	Part(i int) (counted, all any, add uint32)
}

// A division is a job on its way through a matcher, as the jobs of its parts.
type division struct {
	job   *Job
	parts []partJobs
}

type partJobs struct {
	counted, all *Job // may be nil
	add          uint32
}

// divides is true of a job that is executed as several.
func divides(job *Job) bool {
	q, ok := job.Query.(Divided)
	return ok && q.Parts() > 0
}

// divide makes the parts of a job.
func divide(job *Job) (d division) {
	q := job.Query.(Divided)
	d.job = job
	for i := range q.Parts() {
		counted, all, add := q.Part(i)
		p := partJobs{add: add}
		own := Job{K: job.K, MinCount: 1, Bound: job.Bound, Deadline: job.Deadline}
		total := false
		if counted != nil {
			p.counted = new(own)
			p.counted.Query, p.counted.MinCount = counted, max(1, job.MinCount-min(add, job.MinCount))
		} else if f, ok := all.(Filtering); ok {
			_, _, total = f.Filtering()
		}
		// Who counts nothing but what is added comes behind all others of the part, by id, if it is enough.
		if add >= job.MinCount || total {
			p.all = new(own)
			p.all.Query = all
		}
		d.parts = append(d.parts, p)
	}
	return d
}

// jobs appends the jobs of the parts.
func (d *division) jobs(dst []*Job) []*Job {
	for i := range d.parts {
		for _, job := range [...]*Job{d.parts[i].counted, d.parts[i].all} {
			if job != nil {
				dst = append(dst, job)
			}
		}
	}
	return dst
}

// join makes the job's answer of those of its parts. Of a part with fewer than K objects that count, all of these are there, and K of all its objects
// are enough for those that do not.
func (d *division) join() {
	job := d.job
	job.Entries, job.Known, job.Total = job.Entries[:0], job.Known[:0], 0
	for i := range d.parts {
		p := &d.parts[i]
		first := len(job.Entries)
		for _, part := range [...]*Job{p.counted, p.all} {
			if part == nil {
				continue
			}
			if part.Err != nil {
				job.Err = part.Err
				return
			}
			job.Units += part.Units
			job.Candidates += part.Candidates
			job.Total += part.Total
			var counted map[uint32]bool
			if part == p.all {
				if p.add < job.MinCount || len(job.Entries)-first == job.K {
					continue
				}
				counted = make(map[uint32]bool, len(job.Entries)-first)
				for _, e := range job.Entries[first:] {
					counted[e.ID()] = true
				}
			}
			for _, e := range part.Entries {
				if !counted[e.ID()] {
					job.Entries = append(job.Entries, topk.NewEntry(e.Count()+p.add, e.ID()))
				}
			}
		}
	}
	slices.Sort(job.Entries)
	job.Entries = slices.Delete(job.Entries, 0, max(0, len(job.Entries)-job.K))
}

// partsOf is how many jobs a plan becomes at most.
func partsOf(p *gpuexec.Plan) int64 {
	if q, ok := p.Query.(Divided); ok {
		return max(1, 2*int64(q.Parts()))
	}
	return 1
}

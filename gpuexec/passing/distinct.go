package passing

import (
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
)

// Distinct are the filters of a batch, each once. It keeps its memory from batch to batch.
type Distinct struct {
	Filters []*filter.Filter
	of      []int32  // by job; none
	hashes  []uint64 // by filter
	table   []int32  // of twice as many places as there are filters, or more: a filter lies at its hash or behind it, none is no filter
}

// none is the number of no filter.
const none = -1

// Of is the filter of a job by its number in the batch; false where it has none.
func (d *Distinct) Of(job int) (n int, ok bool) {
	if len(d.Filters) == 0 {
		return 0, false
	}
	n = int(d.of[job])
	return n, n != none
}

// Find finds the filters of jobs that ask lists.
func (d *Distinct) Find(jobs []*run.Job) {
	d.FindIn(len(jobs), func(i int) *filter.Filter { return jobs[i].Query.(*postings.MatchQuery).Filter })
}

// FindIn finds the filters of so many jobs, nil of those that have none.
func (d *Distinct) FindIn(jobs int, of func(i int) *filter.Filter) { d.FindHashed(jobs, of, nil) }

// FindHashed is FindIn of filters whose hashes have been computed, as on many cores: nil: they have not.
func (d *Distinct) FindHashed(jobs int, of func(i int) *filter.Filter, hash func(i int) uint64) {
	d.Release()
	for i := range jobs {
		f := of(i)
		if f == nil {
			d.of = append(d.of, none)
			continue
		}
		if i > 0 && d.of[i-1] != none && d.Filters[d.of[i-1]] == f { // as when one query came as several plans
			d.of = append(d.of, d.of[i-1])
			continue
		}
		var hashed uint64
		if hash != nil {
			hashed = hash(i)
		} else {
			hashed = f.Hash()
		}
		d.of = append(d.of, d.number(f, hashed))
	}
}

// number is that of a filter, or of one that is equal.
func (d *Distinct) number(f *filter.Filter, hash uint64) int32 {
	if 2*(len(d.Filters)+1) > len(d.table) {
		d.grow()
	}
	at := d.place(hash)
	for ; d.table[at] != none; at = (at + 1) % uint64(len(d.table)) {
		if n := d.table[at]; d.hashes[n] == hash && d.Filters[n].Equal(f) {
			return n
		}
	}
	n := int32(len(d.Filters))
	d.Filters, d.hashes = append(d.Filters, f), append(d.hashes, hash)
	d.table[at] = n
	return n
}

// place is where a hash is looked for first. The table's length is a power of two.
func (d *Distinct) place(hash uint64) uint64 { return hash % uint64(len(d.table)) }

// grow doubles the table.
func (d *Distinct) grow() {
	d.table = make([]int32, max(64, 2*len(d.table)))
	for i := range d.table {
		d.table[i] = none
	}
	for n, hash := range d.hashes {
		at := d.place(hash)
		for d.table[at] != none {
			at = (at + 1) % uint64(len(d.table))
		}
		d.table[at] = int32(n)
	}
}

// Release forgets the filters.
func (d *Distinct) Release() {
	if len(d.Filters) > 0 {
		for i := range d.table {
			d.table[i] = none
		}
	}
	clear(d.Filters)
	d.Filters, d.of, d.hashes = d.Filters[:0], d.of[:0], d.hashes[:0]
}

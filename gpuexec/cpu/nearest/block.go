package nearest

import (
	"context"
	"math/bits"
	"time"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
)

// few is how many objects of a block that may be hits are few: below the fewth part they alone are compared.
const few = 8

// joins says that the i-th job is compared together with others in every block: any object may be a hit, and none takes long.
func (u *scanUnit) joins(p *part, i int) bool {
	return u.present == nil && u.pass(u.members[i]) == nil && metric.Pausable(p.asker) == nil
}

// join makes it one of those that are compared with a block.
func (u *scanUnit) join(p *part, i int, own span) {
	p.blocks++
	p.distances += uint64(own.hi - own.lo)
	u.together, u.askers, u.limits = append(u.together, i), append(u.askers, p.asker), append(u.limits, p.limit(u.jobs[u.members[i]].Query.(*distance.Query)))
}

// block compares the i-th job of the chunk with the objects of a block if few of them may be hits, or if each comparison may take long. Else the job joins those that are
// compared together.
func (u *scanUnit) block(ctx context.Context, p *part, i int, own span) {
	n := u.members[i]
	pass := u.pass(n)
	count := int(own.hi - own.lo)
	if pass != nil || u.present != nil {
		count = 0
		for word := own.lo / 64; word <= (own.hi-1)/64; word++ {
			count += bits.OnesCount64(u.may(pass, word, own))
		}
		if count == 0 {
			return
		}
	}
	q := u.jobs[n].Query.(*distance.Query)
	if long := metric.Pausable(p.asker); long != nil {
		p.blocks++
		u.compareLong(ctx, p, i, long, own)
		return
	}
	if count*few >= int(own.hi-own.lo) {
		u.join(p, i, own)
		return
	}
	bound := p.limit(q)
	p.blocks++
	p.distances += uint64(count)
	for word := own.lo / 64; word <= (own.hi-1)/64; word++ {
		for set := u.may(pass, word, own); set != 0; set &= set - 1 {
			id := word*64 + uint32(bits.TrailingZeros64(set))
			if v := p.asker.Value(id); v <= bound {
				bound = p.take(q, metric.Hit{Value: v, ID: id}, bound)
			}
		}
	}
}

// compareLong compares a job with the objects of a block one by one, and stops in the middle of one, if need be.
func (u *scanUnit) compareLong(ctx context.Context, p *part, i int, long metric.Pausing, own span) {
	n := u.members[i]
	q, pass := u.jobs[n].Query.(*distance.Query), u.pass(n)
	m := &meter{u: u, ctx: ctx, part: p, job: i, since: time.Now()}
	m.Did(0)
	long.SetMeter(m)
	defer func() {
		m.account()
		long.SetMeter(nil)
	}()
	bound := p.limit(q)
	var value [1]float64
	for word := own.lo / 64; word <= (own.hi-1)/64; word++ {
		for set := u.may(pass, word, own); set != 0; set &= set - 1 {
			id := word*64 + uint32(bits.TrailingZeros64(set))
			most := bound
			if p.paused != nil && id == own.lo {
				most = p.bound // as far as it was to be compared when it was stopped
			}
			p.paused = nil
			metric.ValuesTo(long, id, id+1, most, value[:])
			if long.Paused() {
				if p.err == nil {
					p.stopped, p.next, p.paused, p.bound = true, id, p.asker, most
				}
				return
			}
			p.distances++
			if value[0] <= bound {
				bound = p.take(q, metric.Hit{Value: value[0], ID: id}, bound)
			}
		}
	}
}

// compare compares the jobs that are compared together with the objects lo to hi-1.
func (u *scanUnit) compare(lo, hi uint32) {
	metric.ScanWith(u.own, u.askers, lo, hi, u.limits, func(query int, id uint32, value float64) {
		i := u.together[query]
		n := u.members[i]
		if pass := u.pass(n); (pass != nil || u.present != nil) && u.may(pass, id/64, span{id, id + 1}) == 0 {
			return
		}
		q := u.jobs[n].Query.(*distance.Query)
		u.limits[query] = u.parts[i].take(q, metric.Hit{Value: value, ID: id}, u.limits[query])
	})
}

// may are the objects of a word of ids, within a span, that may be hits.
func (u *scanUnit) may(pass filter.Set, word uint32, own span) uint64 {
	set := ^uint64(0)
	if u.present != nil {
		set = u.present[word]
	}
	if pass != nil { // whose first word is that of the first object
		set &= pass[word-u.lo/64]
	}
	if first := word * 64; first < own.lo {
		set &= ^uint64(0) << (own.lo - first)
	}
	if last := uint64(word)*64 + 63; last >= uint64(own.hi) {
		set &= ^uint64(0) >> (last - uint64(own.hi) + 1)
	}
	return set
}

// limit is the largest value that is of interest: of a hit, or where they are counted of all within.
func (p *part) limit(q *distance.Query) float64 {
	if q.Total || q.K == 0 {
		return q.Most
	}
	most := min(q.Most, p.most)
	if len(p.best.hits) < p.best.k || p.best.k == 0 {
		return most
	}
	return min(most, p.best.hits[0].Value)
}

// take takes notice of an object within the bound, and returns the new one.
func (p *part) take(q *distance.Query, h metric.Hit, bound float64) float64 {
	p.within++
	if p.best.offer(h) {
		p.candidates++
		return p.limit(q)
	}
	return bound
}

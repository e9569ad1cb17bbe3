package recall

import (
	"context"
	"slices"

	"github.com/geniemq/geniemq/index/metric"
)

// most is the largest number of neighbours.
func (t *Table) most() int { return int(t.Ks[len(t.Ks)-1]) }

// elsewhere finds the neighbours of the queries on a device: by query the objects that are at most as far as the last that is wanted, in order, nil where they are not known.
//
// A device finds a fixed number of objects, and how many are as far as the last that is wanted nobody knows before. So it is asked for some more, the query itself among them; a query whose
// neighbours do not end among these, or before the objects do, is left to the host.
func (t *Table) elsewhere(ctx context.Context, space metric.Space, plan *Plan) (near [][]metric.Hit, err error) {
	near = make([][]metric.Hit, len(plan.Queries))
	vectors, ok := space.(*metric.Vectors)
	if !ok {
		return near, nil
	}
	k := t.most()
	done, err := plan.Aid.Find(ctx, vectors, vectors, plan.Queries, k+k/4+3, func(i int, hits []metric.Hit) {
		all := len(hits) == int(space.Len())
		others := make([]metric.Hit, 0, len(hits))
		for _, h := range hits {
			if h.ID != plan.Queries[i] {
				others = append(others, h)
			}
		}
		if len(others) < k {
			return
		}
		last := others[k-1].Value
		if end := slices.IndexFunc(others[k:], func(h metric.Hit) bool { return h.Value > last }); end >= 0 {
			near[i] = others[:k+end]
		} else if all {
			near[i] = others
		}
	})
	if err != nil || !done {
		clear(near)
	}
	return near, err
}

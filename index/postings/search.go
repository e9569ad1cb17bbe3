package postings

import (
	"fmt"
	"math"
)

// CheckQuery says whether a query, which must be a *MatchQuery, can be counted in x, and returns what no object's count exceeds. The
// error is the fault of who asked.
func (x *Lists) CheckQuery(query any) (bound uint32, err error) {
	q, ok := query.(*MatchQuery)
	if !ok || q == nil {
		return 0, fmt.Errorf("postings are asked with a *postings.MatchQuery, not with %T", query)
	}
	attrs := x.Attributes()
	var total uint64 // as CountBound has it; an item adds less than 2^48
	for i, item := range q.Items {
		if int64(item.Attr) >= int64(len(attrs)) {
			return 0, fmt.Errorf("item %d asks for attribute %d of %d", i, item.Attr, len(attrs))
		}
		if item.Weight < 1 || item.Weight > MaxWeight {
			return 0, fmt.Errorf("item %d has weight %d, it must be 1 to %d", i, item.Weight, MaxWeight)
		}
		if uint64(item.First)+uint64(item.Count) > uint64(len(q.Spans)) {
			return 0, fmt.Errorf("item %d has spans that the query has not", i)
		}
		// Disjoint spans are what makes the count bound a bound.
		end := uint32(0) // of the last one
		for _, span := range q.ItemSpans(item) {
			if span.Lo < end || span.Lo >= span.Hi || span.Hi > attrs[item.Attr].Keywords {
				return 0, fmt.Errorf("item %d has a span [%d, %d) that is empty, out of order or beyond the %d keywords of its attribute",
					i, span.Lo, span.Hi, attrs[item.Attr].Keywords)
			}
			end = span.Hi
		}
		if end > 0 {
			total += uint64(item.Weight) * uint64(attrs[item.Attr].MaxPerObject)
		}
	}
	if total > math.MaxUint32 {
		return 0, fmt.Errorf("match counts could reach %d, more than 4294967295: use smaller weights or fewer items", total)
	}
	return uint32(total), nil
}

// TileWork estimates what queries cost in each tile: its postings, and clearing and harvesting its counters.
func (x *Lists) TileWork() []uint64 {
	work := make([]uint64, x.Tiles())
	for tile := range work {
		work[tile] = uint64(x.TileLen(tile))
		for a := range x.attributes {
			work[tile] += codecOf(x.attributes[a].Layout).work(x, tile, a)
		}
	}
	return work
}

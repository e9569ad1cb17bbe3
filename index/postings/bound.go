package postings

import (
	"cmp"
	"slices"
)

// weighed is so many keywords that weigh the same.
type weighed struct {
	weight   uint32
	keywords uint64
}

// CountBound is the count bound of q: what no object's count exceeds. It decides the counter width.
//
// An item adds its weight for each of its keywords that an object has, of which there are at most MaxPerObject in the attribute, repeats
// included. So an item alone adds at most its weight times that, or, where no object has a keyword twice (Attribute.Distinct), times the
// number of its keywords if that is less. Items with weights of their own for the words of one text would add up to many times what an object can
// reach. So items that follow each other, of one attribute and of ascending keywords, are taken together: no keyword is in two of them,
// and the bound is the sum of the MaxPerObject largest weights. Presences add their weights. The sum of 65,536 items of weight 65,535 fits a uint64.
func (x *Lists) CountBound(q *MatchQuery) uint64 {
	var bound uint64
	for first := 0; first < len(q.Items); {
		next := first + 1
		item := &q.Items[first]
		if a := &x.attributes[item.Attr]; !a.Distinct && (next == len(q.Items) || q.Items[next].Attr != item.Attr) { // as most
			if item.Count > 0 {
				bound += uint64(item.Weight) * uint64(a.MaxPerObject)
			}
			first = next
			continue
		}
		for next < len(q.Items) && q.follows(next) {
			next++
		}
		bound += x.groupBound(q, q.Items[first:next])
		first = next
	}
	return bound + q.Presences.Bound()
}

// follows says that the keywords of item i are of the attribute of those of the item before, and above them.
func (q *MatchQuery) follows(i int) bool {
	a, b := &q.Items[i-1], &q.Items[i]
	return a.Attr == b.Attr && a.Count > 0 && b.Count > 0 && q.Spans[a.First+a.Count-1].Hi <= q.Spans[b.First].Lo
}

// groupBound is the bound of items of one attribute that have no keyword in common.
func (x *Lists) groupBound(q *MatchQuery, items []Item) uint64 {
	a := &x.attributes[items[0].Attr]
	most := uint64(a.MaxPerObject)
	var sum, keywords uint64
	heaviest := uint32(0)
	for _, item := range items {
		n := uint64(0)
		for _, span := range q.ItemSpans(item) {
			n += uint64(span.Hi - span.Lo)
		}
		keywords += n
		sum += uint64(item.Weight) * min(n, most)
		if n > 0 {
			heaviest = max(heaviest, item.Weight)
		}
	}
	switch {
	case !a.Distinct:
		return uint64(heaviest) * most
	case keywords <= most:
		return sum
	case len(items) == 1:
		return uint64(heaviest) * most
	}
	return heaviestSum(q, items, most)
}

// heaviestSum is the sum of so many largest weights of the keywords of items.
func heaviestSum(q *MatchQuery, items []Item, most uint64) (sum uint64) {
	var buffer [64]weighed
	all := buffer[:0]
	for _, item := range items {
		w := weighed{weight: item.Weight}
		for _, span := range q.ItemSpans(item) {
			w.keywords += uint64(span.Hi - span.Lo)
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(b.weight, a.weight) })
	for _, w := range all {
		n := min(w.keywords, most)
		sum += n * uint64(w.weight)
		most -= n
	}
	return sum
}

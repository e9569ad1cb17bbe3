package postings

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
)

// Span is a half-open range [Lo, Hi) of local keyword ids of one attribute.
type Span = filter.Span

// Item is one query item: a set of keywords of one attribute, given as spans that are disjoint, not empty
// and ascending, so that a keyword is in the item at most once. An item without spans matches nothing.
type Item struct {
	Attr   uint32 // position in Index.Attributes
	Weight uint32 // 1 to MaxWeight
	// First and Count select the item's spans in Query.Spans.
	First, Count uint32
}

// MatchQuery is a match-count query: MC(Q,O) = sum over items of weight x (how many of O's keywords, with repeats,
// the item contains). Items are a list: identical or overlapping items each count. Spans of all items share
// one slice, so that a query is two allocations whatever its length and travels to a device as flat arrays.
// The zero value is an empty query; Reset keeps the memory of items and spans.
type MatchQuery struct {
	Items []Item
	Spans []Span
	// Presences count for values that are there or missing.
	Presences filter.Presences
	// Filter says which objects may be hits; nil: all.
	Filter *filter.Filter
	// Total asks how many objects pass the filter, whatever their counts are.
	Total bool
}

// Filtering says what the query asks of a filter: it has one, it asks for nothing else (the hits are the first objects that pass, by id,
// with count 0), it asks for the total. A query for something that is unknown keeps an item without spans, and has no hits.
func (q *MatchQuery) Filtering() (filtered, only, total bool) {
	return q.Filter != nil, q.Filter != nil && len(q.Items)+len(q.Presences) == 0, q.Total
}

// MaxWeight is the largest weight of a query item.
const MaxWeight = 65535

// Reset empties the query and keeps its memory.
func (q *MatchQuery) Reset() {
	*q = MatchQuery{Items: q.Items[:0], Spans: q.Spans[:0], Presences: q.Presences[:0]}
}

// StartItem begins an item of attribute attr; the spans that follow through AddSpan belong to it.
func (q *MatchQuery) StartItem(attr, weight uint32) {
	q.Items = append(q.Items, Item{Attr: attr, Weight: weight, First: uint32(len(q.Spans))})
}

// AddSpan adds [lo, hi) to the item begun last. Spans must come in ascending order and be disjoint; an
// empty span is ignored, one that touches its predecessor extends it.
func (q *MatchQuery) AddSpan(lo, hi uint32) {
	if lo >= hi {
		return
	}
	item := &q.Items[len(q.Items)-1]
	if item.Count > 0 {
		if last := &q.Spans[len(q.Spans)-1]; last.Hi == lo {
			last.Hi = hi
			return
		}
	}
	q.Spans = append(q.Spans, Span{Lo: lo, Hi: hi})
	item.Count++
}

// ItemSpans returns the spans of an item of q.
func (q *MatchQuery) ItemSpans(item Item) []Span {
	return q.Spans[item.First : item.First+item.Count]
}

// CheckQuery says whether a query, which must be a *MatchQuery, can be counted in x, and returns its count bound. stored
// are the values that the index keeps beside its lists; nil: none. The error is the fault of who asked.
func (x *Lists) CheckQuery(query any, stored filter.Stored) (bound uint32, err error) {
	q, ok := query.(*MatchQuery)
	if !ok || q == nil {
		return 0, fmt.Errorf("postings are asked with a *postings.MatchQuery, not with %T", query)
	}
	if err := x.CheckFilter(q.Filter, stored); err != nil {
		return 0, err
	}
	for i := range q.Items {
		item := &q.Items[i]
		if int64(item.Attr) >= int64(len(x.attributes)) {
			return 0, fmt.Errorf("item %d asks for attribute %d of %d", i, item.Attr, len(x.attributes))
		}
		if item.Weight < 1 || item.Weight > MaxWeight {
			return 0, fmt.Errorf("item %d has weight %d, it must be 1 to %d", i, item.Weight, MaxWeight)
		}
		if uint64(item.First)+uint64(item.Count) > uint64(len(q.Spans)) {
			return 0, fmt.Errorf("item %d has spans that the query has not", i)
		}
		// Disjoint spans are what makes the count bound a bound.
		end, keywords := uint32(0), x.attributes[item.Attr].Keywords
		for _, span := range q.ItemSpans(*item) {
			if span.Lo < end || span.Lo >= span.Hi || span.Hi > keywords {
				return 0, fmt.Errorf("item %d has a span [%d, %d) that is empty, out of order or beyond the %d keywords of its attribute",
					i, span.Lo, span.Hi, keywords)
			}
			end = span.Hi
		}
	}
	if err := q.Presences.Check(x.filterAttributes(nil), MaxWeight); err != nil {
		return 0, err
	}
	total := x.CountBound(q)
	if total > math.MaxUint32 {
		return 0, fmt.Errorf("match counts could reach %d, more than 4294967295: use smaller weights or fewer items", total)
	}
	return uint32(total), nil
}

// CheckFilter says whether a filter can be held against x. stored are the values that the index keeps beside its lists; nil: none. The error is
// the fault of who asked.
func (x *Lists) CheckFilter(f *filter.Filter, stored filter.Stored) error {
	return f.Check(x.filterAttributes(stored))
}

// filterAttributes are the attributes as filters are checked against them.
func (x *Lists) filterAttributes(stored filter.Stored) filter.Attributes {
	return func(attr uint32) (keywords uint32, isStored, ok bool) {
		if uint64(attr) >= uint64(len(x.attributes)) {
			return 0, false, false
		}
		a := &x.attributes[attr]
		if stored != nil && a.Type == schema.Number && !a.Exact {
			_, isStored = stored.StoredNumbers(a.Name)
		}
		return a.Keywords, isStored, true
	}
}

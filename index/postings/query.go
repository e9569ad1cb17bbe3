package postings

// Span is a half-open range [Lo, Hi) of local keyword ids of one attribute. Because the keywords of an
// attribute sort by value and a tile stores their postings in that order, a span is one contiguous run of
// postings in every tile (bank-striped and bit-sliced layouts keep the order of keywords too).
type Span struct {
	Lo, Hi uint32
}

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
// The zero value is an empty query; Reset keeps the memory.
type MatchQuery struct {
	Items []Item
	Spans []Span
}

// MaxWeight is the largest weight of a query item.
const MaxWeight = 65535

// Reset empties the query and keeps its memory.
func (q *MatchQuery) Reset() {
	q.Items, q.Spans = q.Items[:0], q.Spans[:0]
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
	q.Spans = append(q.Spans, Span{lo, hi})
	item.Count++
}

// ItemSpans returns the spans of an item of q.
func (q *MatchQuery) ItemSpans(item Item) []Span {
	return q.Spans[item.First : item.First+item.Count]
}

// CountBound is the count bound of q: the sum over items of weight x (most keywords that one object has in
// the item's attribute). No object can reach more; it decides the counter width. An item without spans
// adds nothing. The sum of 65,536 items of weight 65,535 fits a uint64.
func (x *Lists) CountBound(q *MatchQuery) uint64 {
	attrs := x.Attributes()
	var bound uint64
	for _, item := range q.Items {
		if item.Count > 0 {
			bound += uint64(item.Weight) * uint64(attrs[item.Attr].MaxPerObject)
		}
	}
	return bound
}

package postings

// Parts is as how many queries this one is executed, because of its presences; 0 where it is executed as it is.
func (q *MatchQuery) Parts() int { return q.Presences.Parts() }

// Part is one of them: what it counts, nil where the query has no items; all of its objects, without counts, which are also those that the items do
// not count; and what the presences add for each. One of the two gives the part's total, if the query wants it.
func (q *MatchQuery) Part(i int) (counted, all any, add uint32) {
	f, add := q.Presences.Part(i, q.Filter)
	rest := &MatchQuery{Filter: f, Total: q.Total && len(q.Items) == 0}
	if len(q.Items) == 0 {
		return nil, rest, add
	}
	return &MatchQuery{Items: q.Items, Spans: q.Spans, Filter: f, Total: q.Total}, rest, add
}

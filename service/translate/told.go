package translate

import (
	"slices"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/schema"
)

// told are the items of a query that its explanation tells, and those that it only counts together.
//
// A default vector has 237 items and a text thousands, and an explanation is for people. So the hash functions of a vector are one entry, and where there are more entries than people read, each
// column has as many as any other before one has more. Nothing of what is left out is lost: what it counted for a hit is the hit's count less what the entries counted.
type told struct {
	entries []entry
	more    int      // items that are no entry
	columns []string // of these, the first few
}

// entry is the items first to end-1 of a query, which are told together.
type entry struct {
	first, end int
	spans      uint32
}

// share is what a column has of an explanation: how many entries, of how many spans.
type share struct{ entries, spans uint32 }

// tellItems chooses the items of a query that are told: at most so many entries, of maxExplainedSpans spans.
func (e *Translator) tellItems(m *postings.MatchQuery, most uint32) (t told) {
	wanted := make(map[string]share)
	for at := 0; at < len(m.Items); {
		one := e.entryAt(m, at)
		column := e.queries.ColumnOf(int(m.Items[at].Attr))
		of := wanted[column]
		wanted[column] = share{of.entries + 1, of.spans + one.spans}
		at = one.end
	}
	var entries, spans []uint32
	for _, of := range wanted {
		entries, spans = append(entries, of.entries), append(spans, of.spans)
	}
	each := share{fair(entries, most), fair(spans, maxExplainedSpans)}
	has := make(map[string]share)
	for at := 0; at < len(m.Items); {
		one := e.entryAt(m, at)
		at = one.end
		column := e.queries.ColumnOf(int(m.Items[one.first].Attr))
		of := has[column]
		of.entries, of.spans = of.entries+1, of.spans+one.spans
		if len(t.entries) < int(most) && of.entries <= each.entries && of.spans <= each.spans {
			has[column] = of
			t.entries = append(t.entries, one)
			continue
		}
		t.more += one.end - one.first
		if name := clipped(column); len(t.columns) < maxExplainedValues && !slices.Contains(t.columns, name) {
			t.columns = append(t.columns, name)
		}
	}
	return t
}

// entryAt is the entry that begins with an item: the item, or the hash functions of a vector from it on, of which each alone says nothing.
func (e *Translator) entryAt(m *postings.MatchQuery, at int) entry {
	first := m.Items[at]
	one := entry{at, at + 1, first.Count}
	if e.index.Attribute(int(first.Attr)).Type != schema.Ordinal {
		return one
	}
	column := e.queries.ColumnOf(int(first.Attr))
	for ; one.end < len(m.Items); one.end++ {
		item := m.Items[one.end]
		// The same function again is the next vector that is asked of the column.
		if item.Attr <= m.Items[one.end-1].Attr || item.Weight != first.Weight || e.queries.ColumnOf(int(item.Attr)) != column {
			break
		}
		one.spans += item.Count
	}
	return one
}

// fair is the most that each may have where together they have no more than most, and those that want less leave the others more. It is at least 1 of what is not 0.
func fair(wanted []uint32, most uint32) uint32 {
	slices.Sort(wanted)
	for i, n := range wanted {
		if each := most / uint32(len(wanted)-i); n > each {
			return max(min(most, 1), each)
		}
		most -= n
	}
	return ^uint32(0)
}

// lookedUp is what was looked up of the entries of a query. An explanation that is too long is told again with fewer entries, which were all among those before:
// so each is looked up once, which is what admission counts.
type lookedUp struct {
	e       *Translator
	m       *postings.MatchQuery
	counter single.Counter
	hits    []ExplainedHit        // without items: More is all that presences did not count
	items   map[int]ExplainedItem // by the first item of the entry
	counts  map[entryOfHit]Counts
}

// lookUp begins an explanation of hits.
func (e *Translator) lookUp(m *postings.MatchQuery, hits []gpuexec.Hit) *lookedUp {
	l := &lookedUp{e: e, m: m, counter: single.Counter{Lists: e.index.Lists, Query: m}, items: make(map[int]ExplainedItem), counts: make(map[entryOfHit]Counts)}
	for _, hit := range hits {
		one := ExplainedHit{ID: hit.ID, Count: hit.Count, More: uint64(hit.Count)}
		for i, p := range m.Presences {
			if l.counter.Holds(p, hit.ID) {
				one.Presences = append(one.Presences, i)
				one.More -= min(one.More, uint64(p.Weight))
			}
		}
		l.hits = append(l.hits, one)
	}
	return l
}

// entryOfHit is an entry, by its first item, and a hit.
type entryOfHit struct {
	first int
	hit   uint32
}

// explain explains the items of the query, by at most so many entries, and what they counted for the hits.
func (l *lookedUp) explain(x *Explanation, most uint32) {
	t := l.e.tellItems(l.m, most)
	x.Items, x.Hits = x.Items[:0], x.Hits[:0]
	x.ItemsMore, x.MoreColumns = t.more, t.columns
	for _, one := range t.entries {
		x.Items = append(x.Items, l.item(one))
	}
	for _, hit := range l.hits {
		for i, one := range t.entries {
			if c := l.count(one, hit.ID); c.Times > 0 {
				c.Item = i
				hit.Items = append(hit.Items, c)
				hit.More -= min(hit.More, c.Count)
			}
		}
		if t.more == 0 {
			hit.More = 0
		}
		x.Hits = append(x.Hits, hit)
	}
}

// item explains the items of an entry together.
func (l *lookedUp) item(one entry) ExplainedItem {
	x, known := l.items[one.first]
	if known {
		return x
	}
	x = l.e.explainItem(l.m, l.m.Items[one.first])
	x.First, x.Items = one.first, one.end-one.first
	for _, item := range l.m.Items[one.first+1 : one.end] {
		other := l.e.explainItem(l.m, item)
		x.Keywords, x.Objects, x.AtLeast = x.Keywords+other.Keywords, x.Objects+other.Objects, x.AtLeast || other.AtLeast
	}
	l.items[one.first] = x
	return x
}

// count is what an entry counted for a hit.
func (l *lookedUp) count(one entry, hit uint32) Counts {
	at := entryOfHit{one.first, hit}
	c, known := l.counts[at]
	if known {
		return c
	}
	for _, item := range l.m.Items[one.first:one.end] {
		n := l.counter.Times(item, hit)
		c.Times += n
		c.Count += uint64(n) * uint64(item.Weight)
	}
	l.counts[at] = c
	return c
}

// clipped is the beginning of a long name.
func clipped(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…" // not half a character
}

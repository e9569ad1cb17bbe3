package translate

import (
	"slices"

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

// explainHit says what counted for a hit.
func explainHit(hit *ExplainedHit, m *postings.MatchQuery, t *told, counter *single.Counter) {
	rest := uint64(hit.Count)
	for i, one := range t.entries {
		c := Counts{Item: i}
		for _, item := range m.Items[one.first:one.end] {
			n := counter.Times(item, hit.ID)
			c.Times += n
			c.Count += uint64(n) * uint64(item.Weight)
		}
		if c.Times > 0 {
			hit.Items = append(hit.Items, c)
			rest -= min(rest, c.Count)
		}
	}
	for i, p := range m.Presences {
		if counter.Holds(p, hit.ID) {
			hit.Presences = append(hit.Presences, i)
			rest -= min(rest, uint64(p.Weight))
		}
	}
	if t.more > 0 {
		hit.More = rest
	}
}

// clipped is the beginning of a long name.
func clipped(name string) string {
	if len(name) <= maxName {
		return name
	}
	return name[:maxName] + "…"
}

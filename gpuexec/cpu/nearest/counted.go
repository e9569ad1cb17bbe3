package nearest

import (
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Counted is what a job that goes by n-grams counts, for somebody else who does: an object that is in Least of the lists is to be compared, and no other can be a hit. Of no list nothing
// is found.
type Counted struct {
	Frequent []uint32 // lists of tiles, by number (GramLists.Starts)
	Rare     []uint32 // lists of all objects, by number (GramLists.Rare)
	Least    int
}

// Lists is how many there are.
func (c *Counted) Lists() int { return len(c.Frequent) + len(c.Rare) }

// CountedLists is how many lists a job counts; false: it does not go by n-grams.
func (b *Batch) CountedLists(job int) (n int, ok bool) {
	g := b.grams[job]
	if g == nil {
		return 0, false
	}
	return g.take, true
}

// Counted is what a job counts that goes by n-grams.
func (b *Batch) Counted(job int) *Counted {
	g := b.grams[job]
	dst := &Counted{Frequent: make([]uint32, 0, g.take), Least: int(g.least)}
	for _, l := range g.lists[:g.take] {
		if l.rare {
			dst.Rare = append(dst.Rare, l.number)
		} else {
			dst.Frequent = append(dst.Frequent, l.number)
		}
	}
	return dst
}

// GramLists are the lists of a column's n-grams in a matcher's tiles.
type GramLists struct {
	lists    *postings.Lists
	attr     int
	tiles    run.Tiles
	frequent uint32
}

// GramLists are those of a column by its position; false: it has none that can be read list by list.
func (m *Matcher) GramLists(position int) (GramLists, bool) {
	attr := m.scanned[position].grams
	if attr < 0 {
		return GramLists{}, false
	}
	g := GramLists{m.index.Lists, attr, m.tiles, m.index.Lists.Attribute(attr).Keywords}
	if g.lists.Attribute(attr).Layout == schema.LayoutRare {
		g.frequent = g.lists.Rare(attr).Frequent(g.frequent)
	}
	return g, true
}

// Frequent is how many lists a tile has.
func (g GramLists) Frequent() int { return int(g.frequent) }

// Ids are the lists of a tile by its number among the matcher's, one after the other, and Starts by number where each begins, with one more at the end.
func (g GramLists) Ids(i int) []uint16 { return g.tile(i).Run(0, g.frequent) }
func (g GramLists) Starts(i int) []uint32 {
	p, starts := g.tile(i), make([]uint32, 1, g.frequent+1)
	for k := range g.frequent {
		starts = append(starts, starts[k]+uint32(len(p.Run(k, k+1))))
	}
	return starts
}

func (g GramLists) tile(i int) postings.Postings { return g.lists.Postings(g.tiles.First+i, g.attr) }

// Rare are the lists of rare n-grams, of objects of the whole index, in the same form.
func (g GramLists) Rare() (starts, ids []uint32) {
	if g.lists.Attribute(g.attr).Layout != schema.LayoutRare {
		return []uint32{0}, nil
	}
	_, starts, ids = g.lists.Rare(g.attr).Arrays()
	return starts, ids
}

package filter

import (
	"fmt"
	"slices"
)

// MaxPresences is how many presences a query may have: each doubles what is executed for it.
const MaxPresences = 3

// Presence counts for having some keyword of an attribute, whichever and however many, or for having none.
//
// No item can say that: one that counts each keyword of an object counts several, and what is not there is in no list. So a query with
// presences is executed as several without, one for each choice of those that hold, whose filters pass the objects of which just these
// hold. What they count is then the same for all objects of a part, and parts have no object in common.
type Presence struct {
	Attr     uint32
	Keywords uint32 // of the attribute
	Weight   uint32 // 1 to the largest of items
	Missing  bool   // it counts for having none
}

// Presences are those of a query.
type Presences []Presence

// Parts is as how many queries one with them is executed, 0 where it is executed as it is.
func (p Presences) Parts() int {
	if len(p) == 0 {
		return 0
	}
	return 1 << len(p)
}

// Part is what passes the filter of a query, which may be nil, and is of its i-th part, and what is added there to each count.
func (p Presences) Part(i int, of *Filter) (f *Filter, add uint32) {
	f = &Filter{}
	if of != nil {
		*f = Filter{Groups: slices.Clone(of.Groups), Clauses: slices.Clone(of.Clauses), Spans: slices.Clone(of.Spans), Edges: of.Edges, Ranges: of.Ranges}
	}
	for at, presence := range p {
		holds := i>>at&1 != 0
		if holds {
			add += presence.Weight
		}
		f.StartGroup(holds == presence.Missing)
		f.StartClause(presence.Attr)
		f.AddSpan(0, presence.Keywords)
	}
	return f, add
}

// Bound is the most that they add. Those of one attribute, of values there and missing, do not hold together; the bound need not know.
func (p Presences) Bound() (bound uint64) {
	for _, presence := range p {
		bound += uint64(presence.Weight)
	}
	return bound
}

// Check says whether they can be counted, with weights up to one. The error is the fault of who asked.
func (p Presences) Check(attributes Attributes, most uint32) error {
	if len(p) > MaxPresences {
		return fmt.Errorf("%d conditions count for values that are missing or there, %d at most do", len(p), MaxPresences)
	}
	for _, presence := range p {
		if keywords, _, ok := attributes(presence.Attr); !ok || presence.Keywords != keywords || presence.Weight < 1 || presence.Weight > most {
			return fmt.Errorf("a presence asks for %d keywords of attribute %d with weight %d", presence.Keywords, presence.Attr, presence.Weight)
		}
	}
	return nil
}

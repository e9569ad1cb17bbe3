package index

import (
	"errors"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
)

// Rescore asks for hits in the order of a measure: of what objects hold in one column, compared with what the request asks of it.
type Rescore struct {
	By     string // the name of a measure (verify.Measures)
	Column string // ""; the one of the columns that are asked which the measure can compare
	K      int    // hits, at least 1
}

// maxCompared bounds the terms of a query that objects are compared with.
const maxCompared = 65_536

// measure prepares what a request wants rescored: dst will note what it asks of the column.
func (q *Queries) measure(s *scratch, r *Request) (*verify.Measure, error) {
	m := verify.FindMeasure(r.Rescore.By)
	if m == nil {
		return nil, column.Refuse("rescore.by %.80q is no measure: there are %s", r.Rescore.By, measureNames())
	}
	name := r.Rescore.Column
	if name == "" {
		var err error
		if name, err = q.comparable(s, m, r); err != nil {
			return nil, err
		}
	}
	if _, ok := q.byName[name]; !ok {
		return nil, q.unknown(name)
	}
	s.draft.Asked = &column.Asked{Column: name}
	return m, nil
}

// measureNames lists the measures.
func measureNames() string {
	var names []string
	for _, m := range verify.Measures() {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// asked are the columns that a request asks, each once.
func (q *Queries) asked(r *Request) []string {
	var asked []string
	add := func(name string) {
		if _, ok := q.byName[name]; ok && !slices.Contains(asked, name) {
			asked = append(asked, name)
		}
	}
	for i := range r.Conditions {
		add(r.Conditions[i].Attr)
	}
	if r.Text != nil {
		for _, at := range q.texts {
			add(q.columns[at].name)
		}
	}
	if r.Set != nil {
		for at := range q.columns {
			if _, ok := q.columns[at].encoder.(column.SetEncoder); ok {
				add(q.columns[at].name)
			}
		}
	}
	if r.Vector != nil {
		for at := range q.columns {
			if _, ok := q.columns[at].encoder.(column.VectorEncoder); ok {
				add(q.columns[at].name)
			}
		}
	}
	return asked
}

// Ordered gives a request that names no order the schema's, where it asks the column of that. It returns how many objects of highest count that is of; 0:
// the schema does not say, or the order is not the schema's.
func (q *Queries) Ordered(r *Request, k int) (candidates int) {
	order := q.schema.Rescore
	if order == nil || r.Rescore != nil || !r.counts() || !slices.Contains(q.asked(r), order.Column) {
		return 0
	}
	near := r.near()
	if _, distances, err := q.nearby.Of(&near); distances || err != nil {
		return 0
	}
	for i := range r.Conditions {
		if c := &r.Conditions[i]; c.Attr == order.Column {
			if _, ok, _ := c.Missing(); ok {
				return 0 // nothing to compare with
			}
		}
	}
	r.Rescore = &Rescore{By: order.By, Column: order.Column, K: k}
	return order.Candidates
}

// comparable is the one column of those that are asked which a measure can compare.
func (q *Queries) comparable(s *scratch, m *verify.Measure, r *Request) (string, error) {
	for i := range r.Conditions {
		if name := r.Conditions[i].Attr; !q.has(name) {
			return "", q.unknown(name) // rather than that it cannot be compared
		}
	}
	asked := q.asked(r)
	if len(asked) == 0 {
		if err := q.items(s, r); err != nil {
			return "", err // no column takes what the query asks
		}
	}
	var fit []string
	for _, name := range asked {
		if kept := q.kept(name); kept != nil && kept.Form == m.Form {
			fit = append(fit, name)
		}
	}
	switch len(fit) {
	case 1:
		return fit[0], nil
	case 0:
		return "", refusal.Unsupported("rescore by %s compares %v, and the index keeps them of none of the columns that the query asks (%s)",
			m.Name, m.Form, strings.Join(asked, ", "))
	}
	return "", column.Refuse("rescore by %s could be of several columns (%s): name one, {\"by\":%q,\"column\":%q}", m.Name, strings.Join(fit, ", "),
		m.Name, fit[0])
}

// kept is what the index keeps of a column by object, nil where it keeps nothing.
func (q *Queries) kept(name string) *forward.Column {
	if q.forward == nil {
		return nil
	}
	return q.forward.Column(name)
}

// rescore makes the order that is wanted for a request whose items dst has.
func (q *Queries) rescore(s *scratch, dst *postings.MatchQuery, m *verify.Measure, k int) (verify.Rescore, error) {
	asked := s.draft.Asked
	s.draft.Asked = nil // what filters ask is no concern of it
	if kept := q.kept(asked.Column); kept != nil && kept.Form == m.Form {
		switch {
		case asked.Conditions == 0:
			return nil, column.Refuse("rescore compares with what is asked of column %q, and the query asks nothing of it", asked.Column)
		case asked.Conditions == asked.Presences && m.Form != schema.KeptTerms: // of terms it is compared with none
			return nil, column.Refuse("rescore by %s compares with what is asked of column %q, and the query asks only whether it has a value: ask it for one, or leave rescore out", m.Name, asked.Column)
		case asked.Conditions-asked.Presences > 1 && m.Form != schema.KeptTerms:
			return nil, column.Refuse("rescore by %s compares with one value of column %q, and the query asks it for %d: ask for one, or leave rescore out", m.Name, asked.Column, asked.Conditions-asked.Presences)
		}
	}
	a := verify.Asked{
		Column: q.kept(asked.Column), K: k, Matching: &single.Counter{Lists: q.lists, Query: dst},
		Unknown: asked.Unknown(), IDF: asked.Weighed, Text: asked.Text, NGram: asked.NGram, Vector: asked.Vector, Stored: asked.Stored,
	}
	if asked.Conditions == 1 {
		a.Unit = asked.Weight
	}
	var err error
	if kept := a.Column; kept != nil && kept.Vocabulary { // the terms are no keywords, and counts prove nothing
		a.Unit = 0
		for _, element := range asked.Elements {
			if term, ok := kept.Lookup(element); ok {
				a.Terms = append(a.Terms, term)
			} else {
				a.Unknown++
			}
		}
	} else if at := q.byName[asked.Column]; m.Form == schema.KeptTerms && q.columns[at].last >= 0 {
		if a.Terms, err = termsOf(dst, uint32(q.columns[at].last)); err != nil {
			return nil, err
		}
	}
	scores, err := m.New(&a)
	var lacks *verify.UnsupportedError
	switch {
	case errors.As(err, &lacks):
		return nil, refusal.Unsupported("rescore: %s", lacks.Reason)
	case err != nil:
		return nil, column.Refuse("rescore: %v", err)
	}
	return scores, nil
}

// termsOf are the keywords of an attribute that a query asks for, ascending and each once.
func termsOf(q *postings.MatchQuery, attr uint32) ([]uint32, error) {
	var terms []uint32
	for _, item := range q.Items {
		if item.Attr != attr {
			continue
		}
		for _, span := range q.ItemSpans(item) {
			if len(terms)+int(span.Hi-span.Lo) > maxCompared {
				return nil, column.Refuse("rescore compares with at most %d values of a column: ask for fewer", maxCompared)
			}
			for term := span.Lo; term < span.Hi; term++ {
				terms = append(terms, term)
			}
		}
	}
	slices.Sort(terms)
	return slices.Compact(terms), nil
}

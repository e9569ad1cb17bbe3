package column

import (
	"cmp"
	"slices"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// set is the type of columns of sets, which are indexed by their elements: what they have in common counts.
type set struct{ traits }

// Objects implements Type.
func (set) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return &setObjects{categoryObjects{fold: folding(c)}, c.Store}, nil
}

// Keeps implements Keeper: the elements, by which sets are compared.
func (set) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec { return keptTerms(c) }

// keptTerms keeps the terms of a column with their weights.
func keptTerms(c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Form: schema.KeptTerms, Returned: c.Store, IDFScale: cmp.Or(c.IDFScale, schema.DefaultIDFScale)}
}

type setObjects struct {
	categoryObjects
	store bool
}

// Encode appends the elements of a cell, each once.
func (e *setObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	first := len(dst.Strings)
	if err := e.categoryObjects.Encode(dst, cell); err != nil {
		return err
	}
	elements := dst.Strings[first:]
	slices.Sort(elements)
	dst.Strings = dst.Strings[:first+len(slices.Compact(elements))]
	if e.store {
		dst.JSON = appendStrings(dst.JSON, cell.Values, true)
	}
	return nil
}

// Queries implements Type.
func (set) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	e := newTextQueries(c, first, v)
	e.unordered = true
	return &setQueries{*e}, nil
}

// setQueries finds sets by their elements.
type setQueries struct{ textQueries }

// Items adds the items of a set: its distinct elements. A single value is the set of it.
func (e *setQueries) Items(dst *Draft, c *Condition) error {
	s, err := c.read()
	switch {
	case err != nil:
		return err
	case s.form != listForm && s.form != valueForm:
		return Refuse("column %q holds sets: write a list of elements, [\"a\",\"b\"]; all and any belong to filter and exclude", e.name)
	}
	return e.Set(dst, s.values)
}

// Set adds the items of a set.
func (e *setQueries) Set(dst *Draft, elements []Value) error {
	if len(elements) == 0 {
		dst.Warn(Empty, "")
	}
	spans, err := addEach(nil, dst, &Condition{Attr: e.name}, elements, e)
	if err != nil {
		return err
	}
	if dst.asks() {
		e.missed(dst, elements)
	}
	return dst.Keywords(e.position, keywordsOf(spans))
}

// missed tells which elements nothing has.
func (e *setQueries) missed(dst *Draft, elements []Value) {
	for i := range elements {
		text, err := e.text(&elements[i])
		if _, ok := e.vocabulary.Lookup(e.position, text); err == nil && !ok {
			dst.missed(text)
		}
	}
}

// Elements returns the elements of a condition on a column of sets, each once, as objects have them. The error is a *refusal.Error.
func Elements(c *schema.Column, cond *Condition) ([]string, error) {
	s, err := cond.read()
	switch {
	case err != nil:
		return nil, err
	case s.form != listForm && s.form != valueForm:
		return nil, Refuse("column %q holds sets: write a list of elements, [\"a\",\"b\"]", c.Name)
	}
	return ElementsOf(c, s.values)
}

// ElementsOf returns elements, each once, as objects have them.
func ElementsOf(c *schema.Column, values []Value) ([]string, error) {
	e, elements := newTextQueries(c, 0, nil), make([]string, 0, len(values))
	for i := range values {
		text, err := e.text(&values[i])
		if err != nil {
			return nil, err
		}
		elements = append(elements, text)
	}
	slices.Sort(elements)
	return slices.Compact(elements), nil
}

// keywordsOf returns the keywords of spans one by one.
func keywordsOf(spans []postings.Span) []uint32 {
	var keywords []uint32
	for _, s := range spans {
		for k := s.Lo; k < s.Hi; k++ {
			keywords = append(keywords, k)
		}
	}
	return keywords
}

package column

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/wire/value"
)

// A FilterEncoder is a QueryEncoder of a column that filters can be about.
type FilterEncoder interface {
	// Clauses adds the clauses of a condition to the group of dst.Filter that was begun last: objects meet the condition that meet all of them.
	// The error is a *refusal.Error, and dst is then of no use.
	Clauses(dst *Draft, c *Condition) error
}

// Clauses implements FilterEncoder: one clause, but for {"all":[...]}, which is one for each value.
func (e *textQueries) Clauses(dst *Draft, c *Condition) error {
	s, err := c.read()
	switch {
	case err != nil:
		return err
	case s.form == allForm:
		return e.every(dst, c, s.values)
	case s.form == anyForm:
		return e.some(dst, c, s.values)
	}
	if err := cmp.Or(c.together(), c.plain()); err != nil {
		return err
	}
	f := dst.Filter
	f.StartClause(uint32(e.position))
	first := len(f.Spans)
	f.Spans, err = addSpans(f.Spans, dst, c, e)
	f.Clauses[len(f.Clauses)-1].Spans.Count = uint32(len(f.Spans) - first)
	return err
}

// Clauses implements FilterEncoder: a list is all its elements.
func (e *setQueries) Clauses(dst *Draft, c *Condition) error {
	s, err := c.read()
	switch {
	case err != nil:
		return err
	case s.form == listForm || s.form == valueForm:
		return e.every(dst, c, s.values)
	case s.form == inForm:
		return e.some(dst, c, s.values)
	}
	return e.textQueries.Clauses(dst, c)
}

// every adds a clause for each of the values.
func (e *textQueries) every(dst *Draft, c *Condition, values []Value) error {
	if len(values) == 0 {
		return refuseEmpty(c)
	}
	var keywords []uint32
	unknown := false
	for i := range values {
		v := &values[i]
		lo, hi, err := e.span(c, v, v)
		if err != nil {
			return err
		}
		if lo < hi {
			keywords = append(keywords, lo)
		} else {
			dst.unknown(v)
			unknown = true
		}
	}
	slices.Sort(keywords)
	keywords = slices.Compact(keywords)
	dst.everyKeyword(e.position, keywords, unknown)
	if most := e.vocabulary.Attribute(e.position).MaxPerObject; !unknown && uint64(len(keywords)) > uint64(most) {
		dst.Warn(Unmeetable, "")
	}
	return nil
}

// some adds a clause that any of the values meets.
func (e *textQueries) some(dst *Draft, c *Condition, values []Value) (err error) {
	if len(values) == 0 {
		return refuseEmpty(c)
	}
	f := dst.Filter
	f.StartClause(uint32(e.position))
	first := len(f.Spans)
	f.Spans, err = addEach(f.Spans, dst, c, values, e)
	f.Clauses[len(f.Clauses)-1].Spans.Count = uint32(len(f.Spans) - first)
	return err
}

// together refuses all and any that come with each other or with something else, of a column that takes each of them.
func (c *Condition) together() error {
	if c.Other.IsZero() || c.Other.Kind() != value.Map || c.Other.Len() < 2 || c.Other.Member("all").IsZero() && c.Other.Member("any").IsZero() {
		return nil
	}
	return Refuse(`column %q: all and any are conditions of their own: write an object for each, [{%q:{"all":["a"]}},{%q:{"any":["b"]}}]`, c.Attr, c.Attr, c.Attr)
}

func refuseEmpty(c *Condition) error {
	return Refuse("column %q has nothing to match: the list is empty", c.Attr)
}

// everyKeyword adds a clause for each keyword, and with unknown one that nothing meets.
func (d *Draft) everyKeyword(attr int, keywords []uint32, unknown bool) {
	for _, keyword := range keywords {
		d.Filter.StartClause(uint32(attr))
		d.Filter.AddSpan(keyword, keyword+1)
	}
	if unknown {
		d.Filter.StartClause(uint32(attr))
	}
}

// Clauses implements FilterEncoder; see textClauses.
func (e *wordQueries) Clauses(dst *Draft, c *Condition) error {
	return textClauses(dst, e.position, e.vocabulary, &e.pool, e.stop, c)
}

// textClauses adds the clauses of a condition on texts: all words, or any. Stop words are left out; words in a row are not looked at, since
// objects that have all words need not have them in a row.
func textClauses(dst *Draft, attr int, v Vocabulary, pool *termPool, stop map[string]struct{}, c *Condition) error {
	s, err := c.read()
	switch {
	case err != nil:
		return err
	case c.together() != nil:
		return c.together()
	case s.form != valueForm && s.form != allForm && s.form != anyForm:
		return Refuse(`column %q holds texts: write "red shoes" or {"all":"red shoes"} for texts with all words, {"any":"red shoes"} for those with any`,
			c.Attr)
	}
	t := pool.get()
	defer pool.Put(t)
	for i := range s.values {
		value := s.values[i].text()
		if !utf8.ValidString(value) || s.values[i].Kind == Null {
			return Refuse("column %q: the text is not valid UTF-8", c.Attr)
		}
		t.addTextWords(value, stop, 0)
	}
	if len(t.ends) == 0 {
		return Refuse("column %q: nothing is left to look for, so that the condition would hold for all or for none: write words that are no stop "+
			"words", c.Attr)
	}
	keywords, unknown := t.lookup(dst, attr, v)
	if s.form != anyForm {
		dst.everyKeyword(attr, keywords, unknown)
		if !unknown && uint64(len(keywords)) > uint64(v.Attribute(attr).MaxPerObject) {
			dst.Warn(Unmeetable, "")
		}
		return nil
	}
	dst.Filter.StartClause(uint32(attr))
	for _, keyword := range keywords {
		dst.Filter.AddSpan(keyword, keyword+1)
	}
	return nil
}

// Clauses implements FilterEncoder: the whole string.
func (e *stringQueries) Clauses(dst *Draft, c *Condition) error {
	text, err := c.string(isForm)
	if err != nil {
		return err
	}
	dst.Filter.StartClause(uint32(e.position + 1))
	keyword, ok := e.vocabulary.Lookup(e.position+1, wholeKeyword(text))
	if !ok {
		dst.Warn(Unknown, text)
		return nil
	}
	dst.Filter.AddSpan(keyword, keyword+1)
	return nil
}

// Clauses implements FilterEncoder: one clause. It is exact: of buckets that hold values within and without, the values that the index keeps
// decide.
func (e *numberQueries) Clauses(dst *Draft, c *Condition) error {
	if err := c.plain(); err != nil {
		return err
	}
	f := dst.Filter
	f.StartClause(uint32(e.position))
	clause := &f.Clauses[len(f.Clauses)-1]
	if c.Bucket || e.attr.Exact {
		first := len(f.Spans)
		var err error
		f.Spans, err = addSpans(f.Spans, dst, c, e)
		clause.Spans.Count = uint32(len(f.Spans) - first)
		return err
	}
	ranges, err := e.ranges(c)
	if err != nil {
		return err
	}
	end := uint32(0) // of the edges so far
	for _, r := range ranges {
		end = e.cover(f, r, end)
	}
	switch {
	case clause.Edges.Count > 0:
		if dst.Stored == nil {
			return e.notStored()
		}
		if _, ok := dst.Stored.StoredNumbers(e.attr.Name); !ok {
			return e.notStored()
		}
		for _, r := range ranges {
			f.AddRange(r.Min, r.Max)
		}
	case clause.Spans.Count == 0:
		dst.Warn(Unmeetable, "")
	}
	return nil
}

// notStored refuses what only values could tell.
func (e *numberQueries) notStored() error {
	return refusal.Unsupported("column %s: the index keeps buckets of its values and not these, so that it "+
		"cannot be filtered by them: give bucket numbers with \"unit\":\"bucket\", or build the index again: the column with store: true or edges: exact, or the schema without kind", quoted(e.attr.Name))
}

// ranges returns the values of a plain condition, ascending and disjoint.
func (e *numberQueries) ranges(c *Condition) ([]filter.Range, error) {
	var ranges []filter.Range
	add := func(low, high *Value) error {
		min, max, err := e.bounds(c, low, high)
		ranges = append(ranges, filter.Range{Min: min, Max: max})
		return err
	}
	var err error
	switch {
	case c.Value != nil:
		err = add(c.Value, c.Value)
	case c.In == nil:
		err = add(c.Min, c.Max)
	default:
		for i := range c.In {
			if err = add(&c.In[i], &c.In[i]); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ranges, func(a, b filter.Range) int { return cmp.Compare(a.Min, b.Min) })
	n := 1
	for _, r := range ranges[1:] {
		if last := &ranges[n-1]; r.Min <= last.Max {
			last.Max = max(last.Max, r.Max)
			continue
		}
		ranges[n] = r
		n++
	}
	return ranges[:n], nil
}

// cover adds to the clause begun last the buckets that a range covers, and as edges those that it covers in part; they end at end so far. It
// returns where they end now. Ranges come in ascending order.
func (e *numberQueries) cover(f *filter.Filter, r filter.Range, end uint32) uint32 {
	a := e.attr
	if a.Keywords == 0 || r.Max < a.Min || r.Min > a.Max {
		return end
	}
	lo, _ := a.Bucket(r.Min)
	hi, _ := a.Bucket(r.Max)
	edge := func(bucket uint32) {
		if bucket >= end {
			f.AddEdge(bucket, bucket+1)
			end = bucket + 1
		}
	}
	first, last := lo, hi+1 // of those that are covered
	if low := a.Min; r.Min > low && (lo == 0 || r.Min > a.Edges[lo-1]) {
		edge(lo)
		first++
	}
	if first <= hi && !e.covers(r, hi) {
		edge(hi)
		last--
	}
	f.AddSpan(first, max(first, last))
	return end
}

// covers says that a range reaches to the end of a bucket.
func (e *numberQueries) covers(r filter.Range, bucket uint32) bool {
	if bucket+1 == e.attr.Keywords {
		return r.Max >= e.attr.Max
	}
	return r.Max >= math.Nextafter(e.attr.Edges[bucket], math.Inf(-1)) // the values of a bucket are below its edge
}

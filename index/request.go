package index

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
)

// Request is what a query asks of an index, in the words of its columns. The zero value asks for nothing, which is refused.
type Request struct {
	// Conditions each count, weighted, for the objects that meet them.
	Conditions []column.Condition
	// Text, if not nil, asks the one column that takes texts for one; in documents all text columns.
	Text *string
	// Set, if not nil, asks the one set column for a set.
	Set []column.Value
	// Vector, if not nil, asks the one vector column for a vector. Prepared is what Prepare has made of it; nil: nothing.
	Vector   []float32
	Prepared []uint32
	// Point, if not nil, asks the one column of points for what is near to it.
	Point *nearest.Point
	// Near is what a request for distances says besides.
	Near nearest.Near
	// Weights multiply what the conditions on columns count.
	Weights []ColumnWeight
	// IDF, if not nil, says whether words of texts, elements of sets and single categories weigh the more the fewer objects have them. Default:
	// what the schema says of each column.
	IDF *bool
	// Filter are conditions that every hit meets, and Exclude those of which none meets any. They add nothing to counts. A request with nothing
	// else asks for the first objects that pass. nil: there are none.
	Filter, Exclude []column.Condition
	// Total asks how many objects pass Filter and Exclude.
	Total bool
	// Rescore, if not nil, asks for another order of hits than that of counts.
	Rescore *Rescore
	// Quiet: the plan's warnings are of no use, and need not be made.
	Quiet bool
}

// counts says that something of the request counts.
func (r *Request) counts() bool {
	return r.Text != nil || r.Set != nil || r.Vector != nil || r.Point != nil || len(r.Conditions) > 0
}

// near is what a search by distance looks at.
func (r *Request) near() nearest.Request {
	return nearest.Request{Vector: r.Vector, Text: r.Text, Point: r.Point, Near: r.Near, Total: r.Total}
}

// filters says that hits have to pass something, be it everything.
func (r *Request) filters() bool { return r.Filter != nil || r.Exclude != nil }

// ColumnWeight is how much a column counts: 1 to postings.MaxWeight.
type ColumnWeight struct {
	Column string
	Weight uint32
}

// Plan is what a request becomes.
type Plan struct {
	// Family and Query are which structure is asked and what: as a rule the lists, with a *postings.MatchQuery.
	Family string
	Query  any
	// Rescore is the order of hits; nil: that of counts. Measure is by what they are scored.
	Rescore verify.Rescore
	Measure *verify.Measure
	// Estimates are those of the columns of vectors that are asked.
	Estimates []Estimate
	// Warnings say why less, or something else, may be found than was expected.
	Warnings []column.Warning
}

// Plan makes the plan of a request. A query of the lists is made in dst, which the plan then holds. The error is a *refusal.Error, or the
// Refusal of a condition, and dst is then of no use.
func (q *Queries) Plan(dst *postings.MatchQuery, r *Request) (Plan, error) {
	s := q.pool.Get()
	defer q.pool.Put(s)
	s.draft.Reset(dst)
	s.draft.Quiet, s.estimates = r.Quiet, s.estimates[:0]
	s.weighed = slices.Grow(s.weighed[:0], len(r.Weights))[:len(r.Weights)]
	clear(s.weighed)
	near := r.near()
	if c, ok, err := q.nearby.Of(&near); err != nil {
		return Plan{}, err
	} else if ok {
		plan, err := q.distances(s, r, &near, c)
		plan.Warnings = s.draft.Warnings
		s.draft = column.Draft{}
		return plan, err
	}
	if len(r.Conditions) == 1 {
		c := &r.Conditions[0]
		if at, ok := q.byName[c.Attr]; ok && q.columns[at].planner != nil {
			if r.Text != nil || r.Set != nil || r.Vector != nil || r.filters() || r.Total || r.Rescore != nil {
				return Plan{}, q.alone(c.Attr)
			}
			family, query, err := q.columns[at].planner.Query(c)
			return Plan{Family: family, Query: query}, err
		}
	}
	plan := Plan{Family: postings.FamilyName, Query: dst}
	var err error
	if r.Rescore != nil {
		plan.Measure, err = q.measure(s, r)
	}
	if err == nil {
		err = q.items(s, r)
	}
	if err == nil && r.Rescore != nil {
		plan.Rescore, err = q.rescore(s, dst, plan.Measure, r.Rescore.K)
	}
	if err == nil && (r.filters() || r.Total) {
		err = q.filter(s, dst, r)
	}
	for i, asked := range s.weighed {
		if !asked {
			s.draft.Unasked(r.Weights[i].Column)
		}
	}
	plan.Warnings, plan.Estimates = s.draft.Warnings, s.takeEstimates()
	s.draft = column.Draft{} // the pool must not keep the query alive
	return plan, err
}

// distances makes the plan of a search by distance in a column.
func (q *Queries) distances(s *scratch, r *Request, near *nearest.Request, c *distance.Column) (Plan, error) {
	if len(r.Conditions) > 0 || r.Set != nil || len(r.Weights) > 0 || r.IDF != nil || r.Rescore != nil {
		return Plan{}, column.Refuse("a search by distance counts nothing: conditions, weights, idf and rescore do not go with it")
	}
	made, err := q.nearby.Query(near, c)
	if err == nil && r.filters() {
		made.Filter = new(filter.Filter)
		err = q.conditions(s, made.Filter, r)
	}
	return Plan{Family: distance.FamilyName, Query: made}, err
}

// items adds all that counts.
func (q *Queries) items(s *scratch, r *Request) error {
	for _, w := range r.Weights {
		if _, ok := q.byName[w.Column]; !ok {
			return q.unknown(w.Column)
		}
		if w.Weight < 1 || w.Weight > postings.MaxWeight {
			return column.Refuse("weight %d of column %q: weights are 1 to %d", w.Weight, w.Column, postings.MaxWeight)
		}
	}
	if !r.counts() && !r.filters() && !r.Total {
		return column.Refuse("the query has no conditions: name at least one attribute of index %s (%s)",
			q.schema.Name, schema.List(q.names))
	}
	for i := range r.Conditions {
		c := &r.Conditions[i]
		at, ok := s.order.find(q, i, c.Attr)
		switch {
		case !ok:
			return q.unknown(c.Attr)
		case q.columns[at].planner != nil:
			return q.alone(c.Attr)
		}
		if err := q.begin(s, r, at, c.Weight); err != nil {
			return err
		}
		if missing, ok, err := c.Missing(); ok || err != nil {
			s.draft.AskedPresence()
			if err = cmp.Or(err, q.present(s, at, missing)); err != nil {
				return err
			}
			continue
		}
		first := len(s.draft.Match.Items)
		if err := q.columns[at].encoder.Items(&s.draft, c); err != nil {
			return err
		}
		q.estimated(s, at, first)
	}
	if r.Text != nil {
		if err := q.text(s, r, *r.Text); err != nil {
			return err
		}
	}
	if r.Set != nil {
		if err := q.set(s, r); err != nil {
			return err
		}
	}
	if r.Vector != nil {
		return q.vector(s, r)
	}
	return nil
}

// present adds what counts for objects with a value in a column, or without: where an object has one value at most, an item.
func (q *Queries) present(s *scratch, at int, missing bool) error {
	attr := q.columns[at].last
	if attr < 0 {
		return column.Refuse("column %q is searched by itself and cannot be asked for what is missing", q.columns[at].name)
	}
	if !missing && q.vocabulary.Attribute(attr).MaxPerObject <= 1 {
		s.draft.StartItem(attr)
		s.draft.Match.AddSpan(0, q.vocabulary.Attribute(attr).Keywords)
		return nil
	}
	if len(s.draft.Match.Presences) == filter.MaxPresences {
		return column.Refuse("column %q: at most %d conditions count for values that are missing or there: write others into filter or exclude", q.columns[at].name,
			filter.MaxPresences)
	}
	s.draft.Present(attr, q.vocabulary.Attribute(attr).Keywords, missing)
	return nil
}

// filter adds what hits have to pass.
func (q *Queries) filter(s *scratch, dst *postings.MatchQuery, r *Request) error {
	dst.Total = r.Total
	dst.Filter = new(filter.Filter)
	if err := q.conditions(s, dst.Filter, r); err != nil {
		return err
	}
	if !r.filters() && r.counts() {
		dst.Filter = nil // all pass
	}
	return nil
}

// conditions adds those that hits have to meet, and those of which they must meet none.
func (q *Queries) conditions(s *scratch, to *filter.Filter, r *Request) error {
	s.draft.Filter, s.draft.Stored = to, q.stored
	for i := range r.Filter {
		if err := q.clauses(s, &r.Filter[i], false); err != nil {
			return err
		}
	}
	for i := range r.Exclude {
		if err := q.clauses(s, &r.Exclude[i], true); err != nil {
			return err
		}
	}
	return nil
}

// clauses adds a group for a condition, which is to hold or, negated, not to hold.
func (q *Queries) clauses(s *scratch, c *column.Condition, negated bool) error {
	at, ok := q.byName[c.Attr]
	if !ok {
		return q.unknown(c.Attr)
	}
	if c.Weight > 1 {
		return column.Refuse("column %q: conditions of filter and exclude count nothing and have no weight", c.Attr)
	}
	if err := s.draft.Begin(c.Attr, 1, 1, nil); err != nil {
		return err
	}
	f := s.draft.Filter
	missing, ok, err := c.Missing()
	if err != nil {
		return err
	}
	if ok {
		if q.columns[at].last < 0 {
			return column.Refuse("column %q is searched by itself and cannot be asked for what is missing", c.Attr)
		}
		f.StartGroup(negated != missing)
		f.StartClause(uint32(q.columns[at].last))
		f.AddSpan(0, q.vocabulary.Attribute(q.columns[at].last).Keywords)
		return nil
	}
	encoder, ok := q.columns[at].encoder.(column.FilterEncoder)
	if !ok {
		return column.Refuse("column %q: filter and exclude take no conditions on columns of its type but {\"missing\":true} and false", c.Attr)
	}
	f.StartGroup(negated)
	return encoder.Clauses(&s.draft, c)
}

// begin begins a condition on a column.
func (q *Queries) begin(s *scratch, r *Request, at int, weight uint32) error {
	c := &q.columns[at]
	columnWeight := uint32(1)
	for i, w := range r.Weights {
		if w.Column == c.name {
			columnWeight, s.weighed[i] = w.Weight, true
		}
	}
	idf := c.idf
	if r.IDF == nil && !c.weighs || r.IDF != nil && !*r.IDF {
		idf = nil
	}
	return s.draft.Begin(c.name, weight, columnWeight, idf)
}

// text adds a text: in each text column of documents, else in the one column that takes texts.
func (q *Queries) text(s *scratch, r *Request, text string) error {
	switch {
	case len(q.texts) == 0:
		return column.Refuse("index %s holds %s and cannot be asked with text: use row or items", q.schema.Name, q.schema.Kind)
	case len(q.texts) > 1 && q.schema.Kind != schema.Documents && r.Near.Column == "":
		return column.Refuse("index %s has several columns of texts (%s): name the one to ask in row", q.schema.Name, q.named(q.texts))
	case r.Near.Column != "" && (len(q.texts) > 1 || q.columns[q.texts[0]].name != r.Near.Column):
		return q.notNear(r.Near.Column)
	case strings.TrimSpace(text) == "":
		return column.Refuse("text is empty: write what to look for")
	case !utf8.ValidString(text):
		return column.Refuse("text is not valid UTF-8")
	}
	for _, at := range q.texts {
		if err := q.begin(s, r, at, 1); err != nil {
			return err
		}
		if err := q.columns[at].text.Text(&s.draft, text); err != nil {
			return err
		}
	}
	return nil
}

// notNear refuses the column that a text is to ask, where its matches count: there column says nothing.
func (q *Queries) notNear(name string) error {
	if !q.has(name) {
		return q.unknown(name)
	}
	return column.Refuse("column says which column a search by distance asks, and the text is counted by its matches: ask column %q in row, {\"row\":{%q:\"...\"}}", name, name)
}

// set adds a set in the one column that takes sets.
func (q *Queries) set(s *scratch, r *Request) error {
	at, encoder, err := theOne[column.SetEncoder](q, "set")
	if err != nil {
		return err
	}
	if err := q.begin(s, r, at, 1); err != nil {
		return err
	}
	first := len(s.draft.Match.Items)
	if err := encoder.Set(&s.draft, r.Set); err != nil {
		return err
	}
	q.estimated(s, at, first)
	return nil
}

// vector adds a vector in the one column that takes vectors.
func (q *Queries) vector(s *scratch, r *Request) error {
	at, err := q.hashed(r.Near.Column)
	if err != nil {
		return err
	}
	if err := q.begin(s, r, at, 1); err != nil {
		return err
	}
	c, first := column.Condition{Attr: q.columns[at].name, Vector: r.Vector, Prepared: r.Prepared}, len(s.draft.Match.Items)
	if err := q.columns[at].encoder.Items(&s.draft, &c); err != nil {
		return err
	}
	q.estimated(s, at, first)
	return nil
}

// hashed is the column of vectors that is asked for matches: the one of a name, or the only one.
func (q *Queries) hashed(name string) (at int, err error) {
	if name == "" {
		if all := q.nearby.Vectors(); len(all) > 1 && q.vectors() != 1 {
			return 0, column.Refuse("index %s has several columns of vectors (%s): name the one to ask in column", q.schema.Name, schema.List(all))
		}
		at, _, err = theOne[column.VectorEncoder](q, "vector")
		return at, err
	}
	at, ok := q.byName[name]
	if !ok {
		return 0, q.unknown(name)
	}
	if _, ok := q.columns[at].encoder.(column.VectorEncoder); !ok {
		return 0, column.Refuse("column %q holds no vectors", name)
	}
	return at, nil
}

// vectors is how many columns take vectors for matches.
func (q *Queries) vectors() (n int) {
	for i := range q.columns {
		if _, ok := q.columns[i].encoder.(column.VectorEncoder); ok {
			n++
		}
	}
	return n
}

// has says that the index can be asked for a column, otherwise than by distance alone.
func (q *Queries) has(name string) bool {
	_, ok := q.byName[name]
	return ok
}

// theOne is the only column whose encoder takes a form.
func theOne[E any](q *Queries, form string) (at int, encoder E, err error) {
	var takers []int
	for i := range q.columns {
		if e, ok := q.columns[i].encoder.(E); ok {
			takers = append(takers, i)
			at, encoder = i, e
		}
	}
	switch {
	case len(takers) == 0:
		err = column.Refuse("index %s has no column of type %s and cannot be asked with a %s", q.schema.Name, form, form)
	case len(takers) > 1:
		err = column.Refuse("index %s has several columns of %ss (%s): name the one to ask in row", q.schema.Name, form, q.named(takers))
	}
	return at, encoder, err
}

// Prepares says whether there is anything that Prepare does for conditions on a column, or, where that is "", on any.
func (q *Queries) Prepares(name string) bool {
	for i := range q.columns {
		if _, ok := q.columns[i].encoder.(column.BatchEncoder); ok && (name == "" || name == q.columns[i].name) {
			return true
		}
	}
	return false
}

// Prepare does what takes less time for many requests together than for each: it hashes their vectors. Plan does what was not prepared. Workers
// is the number of goroutines that it may use. A request that is at fault is left to Plan.
func (q *Queries) Prepare(requests []*Request, workers int) {
	batches := make(map[int][]*column.Condition)
	forms := make(map[*column.Condition]*Request)
	for _, r := range requests {
		near := r.near()
		if _, distant, _ := q.nearby.Of(&near); r.Vector != nil && !distant {
			if at, err := q.hashed(r.Near.Column); err == nil {
				c := &column.Condition{Attr: q.columns[at].name, Vector: r.Vector}
				forms[c] = r
				batches[at] = append(batches[at], c)
			}
		}
		for i := range r.Conditions {
			c := &r.Conditions[i]
			if at, ok := q.byName[c.Attr]; ok {
				if _, ok := q.columns[at].encoder.(column.BatchEncoder); ok {
					batches[at] = append(batches[at], c)
				}
			}
		}
	}
	for at, batch := range batches {
		q.columns[at].encoder.(column.BatchEncoder).Prepare(batch, workers)
	}
	for c, r := range forms {
		r.Prepared = c.Prepared
	}
}

// named lists columns.
func (q *Queries) named(columns []int) string {
	names := make([]string, len(columns))
	for i, at := range columns {
		names[i] = q.columns[at].name
	}
	return strings.Join(names, ", ")
}

package wire

import (
	"cmp"
	"math"
	"strings"
)

// Form is what a query is given as. Which forms an index answers depends on its kind.
type Form uint8

const (
	NoForm     Form = iota
	RowForm         // conditions by attribute name: rows
	TextForm        // a string: sequences and documents
	VectorForm      // numbers: vectors
	SetForm         // elements: sets
	ItemsForm       // a list of conditions: any kind
	PointForm       // a place: columns of points
)

var formNames = [...]string{"", "row", "text", "vector", "set", "items", "point"}

// String returns the form's field name in a query.
func (f Form) String() string {
	if int(f) < len(formNames) {
		return formNames[f]
	}
	return "form"
}

// Query asks for the k objects of an index that match best. Exactly one of Row, Text, Vector, Set, Items and Point is
// given; the zero value of every option is its default.
type Query struct {
	// ID comes back with the result. It need not be unique: results are told apart by their reply subject and
	// their position. A message may give it as an integer, which stands for its decimal digits. Optional; the answer to a
	// message of one query without it has the message's Nats-Msg-Id.
	ID string
	// K is how many hits are wanted, 1 to 65,536. Default 10; with a Radius 1,024. Fewer come back when fewer objects match at all.
	K int
	// CountOnly wants no hits but the number of objects within the Radius, [Found.InRange]: k is 0 then, and said to be.
	CountOnly bool

	// Row holds at most one condition per attribute; their order means nothing. An object's count grows by the
	// condition's weight for each of its keywords that the condition contains.
	Row []Condition
	// Text is matched by n-grams and verified by edit distance (sequences), or by words (documents).
	Text string
	// Vector has the dimension of the index.
	Vector []float32
	// Point is a place on earth.
	Point *Point
	// Set holds numbers and strings; repeats count once.
	Set []Value
	// Items are raw conditions. Unlike a row they may name an attribute repeatedly, and each counts.
	Items []Condition

	// Near is what a search by distance says beside its Text, Vector or Point.
	Near
	// Filter are conditions that every hit meets, and Exclude those of which none meets any. They add nothing to counts. A query with
	// no form but with one of them, or with Total, is answered with the first objects that pass, by id, with count 0.
	Filter, Exclude []Condition
	// Total asks how many objects pass Filter and Exclude.
	Total bool
	// IDF weights the words of texts, the elements of sets and single categories by how rare they are. Default: as the schema says of each
	// column.
	IDF Choice
	// Weights multiply what the conditions on a column count.
	Weights []ColumnWeight
	// Rescore orders hits by a measure instead of by count.
	Rescore *Rescore
	// Matched names with each hit the columns whose condition it meets; Explain says what the answer came from.
	Matched, Explain bool

	// Candidates is how many objects of highest count are verified (the K of Algorithm 2), k to 65,536. Only
	// where hits are verified or re-ranked. Default max(32, 8k), at most 65,536.
	Candidates int
	// Certify doubles the candidates until the result is provably the true top-k.
	Certify bool
	// MinCount drops hits with a lower match count. Default 0, which is as good as 1 except with Certify: see
	// [Hit.Count].
	MinCount uint32
	// HitsForm is how the hits of the answer are written. Default a list of objects. The values are the same, but hits that come as columns
	// have a Key only in [HitsKeyedColumns].
	HitsForm HitsForm
	// WithPayload adds the objects' stored payload columns to the hits.
	WithPayload bool
	// TimeoutMS is how many milliseconds after the stream stored the query (or, for direct search, after it
	// arrived) an answer stops being useful; the query is then answered deadline_exceeded and costs nothing
	// more. 0 means no limit.
	TimeoutMS uint32
}

// Choice is yes, no, or left to a default.
type Choice uint8

const (
	Unsaid Choice = iota
	Yes
	No
)

// ChoiceOf returns Yes or No.
func ChoiceOf(yes bool) Choice {
	if yes {
		return Yes
	}
	return No
}

// ColumnWeight is the weight of what is asked of a column, 1 to 65,535.
type ColumnWeight struct {
	Column string
	Weight uint32
}

// Rescore asks for the order of a measure: what an object's score is, and of which column. The column may be left out where one
// column alone fits.
type Rescore struct {
	By, Column string
}

// FilterOnly says that a query asks for whatever passes its filter.
func (q *Query) FilterOnly() bool {
	return q.Form() == NoForm && (q.Filter != nil || q.Exclude != nil || q.Total)
}

// Form returns the form the query is given as: the first that is set, or NoForm. [Query.Validate] reports a second.
func (q *Query) Form() Form {
	first, _ := q.forms()
	return first
}

func (q *Query) forms() (first, second Form) {
	given := [...]bool{RowForm: q.Row != nil, TextForm: q.Text != "", VectorForm: q.Vector != nil, SetForm: q.Set != nil, ItemsForm: q.Items != nil, PointForm: q.Point != nil}
	for f, set := range given {
		switch {
		case !set:
		case first == NoForm:
			first = Form(f)
		case second == NoForm:
			second = Form(f)
		}
	}
	return first, second
}

// EnsureDefaults sets K and Candidates where they are 0.
func (q *Query) EnsureDefaults() {
	q.K = q.hits()
	q.Candidates = cmp.Or(q.Candidates, DefaultCandidates(q.K))
}

// DefaultCandidates is how many objects are verified or re-ranked where a query of k hits does not say.
func DefaultCandidates(k int) int { return min(MaxCandidates, max(32, 8*k)) }

// Validate checks everything about a query that needs no schema: one form, options in range, conditions that can
// hold, no NaN, and the limits on one query. Senders may call it before they send; decoded queries have passed it.
// The error, if any, is an *[Error].
func (q *Query) Validate(l Limits) error {
	l.EnsureDefaults()
	return q.validate(&l, nil).orNil()
}

// CheckQueries reports what about the queries of one message a server with these limits would refuse; "queries[3]: "
// says which query it is. It is for senders, to be called before encoding: a refused message is worse than none. The
// error is an *[Error].
func (l Limits) CheckQueries(queries []Query) error {
	l.EnsureDefaults()
	if len(queries) == 0 {
		return badRequest("no queries: send at least one")
	}
	if err := l.checkQueries(len(queries)); err != nil {
		return err
	}
	sumK := 0
	for i := range queries {
		if err := queries[i].validate(&l, nil); err != nil {
			if len(queries) > 1 {
				err = err.in("queries[%d]", i)
			}
			return err
		}
		sumK += queries[i].hits()
	}
	return l.checkSumK(sumK).orNil()
}

// validate is Validate; names, if any, are those of a row that was found sound before.
func (q *Query) validate(l *Limits, names *rowNames) *Error {
	d := *q
	d.EnsureDefaults()
	if err := l.checkString(len(d.ID)); err != nil {
		return err.in("id")
	}
	if d.CountOnly {
		if err := d.validateCountOnly(); err != nil {
			return err
		}
	} else if d.K < 1 || d.K > MaxK {
		return badRequest("k must be between 1 and %d, not %d", MaxK, d.K)
	}
	if d.Candidates < d.K || d.Candidates > MaxCandidates {
		return badRequest("candidates must be between k = %d and %d, not %d", d.K, MaxCandidates, d.Candidates)
	}
	if d.HitsForm > HitsKeyedColumns {
		return badRequest("hits have no form %d", d.HitsForm)
	}
	if d.TimeoutMS > MaxTimeoutMS {
		return badRequest("timeout_ms must be at most %d, not %d", MaxTimeoutMS, d.TimeoutMS)
	}
	if err := l.checkItems(countItems(d.Row) + countItems(d.Items) + countItems(d.Filter) + countItems(d.Exclude) + len(d.Weights)); err != nil {
		return err
	}
	if err := d.validateRefinements(l); err != nil {
		return err
	}
	if err := d.validateNear(l, d.Form()); err != nil {
		return err
	}
	first, second := d.forms()
	if second != NoForm {
		return badRequest("%s and %s exclude each other: a query has one form", first, second)
	}
	switch first {
	case RowForm:
		return validateConditions(l, "row", d.Row, names)
	case ItemsForm:
		return validateConditions(l, "items", d.Items, nil)
	case TextForm:
		if err := l.checkString(len(d.Text)); err != nil {
			return err.in("text")
		}
	case VectorForm:
		return validateVector(l, d.Vector)
	case SetForm:
		return validateSet(l, d.Set)
	case PointForm:
		return d.Point.validate()
	default:
		if d.FilterOnly() {
			return d.validateFilterOnly()
		}
		return badRequest("the query asks for nothing: give one of %s", strings.Join(formNames[1:], ", "))
	}
	return nil
}

// countItems counts conditions and the values in them.
func countItems(conds []Condition) (items int) {
	for i := range conds {
		items += 1 + len(conds[i].In)
		if other := conds[i].Other; other != nil {
			items += other.Value.Extent().Nodes
		}
	}
	return items
}

func validateConditions(l *Limits, form string, conds []Condition, names *rowNames) *Error {
	if len(conds) == 0 {
		return badRequest("%s is empty: give at least one condition", form)
	}
	for i := range conds {
		if conds[i].plain(l) {
			continue
		}
		if err := conds[i].validate(l); err != nil {
			if form != "items" && conds[i].Attr != "" {
				return err.in("%s.%s", form, clip(conds[i].Attr))
			}
			return err.in("%s[%d]", form, i)
		}
	}
	if form == "row" {
		if attr, ok := names.repeated(conds); ok {
			return badRequest("row names %q twice: use items to count an attribute repeatedly", clip(attr))
		}
	}
	return nil
}

// rowNames are the attributes of a row, in its order. The rows of a message mostly name the same ones in the same order, and
// then one that repeats none need not be looked through again.
type rowNames []string

// repeated finds an attribute that two conditions name. Without memory, nil, it remembers none.
func (names *rowNames) repeated(conds []Condition) (string, bool) {
	if names == nil {
		return repeatedAttr(conds)
	}
	same := 0
	for same < len(conds) && same < len(*names) && conds[same].Attr == (*names)[same] {
		same++
	}
	if same == len(conds) {
		return "", false // a part of what repeats nothing repeats nothing
	}
	attr, ok := repeatedAttr(conds)
	*names = (*names)[:0]
	for i := range conds {
		if ok || i == maxNames {
			*names = (*names)[:0]
			break
		}
		*names = append(*names, conds[i].Attr)
	}
	return attr, ok
}

// maxNames is of how many attributes the names are remembered.
const maxNames = 4096

// repeatedAttr finds an attribute that two conditions name.
func repeatedAttr(conds []Condition) (string, bool) {
	if len(conds) <= 32 { // most rows are short: no map for them
		for i := range conds {
			for j := range i {
				if conds[i].Attr == conds[j].Attr {
					return conds[i].Attr, true
				}
			}
		}
		return "", false
	}
	seen := make(map[string]struct{}, len(conds))
	for i := range conds {
		if _, ok := seen[conds[i].Attr]; ok {
			return conds[i].Attr, true
		}
		seen[conds[i].Attr] = struct{}{}
	}
	return "", false
}

func validateVector(l *Limits, v []float32) *Error {
	if len(v) == 0 {
		return badRequest("vector is empty")
	}
	if err := l.checkItems(len(v)); err != nil {
		return err.in("vector")
	}
	for i, x := range v {
		if x != x || math.IsInf(float64(x), 0) {
			return badRequest("vector[%d] is %v: every element must be a finite number", i, x)
		}
	}
	return nil
}

func validateSet(l *Limits, set []Value) *Error {
	if len(set) == 0 {
		return badRequest("set is empty")
	}
	if err := l.checkItems(len(set)); err != nil {
		return err.in("set")
	}
	for i, v := range set {
		if v.Kind == BoolValue {
			return badRequest("set[%d] is a bool: elements are numbers or strings", i)
		}
		if err := v.validate(l, false); err != nil {
			return err.in("set[%d]", i)
		}
	}
	return nil
}

package index

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/pool"
)

// Queries turns user queries into queries of the structures of one open index. It is safe for concurrent use and must not
// be used after the index is closed.
type Queries struct {
	schema     *schema.Schema
	index      *Index
	lists      *postings.Lists
	forward    *forward.Forward // nil: nothing is kept
	nearby     nearest.Columns  // those that are searched by distance
	vocabulary column.Vocabulary
	stored     filter.Stored // the numbers that the index keeps; nil: none
	columns    []queryColumn
	names      []string       // of columns
	byName     map[string]int // position in columns
	attributes []string       // the column that each attribute is of
	matching   []string       // the same, "" of those that Matched leaves out
	texts      []int          // the columns that texts can be asked of, by their position
	compared   string         // the column whose texts are compared; "": there is none
	nearest    verify.Nearest // how, without a text
	pool       pool.Of[scratch]
}

// queryColumn is a column that can be asked for.
type queryColumn struct {
	name    string
	encoder column.QueryEncoder
	last    int                // its last attribute, of which each object with a value has a keyword; -1: it has none
	text    column.TextEncoder // nil: takes none
	planner column.Planner     // nil: what is asked for are keywords
	idf     column.IDF         // nil: its values never weigh each their own
	weighs  bool               // by the schema they do, unless a query says otherwise
}

// scratch is the memory of one query.
type scratch struct {
	draft     column.Draft
	order     order
	estimates []Estimate
	weighed   []bool // by the weights of the request: something asks the column
}

// order is the columns of the conditions of a query before, by which those of the next are found.
type order []int

// maxOrder is how many columns are remembered.
const maxOrder = 4096

// NewQueries prepares the encoding of queries for x by the schema stored in it. It fails when the attributes in the
// file are not those that the schema declares, as in a file made by other means.
func NewQueries(x *Index) (*Queries, error) {
	q := &Queries{schema: x.schema, index: x, lists: x.Lists, forward: x.Forward(), vocabulary: x.Lists, byName: make(map[string]int)}
	q.stored = filter.StoredBy(x.Structure(filter.StoredFamily))
	if err := checkAttributes(x); err != nil {
		return nil, err
	}
	first := 0
	rarities := make(map[int]*similarity.Rarity) // by scale; making one takes a millisecond
	for i := range q.schema.Columns {
		c := &q.schema.Columns[i]
		t := x.kinds.Column(q.schema.Kind, c.Type)
		encoder, err := t.Queries(q.schema, c, first, x.Lists)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		before := first
		first += len(t.Attributes(c))
		_, grams := encoder.(column.GramEncoder)
		q.attribute(c.Name, before, first, first == before+1 && !grams)
		if encoder == nil {
			continue
		}
		at := queryColumn{name: c.Name, encoder: encoder, last: -1, weighs: c.IDF}
		if n := len(t.Attributes(c)); n > 0 {
			at.last = first - 1
		}
		if w, ok := t.(column.Weigher); ok && w.Weighs() {
			scale := cmp.Or(c.IDFScale, schema.DefaultIDFScale)
			if rarities[scale] == nil {
				if rarities[scale], err = similarity.NewRarity(x.Lists, x.Objects(), scale); err != nil {
					return nil, fmt.Errorf("column %q: %w", c.Name, err)
				}
			}
			at.idf = rarities[scale]
		}
		at.text, _ = encoder.(column.TextEncoder)
		at.planner, _ = encoder.(column.Planner)
		if grams, ok := encoder.(column.GramEncoder); ok {
			q.compared, q.nearest = c.Name, verify.Nearest{Texts: x, NGram: grams.NGram()}
		}
		if at.text != nil {
			q.texts = append(q.texts, len(q.columns))
		}
		q.byName[c.Name] = len(q.columns)
		q.columns, q.names = append(q.columns, at), append(q.names, c.Name)
	}
	q.nearby = nearest.Columns{Schema: q.schema, Distances: x.Distances()}
	for _, at := range q.texts {
		q.nearby.Texts = append(q.nearby.Texts, q.columns[at].name)
	}
	return q, nil
}

// checkAttributes checks that an index has the attributes its schema declares, in order.
func checkAttributes(x *Index) error {
	specs, attrs := x.kinds.Attributes(x.schema), x.Attributes()
	if !slices.EqualFunc(specs, attrs, func(s schema.AttributeSpec, a postings.Attribute) bool {
		return s.Name == a.Name && s.Type == a.Type
	}) {
		return fmt.Errorf("the attributes of index %s are not the columns of its schema: build it again", x.schema.Name)
	}
	return nil
}

// Compared is the column whose texts are stored apart from the payloads, because they are compared with those that are looked for; "" where
// there is none.
func (q *Queries) Compared() string { return q.compared }

// Rescore is the order of the k hits that are wanted for a text, where they are compared; nil where it is that of counts.
func (q *Queries) Rescore(text string, k int) verify.Rescore {
	if q.compared == "" {
		return nil
	}
	nearest := q.nearest
	nearest.Text, nearest.K = []rune(text), k
	return &nearest
}

// alone refuses a condition that cannot be among others.
func (q *Queries) alone(name string) error {
	return column.Refuse("column %q is searched by itself: a condition on it must be the only one of its query", name)
}

// unknown explains a name that is no attribute: a typing error, or a column that is not indexed.
func (q *Queries) unknown(name string) error {
	for i := range q.schema.Columns {
		if c := &q.schema.Columns[i]; c.Name == name {
			reason := "not indexed"
			if q.nearby.Distances.Column(name) != nil {
				return column.Refuse("column %q of index %s is searched by distance alone: ask it with vector or point, and column, and not in conditions", name, q.schema.Name)
			}
			if c.Type == schema.PayloadColumn {
				reason = "stored but not indexed"
			}
			return column.Refuse("column %q of index %s is %s (type %s), so it cannot be searched", name, q.schema.Name, reason, c.Type)
		}
	}
	if best := schema.Nearest(name, q.names); best != "" {
		return column.Refuse("attribute %q is not in index %s (did you mean %s?)", name, q.schema.Name, best)
	}
	return column.Refuse("attribute %.80q is not in index %s (it has %s)", name, q.schema.Name, schema.List(q.names))
}

// find finds the column of a query's i-th condition. Those who ask often name the same columns in the same
// order each time, so that one comparison is nearly always enough.
func (s *order) find(q *Queries, i int, name string) (at int, ok bool) {
	if i < len(*s) {
		if at = (*s)[i]; q.columns[at].name == name {
			return at, true
		}
	}
	if at, ok = q.byName[name]; !ok {
		return 0, false
	}
	if i < len(*s) {
		(*s)[i] = at
	} else if i == len(*s) && i < maxOrder {
		*s = append(*s, at)
	}
	return at, true
}

package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/match/alike"
	"github.com/geniemq/geniemq/index/schema"
)

// leadingWeight is what the column weighs by which candidates are found, beside others.
const leadingWeight = 4

// turned says so where a pair is given the wrong way round.
func turned(pair [2]string, input, of *schema.Schema) string {
	if of == nil || columnNamed(input, pair[0]) < 0 || columnNamed(of, pair[1]) < 0 {
		return ""
	}
	return fmt.Sprintf(". The index's column goes first: --map %s=%s", pair[1], pair[0])
}

// question is what can be asked of what both sides have. of is the schema of the index, nil where nobody tells; then its columns are taken for what the input's are.
func (o *options) question(input, of *schema.Schema) (*question, error) {
	q := &question{leading: -1}
	pairs, err := o.mapped(input, of)
	if err != nil {
		return nil, err
	}
	for _, pair := range pairs {
		at := columnNamed(input, pair[1])
		if at < 0 {
			return nil, fmt.Errorf("--map %s=%s: the input has no column %q; it has %s%s", pair[0], pair[1], pair[1], names(input), turned(pair, input, of))
		}
		c := column{name: pair[0], input: at, stored: true}
		mine, other := &input.Columns[at], (*schema.Column)(nil)
		c.Type, c.Exact = mine.Type, mine.Edges == schema.Exact
		if of != nil {
			i := columnNamed(of, pair[0])
			if i < 0 {
				return nil, fmt.Errorf("--map %s=%s: the index has no column %q; it has %s%s", pair[0], pair[1], pair[0], names(of), turned(pair, input, of))
			}
			other = &of.Columns[i]
			c.Type, c.Exact = other.Type, c.Exact || other.Edges == schema.Exact
			c.stored = other.Store || other.Type == schema.PayloadColumn || of.Kind == schema.Sequences
		}
		if c.Type == schema.SkipColumn || mine.Type == schema.SkipColumn {
			return nil, fmt.Errorf("--map %s=%s: a column that is skipped says nothing", pair[0], pair[1])
		}
		if alike.Far(mine.Type) != alike.Far(c.Type) || alike.Far(c.Type) && mine.Type != c.Type || !alike.Far(c.Type) && mine.Type.Nested() && mine.Type != schema.PayloadColumn || !alike.Compares(c.Type) {
			continue // nor does what is neither words nor numbers nor near
		}
		if described := mine; alike.Far(c.Type) {
			if other != nil {
				described = other
			}
			if why := c.measure(described); why != "" {
				q.silent = append(q.silent, fmt.Sprintf("column %s is not compared: %s", c.name, why))
				continue
			}
		}
		c.Weight = 1
		q.columns = append(q.columns, c)
	}
	if len(q.columns) == 0 && q.silent != nil {
		return nil, fmt.Errorf("nothing to compare: %s", strings.Join(q.silent, "; "))
	}
	if len(q.columns) == 0 {
		return nil, fmt.Errorf("nothing to compare: name columns by --map index=input; the index has %s, the input %s", names(of), names(input))
	}
	if err := q.lead(o.by, of); err != nil {
		return nil, err
	}
	if err := o.scales(q, input); err != nil {
		return nil, err
	}
	for i := range q.columns {
		c := &q.columns[i]
		if i == q.leading {
			c.Weight = leadingWeight
		}
		if w, ok := o.weight[c.name]; ok {
			c.Weight = w
		}
	}
	for name := range o.weight {
		if !slices.ContainsFunc(q.columns, func(c column) bool { return c.name == name }) {
			return nil, fmt.Errorf("--weight %s: no column of that name is compared", name)
		}
	}
	return q, nil
}

// mapped are columns of the index, and those of the input that go with them.
func (o *options) mapped(input, of *schema.Schema) (pairs [][2]string, err error) {
	if len(o.pairs) > 0 {
		for _, text := range o.pairs {
			name, column, _ := strings.Cut(text, "=")
			pairs = append(pairs, [2]string{strings.TrimSpace(name), strings.TrimSpace(column)})
		}
		return pairs, nil
	}
	for i := range input.Columns {
		c := &input.Columns[i]
		if c.Name == input.Key || !alike.Compares(c.Type) {
			continue
		}
		if of != nil {
			if at := columnNamed(of, c.Name); at < 0 || c.Name == of.Key || !alike.Compares(of.Columns[at].Type) {
				continue
			}
		}
		pairs = append(pairs, [2]string{c.Name, c.Name})
	}
	if len(pairs) == 0 {
		err = fmt.Errorf("no column of the input is called as one of the index: name those that mean the same by --map index=input; the index has %s, the input %s",
			names(of), names(input))
	}
	return pairs, err
}

// leaders are the types of columns by which candidates can be found, those first that are taken first.
var leaders = []schema.ColumnType{schema.TextColumn, schema.StringColumn, schema.SetColumn, schema.VectorColumn, schema.PointColumn}

// lead finds the column by which candidates are found, the one that is named if one is, and what measures it.
func (q *question) lead(by string, of *schema.Schema) error {
	if by != "" {
		q.leading = q.named(by)
		if q.leading < 0 || !slices.Contains(leaders, q.columns[q.leading].Type) {
			return fmt.Errorf("--by %s: candidates are found by a text, string, set, vector or point, and no column of that name is compared that is one", by)
		}
	}
	for _, kind := range leaders {
		if q.leading >= 0 {
			break
		}
		q.leading = slices.IndexFunc(q.columns, func(c column) bool { return c.Type == kind })
	}
	if q.leading < 0 {
		return nil
	}
	c := &q.columns[q.leading]
	switch c.Type {
	case schema.VectorColumn, schema.PointColumn:
		q.by = c.by
	case schema.TextColumn:
		q.by = "cosine"
	case schema.StringColumn:
		q.by = "edit"
	default:
		q.by = "jaccard"
	}
	if of == nil || alike.Far(c.Type) {
		return nil
	}
	described := &of.Columns[columnNamed(of, c.name)]
	switch of.Kind {
	case schema.Sequences:
		c.Type, q.by, q.text = schema.StringColumn, "edit", true
	case schema.Documents:
		if q.text = true; described.Keep == "" && (of.Rescore == nil || of.Rescore.Column != c.name) {
			q.by = "" // nothing is kept to compare
		}
	}
	if described.MinHash > 0 {
		q.by = ""
	}
	return nil
}

// unsaid are the columns that are compared by nothing, since hits do not have them.
func (q *question) unsaid() (names []string) {
	for i, c := range q.columns {
		if !c.stored && (i != q.leading || q.by == "" && !alike.Far(c.Type)) {
			names = append(names, c.name)
		}
	}
	return names
}

// needless leaves out of a schema what is not asked.
func (q *question) needless(input *schema.Schema) {
	for i := range input.Columns {
		if !slices.ContainsFunc(q.columns, func(c column) bool { return c.input == i }) {
			input.Columns[i].Type = schema.SkipColumn
		}
	}
}

// named is the place of the column that an index calls so, -1 where it is not compared.
func (q *question) named(name string) int {
	return slices.IndexFunc(q.columns, func(c column) bool { return c.name == name })
}

func columnNamed(s *schema.Schema, name string) int {
	return slices.IndexFunc(s.Columns, func(c schema.Column) bool { return c.Name == name })
}

// names lists the columns of a schema for people.
func names(s *schema.Schema) string {
	if s == nil {
		return "columns that its worker knows"
	}
	var all []string
	for i := range s.Columns {
		all = append(all, s.Columns[i].Name)
	}
	return schema.List(all)
}

// Package filled reports what a build made of its input, column by column, for people and for programs.
package filled

import (
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/filling"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Report is what became of an input.
type Report struct {
	File     string   `json:"file"`
	Index    string   `json:"index"`
	Version  string   `json:"version"`
	Objects  uint32   `json:"objects"`
	Skipped  int64    `json:"skipped"` // records that were left out
	Bytes    int64    `json:"bytes"`
	Seconds  float64  `json:"seconds"`
	Columns  []Column `json:"columns"`
	Warnings []string `json:"warnings,omitempty"`
	Missed   []string `json:"-"` // those of the warnings that are about the index, of recall
}

// Column is what became of a column's cells.
type Column struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Filled   int64    `json:"filled"`
	Missing  int64    `json:"missing"`
	Invalid  int64    `json:"invalid,omitempty"`  // of missing: cells that the type cannot take
	Distinct uint32   `json:"distinct,omitempty"` // of numbers and dates in buckets it is not known
	Min      any      `json:"min,omitempty"`
	Max      any      `json:"max,omitempty"`
	Frequent string   `json:"most_frequent,omitempty"` // keyword
	Often    uint64   `json:"most_frequent_objects,omitempty"`
	Examples []string `json:"invalid_examples,omitempty"`
}

// Of reports on an index that was built, by what became of the cells of its columns.
func Of(x *index.Index, fillings filling.Columns) Report {
	r := Report{Index: x.Name(), Version: x.Version(), Objects: x.Objects(), Bytes: x.Size()}
	for _, f := range fillings {
		c := Column{Name: f.Name, Filled: f.Filled, Missing: f.Missing, Invalid: f.Invalid}
		for _, declared := range x.Schema().Columns {
			if declared.Name == f.Name {
				c.Type = string(declared.Type)
			}
		}
		for _, e := range f.Examples {
			c.Examples = append(c.Examples, fmt.Sprintf("line %d: %s", e.Line, e.Reason))
		}
		for i, a := range x.Attributes() {
			if a.Name == f.Name {
				c.describe(x, i, a)
			}
		}
		if c.Type != string(schema.SkipColumn) {
			r.Columns = append(r.Columns, c)
		}
	}
	for i := range x.Schema().Columns {
		if missed := missedRecall(&x.Schema().Columns[i]); missed != "" {
			r.Missed = append(r.Missed, missed)
		}
	}
	return r
}

// missedRecall says what a column of vectors reaches of the recall that it was to reach; "" where it does.
func missedRecall(c *schema.Column) string {
	p, err := lsh.Decode(c.Learned)
	if c.Recall == 0 || err != nil {
		return ""
	}
	r, ok := p.Recall.Lookup(10, 80, uint32(p.Reach))
	if !ok || r.Share >= c.Recall {
		return ""
	}
	return fmt.Sprintf("column %q: recall %.3g was asked for, and with all %d vectors it is %.3f (%.3f to %.3f), by %d functions with reach %d: ask for more functions, or for more candidates in queries",
		c.Name, c.Recall, p.Recall.Objects+uint64(p.Recall.Queries), r.Share, r.Low, r.High, p.Functions, p.Reach)
}

// describe adds what the lists of an attribute say of the column.
func (c *Column) describe(x *index.Index, at int, a postings.Attribute) {
	if a.Keywords == 0 {
		return
	}
	if a.Type == schema.Number {
		c.Min, c.Max = a.Min, a.Max
		if c.Type == string(schema.DateColumn) {
			c.Min, c.Max = dates.Format(a.Min), dates.Format(a.Max)
		}
		if a.Exact {
			c.Distinct = a.Keywords
		}
		return
	}
	if x.Schema().Kind == schema.Sequences || c.Type == string(schema.StringColumn) {
		return // its keywords are pieces of strings, which say nothing to people
	}
	lists := x.ListStatistics(at)
	if c.Distinct = a.Keywords; a.Type == schema.Text {
		c.Frequent, c.Often = x.KeywordName(at, lists.Longest), uint64(lists.Max)
	}
}

// TooManyInvalid says which column has more invalid cells than a share of its cells allows; "" none.
func TooManyInvalid(fillings filling.Columns, share float64) string {
	for _, f := range fillings {
		if all := f.Filled + f.Missing; float64(f.Invalid) > share*float64(all) {
			first := ""
			if len(f.Examples) > 0 {
				first = fmt.Sprintf("; the first one: line %d: %s", f.Examples[0].Line, f.Examples[0].Reason)
			}
			return fmt.Sprintf("column %q: %d of %d cells cannot be used%s", f.Name, f.Invalid, all, first)
		}
	}
	return ""
}

// Unusable are sentences about the columns of a schema all of whose values are invalid, each with one of these and with what to do.
func Unusable(s *schema.Schema, fillings filling.Columns) (warnings []string) {
	for i, f := range fillings {
		if f.Filled > 0 || f.Invalid == 0 {
			continue
		}
		example := f.Examples[0]
		warnings = append(warnings, fmt.Sprintf("column %q: none of its values can be used (invalid: %d), so nothing is found by it; the first one: line %d: %s; %s",
			f.Name, f.Invalid, example.Line, example.Reason, correction(s.Columns[i].Type)))
	}
	return warnings
}

// correction is what is likely to be wrong about a column of whose values none can be used.
func correction(t schema.ColumnType) string {
	switch t {
	case schema.VectorColumn:
		return "correct what the schema says of it (dims, storage, keep), or leave that out"
	case schema.NumberColumn, schema.DateColumn:
		return "say in the schema how it is written (parse), or of which type it is"
	}
	return "say in the schema of which type it is"
}

// Table writes the columns for people.
func (r *Report) Table(p *table.Page) {
	columns := []table.Column{table.Text("column").Kept(), table.Text("type"), table.Number("filled").Kept(), table.Number("missing").Kept()}
	invalid := slices.ContainsFunc(r.Columns, func(c Column) bool { return c.Invalid > 0 })
	if invalid {
		columns = append(columns, table.Number("of these invalid").Kept())
	}
	t := table.New(append(columns, table.Number("distinct"), table.Text("values"))...)
	for _, c := range r.Columns {
		row := []any{c.Name, c.Type, c.Filled, c.Missing}
		if invalid {
			row = append(row, c.Invalid)
		}
		var distinct any
		if c.Distinct > 0 {
			distinct = c.Distinct
		}
		t.Row(append(row, distinct, c.values())...)
	}
	t.Print(p)
	for _, w := range r.Missed {
		p.Say("warning: %s\n", w)
	}
	for _, c := range r.Columns {
		for _, e := range c.Examples {
			p.Say("invalid: column %s: %s\n", c.Name, e)
		}
	}
}

func (c *Column) values() string {
	switch {
	case c.Min != nil:
		return fmt.Sprintf("%v to %v", shown(c.Min), shown(c.Max))
	case c.Frequent != "":
		return fmt.Sprintf("%q in %d", table.Cut(table.Clean(c.Frequent), 32), c.Often)
	}
	return ""
}

func shown(v any) string {
	if f, ok := v.(float64); ok {
		return schema.ShownNumber(f)
	}
	return fmt.Sprint(v)
}

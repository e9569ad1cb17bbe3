// Package filled reports what a build made of its input, column by column, for people and for programs.
package filled

import (
	"fmt"
	"strconv"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/filling"
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
	return r
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

// Table writes the columns for people.
func (r *Report) Table(p *table.Page) {
	t := table.New(table.Text("column").Kept(), table.Text("type"), table.Number("filled").Kept(), table.Number("missing").Kept(), table.Number("distinct"), table.Text("values"))
	for _, c := range r.Columns {
		missing := strconv.FormatInt(c.Missing, 10)
		if c.Invalid > 0 {
			missing += fmt.Sprintf(" (%d invalid)", c.Invalid)
		}
		var distinct any
		if c.Distinct > 0 {
			distinct = c.Distinct
		}
		t.Row(c.Name, c.Type, c.Filled, missing, distinct, c.values())
	}
	t.Print(p)
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
		return schema.NumberText(f)
	}
	return fmt.Sprint(v)
}

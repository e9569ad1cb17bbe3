package answers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/wire"
)

// mostAsked is how much of a long text is shown that was asked for, in cells.
const mostAsked = 160

// askedOf is what a query asks of a column, other than by its filters, as a person would say it. A query of one form, such as a text, asks it of the column that
// answers.
func askedOf(q *wire.Query, column string) string {
	var all []string
	for _, c := range slices.Concat(q.Row, q.Items) {
		if c.Attr == column {
			all = append(all, said(&c))
		}
	}
	if len(all) == 0 {
		switch {
		case q.Text != "":
			all = append(all, q.Text)
		case q.Set != nil:
			all = append(all, listed(q.Set))
		case q.Vector != nil:
			all = append(all, human.Count(len(q.Vector), "number"))
		}
	}
	return table.Cut(table.Clean(strings.Join(all, "; ")), mostAsked)
}

// askedBy is what the conditions of a filter ask of a column.
func askedBy(conditions []wire.Condition, column string) string {
	var all []string
	for _, c := range conditions {
		if c.Attr == column {
			all = append(all, said(&c))
		}
	}
	return table.Cut(table.Clean(strings.Join(all, "; ")), mostAsked)
}

// said is a condition in words.
func said(c *wire.Condition) string {
	of := ""
	if c.Bucket {
		of = "bucket "
	}
	switch {
	case !c.Value.IsZero():
		return of + inWords(&c.Value)
	case c.In != nil:
		return of + listed(c.In)
	case c.Other != nil:
		return saidOther(c.Other.Value.AppendJSON(nil))
	case c.Min.IsZero():
		return of + "up to " + inWords(&c.Max)
	case !c.Max.IsZero():
		return of + inWords(&c.Min) + " to " + inWords(&c.Max)
	case c.Min.Kind == wire.StringValue: // a date
		return of + inWords(&c.Min) + " or later"
	}
	return of + inWords(&c.Min) + " or more"
}

// saidOther is a condition of another shape: a list, or an object whose one member says what to do with a list.
func saidOther(text json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && len(members) == 1 {
		for name, value := range members {
			switch {
			case name == "missing" && string(value) == "true":
				return "missing"
			case name == "missing":
				return "any value"
			case name == "all" || name == "any":
				return name + " of " + cellOf(value).shown(nil)
			case name == "is":
				return cellOf(value).shown(nil)
			}
		}
	}
	return cellOf(text).shown(nil)
}

func listed(values []wire.Value) string {
	parts := make([]string, len(values))
	for i := range values {
		parts[i] = inWords(&values[i])
	}
	return strings.Join(parts, ", ")
}

func inWords(v *wire.Value) string {
	switch v.Kind {
	case wire.NumberValue:
		return schema.ShownNumber(v.Number)
	case wire.BoolValue:
		return fmt.Sprint(v.Bool())
	}
	return v.String
}

// elements are the texts that a query asks of lists: of a column, or of the one that there is.
func elements(q *wire.Query, column string) (texts []string) {
	add := func(values []wire.Value) {
		for i := range values {
			text := inWords(&values[i])
			if values[i].Kind == wire.NumberValue {
				text = schema.NumberText(values[i].Number) // as elements are that are numbers
			}
			texts = append(texts, text)
		}
	}
	add(q.Set)
	for _, c := range slices.Concat(q.Row, q.Items, q.Filter) {
		switch {
		case c.Attr != column:
		case c.Other != nil:
			field := cellOf(c.Other.Value.AppendJSON(nil))
			texts = append(texts, field.List...)
			var members map[string]json.RawMessage
			if json.Unmarshal([]byte(field.Text), &members) == nil {
				texts = append(append(texts, cellOf(members["all"]).List...), cellOf(members["any"]).List...)
			}
		case !c.Value.IsZero():
			add([]wire.Value{c.Value})
		}
	}
	return texts
}

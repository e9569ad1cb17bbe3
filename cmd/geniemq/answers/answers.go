// Package answers shows results to people, as tables and what they came from, and writes them as CSV.
package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/wire"
)

// mostMatched is up to how many hits a query is asked, unasked, which conditions each of them meets.
const mostMatched = 1000

// Want has a query bring what its hits are shown with: their stored columns, and which of its conditions they meet.
func Want(q *wire.Query) {
	q.WithPayload = true
	if q.K <= mostMatched && len(conditions(q)) > 0 {
		q.Matched = true
	}
}

// conditions are the columns that a query has conditions on, other than filters, in its order.
func conditions(q *wire.Query) (columns []string) {
	for _, c := range slices.Concat(q.Row, q.Items) {
		if !slices.Contains(columns, c.Attr) {
			columns = append(columns, c.Attr)
		}
	}
	return columns
}

// Print writes the result of a query for people. columns are the stored columns to show; nil stands for all that there is room for.
func Print(p *table.Page, q *wire.Query, r *wire.Result, columns []string) {
	title := r.Index
	if r.ID != "" {
		title = r.ID + " on " + r.Index
	}
	if r.Err != nil {
		p.Say("%s: %s: %s\n\n", title, string(r.Err.Code), r.Err.Message)
		return
	}
	p.Say("%s: %s%s, %v\n", title, human.Count(len(r.Hits), "hit"), found(r), r.Took.Total.Round(10*time.Microsecond))
	for _, warning := range r.Warnings {
		p.Say("  warning: %s\n", warning)
	}
	if len(r.Hits) > 0 {
		hits(q, r.Hits, columns).Print(p)
	}
	if r.Explain != nil {
		explain(p, q, r)
	}
	fmt.Fprintln(p)
}

// found is what a result tells of all hits together.
func found(r *wire.Result) string {
	var of, how string
	if r.HasTotal {
		of = fmt.Sprintf(" of %s that pass", human.Count(r.Total, "object"))
	}
	if r.HasInRange {
		of += fmt.Sprintf(", %s within", human.Count(r.InRange, "object"))
	}
	if r.Exact {
		how = ", exact"
	}
	if r.Method != "" {
		how += ", by " + r.Method
	}
	return of + how
}

// cells is a column of a table of hits.
type cells struct {
	column table.Column
	of     func(h *wire.Hit) any // nil where the hit has none
}

// wholeNames is up to what length the names of conditions are not cut.
const wholeNames = 40

// hits is the table of hits: what they are, how well they fit, and the stored columns.
func hits(q *wire.Query, hits []wire.Hit, wanted []string) *table.Table {
	asked := conditions(q)
	met := func(h *wire.Hit) []string {
		if h.Detail == nil || len(asked) == 0 {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(asked), func(c string) bool { return !slices.Contains(h.Detail.Matched, c) })
	}
	optional := func(has bool, v any) any {
		if has {
			return v
		}
		return nil
	}
	// Of one condition alone there is nothing to tell: all hits have to do with it. And a text that is spelled nearly so does not meet it.
	told := func(h *wire.Hit) bool { return h.Detail != nil && h.Detail.Matched != nil && len(asked) > 1 }
	// Where each condition that is met counts 1, counts say what "met" does. Where that is not so of one hit, they are shown of all.
	counts := slices.ContainsFunc(hits, func(h wire.Hit) bool { return !told(&h) || int(h.Count) != len(met(&h)) })
	which := table.Text("which")
	if len(strings.Join(asked, ", ")) <= wholeNames {
		which = which.Whole() // rather than one more stored column
	}
	all := []cells{
		{table.Text("key").Kept(), func(h *wire.Hit) any { return h.Key }},
		{table.Number("distance").Kept(), func(h *wire.Hit) any { return optional(h.HasDistance, h.Distance) }},
		{table.Number("score").Kept(), func(h *wire.Hit) any { return optional(h.HasScore, h.Score) }},
		{table.Number("similarity").Kept(), func(h *wire.Hit) any {
			return optional(h.HasSimilarity, strconv.FormatFloat(float64(h.Similarity), 'g', 4, 32))
		}},
		{table.Number("count").Kept(), func(h *wire.Hit) any {
			return optional(!h.HasDistance && !h.HasScore && counts, h.Count)
		}},
		{table.Text("met").Kept().Whole(), func(h *wire.Hit) any {
			return optional(told(h), fmt.Sprintf("%d of %s", len(met(h)), human.Count(len(asked), "condition")))
		}},
		{which, func(h *wire.Hit) any {
			if len(met(h)) == len(asked) {
				return optional(told(h), "all")
			}
			return optional(told(h), strings.Join(met(h), ", "))
		}},
	}
	all = slices.DeleteFunc(all, func(c cells) bool {
		return !slices.ContainsFunc(hits, func(h wire.Hit) bool { return c.of(&h) != nil })
	})
	all = append(all, storedCells(q, hits, wanted)...)
	columns := make([]table.Column, len(all))
	for i, c := range all {
		columns[i] = c.column
	}
	t := table.New(columns...)
	t.Indent = 2
	for i := range hits {
		row := make([]any, len(all))
		for j, c := range all {
			row[j] = c.of(&hits[i])
		}
		t.Row(row...)
	}
	return t
}

// storedCells are the stored columns of hits: those that are wanted, or all.
func storedCells(q *wire.Query, hits []wire.Hit, wanted []string) (all []cells) {
	stored := storedOf(hits)
	if wanted == nil {
		wanted = askedFirst(stored.names, q)
	}
	for _, name := range wanted {
		column := table.Text(name)
		if stored.numbers[name] {
			column = table.Number(name)
		}
		first := elements(q, name)
		all = append(all, cells{column, func(h *wire.Hit) any { return stored.cell(h, name).shown(first) }})
	}
	return all
}

// askedFirst has the columns that a query names before the others, which may have no room: they show why a hit is one.
func askedFirst(names []string, q *wire.Query) []string {
	named := conditions(q)
	for _, c := range q.Filter {
		named = append(named, c.Attr)
	}
	first := make([]string, 0, len(names))
	for _, name := range append(named, names...) {
		if slices.Contains(names, name) && !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

package answers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// explain writes what an answer came from.
func explain(p *table.Page, q *wire.Query, r *wire.Result) {
	var x translate.Explanation
	if json.Unmarshal(r.Explain, &x) != nil {
		p.Say("  %s\n", string(r.Explain)) // of another version
		return
	}
	for i := range x.Items {
		if item := &x.Items[i]; item.Items == 0 { // of an older worker, which tells one by one
			item.First, item.Items = i, 1
		}
	}
	itemsOf(q, &x).Print(p)
	if x.ItemsMore > 0 {
		p.Say("  and %s more%s\n", human.Count(x.ItemsMore, "item"), listedOf(x.MoreColumns))
	}
	for _, there := range x.Presences {
		p.Say("  %d where %s is %s\n", there.Weight, there.Column, presence(&there))
	}
	for _, u := range x.Unknown {
		nearest := ""
		if u.Nearest != "" {
			nearest = fmt.Sprintf("; the nearest that some have is %q", u.Nearest)
		}
		p.Say("  no object has %q in %s%s\n", u.Value, u.Column, nearest)
	}
	if x.UnknownMore && len(x.Unknown) > 0 {
		p.Say("  and there may be more values that no object has\n")
	}
	for _, f := range x.Filter {
		p.Say("  %s, decided by %s\n", filterOf(q, &f), f.By)
	}
	if x.FilterMore > 0 {
		p.Say("  and %s more of filter and exclude\n", human.Count(x.FilterMore, "part"))
	}
	hits := table.New(table.Text("hit").Kept(), table.Number("count").Kept(), table.Text("counted").Kept().Wrapped())
	hits.Indent = 2
	for i, h := range x.Hits {
		if i < len(r.Hits) && (len(h.Items)+len(h.Presences) > 0 || h.More > 0) {
			hits.Row(r.Hits[i].Key, h.Count, sumOf(&x, &h))
		}
	}
	hits.Print(p)
	if x.HitsMore > 0 {
		p.Say("  and %s more\n", human.Count(x.HitsMore, "hit"))
	}
	engine := ""
	if x.Engine != "" {
		engine = "; " + x.Engine
	}
	if d := x.Distance; d != nil {
		p.Say("  in the order of %s, %s of %s; by %s of %s: %s in %s, of %s%s\n", x.Order, d.Metric, d.Column, d.Method, strings.Join(d.Methods, ", "),
			human.Count(d.Distances, "distance"), human.Count(d.Blocks, "block"), human.Count(d.Objects, "object"), engine)
	} else {
		p.Say("  in the order of %s; %s counted, %s looked at again%s\n", x.Order, human.Count(x.Postings, "posting"), human.Count(x.Entries, "candidate"), engine)
	}
	if x.Distance != nil {
		ways(p, x.Distance)
	}
}

// ways writes what a search by distance could have been answered by.
func ways(p *table.Page, d *translate.ExplainedDistance) {
	if d.Why != "" {
		p.Say("  by %s: %s; it took a core %.1f us\n", d.Method, d.Why, d.Took)
	}
	if len(d.Ways) == 0 {
		return
	}
	t := table.New(table.Text("way"), table.Number("expected us"), table.Number("took lately"), table.Text(""))
	t.Indent = 2
	for _, way := range d.Ways {
		note := ""
		if !way.Exact {
			note = "may miss hits"
		}
		t.Row(way.Method, fmt.Sprintf("%.1f", way.Predicted), fmt.Sprintf("x %.2f", way.Factor), note)
	}
	t.Print(p)
}

// numbersOf are those of the items that are told together, counted from 1.
func numbersOf(item *translate.ExplainedItem) string {
	if item.Items == 1 {
		return strconv.Itoa(item.First + 1)
	}
	return fmt.Sprintf("%d-%d", item.First+1, item.First+item.Items)
}

// listedOf are columns behind what is of them.
func listedOf(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	return " (" + strings.Join(columns, ", ") + ")"
}

// itemsOf is the table of what a query asked, and what objects have of it.
func itemsOf(q *wire.Query, x *translate.Explanation) *table.Table {
	t := table.New(table.Text("item").Whole(), table.Text("column").Kept(), table.Number("weight"), table.Number("objects"), table.Text("asked").Kept().Wrapped(),
		table.Text("matched").Kept().Wrapped())
	t.Indent = 2
	told := make(map[string]bool) // columns whose question stands in a row above
	for i := range x.Items {
		item := &x.Items[i]
		asked := ""
		if !told[item.Column] {
			asked = askedOf(q, item.Column)
		}
		told[item.Column] = true
		objects := fmt.Sprint(item.Objects)
		if item.AtLeast {
			objects += " or more"
		}
		t.Row(numbersOf(item), item.Column, item.Weight, objects, asked, matchedBy(item))
	}
	return t
}

// matchedBy is what objects have of an item.
func matchedBy(item *translate.ExplainedItem) string {
	values := strings.Join(item.Values, ", ")
	switch item.By {
	case "hash":
		return "values of " + human.Count(item.Items, "hash function")
	case "bucket", "value":
		if item.Keywords > 1 || item.By == "bucket" {
			values += fmt.Sprintf(", %d of %s", item.Keywords, human.Count(item.Of, item.By))
		}
		return values
	case "piece":
		values = human.Count(item.Keywords, "piece") + ": " + values
	}
	if more := item.Keywords - uint64(len(item.Values)); more > 0 {
		values += fmt.Sprintf(" and %d more", more)
	}
	return values
}

// filterOf is a part of a filter in words.
func filterOf(q *wire.Query, f *translate.ExplainedPart) string {
	what, conditions := "filter", q.Filter
	if f.Excluded {
		what, conditions = "exclude", q.Exclude
	}
	var on []string
	for _, column := range f.Columns {
		if !slices.Contains(on, column) {
			on = append(on, column)
		}
	}
	for i, column := range on {
		if asked := askedBy(conditions, column); asked != "" {
			on[i] = column + ": " + asked
		}
	}
	return what + " on " + strings.Join(on, ", ")
}

// sumOf is what a hit was counted for.
func sumOf(x *translate.Explanation, h *translate.ExplainedHit) string {
	var parts []string
	for _, c := range h.Items {
		if c.Item < len(x.Items) {
			item := &x.Items[c.Item]
			name := "item "
			if item.Items > 1 {
				name = "items "
			}
			parts = append(parts, fmt.Sprintf("%d for %s (%s)", c.Count, name+numbersOf(item), item.Column))
		}
	}
	for _, at := range h.Presences {
		if at < len(x.Presences) {
			p := &x.Presences[at]
			parts = append(parts, fmt.Sprintf("%d since %s is %s", p.Weight, p.Column, presence(p)))
		}
	}
	if h.More > 0 {
		parts = append(parts, fmt.Sprintf("%d for the %s more%s", h.More, human.Count(x.ItemsMore, "item"), listedOf(x.MoreColumns)))
	}
	return strings.Join(parts, " + ")
}

func presence(p *translate.ExplainedPresence) string {
	if p.Missing {
		return "missing"
	}
	return "there"
}

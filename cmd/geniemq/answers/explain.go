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
	groups := groupsOf(&x)
	itemsOf(q, &x, groups).Print(p)
	if x.ItemsMore > 0 {
		p.Say("  and %s more\n", human.Count(x.ItemsMore, "item"))
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
	for _, f := range x.Filter {
		p.Say("  %s, decided by %s\n", filterOf(q, &f), f.By)
	}
	hits := table.New(table.Text("hit").Kept(), table.Number("count").Kept(), table.Text("counted").Kept().Wrapped())
	hits.Indent = 2
	for i, h := range x.Hits {
		if i < len(r.Hits) && len(h.Items)+len(h.Presences) > 0 {
			hits.Row(r.Hits[i].Key, h.Count, sumOf(&x, groups, &h))
		}
	}
	hits.Print(p)
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

// group is items that are told together, from first to last: one, or all of the hash functions of a vector, of which each alone says nothing.
type group struct{ first, last int }

// numbers are those of the items, counted from 1.
func (g group) numbers() string {
	if g.first == g.last {
		return strconv.Itoa(g.first + 1)
	}
	return fmt.Sprintf("%d-%d", g.first+1, g.last+1)
}

// String is what the items are called.
func (g group) String() string {
	if g.first == g.last {
		return "item " + g.numbers()
	}
	return "items " + g.numbers()
}

func groupsOf(x *translate.Explanation) (groups []group) {
	for i, item := range x.Items {
		if last := i - 1; last >= 0 && item.By == "hash" && x.Items[last].By == "hash" && item.Column == x.Items[last].Column && item.Weight == x.Items[last].Weight {
			groups[len(groups)-1].last = i
			continue
		}
		groups = append(groups, group{i, i})
	}
	return groups
}

// itemsOf is the table of what a query asked, and what objects have of it.
func itemsOf(q *wire.Query, x *translate.Explanation, groups []group) *table.Table {
	t := table.New(table.Text("item").Whole(), table.Text("column").Kept(), table.Number("weight"), table.Number("objects"), table.Text("asked").Kept().Wrapped(),
		table.Text("matched").Kept().Wrapped())
	t.Indent = 2
	told := make(map[string]bool) // columns whose question stands in a row above
	for _, g := range groups {
		item := x.Items[g.first]
		asked := ""
		if !told[item.Column] {
			asked = askedOf(q, item.Column)
		}
		told[item.Column] = true
		for _, other := range x.Items[g.first+1 : g.last+1] {
			item.Objects += other.Objects
			item.AtLeast = item.AtLeast || other.AtLeast
		}
		objects := fmt.Sprint(item.Objects)
		if item.AtLeast {
			objects += " or more"
		}
		t.Row(g.numbers(), item.Column, item.Weight, objects, asked, matchedBy(&item, g))
	}
	return t
}

// matchedBy is what objects have of an item.
func matchedBy(item *translate.ExplainedItem, g group) string {
	values := strings.Join(item.Values, ", ")
	switch item.By {
	case "hash":
		return "values of " + human.Count(g.last-g.first+1, "hash function")
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
func sumOf(x *translate.Explanation, groups []group, h *translate.ExplainedHit) string {
	var parts []string
	for _, g := range groups {
		sum := uint64(0)
		for _, c := range h.Items {
			if c.Item >= g.first && c.Item <= g.last {
				sum += c.Count
			}
		}
		if sum > 0 {
			parts = append(parts, fmt.Sprintf("%d for %s (%s)", sum, g, x.Items[g.first].Column))
		}
	}
	for _, at := range h.Presences {
		if at < len(x.Presences) {
			p := &x.Presences[at]
			parts = append(parts, fmt.Sprintf("%d since %s is %s", p.Weight, p.Column, presence(p)))
		}
	}
	return strings.Join(parts, " + ")
}

func presence(p *translate.ExplainedPresence) string {
	if p.Missing {
		return "missing"
	}
	return "there"
}

package answers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// explain writes what an answer came from.
func explain(p *table.Page, r *wire.Result) {
	var x translate.Explanation
	if json.Unmarshal(r.Explain, &x) != nil {
		fmt.Fprintf(p, "  %s\n", table.Clean(string(r.Explain))) // of another version
		return
	}
	items := table.New(table.Number("item"), table.Text("column").Kept(), table.Number("weight"), table.Number("objects"), table.Text("values").Kept())
	items.Indent = 2
	for i, item := range x.Items {
		items.Row(i+1, item.Column, item.Weight, objectsOf(&item), valuesOf(&item))
	}
	items.Print(p)
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
		what := "filter"
		if f.Excluded {
			what = "exclude"
		}
		p.Say("  %s on %s, decided by %s\n", what, strings.Join(f.Columns, ", "), f.By)
	}
	for i, h := range x.Hits {
		if i < len(r.Hits) && len(h.Items)+len(h.Presences) > 0 {
			p.Say("  %s: %d = %s\n", r.Hits[i].Key, h.Count, sumOf(&x, &h))
		}
	}
	if d := x.Distance; d != nil {
		p.Say("  in the order of %s, %s of %s; by %s of %s: %s in %s, of %s", x.Order, d.Metric, d.Column, d.Method, strings.Join(d.Methods, ", "),
			human.Count(d.Distances, "distance"), human.Count(d.Blocks, "block"), human.Count(d.Objects, "object"))
	} else {
		p.Say("  in the order of %s; %s counted, %s looked at again", x.Order, human.Count(x.Postings, "posting"), human.Count(x.Entries, "candidate"))
	}
	if x.Engine != "" {
		p.Say("; %s", x.Engine)
	}
	fmt.Fprintln(p)
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

func objectsOf(item *translate.ExplainedItem) string {
	if item.AtLeast {
		return fmt.Sprintf("%d or more", item.Objects)
	}
	return fmt.Sprint(item.Objects)
}

func valuesOf(item *translate.ExplainedItem) string {
	values := strings.Join(item.Values, ", ")
	if more := item.Keywords - uint64(len(item.Values)); more > 0 {
		values += fmt.Sprintf(" and %d more", more)
	}
	if item.By != "" {
		values += " (by " + item.By + ")"
	}
	return values
}

// sumOf is what a hit was counted for.
func sumOf(x *translate.Explanation, h *translate.ExplainedHit) string {
	var parts []string
	for _, c := range h.Items {
		if c.Item < len(x.Items) {
			parts = append(parts, fmt.Sprintf("%d for item %d (%s)", c.Count, c.Item+1, x.Items[c.Item].Column))
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

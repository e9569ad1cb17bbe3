package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

func (c *cli) explainCommand() *cobra.Command {
	opts := &queryOptions{explain: true}
	cmd := c.askingCommand(opts)
	cmd.Use, cmd.Short = "explain --index NAME [flags] ['{...}' ...]", "Ask an index, and say what the answers came from"
	cmd.Long = `Explain asks queries as query does, and prints with each answer what it came from:
the items that the query became, with what they weigh and how many objects have
them; values that no object has, and the nearest one that some have; by what filters
were decided; what each hit was counted for; and what it cost. Of a search by
distance it prints which way was taken, why, and what each way was expected to take.

A message of queries may have 64 explained. With --json the explanation is the field
"explain" of each result. Its members are for people and may change.`
	cmd.Example = `  geniemq explain --index shop '{"row":{"title":"red shoes","brand":"acme"}}'`
	return cmd
}

// printExplanation writes what an answer came from.
func printExplanation(out io.Writer, r *wire.Result) {
	var x translate.Explanation
	if json.Unmarshal(r.Explain, &x) != nil {
		fmt.Fprintf(out, "  %s\n", r.Explain) // of another version
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(x.Items) > 0 {
		fmt.Fprintln(w, "\titem\tcolumn\tweight\tobjects\tvalues")
	}
	for i, item := range x.Items {
		fmt.Fprintf(w, "\t%d\t%s\t%d\t%s\t%s\n", i+1, item.Column, item.Weight, objectsOf(&item), valuesOf(&item))
	}
	_ = w.Flush() // as all that is printed
	if x.ItemsMore > 0 {
		fmt.Fprintf(out, "  and %s more\n", count(x.ItemsMore, "item"))
	}
	for _, p := range x.Presences {
		fmt.Fprintf(out, "  %d where %s is %s\n", p.Weight, p.Column, presence(&p))
	}
	for _, u := range x.Unknown {
		nearest := ""
		if u.Nearest != "" {
			nearest = fmt.Sprintf("; the nearest that some have is %q", u.Nearest)
		}
		fmt.Fprintf(out, "  no object has %q in %s%s\n", u.Value, u.Column, nearest)
	}
	for _, f := range x.Filter {
		what := "filter"
		if f.Excluded {
			what = "exclude"
		}
		fmt.Fprintf(out, "  %s on %s, decided by %s\n", what, strings.Join(f.Columns, ", "), f.By)
	}
	for i, h := range x.Hits {
		if i < len(r.Hits) && len(h.Items)+len(h.Presences) > 0 {
			fmt.Fprintf(out, "  %s: %d = %s\n", r.Hits[i].Key, h.Count, sumOf(&x, &h))
		}
	}
	if d := x.Distance; d != nil {
		fmt.Fprintf(out, "  in the order of %s, %s of %s; by %s of %s: %s in %s, of %s", x.Order, d.Metric, d.Column, d.Method, strings.Join(d.Methods, ", "),
			count(d.Distances, "distance"), count(d.Blocks, "block"), count(d.Objects, "object"))
	} else {
		fmt.Fprintf(out, "  in the order of %s; %s counted, %s looked at again", x.Order, count(x.Postings, "posting"), count(x.Entries, "candidate"))
	}
	if x.Engine != "" {
		fmt.Fprintf(out, "; %s", x.Engine)
	}
	fmt.Fprintln(out)
	if x.Distance != nil {
		printWays(out, x.Distance)
	}
}

// printWays writes what a search by distance could have been answered by.
func printWays(out io.Writer, d *translate.ExplainedDistance) {
	if d.Why != "" {
		fmt.Fprintf(out, "  by %s: %s; it took a core %.1f us\n", d.Method, d.Why, d.Took)
	}
	if len(d.Ways) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tway\texpected us\ttook lately\t")
	for _, way := range d.Ways {
		note := ""
		if !way.Exact {
			note = "may miss hits"
		}
		fmt.Fprintf(w, "\t%s\t%.1f\tx %.2f\t%s\n", way.Method, way.Predicted, way.Factor, note)
	}
	_ = w.Flush()
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

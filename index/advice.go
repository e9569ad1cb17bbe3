package index

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

// unknown explains a name that is no attribute: a typing error, or a column that is not indexed.
func (q *Queries) unknown(name string) error {
	for i := range q.schema.Columns {
		if c := &q.schema.Columns[i]; c.Name == name {
			if c.Type == schema.PayloadColumn {
				return column.Refuse("column %q of index %s is stored but not indexed (type payload), so it cannot be searched",
					name, q.schema.Name)
			}
			return column.Refuse("column %q of index %s is not indexed (type %s), so it cannot be searched",
				name, q.schema.Name, c.Type)
		}
	}
	if best := q.closest(name); best != "" {
		return column.Refuse("attribute %q is not in index %s (did you mean %s?)", name, q.schema.Name, best)
	}
	return column.Refuse("attribute %.80q is not in index %s (it has %s)", name, q.schema.Name, q.names())
}

// closest returns the column whose name is within a third of the letters of a wrong one, "" for none.
func (q *Queries) closest(wrong string) string {
	const longest = 64 // the time is proportional to the length, and the name came from outside
	best, distance := "", max(2, 1+len(wrong)/3)
	for i := range q.columns {
		name := q.columns[i].name
		if len(wrong) > longest || len(name) > longest {
			continue
		}
		d := levenshtein.ComputeDistance(strings.ToLower(wrong), strings.ToLower(name))
		if d < min(distance, max(len(wrong), len(name))) {
			best, distance = name, d
		}
	}
	return best
}

// names lists the columns that can be asked for, cut where the list would become unreadable.
func (q *Queries) names() string {
	const most = 20
	var b strings.Builder
	for i := range q.columns {
		if i == most {
			fmt.Fprintf(&b, ", ... (%d in all)", len(q.columns))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(q.columns[i].name)
	}
	return b.String()
}

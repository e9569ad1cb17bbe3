package encode

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/geniemq/geniemq/index"
)

// unknownAttribute explains a name that is no attribute: a typing error, or a column that is not indexed.
func (q *Queries) unknownAttribute(name string) error {
	for i := range q.schema.Columns {
		if c := &q.schema.Columns[i]; c.Name == name {
			if c.Type == index.PayloadColumn {
				return refuse("column %q of index %s is stored but not indexed (type payload), so it cannot be searched",
					name, q.schema.Name)
			}
			return refuse("column %q of index %s is not indexed (type %s), so it cannot be searched",
				name, q.schema.Name, c.Type)
		}
	}
	if best := q.closest(name); best != "" {
		return refuse("attribute %q is not in index %s (did you mean %s?)", name, q.schema.Name, best)
	}
	return refuse("attribute %.80q is not in index %s (it has %s)", name, q.schema.Name, q.attributeNames())
}

// closest returns the attribute whose name is within a third of the letters of a wrong one, "" for none.
func (q *Queries) closest(wrong string) string {
	const longest = 64 // the time is proportional to the length, and the name came from outside
	best, distance := "", max(2, 1+len(wrong)/3)
	for i := range q.attrs {
		name := q.attrs[i].Name
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

// attributeNames lists the attributes, cut where the list would become unreadable.
func (q *Queries) attributeNames() string {
	const most = 20
	var b strings.Builder
	for i := range q.attrs {
		if i == most {
			fmt.Fprintf(&b, ", ... (%d in all)", len(q.attrs))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(q.attrs[i].Name)
	}
	return b.String()
}

// checkAttributes checks that an index has the attributes its schema declares, in order.
func checkAttributes(s *index.Schema, attrs []index.Attribute) error {
	specs := Attributes(s)
	same := len(specs) == len(attrs)
	for i := 0; same && i < len(specs); i++ {
		same = specs[i].Name == attrs[i].Name && specs[i].Type == attrs[i].Type
	}
	if !same {
		return fmt.Errorf("the attributes of index %s are not the columns of its schema: build it again", s.Name)
	}
	return nil
}

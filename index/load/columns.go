package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
)

// Columns notes, over all sources of an index, which of a schema's columns ever had a value, and what the data have instead
// of those that had none. A column whose name is misspelt is no fault of any record, since records may lack fields; but one
// that never had a value makes an index in which nothing can be found by it. Whether columns take their values is not known
// here. It is for one goroutine.
type Columns struct {
	shape  *shape
	filled []bool // by column: skipped ones are taken for filled
	empty  int    // columns that are not
	made   []bool // by column: fields were found that it is made of

	// While a column is empty: the names of fields that no column has.
	others map[string]bool
}

// maxOthers bounds the names kept: data with more have keys that are values.
const maxOthers = 1000

// NewColumns makes the note for the sources of one index, for Options.Columns.
func NewColumns(s *schema.Schema) *Columns {
	return newColumns(newShape(s))
}

func newColumns(s *shape) *Columns {
	c := &Columns{shape: s, others: make(map[string]bool)}
	c.filled, c.made = make([]bool, len(s.columns)), make([]bool, len(s.columns))
	for i := range c.filled {
		if c.filled[i] = !c.shape.used(i); !c.filled[i] {
			c.empty++
		}
	}
	return c
}

// record notes the values of a record.
func (c *Columns) record(rec *schema.Record) {
	if c == nil || c.empty == 0 {
		return
	}
	for i := range rec.Cells {
		if !c.filled[i] && !rec.Cells[i].Empty() {
			c.filled[i] = true
			c.empty--
		}
	}
}

// fork returns an empty note for a part of a source, which join adds to the whole's: it comes out as if there had been one. Goroutines may call it
// at any time.
func (c *Columns) fork() *Columns {
	if c == nil {
		return nil
	}
	return newColumns(c.shape)
}

// join adds what was noted of the part that comes next.
func (c *Columns) join(part *Columns) {
	if c == nil || c.empty == 0 {
		return
	}
	for i, made := range part.made {
		c.made[i] = c.made[i] || made
	}
	for i, filled := range part.filled {
		if filled && !c.filled[i] {
			c.filled[i] = true
			c.empty--
		}
	}
	for _, name := range slices.Sorted(maps.Keys(part.others)) {
		if len(c.others) < maxOthers {
			c.others[name] = true
		}
	}
}

// other notes a field that no column has.
func (c *Columns) other(name []byte) {
	if c != nil && c.empty > 0 && !c.others[string(name)] && len(c.others) < maxOthers {
		c.others[string(name)] = true
	}
}

// gathered notes that the source has fields that a column is made of.
func (c *Columns) gathered(column int) {
	if c != nil {
		c.made[column] = true
	}
}

// Warnings are sentences about the columns that had no value in any record, each with what may be meant instead.
func (c *Columns) Warnings() []string {
	var warnings []string
	for i, filled := range c.filled {
		if !filled {
			warnings = append(warnings, fmt.Sprintf("column %q had no value in any record, so nothing is found by it%s", c.shape.columns[i].Name, c.instead(i)))
		}
	}
	return warnings
}

// Instead is what the data that were read have in place of a column that had no value in them, for the end of a message; "" where nothing is known.
func (c *Columns) Instead(name string) string {
	if i := c.shape.columnNamed(name); i >= 0 && !c.filled[i] {
		return c.instead(i)
	}
	return ""
}

func (c *Columns) instead(column int) string {
	names, of := slices.Sorted(maps.Keys(c.others)), &c.shape.columns[column]
	if of.From != nil && !c.made[column] {
		for i, filled := range c.filled {
			if other := &c.shape.columns[i]; filled && c.shape.used(i) && other.From == nil {
				names = append(names, other.Name)
			}
		}
		slices.Sort(names)
		return fmt.Sprintf(": no column of the input matches %s, of which it is made; there are %s", schema.List(of.From), cmp.Or(schema.List(names), "none"))
	}
	if of.From != nil || len(names) == 0 {
		return ""
	}
	return cmp.Or(didYouMean(of.Name, names), "; the input's fields that no column has: "+schema.List(names))
}

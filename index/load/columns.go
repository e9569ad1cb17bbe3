package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// Columns notes, over all sources of an index, which of a schema's columns ever had a value, and what the data have instead
// of those that had none. A column whose name is misspelt is no fault of any record, since records may lack fields; but one
// that never had a value makes an index in which nothing can be found by it. It is for one goroutine.
type Columns struct {
	shape  *shape
	filled []bool // by column: skipped ones are taken for filled
	empty  int    // columns that are not

	// While a column is empty: the names of fields that no column has, and by column the names by which JSON Lines have a
	// value for it within nested objects.
	others map[string]bool
	nested [][]string
}

// maxOthers bounds the names kept: data with more have keys that are values.
const maxOthers = 1000

// NewColumns makes the note for the sources of one index, for Options.Columns.
func NewColumns(s *schema.Schema) *Columns {
	return newColumns(newShape(s))
}

func newColumns(s *shape) *Columns {
	c := &Columns{shape: s, others: make(map[string]bool)}
	c.filled, c.nested = make([]bool, len(s.columns)), make([][]string, len(s.columns))
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
	for i, filled := range part.filled {
		if filled && !c.filled[i] {
			c.filled[i] = true
			c.empty--
		}
		if c.nested[i] == nil {
			c.nested[i] = part.nested[i]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(part.others)) {
		if len(c.others) < maxOthers {
			c.others[name] = true
		}
	}
}

// watches says that fields without a column are to be noted by other.
func (c *Columns) watches() bool { return c != nil && c.empty > 0 }

// other notes a field that no column has. The value is only needed where it is a JSON object.
func (c *Columns) other(name []byte, value jsontext.Value) {
	if !c.others[string(name)] && len(c.others) < maxOthers {
		c.others[string(name)] = true
	}
	if value.Kind() != '{' {
		return
	}
	for i := range c.filled {
		if rest, ok := strings.CutPrefix(c.shape.columns[i].Name, string(name)+"."); ok && !c.filled[i] && c.nested[i] == nil {
			if names := follow(value, rest); names != nil {
				c.nested[i] = append([]string{string(name)}, names...)
			}
		}
	}
}

// follow follows a path of names, separated by points, into an object, and returns the names if there is a value, else nil.
func follow(object []byte, path string) []string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		return nil // it is no object
	}
	if value, ok := fields[path]; ok && string(value) != "null" {
		return []string{path}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if rest, ok := strings.CutPrefix(path, name+"."); ok {
			if names := follow(fields[name], rest); names != nil {
				return append([]string{name}, names...)
			}
		}
	}
	return nil
}

// Warnings are sentences about the columns that had no value in any record, each with what may be meant instead.
func (c *Columns) Warnings() []string {
	var warnings []string
	for i, filled := range c.filled {
		if filled {
			continue
		}
		name := c.shape.columns[i].Name
		warning := fmt.Sprintf("column %q had no value in any record, so nothing is found by it", name)
		switch {
		case c.nested[i] != nil:
			path := ""
			for _, name := range c.nested[i] {
				path += fmt.Sprintf(".%q", name)
			}
			warning += fmt.Sprintf(": the input has it within objects, of which only the outermost fields are read; flatten it first: jq -c '. + {%q: %s}'", name, path)
		case len(c.others) > 0:
			names := slices.Sorted(maps.Keys(c.others))
			warning += cmp.Or(didYouMean(name, names), "; the input's fields that no column has: "+schema.List(names))
		}
		warnings = append(warnings, warning)
	}
	return warnings
}

package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
)

// resolve finds what a column is made of (schema.Column.From) among the names of a source: their places, in the order of from, those that a pattern
// matches in their natural order. missing are the entries that nothing has.
func resolve(from schema.Names, names []string) (at []int, missing []string) {
	for _, entry := range from {
		first := len(at)
		for i, name := range names {
			if matches(entry, name) {
				at = append(at, i)
			}
		}
		slices.SortStableFunc(at[first:], func(a, b int) int { return naturally(names[a], names[b]) })
		if len(at) == first {
			missing = append(missing, entry)
		}
	}
	return at, missing
}

// matches says whether a name is an entry of from, in which each * stands for any text.
func matches(entry, name string) bool {
	head, rest, ok := strings.Cut(entry, "*")
	if !ok {
		return entry == name
	}
	name, ok = strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		if _, name, ok = strings.Cut(name, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// naturally compares names with numbers in them as people do: x2 comes before x10.
func naturally(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if c := cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(p, q)); c != 0 {
			return c
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}

// gather makes the cell of a column of the texts of several input columns. Where none has a value it is missing; where some have, it is at fault, as a list is in
// which a number is missing.
func (s *shape) gather(cell *schema.Cell, column int, texts []string) {
	first := len(cell.Values)
	for _, text := range texts {
		s.addValue(cell, column, text)
	}
	if n := len(cell.Values) - first; n > 0 && n < len(texts) {
		cell.Fault = fmt.Sprintf("only %d of the %d input columns that it is made of have a value: it takes all of them, and is missing where none has one", n, len(texts))
	}
}

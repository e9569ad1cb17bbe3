package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

const (
	gap = 2 // cells between columns
	// least is how narrow texts are made before a column is left out.
	least = 10
)

// Column is a column of a Table.
type Column struct {
	Name  string
	right bool // aligned
	whole bool // never cut
	keep  bool
	wraps bool // goes on below rather than being cut
}

// Text is a column of texts, aligned left. They are cut where there is no room.
func Text(name string) Column { return Column{Name: name} }

// Number is a column of numbers, aligned right. A number is never cut.
func Number(name string) Column { return Column{Name: name, right: true, whole: true} }

// Kept is a column that is there however narrow the page is. Others are left out, the last one first.
func (c Column) Kept() Column { c.keep = true; return c }

// Whole is a column of texts that are not cut, as they say nothing then.
func (c Column) Whole() Column { c.whole = true; return c }

// Wrapped is a column of texts that go on in the lines below where there is no room.
func (c Column) Wrapped() Column { c.wraps = true; return c }

// Table is rows of cells in columns. On a page that is too narrow texts are cut, or wrapped, first, the longest before all others; where that does not do,
// columns are left out, and a line says which.
type Table struct {
	// Indent is put before each line.
	Indent  int
	columns []Column
	rows    [][]string
}

// New makes a table without rows.
func New(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row. Cells may be of any type: whole numbers, floats and texts are written as people expect, nil is an empty cell.
func (t *Table) Row(cells ...any) *Table {
	row := make([]string, len(t.columns))
	for i, cell := range cells[:min(len(cells), len(row))] {
		switch v := cell.(type) {
		case nil:
		case string:
			row[i] = Clean(v)
		case float64:
			row[i] = strconv.FormatFloat(v, 'g', 6, 64)
		default:
			row[i] = Clean(fmt.Sprint(v))
		}
	}
	t.rows = append(t.rows, row)
	return t
}

// Len is how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Print writes the table. A table without rows is nothing.
func (t *Table) Print(p *Page) {
	if len(t.rows) == 0 {
		return
	}
	at, widths, out := t.fit(p.Width)
	header := ansi.NewStyle()
	if p.Colour {
		header = header.Bold()
	}
	t.line(p, at, widths, header.Styled, func(column int) string { return Clean(t.columns[column].Name) })
	for _, row := range t.rows {
		t.row(p, at, widths, row)
	}
	if len(out) > 0 {
		fmt.Fprintf(p, "%s%s\n", strings.Repeat(" ", t.Indent), Cut("not shown for lack of room: "+strings.Join(out, ", "), max(p.Width-t.Indent, 1)))
	}
}

// row writes a row, in as many lines as its longest wrapped cell takes.
func (t *Table) row(p *Page, at, widths []int, row []string) {
	lines, below := 1, make(map[int][]string)
	for i, column := range at {
		if t.columns[column].wraps && Width(row[column]) > widths[i] {
			below[column] = wrapped(row[column], widths[i])
			lines = max(lines, len(below[column]))
		}
	}
	for n := range lines {
		t.line(p, at, widths, func(cell string) string { return cell }, func(column int) string {
			switch parts, wraps := below[column]; {
			case wraps && n < len(parts):
				return parts[n]
			case wraps || n > 0:
				return ""
			}
			return row[column]
		})
	}
}

// line writes a row of the columns that there is room for.
func (t *Table) line(p *Page, at, widths []int, style func(string) string, cell func(column int) string) {
	var line strings.Builder
	pad := t.Indent // what is put before the next text
	for i, column := range at {
		text := Cut(cell(column), widths[i])
		before, after := 0, widths[i]-Width(text)
		if t.columns[column].right {
			before, after = after, 0
		}
		if pad += before; text != "" { // nothing ends in spaces
			line.WriteString(strings.Repeat(" ", pad) + style(text))
			pad = 0
		}
		pad += after + gap
	}
	fmt.Fprintln(p, line.String())
}

// fit says which columns there is room for, how wide each is, and the names of the others.
func (t *Table) fit(room int) (at, widths []int, out []string) {
	natural := make([]int, len(t.columns))
	for i, c := range t.columns {
		natural[i] = max(Width(Clean(c.Name)), 1)
		for _, row := range t.rows {
			natural[i] = max(natural[i], Width(row[i]))
		}
		at = append(at, i)
	}
	if room <= 0 {
		return at, natural, nil
	}
	room -= t.Indent
	for {
		if widths, ok := t.share(at, natural, room, least); ok {
			return at, widths, out
		}
		last := -1
		for i, column := range at[1:] {
			if !t.columns[column].keep {
				last = i + 1
			}
		}
		if last < 0 {
			break
		}
		out = append([]string{Clean(t.columns[at[last]].Name)}, out...)
		at = slices.Delete(at, last, last+1)
	}
	widths, _ = t.share(at, natural, room, 1) // there is nothing that could go: texts are cut to what is left of them
	return at, widths, out
}

// share gives columns their widths. Texts share what is whole leaves: none is wider than the widest that fits all, and none cut narrower than least.
func (t *Table) share(at, natural []int, room, least int) (widths []int, ok bool) {
	room -= gap * (len(at) - 1)
	most := 0
	for _, column := range at {
		if t.columns[column].whole {
			room -= natural[column]
		} else {
			most = max(most, natural[column])
		}
	}
	total := func(limit int) (sum int) {
		for _, column := range at {
			if !t.columns[column].whole {
				sum += min(natural[column], limit)
			}
		}
		return sum
	}
	most = min(most, max(room, least)) // one text alone cannot have more
	for most > least && total(most) > room {
		most--
	}
	for _, column := range at {
		if t.columns[column].whole {
			widths = append(widths, natural[column])
		} else {
			widths = append(widths, min(natural[column], most))
		}
	}
	return widths, total(most) <= room
}

package guess

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	lookedRecords = 1000 // of a sample, for what separates fields
	aboveHeader   = 50   // lines that may stand there
)

// layout finds the format, and the columns by their names.
func (g *Guess) layout(s *sample) error {
	switch {
	case s.opts.Format == load.Parquet:
		names, err := load.ParquetColumns(s.name)
		if err != nil {
			return err
		}
		g.name(names)
		return nil
	case binary(s.opts.Format):
		return fmt.Errorf("%s: vectors need no guess: write \"name: %s\" and \"kind: vectors\" into a schema", s.name, g.Name)
	}
	if s.opts.Format == load.Auto || s.opts.Format == load.Text {
		s.opts.Format = g.formatOfText(s)
	}
	if by, err := load.FormatOf(s.name); err != nil || by != s.opts.Format {
		g.Input.Format = string(s.opts.Format)
	}
	switch s.opts.Format {
	case load.JSONL:
		if err := s.elements(); err != nil {
			return err
		}
		return g.fields(s)
	case load.CSV, load.TSV:
		return g.table(s)
	}
	g.Text = true
	g.name([]string{"text"})
	return nil
}

func (g *Guess) name(names []string) {
	for _, name := range names {
		c := Column{Known: true}
		c.Name = name
		g.Columns = append(g.Columns, c)
	}
}

// formatOfText tells what text is whose name says nothing, or says only that it is text.
func (g *Guess) formatOfText(s *sample) load.Format {
	trimmed := bytes.TrimSpace(s.text)
	if array, ok := bytes.CutPrefix(trimmed, []byte("[")); ok {
		trimmed = bytes.TrimSpace(array)
	}
	if len(trimmed) > 0 && trimmed[0] == '{' {
		return load.JSONL
	}
	d := bestDialect(s.text, s.opts.Comma)
	if d.width < 2 || d.share < 0.9 || d.comma == ',' && d.width < 3 && s.opts.Format == load.Text {
		return load.Text
	}
	if d.comma == '\t' && !d.quotes {
		return load.TSV
	}
	return load.CSV
}

// dialect is a way to read text as a table.
type dialect struct {
	comma  rune
	quotes bool // fields are quoted
	width  int  // fields of most records
	share  float64
	rows   [][]string
	lines  []int // by row: where it begins, from 1
}

// bestDialect is the one by which the most records have as many fields as each other; of two that are alike, that of more fields.
func bestDialect(text []byte, comma rune) dialect {
	candidates := []rune{',', ';', '\t', '|'}
	if comma != 0 {
		candidates = []rune{comma}
	}
	var best dialect
	for _, comma := range candidates {
		d := readDialect(text, comma)
		if d.width < 2 && len(candidates) > 1 {
			continue
		}
		// Prose has commas too: a width that half of the lines have is none.
		if best.comma == 0 || d.share > best.share+0.02 || d.share > best.share-0.02 && d.width > best.width {
			best = d
		}
	}
	if best.comma == 0 { // a table of one column
		best = readDialect(text, candidates[0])
	}
	return best
}

// readDialect reads some rows, as CSV where quotes are used as CSV has them, else cut at separators alone.
func readDialect(text []byte, comma rune) dialect {
	d := dialect{comma: comma}
	widths := make(map[int]int)
	if comma == '\t' && !quoted(text, comma) {
		return cutDialect(text)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.TrimLeadingSpace = comma, -1, comma != '\t'
	for len(d.rows) < lookedRecords {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			continue
		}
		line, _ := r.FieldPos(0)
		d.rows, d.lines = append(d.rows, row), append(d.lines, line)
		widths[len(row)]++
	}
	d.quotes = quoted(text, comma)
	d.measure(widths)
	return d
}

// regular says that nearly all rows from one on have as many fields as most.
func (d *dialect) regular(from int) bool {
	n := 0
	for _, row := range d.rows[from:] {
		if len(row) == d.width {
			n++
		}
	}
	return float64(n) >= 0.98*float64(len(d.rows)-from)
}

// cutDialect cuts lines at tabs, which know no quotes.
func cutDialect(text []byte) dialect {
	d := dialect{comma: '\t'}
	widths := make(map[int]int)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if trimmed := strings.TrimRight(string(line), "\r\n"); trimmed != "" {
			row := strings.Split(trimmed, "\t")
			d.rows, d.lines = append(d.rows, row), append(d.lines, number)
			if widths[len(row)]++; len(d.rows) == lookedRecords {
				break
			}
		}
	}
	d.measure(widths)
	return d
}

// measure finds how many fields most records have; widths says how many have how many.
func (d *dialect) measure(widths map[int]int) {
	n := 0
	for width, count := range widths {
		if count > n || count == n && width > d.width {
			d.width, n = width, count
		}
	}
	d.share = float64(n) / float64(max(1, len(d.rows)))
}

// quoted says that quotes stand around fields, and not just somewhere.
func quoted(text []byte, comma rune) bool {
	around, within := 0, 0
	for line := range bytes.Lines(text[:min(len(text), 1<<18)]) {
		for field := range strings.SplitSeq(strings.TrimRight(string(line), "\r\n"), string(comma)) {
			switch field = strings.TrimSpace(field); {
			case len(field) > 1 && field[0] == '"' && field[len(field)-1] == '"':
				around++
			case strings.Contains(field, `"`):
				within++
			}
		}
	}
	return around > within
}

// table finds what separates fields, which lines come first, and the header.
func (g *Guess) table(s *sample) error {
	comma := s.opts.Comma
	if s.opts.Format == load.TSV {
		comma = '\t'
	}
	d := bestDialect(s.text, comma)
	if len(d.rows) == 0 {
		return fmt.Errorf("%s: has no records from which a schema could be guessed", s.name)
	}
	if d.share < 0.5 {
		s.opts.Format, g.Text = load.Text, true
		g.Input.Format = string(load.Text)
		g.doubt("lines have unlike numbers of fields, so each is taken for one value")
		g.name([]string{"text"})
		return nil
	}
	switch {
	case d.comma == '\t' && !d.quotes && s.opts.Comma == 0:
		if by, err := load.FormatOf(s.name); err != nil || by != load.TSV {
			g.Input.Format = string(load.TSV)
		}
		s.opts.Format = load.TSV
	case d.comma != ',':
		s.opts.Format = load.CSV
		g.Input.Separator = string(d.comma)
		g.note("fields are separated by %q", d.comma)
	}
	first := slices.IndexFunc(d.rows, func(row []string) bool { return len(row) == d.width })
	if d.share < 0.95 && d.width > 1 && !d.regular(first) {
		g.doubt("only %.0f %% of the first records have %d fields", 100*d.share, d.width)
	}
	irregular := first > 0 && !d.regular(first)
	if first >= 0 && s.opts.SkipLines == 0 && s.columns == nil {
		first = g.belowUnits(&d, first)
	}
	if first > 0 && first <= aboveHeader && s.opts.SkipLines == 0 && !irregular {
		g.Input.SkipLines = d.lines[first] - 1
		g.note("%s before the header or the first record: %.60q", lines(g.Input.SkipLines), strings.Join(d.rows[0], string(d.comma)))
	} else {
		g.Input.SkipLines = s.opts.SkipLines // after which the sample begins
	}
	if s.columns != nil {
		return g.headless(s, d.rows[first], d.rows[first+1:], d.width)
	}
	header := !irregular && g.looksLikeHeader(d.rows[first], d.rows[first+1:], d.width)
	g.Header = &header
	if header && twoHeaders(&d, first+1) {
		g.doubt("the line below the header has words alone where numbers or dates follow: if it is the header, below a line of units, give --skip-lines %d; if it has the units, leave it out of the file",
			d.lines[first+1]-1)
	}
	names := make([]string, len(d.rows[first]))
	for i, field := range d.rows[first] {
		if names[i] = strings.TrimSpace(field); !header {
			names[i] = "c" + strconv.Itoa(i+1)
		}
	}
	g.named(names, header)
	return nil
}

// headless names the columns of a table without a header.
func (g *Guess) headless(s *sample, first []string, rest [][]string, width int) error {
	header := false
	g.Header = &header
	if len(s.columns) != width {
		return fmt.Errorf("%s: most records have %d fields, as %.100q has, but names were given for %d", s.name, width, strings.Join(first, " | "), len(s.columns))
	}
	certain := len(g.Doubts)
	like := g.looksLikeHeader(first, rest, width)
	g.Doubts = g.Doubts[:certain] // how sure that is matters no more
	if like {
		g.doubt("the first line looks like a header, and is taken for a record since columns were named: if it is a header, do not name them, or pass over it by --skip-lines")
	}
	g.note("there is no header: columns are named as was said")
	g.name(s.columns)
	return nil
}

// belowUnits is the row of the header where the first full row is one of units above it: unlike the next, it has nothing above some column, and
// the next says of what the numbers and dates are that follow.
func (g *Guess) belowUnits(d *dialect, first int) int {
	if first+2 >= len(d.rows) || first >= aboveHeader {
		return first
	}
	units, names := d.rows[first], d.rows[first+1]
	blank := func(field string) bool { return strings.TrimSpace(field) == "" }
	if len(names) != d.width || !slices.ContainsFunc(units, blank) || slices.ContainsFunc(names, blank) || slices.ContainsFunc(names, looksTyped) {
		return first
	}
	for i, below := range d.rows[first+2] {
		if i < d.width && looksTyped(below) && !looksTyped(units[i]) {
			return first + 1
		}
	}
	return first
}

// twoHeaders says that a row below the header has words alone, though some column has numbers or dates in all that follow.
func twoHeaders(d *dialect, below int) bool {
	if below+2 >= len(d.rows) || len(d.rows[below]) != d.width || slices.ContainsFunc(d.rows[below], looksTyped) {
		return false
	}
	for i, word := range d.rows[below] {
		if strings.TrimSpace(word) == "" {
			continue
		}
		if !slices.ContainsFunc(d.rows[below+1:], func(row []string) bool { return len(row) == d.width && !looksTyped(row[i]) }) {
			return true
		}
	}
	return false
}

func lines(n int) string {
	if n == 1 {
		return "1 line stands"
	}
	return strconv.Itoa(n) + " lines stand"
}

// named takes names of columns, and leaves out those that cannot be told apart.
func (g *Guess) named(names []string, header bool) {
	if !header {
		g.note("there is no header: columns are named by their places, and can be named otherwise")
		g.name(names)
		return
	}
	for i, name := range names {
		twice := slices.Index(names, name) != i || slices.Contains(names[i+1:], name)
		switch {
		case name == "" || len(name) > schema.MaxNameBytes:
			g.doubt("field %d of the header has no name, so its column is left out", i+1)
		case twice:
			if slices.Index(names, name) == i {
				g.doubt("several fields of the header are called %q, so these columns are left out", name)
			}
		default:
			g.name([]string{name})
		}
	}
}

// looksLikeHeader says whether a row names the columns of those that follow.
func (g *Guess) looksLikeHeader(row []string, rest [][]string, width int) bool {
	var plain [][]string
	for _, r := range rest {
		if len(r) == width {
			plain = append(plain, r)
		}
	}
	if len(plain) == 0 {
		g.doubt("one record only: it is taken for a record, not for a header")
		return false
	}
	better, worse, empty := 0, 0, 0
	for i, name := range row {
		name = strings.TrimSpace(name)
		if name == "" {
			empty++
			continue
		}
		if looksTyped(name) || boolWord(name) {
			return false // a number or a date names nothing
		}
		typed, same, n := 0, 0, 0
		for _, r := range plain {
			if i >= len(r) || strings.TrimSpace(r[i]) == "" {
				continue
			}
			n++
			if looksTyped(r[i]) || boolWord(r[i]) {
				typed++
			}
			if strings.TrimSpace(r[i]) == name {
				same++
			}
		}
		switch {
		case same > 0:
			worse++ // a value that comes again is a value
		case n > 0 && typed*10 >= n*9:
			better += 3
		case len(name) <= 64 && identifier(name):
			better++
		}
	}
	if empty*2 > len(row) {
		return false
	}
	if better > 0 && better < 3 && worse == 0 || better > 0 && worse > 0 {
		g.doubt("the first line is taken for a header, which all columns being texts does not show: if it is a record, write header: false and name the columns")
	}
	return better > worse
}

// identifier says that a text looks like the name of a column: words of letters, digits and _.
func identifier(name string) bool {
	if len(strings.Fields(name)) > 4 {
		return false
	}
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_- .()/%#", c)
	})
}

package load

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/load/cut"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
)

// fieldSource yields the fields of one record after another; CSV and TSV differ in nothing else.
type fieldSource interface {
	// fields returns the next record, valid until the next call, and the line it starts at.
	fields() ([]string, int64, error)
	// line is the last line reached.
	line() int64
}

// delimited decodes records of fields: it maps the fields to the schema's columns.
type delimited struct {
	r      *Reader
	open   func(*Reader) fieldSource
	source fieldSource
	width  int     // fields a record must have
	named  bool    // width comes from a header
	at     []int   // field of each schema column, -1: absent (skipped columns, and those of from)
	from   [][]int // by schema column: the fields that it is made of
	texts  []string
	cells  *jsonCells
	key    int // field of the key, -1 for none
}

func newDelimited(r *Reader, open func(*Reader) fieldSource) (decoder, error) {
	d := &delimited{r: r, open: open, source: open(r), cells: newJSONCells(r.shape), at: make([]int, len(r.shape.columns)), key: -1}
	if r.schema.Header != nil && !*r.schema.Header {
		return d, d.byPosition()
	}
	return d, d.byHeader()
}

// again returns a decoder of another part of the source: what the header says is known.
func (d *delimited) again(r *Reader) decoder {
	return &delimited{r: r, open: d.open, source: d.open(r), cells: newJSONCells(r.shape), width: d.width, named: d.named, at: d.at, from: d.from, key: d.key}
}

// byPosition matches columns to fields one to one, for sources without a header. Columns that are made of others have no field of their own.
func (d *delimited) byPosition() error {
	var names []string // of fields
	for i := range d.at {
		d.at[i] = -1
		if c := &d.r.shape.columns[i]; c.From == nil {
			d.at[i] = len(names)
			names = append(names, c.Name)
		}
	}
	d.width, d.from = len(names), make([][]int, len(d.at))
	for i := range d.at {
		c, missing := &d.r.shape.columns[i], []string(nil)
		if c.From == nil {
			continue
		}
		d.r.opts.Columns.gathered(i)
		if d.from[i], missing = resolve(c.From, names); len(missing) > 0 {
			return fmt.Errorf("%s: column %q is made of %q, and no column is called so; without a header each field needs a column in its place", d.r.name, c.Name, missing[0])
		}
	}
	if d.r.shape.key == "" {
		return nil
	}
	if column := d.r.shape.columnNamed(d.r.shape.key); column >= 0 {
		d.key = d.at[column]
	}
	if d.key < 0 {
		return fmt.Errorf("%s: the schema's key column %q is none of its columns, and without a header only the "+
			"position tells which it is: add {name: %s, type: skip} in its place",
			d.r.name, d.r.shape.key, d.r.shape.key)
	}
	return nil
}

// byHeader reads the header and matches columns to fields by name.
func (d *delimited) byHeader() error {
	header, line, err := d.source.fields()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: is empty, but the schema expects a header line; write header: false in the schema "+
			"if the file has none", d.r.name)
	}
	var bad *BadRecord
	if errors.As(err, &bad) { // without a header nothing can go on, so it is not skippable here
		return fmt.Errorf("%s: line %d: the header %s", d.r.name, bad.Line, bad.Reason)
	}
	if err != nil {
		return d.r.sourceError(max(d.source.line(), 1), err)
	}
	h := headerLine{source: d.r.name, line: line, names: make([]string, len(header))}
	for i, name := range header {
		if !readable(name) {
			return fmt.Errorf("%s: line %d: header field %d %s", d.r.name, line, i+1, unreadable(name))
		}
		h.names[i] = strings.TrimSpace(name)
	}
	d.width, d.named = len(h.names), true
	for i := range d.at {
		d.at[i] = -1
		switch c := &d.r.shape.columns[i]; {
		case c.From != nil:
			d.gathers(i, &h)
		case d.r.shape.used(i):
			d.at[i] = h.find("column", c.Name)
		}
	}
	if d.r.shape.key != "" {
		d.key = h.find("key column", d.r.shape.key)
	}
	if hint := d.separatorHint(header); len(h.missing) > 0 && h.found == 0 && hint != "" {
		return fmt.Errorf("%s: line %d: the header is one field, %.200q%s", d.r.name, line, header[0], hint)
	}
	for _, name := range h.names {
		if d.r.shape.columnNamed(name) < 0 && name != d.r.shape.key {
			d.r.opts.Columns.other([]byte(name))
		}
	}
	return h.err()
}

// gathers finds the fields that a column is made of.
func (d *delimited) gathers(column int, h *headerLine) {
	if d.from == nil {
		d.from = make([][]int, len(d.at))
	}
	at, missing := resolve(d.r.shape.columns[column].From, h.names)
	for _, name := range missing {
		h.lacks(d.r.shape.columns[column].Name, name)
	}
	d.r.opts.Columns.gathered(column)
	d.from[column] = at
}

// gather fills the cells of columns that are made of several fields.
func (d *delimited) gather(rec *schema.Record, fields []string) error {
	for column, at := range d.from {
		if at == nil {
			continue
		}
		d.texts = d.texts[:0]
		for _, field := range at {
			if !readable(fields[field]) {
				return d.unreadable(rec.Line, fields, field)
			}
			d.texts = append(d.texts, fields[field])
		}
		d.r.shape.gather(&rec.Cells[column], column, d.texts)
	}
	return nil
}

// didYouMean is what may have been meant by a wrong name, for the end of a message.
func didYouMean(wrong string, names []string) string {
	if best := schema.Nearest(wrong, names); best != "" {
		return fmt.Sprintf(" (did you mean %s?)", best)
	}
	return ""
}

// headerLine is the names of the fields of a source, and what was looked for among them.
type headerLine struct {
	source  string
	line    int64
	names   []string
	found   int
	missing []string // what there is not
	twice   []error  // what there is more than once
}

// find returns the field with a name, -1 where there is none.
func (h *headerLine) find(what, name string) int {
	at := -1
	for i := range h.names {
		if h.names[i] != name {
			continue
		}
		if at >= 0 {
			h.twice = append(h.twice, fmt.Errorf("%s: line %d: %s %q is ambiguous: fields %d and %d of the header "+
				"both have that name", h.source, h.line, what, name, at+1, i+1))
			break
		}
		at = i
	}
	if at < 0 {
		h.missing = append(h.missing, fmt.Sprintf("%s %q is not in the header%s", what, name, didYouMean(name, h.names)))
	} else {
		h.found++
	}
	return at
}

// lacks notes that nothing is called as an entry of from.
func (h *headerLine) lacks(column, entry string) {
	what := fmt.Sprintf("column %q, of which column %q is made, is not in the header%s", entry, column, didYouMean(entry, h.names))
	if strings.Contains(entry, "*") {
		what = fmt.Sprintf("no column in the header matches %s, of which column %q is made", entry, column)
	}
	h.missing = append(h.missing, what)
}

// err is all that is wrong, joined.
func (h *headerLine) err() error {
	faults := h.twice
	for i, what := range h.missing {
		advice := ""
		if i == 0 { // once will do
			advice = fmt.Sprintf(": the file has %s; if its first line is data, write header: false in the schema", schema.List(h.names))
		}
		faults = append(faults, fmt.Errorf("%s: line %d: %s%s", h.source, h.line, what, advice))
	}
	return errors.Join(faults...)
}

// separatorHint asks whether a record of one field, where several were expected, is one with another separator. It is
// empty when nothing in the field looks like it.
func (d *delimited) separatorHint(fields []string) string {
	if len(fields) != 1 {
		return ""
	}
	most, guess := 0, ""
	for _, separator := range []string{",", ";", "\t", "|"} {
		if n := strings.Count(fields[0], separator); n > most {
			most, guess = n, separator
		}
	}
	switch {
	case most == 0:
		return ""
	case d.r.opts.Format == TSV && guess == ",":
		return ": is it separated by commas? then add --format csv"
	case d.r.opts.Format == TSV:
		return fmt.Sprintf(": is it separated by %q? then add --format csv --separator '%[1]s'", guess)
	case guess == "\t":
		return ": is it separated by tabs? then add --format tsv"
	}
	return fmt.Sprintf(": is it separated by %q? then add --separator '%[1]s'", guess)
}

func (d *delimited) line() int64 { return d.source.line() }

func (d *delimited) next(rec *schema.Record) error {
	fields, line, err := d.source.fields()
	if err != nil {
		return err
	}
	rec.Line = line
	if len(fields) != d.width {
		return d.wrongWidth(line, fields)
	}
	shape := d.r.shape
	if d.key >= 0 {
		if !readable(fields[d.key]) {
			return d.unreadable(line, fields, d.key)
		}
		if !shape.setKey(rec, fields[d.key]) {
			return d.r.bad(line, "key column %s is empty, and every record needs a key", shape.key)
		}
	}
	for i, field := range d.at {
		switch {
		case !shape.used(i) || field < 0:
		case !readable(fields[field]):
			return d.unreadable(line, fields, field)
		default:
			d.cells.written(&rec.Cells[i], i, fields[field])
		}
	}
	return d.gather(rec, fields)
}

func (d *delimited) wrongWidth(line int64, fields []string) error {
	got := len(fields)
	if d.named {
		return d.r.bad(line, "has %s, the header has %d", human.Count(got, "field"), d.width)
	}
	hint := d.separatorHint(fields)
	if got > d.width {
		hint = " (a field that is not wanted needs a column of type skip; a separator at the line's end makes an empty field)"
	}
	return d.r.bad(line, "has %s, the schema has %s%s", human.Count(got, "field"), human.Count(d.width, "column"), hint)
}

// unreadable reports invalid bytes at the line where they stand, which within quotes may be after the first.
func (d *delimited) unreadable(line int64, fields []string, field int) error {
	for _, before := range fields[:field] {
		line += int64(strings.Count(before, "\n"))
	}
	text := fields[field]
	for i, c := range text {
		if c == 0 || c == utf8.RuneError && !readable(text[i:i+1]) {
			break
		}
		if c == '\n' {
			line++
		}
	}
	return d.r.bad(line, "field %d %s", field+1, unreadable(text))
}

// csvFields reads CSV with encoding/csv, quotes taken strictly.
type csvFields struct {
	r       *Reader
	csv     *csv.Reader
	limit   *recordLimit
	offset  int64 // of the end of the last record
	reached int64 // last line of the last record
}

func newCSV(r *Reader) (decoder, error) { return newDelimited(r, newCSVFields) }

func newCSVFields(r *Reader) fieldSource {
	limit := &recordLimit{r: r.source.Text, limit: r.opts.MaxRecord}
	c := &csvFields{r: r, csv: csv.NewReader(r.buffered(limit)), limit: limit, reached: r.before}
	c.csv.Comma = r.opts.Comma
	c.csv.FieldsPerRecord = -1 // checked by delimited, which knows what to advise
	c.csv.ReuseRecord = true
	c.csv.TrimLeadingSpace = cut.TrimsBlanks(r.opts.Comma)
	return c
}

func (c *csvFields) line() int64 { return c.reached + 1 }

func (c *csvFields) fields() ([]string, int64, error) {
	c.limit.taken = 0
	fields, err := c.csv.Read()
	size := c.csv.InputOffset() - c.offset
	c.offset += size
	if size > int64(c.limit.limit) || errors.Is(err, cut.ErrTooLong) {
		return nil, 0, &fault{c.line(), fmt.Sprintf("the record that begins here is longer than %d bytes, the limit "+
			"of one record: is a quote never closed?", c.limit.limit)}
	}
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, 0, c.badQuote(parse)
	}
	if err != nil {
		return nil, 0, err
	}
	start, _ := c.csv.FieldPos(0)
	last, _ := c.csv.FieldPos(len(fields) - 1)
	c.reached = c.r.before + int64(last+strings.Count(fields[len(fields)-1], "\n"))
	return fields, c.r.before + int64(start), nil
}

// badQuote tells a record with a stray quote, which ends at its line's end, from a quote that swallowed following
// lines: to go on after those would lose records that nobody counted.
func (c *csvFields) badQuote(e *csv.ParseError) error {
	first, last := c.r.before+int64(e.StartLine), c.r.before+int64(e.Line)
	c.reached = last
	reason := "has a quote inside an unquoted field: quote the whole field and double the quotes in it"
	if errors.Is(e.Err, csv.ErrQuote) {
		reason = "has a quoted field that is not closed, or goes on after its closing quote: double the quotes inside a " +
			"quoted field"
	}
	if e.StartLine != e.Line {
		return &fault{first, fmt.Sprintf("%s (byte %d of line %d); the record took lines %d to %d, which "+
			"may hold others, so it cannot be skipped", reason, e.Column, last, first, last)}
	}
	return c.r.bad(last, "%s (byte %d)", reason, e.Column)
}

// recordLimit fails once more than limit bytes were taken for one record.
type recordLimit struct {
	r     io.Reader
	limit int
	taken int
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.taken > l.limit {
		return 0, cut.ErrTooLong
	}
	n, err := l.r.Read(p)
	l.taken += n
	return n, err
}

// tsvFields reads tab-separated values, which know no quotes.
type tsvFields struct {
	*lines
	buffer []string
}

func newTSV(r *Reader) (decoder, error) {
	return newDelimited(r, func(r *Reader) fieldSource { return &tsvFields{lines: newLines(r)} })
}

func (t *tsvFields) fields() ([]string, int64, error) {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = t.nextLine(); err != nil {
			return nil, 0, err
		}
	}
	t.buffer = t.buffer[:0]
	text := string(line) // one allocation; the fields are parts of it
	for {
		field, rest, found := strings.Cut(text, "\t")
		t.buffer = append(t.buffer, field)
		if !found {
			return t.buffer, t.n, nil
		}
		text = rest
	}
}

// Package guess looks at a file that nobody has described and proposes its schema.
//
// # What it promises
//
// A guess is a proposal for a person, and says of each part why it was made and whether it is unsure. What would be silently wrong is not guessed: a key
// is proposed only where it was seen to be unique in all of the file, and a number is one only where nearly all values are. It looks at a sample, the
// first megabytes; only keys are looked for in the whole file.
//
// # How
//
// From the outside in, each step on what the one before found: compression and encoding (encoding.go), format, separator, lines before the header and the
// header (table.go), then each column by its values (column.go) and some together (together.go). Values are read by package load, as they will be when
// the index is built.
package guess

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
)

// Options say what is known already. The zero value knows nothing.
type Options struct {
	// Format, Encoding, Comma and SkipLines are not guessed where they are set.
	load.Options
	// Name of the index. Default: by the name of the file.
	Name string
	// Names of the fields of a table without a header, one for each. Default: the file has a header, or its columns are called c1, c2 and so on.
	Names []string
	// Sample is how many bytes of text are looked at. Default 4 MiB.
	Sample int
}

// Column is what was found of one column of the input.
type Column struct {
	schema.Column
	// Why is what speaks for the guess, Unsure what speaks against it or what else it may be; "" nothing.
	Why, Unsure string
	// Known says that the column stands in the schema; others are part of another column, or ignored.
	Known bool

	values *values
}

// Guess is a proposal.
type Guess struct {
	Name    string
	Input   schema.Input
	Header  *bool    // nil: the format has none
	told    bool     // columns were named by the options, so that their names mean something
	Missing []string // what means that there is no value
	Key     string
	Rescore *schema.Rescore // nil: the order of counts
	Columns []Column
	Kind    schema.Kind // of files of lines; else that of records
	Text    bool        // a record is a line, and its one column is named by nobody

	// Records are those of the sample; Bad are those that could not be read.
	Records, Bad int
	// Notes are sentences about the file, Doubts those among them that a person should look at.
	Notes, Doubts []string
}

const defaultSample = 4 << 20

// File proposes a schema for the file at path.
func File(path string, opts Options) (*Guess, error) {
	if opts.Sample <= 0 {
		opts.Sample = defaultSample
	}
	s, err := take(path, opts)
	if err != nil {
		return nil, err
	}
	g := &Guess{Name: opts.Name, Missing: []string{""}, Notes: s.notes, Doubts: s.doubts}
	g.Name = cmp.Or(g.Name, indexName(path))
	g.Input.Encoding = s.opts.Encoding
	if err := checkNames(opts.Names); err != nil {
		return nil, err
	}
	s.columns = opts.Names
	if err := g.layout(s); err != nil {
		return nil, err
	}
	if g.told = len(opts.Names) > 0; g.told && g.Header == nil {
		return nil, fmt.Errorf("%s: names of columns are for tables of fields (csv, tsv) without a header: its format is %s", path, s.opts.Format)
	}
	if err := g.read(s); err != nil {
		return nil, err
	}
	g.findMissing()
	for i := range g.Columns {
		g.Columns[i].guess(g.Missing)
	}
	g.together()
	if err := g.findKey(s); err != nil {
		return nil, err
	}
	g.spelled()
	return g, nil
}

// checkNames finds what is wrong with names of columns.
func checkNames(names []string) error {
	for i, name := range names {
		switch {
		case strings.TrimSpace(name) != name || name == "" || len(name) > schema.MaxNameBytes:
			return fmt.Errorf("name %d of the columns is %q: names are 1 to %d bytes long, without blanks around them", i+1, name, schema.MaxNameBytes)
		case slices.Index(names, name) != i:
			return fmt.Errorf("two columns are named %q: each needs a name of its own", name)
		}
	}
	return nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// indexName makes a name of an index of that of a file.
func indexName(path string) string {
	base := filepath.Base(path)
	for _, ext := range []string{".gz", ".zst"} {
		base = strings.TrimSuffix(base, ext)
	}
	name := strings.Trim(unfit.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "-")
	if name == "" {
		return "data"
	}
	return strings.ToLower(name[:min(len(name), 64)])
}

// read reads the values of the sample, by the rules of package load.
func (g *Guess) read(s *sample) error {
	names := g.Columns
	raw := &schema.Schema{Name: "sample", Input: &g.Input, Header: g.Header, Missing: []string{}}
	for _, c := range names {
		column := schema.Column{Name: c.Name, Type: schema.PayloadColumn}
		if g.Text {
			column.Type = schema.CategoryColumn // a line is the value of the one column that is indexed
		}
		raw.Columns = append(raw.Columns, column)
	}
	r, err := s.reader(raw)
	if err != nil {
		return err
	}
	for i := range g.Columns {
		g.Columns[i].values = &values{}
	}
	var rec schema.Record
	for {
		err := r.Next(&rec)
		switch {
		case errors.As(err, new(*load.BadRecord)):
			g.Bad++
			continue
		case errors.Is(err, io.EOF):
		case err != nil && g.Records == 0:
			return err
		case err != nil: // the sample may end within a record
			g.Bad++
		default:
			g.Records++
			for i := range g.Columns {
				g.Columns[i].values.add(&rec.Cells[i])
			}
			continue
		}
		break
	}
	if g.Records == 0 {
		return fmt.Errorf("%s: has no records from which a schema could be guessed", s.name)
	}
	if g.Bad > 0 && g.Bad*1000 > g.Records {
		g.doubt("%d of the first %d records cannot be read as they are: build says which, and --skip-bad leaves them out", g.Bad, g.Records+g.Bad)
	}
	return r.Close()
}

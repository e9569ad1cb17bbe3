package match

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/cmd/geniemq/progress"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/guess"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
)

// rows is the input: its rows in their order, numbered from 0. Records that cannot be used have no number.
type rows struct {
	files inputs.Files
	unfit map[int64]bool        // lines of records that are no rows, though they can be read
	bad   func(err error) error // decides on those that cannot; nil goes on
	next  int64
}

// described is the schema of the input, as it is given or guessed, and the options to read it with.
func (o *options) described() (*schema.Schema, load.Options, error) {
	reading, err := o.Reading()
	if err != nil {
		return nil, reading, err
	}
	var spec *schema.Schema
	if o.schema != "" {
		spec, err = index.Builtin().LoadSchema(o.schema)
	} else {
		spec, err = o.proposed()
	}
	if err != nil {
		return nil, reading, err
	}
	if o.key != "" {
		spec.Key = o.key
	}
	reading = reading.For(spec)
	reading.Workers = runtime.GOMAXPROCS(0)
	return spec, reading, reading.Validate()
}

// proposed is the schema that is guessed of the input.
func (o *options) proposed() (*schema.Schema, error) {
	guessing, err := o.Guessing("")
	if err != nil {
		return nil, err
	}
	g, err := guess.File(o.input, guessing)
	if err != nil {
		return nil, err
	}
	if o.within && o.index == "" {
		searchable(g)
	}
	text, err := g.YAML()
	if err != nil {
		return nil, err
	}
	spec, err := index.Builtin().ParseSchema(text)
	if err != nil {
		return nil, fmt.Errorf("no schema could be guessed for %s: write one (geniemq init begins it) and name it by --schema: %w", o.input, err)
	}
	return spec, nil
}

// searchable makes an index that is asked by this command alone one that finds the nearest exactly: hash functions would miss some.
func searchable(g *guess.Guess) {
	for i := range g.Columns {
		switch c := &g.Columns[i]; {
		case !c.Known:
		case c.Type == schema.VectorColumn:
			c.Metric, c.Store = string(metric.L2), true
		case c.Type == schema.PointColumn:
			c.Index = schema.Names{distance.Scan, "tree"}
		}
	}
}

// open begins to read the input.
func (r *runner) open(spec *schema.Schema, reading load.Options, line func(what string, bytes int64) *progress.Line) *rows {
	s := &rows{bad: r.bad}
	s.files = inputs.Files{Options: reading, Schema: spec, Names: []string{r.input}, In: r.host.In, Progress: line}
	return s
}

// row reads the next row. It returns io.EOF after the last.
func (s *rows) row(ctx context.Context, rec *schema.Record) error {
	for {
		err := s.files.Next(ctx, rec)
		switch {
		case err == nil && s.unfit[rec.Line]:
		case err == nil:
			s.next++
			return nil
		case errors.Is(err, inputs.ErrEnd):
		case inputs.Skippable(err):
			if err := s.bad(err); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// pass passes over rows that are done.
func (s *rows) pass(ctx context.Context, rows int64) error {
	var rec schema.Record
	for s.next < rows {
		if err := s.row(ctx, &rec); errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has %d rows, and an earlier run had done %d: it is another file; --restart begins anew", s.files.Schema.Name, s.next, rows)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// bad decides on a record or a row that cannot be used.
func (r *runner) bad(err error) error {
	if !r.skipBad {
		return fmt.Errorf("%w\n--skip-bad leaves out such records", err)
	}
	const told = 10
	r.saying.Lock() // rows are read and asked at the same time
	defer r.saying.Unlock()
	if r.skipped.Add(1) <= told {
		table.On(r.host.Err).Say("skipped: %s\n", err.Error())
	}
	return nil
}

// identity is what the input is, so that what was found of another one is not taken for this one's.
type identity struct {
	path     string
	contents string
	info     os.FileInfo // nil of the standard input, which nobody reads twice
}

// identify reads the input once.
func identify(path string) (*identity, error) {
	is := &identity{path: path}
	if path == inputs.Standard {
		return is, nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() { // reading a pipe would take what it has
		return nil, fmt.Errorf("%s is no file that can be read twice: save what it has in one (match reads the standard input, --input -, with --schema)", path)
	}
	is.info = info
	is.contents, err = contents(path)
	return is, err
}

// unchanged says whether the input is still what it was when it was identified. While it is read it may grow or be replaced.
func (is *identity) unchanged() error {
	if is.info == nil {
		return nil
	}
	info, err := os.Stat(is.path)
	if err == nil && os.SameFile(info, is.info) && info.Size() == is.info.Size() && info.ModTime().Equal(is.info.ModTime()) {
		return nil
	}
	if now, err := contents(is.path); err != nil || now != is.contents {
		return fmt.Errorf("%s was changed while it was read, so that some rows are of what it was and some of what it is: begin again with a file that nobody writes", is.path)
	}
	return nil
}

// contents identifies what a file has.
func contents(path string) (string, error) {
	file, _, err := source.File(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// build makes an index of the input at path, and notes which of its records are no rows.
func (r *runner) build(ctx context.Context, spec *schema.Schema, reading load.Options, path string) (unfit map[int64]bool, err error) {
	unfit = make(map[int64]bool)
	s := r.open(spec, reading, func(what string, bytes int64) *progress.Line {
		return r.line("indexing "+strings.TrimPrefix(what, "reading "), progress.Options{Total: bytes, Bytes: true})
	})
	defer func() { err = errors.Join(err, s.files.Close()) }()
	s.bad = func(err error) error { // told when rows are asked
		if r.skipBad {
			return nil
		}
		return r.bad(err)
	}
	keyless := *spec // rows may have equal keys
	keyless.Key = ""
	next, err := index.Builtin().Learn(&keyless, func(rec *schema.Record) error {
		err := s.row(ctx, rec)
		rec.Key = ""
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	objects, err := index.NewObjects(&keyless, index.BuilderOptions{})
	if err != nil {
		return nil, err
	}
	err = objects.AddAll(ctx, index.Source{
		Name: r.input, Next: next, Skippable: inputs.Skippable,
		Bad: func(err error) error {
			refused := (*index.RecordError)(nil)
			if !errors.As(err, &refused) {
				return err
			}
			unfit[refused.Line] = true
			return r.bad(fmt.Errorf("%s: %w", r.input, err))
		},
	})
	if err != nil {
		return nil, err
	}
	return unfit, objects.WriteFile(ctx, path, nil)
}

// textOf is a schema as it is compared.
func textOf(spec *schema.Schema) (string, error) {
	text, err := spec.Encode()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

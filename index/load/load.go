// Package load reads input files into records: CSV and TSV, JSON Lines and text of one record per line, each of them
// also compressed with gzip.
//
// A Reader knows files and the columns of a schema, and nothing of keywords; index/column knows keywords, and
// nothing of files. What travels between them is schema.Record: the cells of the schema's columns, in schema
// order, with missing values already taken out and lists already split.
//
// # Rules for every format
//
//   - Input is UTF-8 (a byte-order mark is skipped) unless Options.Encoding says otherwise. Bytes that are not
//     UTF-8 are refused where they touch a column that the schema uses: guessing would index wrong words.
//   - Blanks around the cells of CSV, TSV and text are layout and are trimmed. A JSON string is taken as it
//     stands, since whoever wrote it could say exactly what was meant.
//   - A value that is one of Schema.Missing, its blanks trimmed, is no value. A cell without values is missing.
//   - Every error names the source and the line. A fault that concerns one record alone is a *BadRecord: the
//     reader stands after it and Next may be called again, so that a caller can count and skip. Any other error
//     ends the reader: either the source itself is at fault (disk, gzip), or it is not what the schema describes,
//     or going on would silently lose records, as after a quote that is never closed.
//
// # Adding a format
//
// A format is a Format constant, an entry of formatTable and a decoder. Line formats take their lines from a
// lineScanner, which counts them and bounds their length; cells are filled through a shape, which trims, splits and
// drops missing values in the same way for all.
package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
)

// Format names how records are laid out in a source.
type Format string

const (
	// Auto takes the format from the name's extension, without a final .gz.
	Auto Format = ""
	// CSV is RFC 4180: fields separated by Options.Comma, quoted with " where needed, a quote within quotes
	// doubled; quoted fields may span lines. Empty lines are skipped.
	CSV Format = "csv"
	// TSV is text/tab-separated-values: one record per line, fields separated by tabs, and no quoting, so that a "
	// is a character like any other. For quoted fields separated by tabs use CSV with Comma '\t'. Empty lines
	// are skipped.
	TSV Format = "tsv"
	// JSONL is JSON Lines: one object per line. Its fields are matched by column name; other fields are ignored.
	// Empty lines are skipped.
	JSONL Format = "jsonl"
	// Text is one record per line. An empty line is an object without keywords, so that object ids are line
	// numbers less one.
	Text Format = "text"
)

// formatEntry describes a format: the extensions that Auto takes for it, and its decoder.
type formatEntry struct {
	format     Format
	extensions []string
	open       func(*Reader) (decoder, error)
}

var formatTable = []formatEntry{
	{CSV, []string{".csv"}, newCSV},
	{TSV, []string{".tsv", ".tab"}, newTSV},
	{JSONL, []string{".jsonl", ".ndjson", ".json"}, newJSONL},
	{Text, []string{".txt", ".text"}, newText},
}

// Formats returns the names that Options.Format takes, for help texts.
func Formats() []Format {
	names := make([]Format, len(formatTable))
	for i, f := range formatTable {
		names[i] = f.format
	}
	return names
}

// FormatOf returns the format that the extension of name stands for; a final .gz is ignored.
func FormatOf(name string) (Format, error) {
	base := strings.ToLower(filepath.Base(name))
	ext := filepath.Ext(strings.TrimSuffix(base, ".gz"))
	for _, f := range formatTable {
		if slices.Contains(f.extensions, ext) {
			return f.format, nil
		}
	}
	return Auto, fmt.Errorf("%s: cannot tell the format from the name: say --format %s", name, formatList())
}

func formatList() string {
	var b strings.Builder
	for i, f := range formatTable {
		if i > 0 {
			b.WriteByte('|')
		}
		b.WriteString(string(f.format))
	}
	return b.String()
}

// DefaultMaxRecord is the default of Options.MaxRecord.
const DefaultMaxRecord = 16 << 20

// Options says how a source is read. The zero value suits UTF-8 files with a telling extension.
type Options struct {
	// Format of the records. Default Auto: by the extension of the name.
	Format Format
	// Encoding of the characters: "utf-8" (default), "latin1" or "windows-1252". See Encodings.
	Encoding string
	// Comma separates the fields of CSV. Default ','.
	Comma rune
	// MaxRecord bounds one record, in bytes of the decompressed source, so that a file without line ends or with
	// an unclosed quote cannot take all memory. Default DefaultMaxRecord, 16 MiB.
	MaxRecord int
	// Columns, if set, notes which columns have values in this source.
	Columns *Columns
}

// Validate reports every fault of the options at once, joined with errors.Join. [NewReader] calls it; callers may
// do so before they open anything.
func (o *Options) Validate() error {
	var faults []error
	if o.Format != Auto && !slices.Contains(Formats(), o.Format) {
		faults = append(faults, fmt.Errorf("unknown format %q: use one of %s", o.Format, formatList()))
	}
	if _, err := charset(o.Encoding); err != nil {
		faults = append(faults, err)
	}
	switch c := o.Comma; {
	case c == '"', c == '\r', c == '\n', !utf8.ValidRune(c), c == utf8.RuneError:
		faults = append(faults, fmt.Errorf("%q cannot separate the fields of CSV", c))
	}
	return errors.Join(faults...)
}

func (o *Options) ensureDefaults() {
	if o.Comma == 0 {
		o.Comma = ','
	}
	if o.MaxRecord <= 0 {
		o.MaxRecord = DefaultMaxRecord
	}
}

// BadRecord says that one record cannot be used and why. The reader stands after it.
type BadRecord struct {
	Source string
	Line   int64 // 1-based line at which the record, or the fault in it, stands
	Reason string
}

func (e *BadRecord) Error() string {
	return fmt.Sprintf("%s: line %d: %s", e.Source, e.Line, e.Reason)
}

// decoder turns the text of one format into records. Next of Reader has reset the record.
type decoder interface {
	// next fills rec. Errors: io.EOF, *BadRecord, or anything else, which ends the reader.
	next(rec *schema.Record) error
	// line is the line reached, for errors of the source.
	line() int64
}

// Reader reads the records of one source in order. It is for one goroutine.
type Reader struct {
	name    string
	schema  *schema.Schema
	opts    Options
	source  *source
	shape   *shape
	decoder decoder
	err     error // sticky; set by any error but *BadRecord
}

// Open opens the file at path for reading as schema says. The caller closes the reader.
func Open(path string, s *schema.Schema, opts Options) (*Reader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("open input: %w", err)
	}
	if info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("open input: %s is a directory, not a file", path)
	}
	r, err := NewReader(file, path, s, opts)
	if err != nil {
		file.Close()
		return nil, err
	}
	r.source.file = file
	if info.Mode().IsRegular() {
		r.source.size = info.Size()
	}
	return r, nil
}

// NewReader reads records from r; name stands for it in errors, and its extension tells the format when
// opts.Format is Auto. A source that starts with a header is read up to its end here, so that columns which do
// not match the schema are reported at once.
func NewReader(r io.Reader, name string, s *schema.Schema, opts Options) (*Reader, error) {
	opts.ensureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if opts.Format == Auto {
		format, err := FormatOf(name)
		if err != nil {
			return nil, err
		}
		opts.Format = format
	}
	i := slices.IndexFunc(formatTable, func(f formatEntry) bool { return f.format == opts.Format })
	source, err := newSource(r, name, opts.Encoding)
	if err != nil {
		return nil, err
	}
	reader := &Reader{name: name, schema: s, opts: opts, source: source, shape: newShape(s)}
	if reader.decoder, err = formatTable[i].open(reader); err != nil {
		return nil, err
	}
	return reader, nil
}

// Next reads the next record into rec, reusing its slices; the strings in it are its own. It returns io.EOF at
// the end, a *BadRecord when this record is at fault and reading may go on, and else an error that stays.
func (r *Reader) Next(rec *schema.Record) error {
	if r.err != nil {
		return r.err
	}
	r.shape.reset(rec)
	err := r.decoder.next(rec)
	if err == nil {
		r.opts.Columns.record(rec)
		return nil
	}
	var bad *BadRecord
	if errors.As(err, &bad) {
		return err
	}
	if !errors.Is(err, io.EOF) {
		err = r.sourceError(r.decoder.line(), err)
	}
	r.err = err
	return err
}

// BytesRead is how much of the source has been read so far, in bytes as they are stored (compressed).
func (r *Reader) BytesRead() int64 { return r.source.read() }

// Size is the size of the source in bytes as it is stored, or -1 when unknown.
func (r *Reader) Size() int64 { return r.source.size }

// Close closes the file that Open opened; a reader given to NewReader stays the caller's.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = fmt.Errorf("%s: read after close", r.name)
	}
	return r.source.close()
}

func (r *Reader) bad(line int64, format string, args ...any) error {
	return &BadRecord{Source: r.name, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// fault is an error in the structure of a source, with the line at which it stands.
type fault struct {
	line   int64
	reason string
}

func (e *fault) Error() string { return e.reason }

// sourceError names source and line in an error that ends the reader.
func (r *Reader) sourceError(line int64, err error) error {
	var f *fault
	if errors.As(err, &f) {
		return fmt.Errorf("%s: line %d: %w", r.name, f.line, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: line %d: the compressed file ends too early, it is truncated: %w", r.name, line, err)
	}
	return fmt.Errorf("%s: line %d: read: %w", r.name, line, err)
}

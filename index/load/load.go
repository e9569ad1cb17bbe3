// Package load reads input files into records: CSV and TSV, JSON Lines, text of one record per line, and vectors of npy, fvecs and bvecs,
// each of them also compressed with gzip or zstd; and Parquet.
//
// A Reader knows files and the columns of a schema, and nothing of keywords; index/column knows keywords, and
// nothing of files. What travels between them is schema.Record: the cells of the schema's columns, in schema
// order, with missing values already taken out and lists already split.
//
// # Rules for every format
//
//   - Text is UTF-8 (a byte-order mark is skipped) unless Options.Encoding or a mark of UTF-16 says otherwise. Bytes that are not
//     UTF-8 are refused where they touch a column that the schema uses: guessing would index wrong words. So are NUL bytes, which
//     tell of binary data or of an encoding that nobody named.
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
// A format is a Format constant, an entry of formatTable and a decoder. A decoder begins at Reader.before and keeps nothing that another part of the
// source would need; what one learns from a header is delimited's. Line formats take their lines from a
// lines, which counts them and bounds their length; cells are filled through a shape, which trims, splits and
// drops missing values in the same way for all.
package load

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/load/elements"
	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/schema"
)

// Format names how records are laid out in a source.
type Format string

const (
	// Auto takes the format from the name's extension, without a final .gz or .zst.
	Auto Format = ""
	// CSV is RFC 4180: fields separated by Options.Comma, quoted with " where needed, a quote within quotes
	// doubled; quoted fields may span lines. Empty lines are skipped.
	CSV Format = "csv"
	// TSV is text/tab-separated-values: one record per line, fields separated by tabs, and no quoting, so that a "
	// is a character like any other. For quoted fields separated by tabs use CSV with Comma '\t'. Empty lines
	// are skipped.
	TSV Format = "tsv"
	// JSONL is JSON Lines: one object per line, or all of them in one JSON array. Fields are matched by column name, which may be a path into
	// objects (package jsonpath); other fields are ignored. Empty lines are skipped. The lines of an array are its elements, from 1.
	JSONL Format = "jsonl"
	// Text is one record per line. An empty line is an object without keywords, so that object ids are line
	// numbers less one.
	Text Format = "text"
	// NPY is an array of NumPy, of one vector per row.
	NPY Format = "npy"
	// FVecs and BVecs are vectors of float32 and of bytes, each with its number of elements before it, as the TEXMEX collections have them.
	FVecs Format = "fvecs"
	BVecs Format = "bvecs"
	// Parquet is a file of Apache Parquet. Its fields are matched by column name; other fields are not read. It must be a file, not a stream.
	Parquet Format = "parquet"
)

// formatEntry describes a format: the extensions that Auto takes for it, its decoder, and how its text is cut for several workers.
type formatEntry struct {
	format     Format
	extensions []string
	open       func(*Reader) (decoder, error)
	cut        cutting
}

// cutting is how text is cut into records without being decoded.
type cutting int

const (
	byLines   cutting = iota // a record is a line
	byQuotes                 // a record is a line whose quotes are closed
	byRecords                // no text: the decoder knows where records end
)

var formatTable = []formatEntry{
	{CSV, []string{".csv"}, newCSV, byQuotes},
	{TSV, []string{".tsv", ".tab"}, newTSV, byLines},
	{JSONL, []string{".jsonl", ".ndjson", ".json"}, newJSONL, byLines},
	{Text, []string{".txt", ".text"}, newText, byLines},
	{NPY, []string{".npy"}, newNPY, byRecords},
	{FVecs, []string{".fvecs"}, newFVecs, byRecords},
	{BVecs, []string{".bvecs"}, newBVecs, byRecords},
	{Parquet, []string{".parquet"}, newParquet, byRecords},
}

// FormatOf returns the format that the extension of name stands for; a final .gz or .zst is ignored.
func FormatOf(name string) (Format, error) {
	base := strings.ToLower(filepath.Base(name))
	ext := filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".zst"))
	for _, f := range formatTable {
		if slices.Contains(f.extensions, ext) {
			return f.format, nil
		}
	}
	return Auto, fmt.Errorf("%s: cannot tell the format from the name: say --format %s", name, formatList())
}

// formatList is the names that Options.Format takes.
func formatList() string {
	var names []string
	for _, f := range formatTable {
		names = append(names, string(f.format))
	}
	return strings.Join(names, "|")
}

// binary says that sources are no text.
func (o *Options) binary() bool { return formatTable[o.entry()].cut == byRecords }

// entry is the place of a format in formatTable, -1 for none.
func (o *Options) entry() int {
	return slices.IndexFunc(formatTable, func(f formatEntry) bool { return f.format == o.Format })
}

// Options says how a source is read. The zero value suits UTF-8 files with a telling extension; what is zero, the schema may say (Options.For).
type Options struct {
	// Format of the records. Default Auto: by the extension of the name.
	Format Format
	// Encoding of the characters: a name of the WHATWG list, such as "windows-1252" or "shift_jis", or "latin1". Default "utf-8"; a source that begins
	// with a byte-order mark of UTF-16 is that.
	Encoding string
	// SkipLines is how many lines stand before the records and their header. Default 0.
	SkipLines int
	// Comma separates the fields of CSV. Default ','.
	Comma rune
	// MaxRecord bounds one record, in bytes of the decompressed source, so that a file without line ends or with
	// an unclosed quote cannot take all memory. Default 16 MiB.
	MaxRecord int
	// Columns, if set, notes which columns have values in this source.
	Columns *Columns
	// Workers is how many cores decode. Records, errors and line numbers are the same whatever it is. A reader with
	// several has goroutines until its end or Close. Default 1: the caller of Next alone.
	Workers int

	partBytes int // of parts, if not 0 (tests)
}

// Validate reports every fault of the options at once, joined with errors.Join. [NewReader] calls it; callers may
// do so before they open anything.
func (o *Options) Validate() error {
	var faults []error
	if o.Format != Auto && o.entry() < 0 {
		faults = append(faults, fmt.Errorf("unknown format %q: use one of %s", o.Format, formatList()))
	}
	if err := source.KnowsEncoding(o.Encoding); err != nil {
		faults = append(faults, err)
	}
	if o.SkipLines < 0 {
		faults = append(faults, fmt.Errorf("%d lines cannot be skipped", o.SkipLines))
	}
	switch c := o.Comma; {
	case c == '"', c == '\r', c == '\n', !utf8.ValidRune(c), c == utf8.RuneError:
		faults = append(faults, fmt.Errorf("%q cannot separate the fields of CSV", c))
	}
	return errors.Join(faults...)
}

// For returns the options with what a schema says of its input where they say nothing.
func (o Options) For(s *schema.Schema) Options {
	if s.Input == nil {
		return o
	}
	if o.Format == Auto {
		o.Format = Format(s.Input.Format)
	}
	o.Encoding = cmp.Or(o.Encoding, s.Input.Encoding)
	if o.Comma == 0 && s.Input.Separator != "" {
		o.Comma, _ = utf8.DecodeRuneInString(s.Input.Separator)
	}
	o.SkipLines = cmp.Or(o.SkipLines, s.Input.SkipLines)
	return o
}

func (o *Options) ensureDefaults() {
	o.Comma = cmp.Or(o.Comma, ',')
	if o.MaxRecord <= 0 {
		o.MaxRecord = 16 << 20
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

// Reader reads the records of one source in order. It is for one goroutine. With Options.Workers it has some of its own, see parts.
type Reader struct {
	name    string
	schema  *schema.Schema
	opts    Options
	stored  io.Reader      // what the reader was made of
	file    *os.File       // owned when Open opened it
	size    int64          // stored bytes, -1 when unknown
	source  *source.Source // nil of parts
	shape   *shape
	before  int64         // lines of the source in front of the text
	buffer  *bufio.Reader // of the decoder
	decoder decoder       // nil: parts has several
	parts   *parts
	err     error // sticky; set by any error but *BadRecord
}

// Open opens the file at path for reading as schema says. The caller closes the reader.
func Open(path string, s *schema.Schema, opts Options) (r *Reader, err error) {
	file, info, err := source.File(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	if r, err = NewReader(file, path, s, opts); err != nil {
		return nil, err
	}
	r.file = file
	if info.Mode().IsRegular() {
		r.size = info.Size()
	}
	return r, nil
}

// NewReader reads records from r; name stands for it in errors, and its extension tells the format when
// opts.Format is Auto. A source that starts with a header is read up to its end here, so that columns which do
// not match the schema are reported at once.
func NewReader(r io.Reader, name string, s *schema.Schema, opts Options) (*Reader, error) {
	opts = opts.For(s)
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
	if opts.binary() && opts.SkipLines > 0 {
		return nil, fmt.Errorf("%s: is no text, so it has no lines that could be skipped", name)
	}
	text, err := source.Open(r, name, source.Options{Encoding: opts.Encoding, SkipLines: opts.SkipLines, Binary: opts.binary()})
	if err != nil {
		return nil, err
	}
	if opts.Format == JSONL {
		text.Text = elements.Lines(text.Text)
	}
	reader := &Reader{name: name, schema: s, opts: opts, stored: r, size: -1, source: text, shape: newShape(s), before: int64(opts.SkipLines)}
	if entry := &formatTable[opts.entry()]; opts.Workers > 1 {
		reader.parts, err = newParts(reader, entry)
	} else {
		reader.decoder, err = entry.open(reader)
	}
	if err != nil {
		text.Close()
		return nil, err
	}
	return reader, nil
}

const sourceBuffer = 256 << 10

// buffered returns the reader's buffer, of this text.
func (r *Reader) buffered(text io.Reader) *bufio.Reader {
	if r.buffer == nil {
		r.buffer = bufio.NewReaderSize(text, sourceBuffer)
	} else {
		r.buffer.Reset(text)
	}
	return r.buffer
}

// Next reads the next record into rec, reusing its slices; the strings in it are its own. It returns io.EOF at
// the end, a *BadRecord when this record is at fault and reading may go on, and else an error that stays.
func (r *Reader) Next(rec *schema.Record) error {
	if r.err != nil {
		return r.err
	}
	if r.parts != nil {
		err := r.parts.record(r, rec)
		if err != nil && !errors.As(err, new(*BadRecord)) {
			r.err = err
		}
		return err
	}
	r.shape.reset(rec)
	err := r.decoder.next(rec)
	if err == nil {
		r.opts.Columns.record(rec)
		return nil
	}
	if _, ok := errors.AsType[*BadRecord](err); ok {
		return err
	}
	if !errors.Is(err, io.EOF) {
		err = r.sourceError(r.decoder.line(), err)
	}
	r.err = err
	return err
}

// All reads all records that are left, each in memory of its own. Those at fault are left out, after bad was called with them, if it is not nil.
func (r *Reader) All(bad func(*BadRecord)) (records []schema.Record, err error) {
	for {
		var rec schema.Record
		err := r.Next(&rec)
		var fault *BadRecord
		switch {
		case errors.Is(err, io.EOF):
			return records, nil
		case bad != nil && errors.As(err, &fault):
			bad(fault)
		case err != nil:
			return nil, err
		default:
			records = append(records, rec)
		}
	}
}

// BytesRead is how much of the source has been read so far, in bytes as they are stored (compressed).
func (r *Reader) BytesRead() int64 { return r.source.Read() }

// Size is the size of the source in bytes as it is stored, or -1 when unknown.
func (r *Reader) Size() int64 { return r.size }

// Close closes the file that Open opened; a reader given to NewReader stays the caller's. Where several workers decode it waits for what they
// are at, which may be the reading of the source.
func (r *Reader) Close() error {
	if r.err == nil {
		r.err = fmt.Errorf("%s: read after close", r.name)
	}
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	if r.parts != nil {
		r.parts.close()
	}
	r.source.Close()
	return err
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
	if f, ok := errors.AsType[*fault](err); ok {
		return fmt.Errorf("%s: line %d: %w", r.name, f.line, err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: line %d: the compressed file ends too early, it is truncated: %w", r.name, line, err)
	}
	return fmt.Errorf("%s: line %d: read: %w", r.name, line, err)
}

// Package inputs reads the records of input files, one file after the other, as flags say that they are written.
package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/progress"
	"github.com/geniemq/geniemq/index/guess"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	// Standard is the standard input where a file can be named.
	Standard = "-"
	// StandardName is the standard input in messages.
	StandardName = "standard input"
)

// ErrEnd comes after the last record of each input, before io.EOF.
var ErrEnd = errors.New("end of an input")

// Options say how input files are written.
type Options struct {
	format    string
	encoding  string
	separator string
	skipLines int
	names     []string
}

// Files reads the records of input files one after the other.
type Files struct {
	Options load.Options
	Schema  *schema.Schema
	Names   []string  // of those that were not opened
	In      io.Reader // the standard input
	// Progress shows how much of so many bytes was read.
	Progress func(what string, bytes int64) *progress.Line

	reader *load.Reader // nil: none is open
	read   int          // records and faults
	mutex  sync.Mutex   // bar is cleared by others
	bar    *progress.Line
}

// Next reads the next record of all. It may be called again after ErrEnd, and after errors of Skippable.
func (in *Files) Next(ctx context.Context, rec *schema.Record) error {
	if in.reader == nil {
		if len(in.Names) == 0 {
			return io.EOF
		}
		if err := in.open(); err != nil {
			return err
		}
	}
	if in.read++; in.read%4096 == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		in.bar.Set(in.reader.BytesRead(), int64(in.read))
	}
	err := in.reader.Next(rec)
	if !errors.Is(err, io.EOF) {
		return err
	}
	in.bar.Set(in.reader.BytesRead(), int64(in.read))
	if err := in.Close(); err != nil {
		return err
	}
	return ErrEnd
}

// open opens the next input.
func (in *Files) open() (err error) {
	name := in.Names[0]
	in.Names = in.Names[1:]
	if name == Standard {
		name = StandardName
		in.reader, err = load.NewReader(in.In, name, in.Schema, in.Options)
	} else {
		in.reader, err = load.Open(name, in.Schema, in.Options)
	}
	if err != nil {
		in.reader = nil
		return err
	}
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.bar = in.Progress("reading "+name, in.reader.Size())
	return nil
}

// Read is how many bytes were read of the input that is open.
func (in *Files) Read() int64 {
	if in.reader == nil {
		return 0
	}
	return in.reader.BytesRead()
}

// Clear makes room for a line where the progress is shown.
func (in *Files) Clear() {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	if in.bar != nil {
		in.bar.Clear()
	}
}

// Close closes the input that is open.
func (in *Files) Close() error {
	if in.reader == nil {
		return nil
	}
	in.bar.Finish()
	err := in.reader.Close()
	in.reader = nil
	return err
}

// Skippable says that an error of reading concerns one record.
func Skippable(err error) bool { return errors.As(err, new(*load.BadRecord)) }

// Flags adds the flags that say how files are written.
func (o *Options) Flags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&o.format, "format", "", "csv, tsv, jsonl, text, npy, fvecs, bvecs or parquet (default: by the extension of the input)")
	set.StringVar(&o.encoding, "encoding", "", "characters of the input, such as utf-8, latin1, windows-1252 or shift_jis (default: the schema's, else utf-8)")
	set.StringVar(&o.separator, "separator", "", "`character` between the fields of csv (default: the schema's, else a comma)")
	set.IntVar(&o.skipLines, "skip-lines", 0, "`lines` that stand before the records and their header")
	set.StringSliceVar(&o.names, "names", nil, "`a,b,c`: names of the columns of csv or tsv without a header, where the schema is guessed")
}

// Guessing are those of guessing a schema for a file, by the flags; name is that of the index, "" by the name of the file.
func (o *Options) Guessing(name string) (guess.Options, error) {
	reading, err := o.Reading()
	return guess.Options{Options: reading, Name: name, Names: o.names}, err
}

// CheckSchema finds what the flags say beside a schema that says it already; "" is none.
func (o *Options) CheckSchema(schema string) error {
	if schema != "" && len(o.names) > 0 {
		return errors.New("--names is for a schema that is guessed, and with --schema the columns are named there: leave one out")
	}
	return nil
}

// Reading are those of files, by the flags.
func (o *Options) Reading() (load.Options, error) {
	options := load.Options{Format: load.Format(o.format), Encoding: o.encoding, SkipLines: o.skipLines}
	var err error
	if options.Comma, err = o.comma(); err != nil {
		return options, err
	}
	return options, options.Validate()
}

// comma is what separates fields, 0 where no flag says so.
func (o *Options) comma() (rune, error) {
	if o.separator == "" {
		return 0, nil
	}
	separator, size := utf8.DecodeRuneInString(o.separator)
	if size != len(o.separator) {
		return 0, fmt.Errorf("--separator %q must be one character", o.separator)
	}
	return separator, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
)

// standardInput is the standard input where a file can be named.
const standardInput = "-"

// skipReports bounds how many skipped records are reported one by one.
const skipReports = 10

type buildOptions struct {
	schema, output string
	inputs         []string
	format         string
	encoding       string
	separator      string
	skipBad        bool
	quiet          bool
}

func (c *cli) buildCommand() *cobra.Command {
	var opts buildOptions
	cmd := &cobra.Command{
		Use:   "build --schema FILE --input FILE... --output FILE",
		Short: "Build an index from data files",
		Long: `Build reads the records of the input files, in order, and writes one index file. The
schema, a YAML file, says what the columns are. Object ids are positions in the
input: the first record has id 0. Each input may be compressed with gzip; - is the
standard input, and needs --format.

  schema: name, kind (rows, documents, sequences), columns; key, header, missing;
          ngram (sequences); words, stop_words (documents)
  column: name, type (number, category, text, payload, skip); buckets, edges
          (equal-width, equi-depth, exact); split; layout (auto, postings, sliced,
          rare); store

The output appears under its name only when it is complete; an existing file is
replaced, and servers that use it go on with the old one until they restart.`,
		Example: `  # a table: most conditions matched
  cat > adult.yaml <<EOF
  name: adult
  kind: rows
  header: false
  missing: ["", "?"]
  columns:
    - {name: age, type: number}
    - {name: workclass, type: category}
  EOF
  geniemq build --schema adult.yaml --input adult.data.csv --output adult.gmq

  # a word list, one word per line: typo-tolerant lookup
  printf 'name: words\nkind: sequences\n' > words.yaml
  geniemq build --schema words.yaml --input words.txt.gz --output words.gmq

  # several files that are not UTF-8, leaving out records that cannot be read
  geniemq build --schema s.yaml --input a.csv --input b.csv --encoding latin1 --skip-bad --output both.gmq`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			var missing []error
			for _, f := range []struct {
				name  string
				empty bool
			}{{"schema", opts.schema == ""}, {"input", len(opts.inputs) == 0}, {"output", opts.output == ""}} {
				if f.empty {
					missing = append(missing, fmt.Errorf("--%s is missing", f.name))
				}
			}
			if len(missing) > 0 {
				return usageError{errors.Join(missing...)}
			}
			return c.build(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.schema, "schema", "", "schema `file` (YAML)")
	flags.StringArrayVar(&opts.inputs, "input", nil, "input `file`, - is the standard input; repeat for more")
	flags.StringVar(&opts.output, "output", "", "index `file` to write")
	flags.StringVar(&opts.format, "format", "", "csv, tsv, jsonl or text (default: by the extension of the input)")
	flags.StringVar(&opts.encoding, "encoding", "utf-8", "characters of the input: utf-8, latin1 or windows-1252")
	flags.StringVar(&opts.separator, "separator", ",", "`character` between the fields of csv")
	flags.BoolVar(&opts.skipBad, "skip-bad", false, "leave out records that cannot be used, and count them")
	flags.BoolVar(&opts.quiet, "quiet", false, "no progress and no summary")
	return cmd
}

// buildSummary is what a build did, for the line at its end.
type buildSummary struct {
	records, skipped int64
	took             time.Duration
}

func (c *cli) build(ctx context.Context, opts buildOptions) error {
	start := time.Now()
	options, err := opts.reading()
	if err != nil {
		return usageError{err}
	}
	// Reading can take long: what can be known to fail is found first.
	if err := checkOutput(opts.output); err != nil {
		return fmt.Errorf("--output %s: %w", opts.output, err)
	}
	for _, input := range opts.inputs {
		if _, err := os.Stat(input); input != standardInput && err != nil {
			return fmt.Errorf("--input %s: %w", input, err)
		}
	}
	spec, err := index.Builtin().LoadSchema(opts.schema)
	if err != nil {
		return err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return err
	}
	options.Columns = load.NewColumns(spec)
	var summary buildSummary
	for _, input := range opts.inputs {
		var reader *load.Reader
		if input == standardInput {
			input = "standard input"
			reader, err = load.NewReader(c.in, input, spec, options)
		} else {
			reader, err = load.Open(input, spec, options)
		}
		if err != nil {
			return err
		}
		err = c.addRecords(ctx, reader, input, objects, opts, &summary)
		if err := errors.Join(err, reader.Close()); err != nil {
			return err
		}
	}

	if summary.records == 0 {
		fmt.Fprintln(c.err, "warning: the input has no records, so the index has no objects and no query finds anything")
	} else {
		for _, warning := range options.Columns.Warnings() {
			fmt.Fprintln(c.err, "warning: "+warning)
		}
	}
	bar := c.progress("writing", 0, opts.quiet)
	err = objects.WriteFile(ctx, opts.output, func(done, total int64) {
		bar.ChangeMax64(max(total, 1))
		bar.Set64(done)
	})
	bar.Finish()
	if err != nil {
		return err
	}
	summary.took = time.Since(start)
	if !opts.quiet {
		return c.reportBuild(opts.output, summary)
	}
	return nil
}

// reading is how the inputs are read. Its error is wrong usage: it has looked at no file.
func (o *buildOptions) reading() (load.Options, error) {
	separator, size := utf8.DecodeRuneInString(o.separator)
	if size == 0 || size != len(o.separator) {
		return load.Options{}, fmt.Errorf("--separator %q must be one character", o.separator)
	}
	options := load.Options{Format: load.Format(o.format), Encoding: o.encoding, Comma: separator}
	faults := []error{options.Validate()}
	standard := 0
	for _, input := range o.inputs {
		if input == standardInput {
			standard++
		} else if options.Format == load.Auto {
			_, err := load.FormatOf(input)
			faults = append(faults, err)
		}
	}
	if standard > 0 && options.Format == load.Auto {
		faults = append(faults, errors.New("--input - has no name that tells its format: add --format"))
	}
	if standard > 1 {
		faults = append(faults, errors.New("--input - can be given once"))
	}
	return options, errors.Join(faults...)
}

// checkOutput reports that a file cannot be written at path, by making one beside it, as writing the index will.
func checkOutput(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("is a directory, not a file")
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".geniemq-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// addRecords adds the records of one input.
func (c *cli) addRecords(ctx context.Context, reader *load.Reader, input string, objects *index.Objects, opts buildOptions, summary *buildSummary) error {
	bar := c.progress("reading "+input, reader.Size(), opts.quiet)
	defer bar.Finish()
	var rec schema.Record
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			bar.Set64(reader.BytesRead())
		}
		err := reader.Next(&rec)
		if errors.Is(err, io.EOF) {
			bar.Set64(reader.BytesRead())
			return nil
		}
		var bad *load.BadRecord
		skippable := errors.As(err, &bad)
		if err == nil {
			var refused *index.RecordError
			if err = objects.Add(&rec); errors.As(err, &refused) {
				skippable = true
				err = fmt.Errorf("%s: %w", input, err)
			} else if err != nil {
				err = fmt.Errorf("%s: line %d: %w", input, rec.Line, err)
			}
		}
		switch {
		case err == nil:
			summary.records++
		case !skippable:
			return err
		case !opts.skipBad:
			return fmt.Errorf("%w\n--skip-bad leaves out such records", err)
		default:
			if summary.skipped++; summary.skipped <= skipReports {
				bar.Clear()
				fmt.Fprintf(c.err, "skipped: %v\n", err)
			}
		}
	}
}

func (c *cli) reportBuild(path string, summary buildSummary) error {
	x, err := index.Open(path)
	if err != nil {
		return err
	}
	defer x.Close()
	var postings uint64
	for _, a := range x.Attributes() {
		postings += a.Postings
	}
	if summary.skipped > skipReports {
		fmt.Fprintf(c.err, "skipped: %d more\n", summary.skipped-skipReports)
	}
	fmt.Fprintf(c.err, "%s: %s, %s, %s, version %s, in %.1f s",
		path, count(x.Objects(), "object"), count(postings, "posting"), human.Bytes(x.Size()), x.Version(), summary.took.Seconds())
	if summary.skipped > 0 {
		fmt.Fprintf(c.err, "; records skipped: %d", summary.skipped)
	}
	fmt.Fprintf(c.err, "\nServe it: geniemq serve --index %s=%s\n", x.Schema().Name, path)
	return nil
}

// progress is a bar on a terminal and nothing elsewhere. total is in bytes; not positive when unknown.
func (c *cli) progress(what string, total int64, quiet bool) *progressbar.ProgressBar {
	if total <= 0 {
		total = -1
	}
	var out io.Writer = io.Discard
	if !quiet && isTerminal(c.err) {
		out = os.Stderr
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
}

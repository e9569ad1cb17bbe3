package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/encode"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/service"
)

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
input: the first record has id 0. Each input may be compressed with gzip.

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

  # a word list, one word a line: typo-tolerant lookup
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
	flags.StringArrayVar(&opts.inputs, "input", nil, "input `file`; repeat for more")
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
	separator, size := utf8.DecodeRuneInString(opts.separator)
	if size == 0 || size != len(opts.separator) {
		return usagef("--separator %q must be one character", opts.separator)
	}
	schema, err := index.LoadSchema(opts.schema)
	if err != nil {
		return err
	}
	builder, err := index.NewBuilder(schema, encode.Attributes(schema), index.BuilderOptions{})
	if err != nil {
		return err
	}
	objects := encode.NewObjects(schema, builder)
	var summary buildSummary
	for _, input := range opts.inputs {
		reader, err := load.Open(input, schema, load.Options{
			Format: load.Format(opts.format), Encoding: opts.encoding, Comma: separator,
		})
		if err != nil {
			return err
		}
		err = c.addRecords(ctx, reader, input, objects, opts, &summary)
		if err := errors.Join(err, reader.Close()); err != nil {
			return err
		}
	}

	bar := c.progress("writing", 0, opts.quiet)
	err = builder.WriteFile(ctx, opts.output, func(done, total int64) {
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

// addRecords adds the records of one input.
func (c *cli) addRecords(ctx context.Context, reader *load.Reader, input string, objects *encode.Objects, opts buildOptions, summary *buildSummary) error {
	bar := c.progress("reading "+input, reader.Size(), opts.quiet)
	defer bar.Finish()
	var rec index.Record
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			bar.Set64(reader.BytesRead())
		}
		err := reader.Next(&rec)
		if err == io.EOF {
			bar.Set64(reader.BytesRead())
			return nil
		}
		var bad *load.BadRecord
		skippable := errors.As(err, &bad)
		if err == nil {
			var refused *encode.RecordError
			if err = objects.Add(&rec); errors.As(err, &refused) {
				skippable = true
				err = fmt.Errorf("%s: %w", input, err)
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
	fmt.Fprintf(c.err, "%s: %d objects, %d postings, %s, version %s, in %.1f s",
		path, x.Objects(), postings, service.FormatBytes(x.Size()), x.Version(), summary.took.Seconds())
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

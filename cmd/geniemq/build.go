package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/filled"
	"github.com/geniemq/geniemq/cmd/geniemq/inputs"
	"github.com/geniemq/geniemq/cmd/geniemq/progress"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filling"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
)

// skipReports bounds how many skipped records are reported one by one.
const skipReports = 10

type buildOptions struct {
	schema, output string
	inputs         []string
	inputs.Options
	engine  string
	maxBad  string
	report  string
	share   float64 // of maxBad
	skipBad bool
	quiet   bool
}

func (c *cli) buildCommand() *cobra.Command {
	var opts buildOptions
	cmd := &cobra.Command{
		Use:   "build [--schema FILE] [--output FILE] FILE...",
		Short: "Build an index from data files",
		Long: `Build reads the records of the input files, in order, and writes one index file. The
schema, a YAML file, says what the columns are; without one it is guessed from the
first input, as by geniemq init, and printed. Object ids are positions in the input:
the first record has id 0. Each input may be compressed with gzip or zstd; - is the
standard input, and needs --schema and --format.

  schema: name, kind (none, rows, documents, sequences, sets, vectors, points),
          columns; key, header, missing, input; ngram (sequences); words, stop_words
          (documents); rescore
  column: name, type (number, date, category, bool, text, string, set, vector, point,
          tree, graph, payload, skip); parse; invalid (missing, error); buckets,
          edges (equal-width, equi-depth, exact); split; fold; stop_words, ngrams;
          ngram; idf, idf_scale; layout (auto, postings, sliced, rare); store

A cell that its column cannot take counts as missing, and the report at the end says
how many there were; --max-bad 1% fails the build where they are more. With invalid:
error such a cell is a fault of its record, which ends the build or, with --skip-bad,
leaves the record out.

The output appears under its name only when it is complete; an existing file is
replaced, and servers that use it go on with the old one until they are told to
take the new one (geniemq swap, SIGHUP), see it (serve --watch) or restart.`,
		Example: `  # a table that nobody has described
  geniemq build products.csv

  # a table: most conditions matched
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			if opts.inputs = append(opts.inputs, args...); len(opts.inputs) == 0 {
				return usagef("no input: name at least one file, as in: geniemq build data.csv")
			}
			return c.build(cmd.Context(), opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.schema, "schema", "", "schema `file` (YAML; default: guessed from the first input)")
	flags.StringArrayVar(&opts.inputs, "input", nil, "input `file`, - is the standard input; repeat for more")
	flags.StringVar(&opts.output, "output", "", "index `file` to write (default: the name of the index, with .gmq)")
	opts.Flags(cmd)
	flags.StringVar(&opts.engine, "engine", gpuexec.CPU, "what hashes vectors, puts them into cells and measures recall: cpu, cuda or auto (cuda where there is a device); the file is the same")
	flags.BoolVar(&opts.skipBad, "skip-bad", false, "leave out records that cannot be used, and count them")
	flags.StringVar(&opts.maxBad, "max-bad", "100%", "`share` of a column's cells that may be invalid: more fail the build")
	flags.StringVar(&opts.report, "report", "", "table or json: what became of the columns, on the standard error or output (default: table)")
	flags.BoolVar(&opts.quiet, "quiet", false, "no progress and no summary")
	return cmd
}

// buildSummary is what a build did, for the line at its end.
type buildSummary struct {
	records, skipped int64
	took             time.Duration
	share            float64 // of a column's cells that may be invalid
	warnings         []string
}

func (c *cli) build(ctx context.Context, opts buildOptions) (err error) {
	start := time.Now()
	if err := opts.check(); err != nil {
		return usageError{err}
	}
	spec, err := c.described(&opts)
	if err != nil {
		return err
	}
	options, err := opts.reading(spec)
	if err != nil {
		return usageError{err}
	}
	// Reading can take long: what can be known to fail is found first.
	if err := opts.checkFiles(); err != nil {
		return err
	}
	engine, err := open.Engine(opts.engine, gpuexec.Options{})
	if err != nil {
		return fmt.Errorf("--engine %s: %w", opts.engine, err)
	}
	defer func() { err = c.freed(err, engine.Close()) }()
	options.Columns = load.NewColumns(spec)
	in := &inputs.Files{Options: options, Schema: spec, Names: opts.inputs, In: c.in, Progress: func(what string, bytes int64) *progress.Line {
		return progress.New(c.err, isTerminal(c.err) && !opts.quiet, what, progress.Options{Total: bytes, Bytes: true})
	}}
	defer in.Close()
	next, err := learn(ctx, in)
	if err != nil {
		return err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return err
	}
	if by, ok := engine.(lsh.Engine); ok {
		release, err := objects.HashBy(by)
		if err != nil {
			return err
		}
		defer func() { err = c.freed(err, release()) }() // before the engine is closed
	}
	summary := buildSummary{share: opts.share}
	var notes []string
	if by, ok := engine.(metric.Engine); ok {
		objects.FindBy(by, func(note string) { notes = append(notes, note) })
	}
	if err := c.addInputs(ctx, next, in, objects, opts, &summary); err != nil {
		return err
	}
	bar := progress.New(c.err, isTerminal(c.err) && !opts.quiet, "writing", progress.Options{Bytes: true})
	err = objects.WriteFile(ctx, opts.output, func(done, total int64) {
		bar.Total(total)
		bar.Set(done, 0)
	})
	bar.Finish()
	for _, note := range notes {
		table.On(c.err).Say("note: %s\n", note)
	}
	summary.warnings = append(summary.warnings, notes...)
	if summary.took = time.Since(start); err != nil || opts.quiet {
		return err
	}
	return c.reportBuild(&opts, summary, objects.Fillings())
}

// learn learns from inputs what their schema leaves open, and returns what gives their records.
func learn(ctx context.Context, in *inputs.Files) (next func(*schema.Record) error, err error) {
	next, err = index.Builtin().Learn(in.Schema, func(rec *schema.Record) error { return in.Next(ctx, rec) }, func(err error) bool {
		return inputs.Skippable(err) || errors.Is(err, inputs.ErrEnd)
	})
	if absent := (*index.NoValueError)(nil); errors.As(err, &absent) {
		if instead := in.Options.Columns.Instead(absent.Column); instead != "" { // more is known than that there is no value
			err = fmt.Errorf("column %q had no value in the records that were read%s", absent.Column, instead)
		}
	}
	return next, err
}

// freed is the error of a build, told of what went wrong when its device was freed: a file that is complete stays so though the device was lost, which the cores made up for.
func (c *cli) freed(err, fault error) error {
	if err == nil && fault != nil {
		table.On(c.err).Say("note: %s\n", fault.Error())
		return nil
	}
	return errors.Join(err, fault)
}

// addInputs adds the records of all inputs.
func (c *cli) addInputs(ctx context.Context, next func(*schema.Record) error, in *inputs.Files, objects *index.Objects, opts buildOptions, summary *buildSummary) error {
	for _, input := range opts.inputs {
		if input == inputs.Standard {
			input = inputs.StandardName
		}
		if err := c.addRecords(ctx, next, in, input, objects, opts, summary); err != nil {
			return err
		}
	}

	if fault := filled.TooManyInvalid(objects.Fillings(), summary.share); fault != "" {
		return fmt.Errorf("%s\nmore than --max-bad %s: say in the schema how it is written (parse), or of which type it is", fault, opts.maxBad)
	}
	if summary.warnings = append(in.Options.Columns.Warnings(), filled.Unusable(in.Schema, objects.Fillings())...); summary.records == 0 {
		summary.warnings = []string{"the input has no records, so the index has no objects and no query finds anything"}
	}
	for _, warning := range summary.warnings {
		table.On(c.err).Say("warning: %s\n", warning)
	}
	return nil
}

// described is the schema that is given, or guessed.
func (c *cli) described(opts *buildOptions) (*schema.Schema, error) {
	var spec *schema.Schema
	var err error
	if opts.schema != "" {
		spec, err = index.Builtin().LoadSchema(opts.schema)
	} else {
		var proposed []byte
		if spec, proposed, err = opts.propose(""); err == nil && !opts.quiet {
			fmt.Fprintf(c.err, "%s\n", proposed)
		}
	}
	if err == nil && opts.output == "" {
		opts.output = spec.Name + ".gmq"
	}
	return spec, err
}

// check finds wrong usage that can be seen before any file is looked at, and reads the share of --max-bad.
func (o *buildOptions) check() error {
	_, err := o.Reading()
	faults := []error{err, o.CheckSchema(o.schema)}
	if kinds := []string{gpuexec.CPU, gpuexec.CUDA, gpuexec.Auto}; !slices.Contains(kinds, o.engine) {
		faults = append(faults, fmt.Errorf("--engine %q is unknown: use one of %s", o.engine, schema.List(kinds)))
	}
	text, percent := strings.CutSuffix(o.maxBad, "%")
	if o.share, err = strconv.ParseFloat(strings.TrimSpace(text), 64); percent {
		o.share /= 100
	}
	if err != nil || !(o.share >= 0 && o.share <= 1) {
		faults = append(faults, fmt.Errorf("--max-bad %q must be a share, such as 1%% or 0.01", o.maxBad))
	}
	if reports := []string{"", "table", "json"}; !slices.Contains(reports, o.report) {
		faults = append(faults, fmt.Errorf("--report %q is unknown: use table or json", o.report))
	}
	if o.schema == "" && slices.Contains(o.inputs, inputs.Standard) {
		faults = append(faults, errors.New("--input - is read once, so no schema can be guessed from it: add --schema"))
	}
	return errors.Join(faults...)
}

// reading is how the inputs are read. Its error is wrong usage: it has looked at no file.
func (o *buildOptions) reading(s *schema.Schema) (load.Options, error) {
	options, err := o.Reading()
	options = options.For(s)
	options.Workers = runtime.GOMAXPROCS(0)
	faults := []error{err, options.Validate()}
	standard := 0
	for _, input := range o.inputs {
		if input == inputs.Standard {
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

// checkFiles says which files cannot be read or written.
func (o *buildOptions) checkFiles() error {
	if err := checkOutput(o.output); err != nil {
		return fmt.Errorf("--output %s: %w", o.output, err)
	}
	for _, input := range o.inputs {
		if _, err := os.Stat(input); input != inputs.Standard && err != nil {
			if about, ok := errors.AsType[*os.PathError](err); ok {
				err = about.Err // the path is in the message already
			}
			return fmt.Errorf("--input %s: %w", input, err)
		}
	}
	return nil
}

// checkOutput reports that a file cannot be written at path, by making one beside it, as writing the index will.
func checkOutput(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("is a directory, not a file")
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".geniemq-*")
	if about, ok := errors.AsType[*os.PathError](err); ok { // whose path says nothing to people
		return fmt.Errorf("cannot write to the folder %s: %w", filepath.Dir(path), about.Err)
	} else if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// addRecords adds the records of one input, by next, which gives inputEnd after them.
func (c *cli) addRecords(ctx context.Context, next func(*schema.Record) error, in *inputs.Files, input string, objects *index.Objects, opts buildOptions, summary *buildSummary) error {
	before := objects.Objects()
	defer func() { summary.records += int64(objects.Objects() - before) }()
	return objects.AddAll(ctx, index.Source{
		Name: input,
		Next: func(rec *schema.Record) error {
			err := next(rec)
			if errors.Is(err, inputs.ErrEnd) {
				err = io.EOF
			}
			return err
		},
		Skippable: inputs.Skippable,
		Bad: func(err error) error {
			if refused := (*index.RecordError)(nil); errors.As(err, &refused) {
				err = fmt.Errorf("%s: %w", input, err)
			}
			if !opts.skipBad {
				return fmt.Errorf("%w\n--skip-bad leaves out such records", err)
			}
			if summary.skipped++; summary.skipped <= skipReports {
				in.Clear()
				table.On(c.err).Say("skipped: %s\n", err.Error())
			}
			return nil
		},
	})
}

// reportBuild says what became of the input.
func (c *cli) reportBuild(opts *buildOptions, summary buildSummary, fillings filling.Columns) error {
	x, err := index.Open(opts.output)
	if err != nil {
		return err
	}
	defer x.Close()
	var postings uint64
	for _, a := range x.Attributes() {
		postings += a.Postings
	}
	report := filled.Of(x, fillings)
	report.File, report.Skipped, report.Seconds, report.Warnings = opts.output, summary.skipped, summary.took.Seconds(), append(summary.warnings, report.Missed...)
	if opts.report == "json" {
		return table.On(c.out).JSON(report, "  ")
	}
	if summary.skipped > skipReports {
		fmt.Fprintf(c.err, "skipped: %d more\n", summary.skipped-skipReports)
	}
	skipped := ""
	if summary.skipped > 0 {
		skipped = fmt.Sprintf("; records skipped: %d", summary.skipped)
	}
	page := table.On(c.err)
	report.Table(page)
	page.Say("%s: %s, %s, %s, version %s, in %.1f s%s\n",
		opts.output, human.Count(x.Objects(), "object"), human.Count(postings, "posting"), human.Bytes(x.Size()), x.Version(), summary.took.Seconds(), skipped)
	page.Copy(fmt.Sprintf("Serve it: geniemq serve --index %s=%s", x.Schema().Name, opts.output))
	return nil
}

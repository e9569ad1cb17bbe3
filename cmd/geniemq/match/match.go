// Package match finds which rows of a file are the same as objects of an index, or as each other: the commands match and dedupe.
package match

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/service/config"
)

// Host is what the commands have of the program that they are part of.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // a person looks at Err
	// Environment sets the flags named, which the command line left alone, from the environment; Warn tells of secrets on the command line; Usage
	// marks an error as wrong usage.
	Environment func(cmd *cobra.Command, names ...string) error
	Warn        func(cmd *cobra.Command)
	Usage       func(error) error
}

// Match is the command match.
func (h *Host) Match() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "match --index NAME[=FILE] --input FILE [flags]",
		Short: "Find the rows of a file in an index",
		Long: `Match looks for each row of a file in an index, and writes the pairs that are alike: the
row, the object, their rank and a score from 0 to 1. It compares columns of the same
name, or those of --map. Of text columns the first finds candidates, and weighs 4 in the
score; the others are compared by what the index has stored of them, and weigh 1. Vectors
and points find candidates where there are no texts, or by --by: then the nearest ones,
and each pair has its distance. --max-distance says how far apart pairs may be.

  --index NAME=FILE   this command serves the file itself
  --index NAME        a worker serves it, at --nats

With --output the command can be killed, or run into an error, and when it is given again
it goes on where it was: the file appears when it is complete, and is the same. Without,
pairs go to the standard output as they are found.

With --gold, a CSV file with the keys of the right pairs, it tells precision, recall and
F1 for each threshold from --min on, as a table and a plot.`,
		Example: `  geniemq build amazon.csv
  geniemq match --index amazon=amazon.gmq --input walmart.csv --map title=name --k 5 --min 0.6 --output pairs.csv
  geniemq match --index dblp=dblp.gmq --input acm.csv --one-to-one --gold gold.csv --min 0.3 --plot f1.svg --output pairs.csv
  geniemq match --index cities=cities.gmq --input shops.csv --by where --max-distance 500
  geniemq match --index products --nats nats://broker:4222 --input new.jsonl --unmatched --to jsonl`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&o.index, "index", "", "`name` of the index, or name=file")
	cmd.Flags().StringVar(&o.input, "input", "", "`file` with rows, - is the standard input")
	cmd.Flags().StringArrayVar(&o.pairs, "map", nil, "`index=input`: columns that mean the same; repeat for more (default: those of the same name)")
	cmd.Flags().BoolVar(&o.unmatched, "unmatched", false, "also write the rows without a pair")
	return h.command(cmd, o)
}

// Dedupe is the command dedupe.
func (h *Host) Dedupe() *cobra.Command {
	o := &options{within: true}
	cmd := &cobra.Command{
		Use:   "dedupe FILE [flags]",
		Short: "Find the rows of a file that are nearly the same",
		Long: `Dedupe compares the rows of a file with each other, and writes the pairs that are alike,
each once: both rows and a score from 0 to 1. It guesses a schema, as geniemq init does,
or takes that of --schema, builds an index that it removes when it ends, and asks it for
each row. All columns are compared but the key and those that are stored or skipped only.

Vectors and points are compared by distance, as geniemq match does; --max-distance says
how far apart pairs may be.

With --clusters it writes each row once, with the number of its cluster: rows are in one
where pairs lead from one to the other. With --index the index is that of a worker, which
must have been built of the same file.

It goes on where it was killed as geniemq match does.`,
		Example: `  geniemq dedupe products.csv --min 0.8 --output duplicates.csv
  geniemq dedupe people.csv --schema people.yaml --clusters --to jsonl
  geniemq dedupe stations.csv --by where --max-distance 50
  geniemq dedupe people.csv --index people --nats nats://broker:4222 --output duplicates.csv`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringVar(&o.index, "index", "", "`name` of an index of the file, which a worker serves (default: one is built)")
	cmd.Flags().BoolVar(&o.clusters, "clusters", false, "write rows and their clusters, not pairs")
	return h.command(cmd, o)
}

// command adds what both have.
func (h *Host) command(cmd *cobra.Command, o *options) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h.Warn(cmd)
		o.elsewhere = cmd.Flags().Changed("nats") || cmd.Flags().Changed("context") // the environment's is a place and no wish
		if err := h.Environment(cmd, settings()...); err != nil {
			return err
		}
		if len(args) == 1 && o.input == "" {
			o.input, args = args[0], nil
		}
		if len(args) > 0 {
			return h.Usage(errors.New("one input: it is given twice"))
		}
		if o.input == "" {
			return h.Usage(errors.New("no input: name a file"))
		}
		if name, file, ok := strings.Cut(o.index, "="); ok && !o.within {
			o.index, o.file = name, file
		} else if strings.HasSuffix(o.index, ".gmq") {
			return h.Usage(fmt.Errorf("--index %s: give a file a name, as in --index %s=%s", o.index, strings.TrimSuffix(filepath.Base(o.index), ".gmq"), o.index))
		}
		o.minSaid = cmd.Flags().Changed("min")
		if err := o.check(cmd.Flags()); err != nil {
			return h.Usage(config.WithoutSecrets(err))
		}
		return (&runner{options: o, host: h}).run(cmd.Context())
	}
	o.flags(cmd)
	return cmd
}

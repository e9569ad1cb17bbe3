package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/guess"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
)

func (c *cli) initCommand() *cobra.Command {
	var opts buildOptions
	var name string
	cmd := &cobra.Command{
		Use:   "init FILE",
		Short: "Propose a schema for a data file",
		Long: `Init looks at the beginning of a data file and prints a schema for it, with a comment
on each column: what speaks for the guess, and what is unsure. It finds the encoding,
what separates fields, lines that stand before the header, the header, texts that mean
"no value", how numbers and dates are written, lists, vectors, places, and a key. A key
is proposed only if no value of it is empty or comes twice in the whole file. A file
without a header gets its columns' names by --names.`,
		Example: `  geniemq init products.csv > products.yaml
  geniemq init --names age,sex,state people.csv   # a file without a header
  geniemq build --schema products.yaml --input products.csv --output products.gmq`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.inputs = args
			_, proposed, err := opts.propose(name)
			if err != nil {
				return err
			}
			_, err = c.out.Write(proposed)
			return err
		},
	}
	opts.Flags(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the index (default: by the name of the file)")
	return cmd
}

// propose guesses the schema of the first input.
func (o *buildOptions) propose(name string) (*schema.Schema, []byte, error) {
	options, err := o.Guessing(name)
	if err != nil {
		return nil, nil, usageError{err}
	}
	g, err := guess.File(o.inputs[0], options)
	if err != nil {
		return nil, nil, err
	}
	proposed, err := g.YAML()
	if err != nil {
		return nil, nil, err
	}
	proposed = append([]byte(fmt.Sprintf("# Proposed for %s, by its first %s. Look at what is unsure.\n", o.inputs[0], human.Count(g.Records, "record"))), proposed...)
	s, err := index.Builtin().ParseSchema(proposed)
	if err != nil {
		return nil, nil, fmt.Errorf("no schema could be guessed for %s: write one (geniemq build --help): %w", o.inputs[0], err)
	}
	return s, proposed, nil
}

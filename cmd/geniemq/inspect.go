package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/human"
)

func (c *cli) inspectCommand() *cobra.Command {
	var verify, asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is in an index file",
		Long: `Inspect shows the sizes of an index file, its attributes, how long their postings
lists are, where the bytes go, and what it would take of a GPU's memory in each
of its forms. With --verify it also reads every byte: the
checksum of each section, and that each posting is in range and in order.`,
		Example: `  geniemq inspect adult.gmq
  geniemq inspect --verify adult.gmq          exit code 1 when the file is damaged
  geniemq inspect --json adult.gmq | jq '.attributes[] | {name, bits_per_posting}'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			x, err := index.Open(args[0])
			if err != nil {
				return err
			}
			report, err := inspect(cmd.Context(), x, args[0])
			if err != nil {
				return errors.Join(err, x.Close())
			}
			var fault error
			if verify {
				fault = x.Validate()
				intact := fault == nil
				report.Verified = &intact
			}
			if asJSON || !isTerminal(c.out) && !cmd.Flags().Changed("json") {
				encoder := json.NewEncoder(c.out)
				encoder.SetIndent("", "  ")
				err = encoder.Encode(report)
			} else {
				err = report.table(c.out)
			}
			return errors.Join(fault, err, x.Close())
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "check every section's checksum and every posting")
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON (default when the output is no terminal; --json=false for a table)")
	return cmd
}

// inspection is what inspect tells of an index.
type inspection struct {
	File       string                `json:"file"`
	Version    string                `json:"version"`
	Bytes      int64                 `json:"bytes"`
	Name       string                `json:"name"`
	Kind       schema.Kind           `json:"kind"`
	Objects    uint32                `json:"objects"`
	Tiles      int                   `json:"tiles"`
	Postings   uint64                `json:"postings"`
	Attributes []attributeInspection `json:"attributes"`
	Sections   []sectionInspection   `json:"sections"`
	GPUMemory  []formInspection      `json:"gpu_memory"`
	// Verified is absent unless the file was verified.
	Verified *bool `json:"verified,omitempty"`
}

type attributeInspection struct {
	Name         string `json:"name"`
	Type         string `json:"type"`
	Layout       string `json:"layout"`
	Keywords     uint32 `json:"keywords"`
	Objects      uint64 `json:"objects"` // with at least one keyword here
	MaxPerObject uint32 `json:"max_per_object"`
	Postings     uint64 `json:"postings"`
	// BitsPerPosting counts the postings and the directory that finds them.
	BitsPerPosting  float64 `json:"bits_per_posting"`
	PostingsBytes   int64   `json:"postings_bytes"`
	DirectoryBytes  int64   `json:"directory_bytes"`
	VocabularyBytes int64   `json:"vocabulary_bytes"`
	// How many postings a keyword has.
	MedianList  uint64 `json:"median_list"`
	P99List     uint64 `json:"p99_list"`
	MaxList     uint64 `json:"max_list"`
	LongestList string `json:"longest_list"` // the keyword with the most
}

type sectionInspection struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// formInspection is a form of the index on a GPU that has room for all of them.
type formInspection struct {
	Form   string `json:"form"`
	Bytes  int64  `json:"bytes"`
	Needed bool   `json:"needed"` // else it makes queries faster, and is left out where there is no room
}

func inspect(ctx context.Context, x *index.Index, file string) (inspection, error) {
	r := inspection{
		File: file, Version: x.Version(), Bytes: x.Size(), Name: x.Schema().Name, Kind: x.Schema().Kind,
		Objects: x.Objects(), Tiles: x.Tiles(),
	}
	place := make(map[store.SectionKind]int)
	for _, s := range x.Sections() {
		i, ok := place[s.Kind]
		if !ok {
			i = len(r.Sections)
			place[s.Kind] = i
			r.Sections = append(r.Sections, sectionInspection{Kind: s.Name})
		}
		r.Sections[i].Count++
		r.Sections[i].Bytes += s.Length
	}
	for i, a := range x.Attributes() {
		lists := x.ListStatistics(i)
		at := attributeInspection{
			Name: a.Name, Type: typeName(a), Layout: a.Layout.String(), Keywords: a.Keywords, Objects: a.Objects, MaxPerObject: a.MaxPerObject,
			Postings: a.Postings, PostingsBytes: lists.PostingsBytes, DirectoryBytes: lists.DirectoryBytes,
			VocabularyBytes: lists.VocabularyBytes, MedianList: lists.Median, P99List: lists.P99, MaxList: lists.Max,
		}
		if a.Postings > 0 {
			at.BitsPerPosting = 8 * float64(lists.PostingsBytes+lists.DirectoryBytes) / float64(a.Postings)
			at.LongestList = readable(x.KeywordName(i, lists.Longest))
		}
		r.Postings += a.Postings
		r.Attributes = append(r.Attributes, at)
	}
	var texts verify.Texts
	if x.Schema().Kind == schema.Sequences {
		texts = x
	}
	forms, err := open.Forms(ctx, x, texts)
	for _, f := range forms {
		r.GPUMemory = append(r.GPUMemory, formInspection{f.Form, f.Bytes, f.Needed})
	}
	return r, err
}

func typeName(a postings.Attribute) string {
	switch {
	case a.Type == schema.Number && a.Exact:
		return "number, exact"
	case a.Type == schema.Number:
		return "number"
	case a.Type == schema.Text:
		return "text"
	}
	return "ordinal"
}

func (r *inspection) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "file\t%s\n", r.File)
	fmt.Fprintf(w, "index\t%s (%s)\n", r.Name, r.Kind)
	fmt.Fprintf(w, "version\t%s\n", r.Version)
	fmt.Fprintf(w, "objects\t%d in %s\n", r.Objects, count(r.Tiles, "tile"))
	fmt.Fprintf(w, "postings\t%d\n", r.Postings)
	fmt.Fprintf(w, "size\t%s\n", human.Bytes(r.Bytes))
	if r.Verified != nil {
		state := "intact: every checksum and every posting"
		if !*r.Verified {
			state = "DAMAGED"
		}
		fmt.Fprintf(w, "verified\t%s\n", state)
	}
	if err := w.Flush(); err != nil {
		return err
	}

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "attribute\ttype\tlayout\tkeywords\tobjects\tpostings\tbits/posting\tmedian list\tp99\tlongest\tof\t")
	for _, a := range r.Attributes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2f\t%d\t%d\t%d\t%s\t\n", a.Name, a.Type, a.Layout, a.Keywords, a.Objects, a.Postings,
			a.BitsPerPosting, a.MedianList, a.P99List, a.MaxList, a.LongestList)
	}
	if err := w.Flush(); err != nil {
		return err
	}

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "section\tcount\tbytes\tshare\t")
	for _, s := range r.Sections {
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f %%\t\n", s.Kind, s.Count, human.Bytes(s.Bytes), 100*float64(s.Bytes)/float64(r.Bytes))
	}
	if err := w.Flush(); err != nil {
		return err
	}

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "on a GPU\ttakes\tneeded\t")
	for _, f := range r.GPUMemory {
		needed := "no"
		if f.Needed {
			needed = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", f.Form, human.Bytes(f.Bytes), needed)
	}
	return w.Flush()
}

// readable makes a keyword fit a cell: the n-grams of sequences hold characters that have no picture.
func readable(keyword string) string {
	const most = 32
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(keyword, "·"))
	if runes := []rune(clean); len(runes) > most {
		clean = string(runes[:most]) + "..."
	}
	return clean
}

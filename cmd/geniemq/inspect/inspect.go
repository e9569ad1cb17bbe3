// Package inspect tells what is in an index file.
package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/human"
)

// Report is what is told of an index file.
type Report struct {
	File       string                `json:"file"`
	Version    string                `json:"version"`
	Bytes      int64                 `json:"bytes"`
	Name       string                `json:"name"`
	Kind       string                `json:"kind"`
	Objects    uint32                `json:"objects"`
	Tiles      int                   `json:"tiles"`
	Postings   uint64                `json:"postings"`
	Attributes []attributeInspection `json:"attributes"`
	Distances  []distanceInspection  `json:"distances,omitempty"` // of columns that are searched by distance
	Sections   []sectionInspection   `json:"sections"`
	GPUMemory  []Form                `json:"gpu_memory"`
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

// Form is a form of the index on a GPU that has room for all of them.
type Form struct {
	Form   string `json:"form"`
	Bytes  int64  `json:"bytes"`
	Needed bool   `json:"needed"` // else it makes queries faster, and is left out where there is no room
}

// Of tells of an open index, whose file has a name.
func Of(ctx context.Context, x *index.Index, file string) (Report, error) {
	r := Report{
		File: file, Version: x.Version(), Bytes: x.Size(), Name: x.Schema().Name, Kind: x.Schema().Kind.String(),
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
	r.inspectAttributes(x)
	var err error
	if r.Distances, err = inspectDistances(x); err != nil {
		return r, err
	}
	var texts verify.Texts
	if x.Schema().Kind == schema.Sequences {
		texts = x
	}
	forms, err := open.Forms(ctx, x, texts)
	for _, f := range forms {
		r.GPUMemory = append(r.GPUMemory, Form{f.Form, f.Bytes, f.Needed})
	}
	return r, err
}

// inspectAttributes adds what is told of attributes.
func (r *Report) inspectAttributes(x *index.Index) {
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

// Table writes the report for people.
func (r *Report) Table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "file\t%s\n", r.File)
	fmt.Fprintf(w, "index\t%s (%s)\n", r.Name, r.Kind)
	fmt.Fprintf(w, "version\t%s\n", r.Version)
	fmt.Fprintf(w, "objects\t%d in %s\n", r.Objects, tiles(r.Tiles))
	fmt.Fprintf(w, "postings\t%d\n", r.Postings)
	fmt.Fprintf(w, "size\t%s\n", human.Bytes(r.Bytes))
	if r.Verified != nil {
		state := "intact: every checksum and every posting"
		if !*r.Verified {
			state = "DAMAGED"
		}
		fmt.Fprintf(w, "verified\t%s\n", state)
	}
	w.Flush()

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "attribute\ttype\tlayout\tkeywords\tobjects\tpostings\tbits/posting\tmedian list\tp99\tlongest\tof\t")
	for _, a := range r.Attributes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%.2f\t%d\t%d\t%d\t%s\t\n", a.Name, a.Type, a.Layout, a.Keywords, a.Objects, a.Postings,
			a.BitsPerPosting, a.MedianList, a.P99List, a.MaxList, a.LongestList)
	}
	w.Flush()
	r.distanceTable(out)

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "section\tcount\tbytes\tshare\t")
	for _, s := range r.Sections {
		fmt.Fprintf(w, "%s\t%d\t%s\t%.1f %%\t\n", s.Kind, s.Count, human.Bytes(s.Bytes), 100*float64(s.Bytes)/float64(r.Bytes))
	}
	w.Flush()

	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "on a GPU\ttakes\tneeded\t")
	for _, f := range r.GPUMemory {
		fmt.Fprintf(w, "%s\t%s\t%s\t\n", f.Form, human.Bytes(f.Bytes), map[bool]string{true: "yes", false: "no"}[f.Needed])
	}
	w.Flush()
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

// tiles is a number of tiles in words.
func tiles(n int) string {
	if n == 1 {
		return "1 tile"
	}
	return fmt.Sprintf("%d tiles", n)
}

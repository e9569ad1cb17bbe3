// Package inspect tells what is in an index file.
package inspect

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
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
	Hashes     []hashInspection      `json:"hashes,omitempty"`    // of columns of vectors that are counted by hash functions
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
	r.Hashes = inspectHashes(x)
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
			at.LongestList = table.Cut(table.Clean(x.KeywordName(i, lists.Longest)), 32)
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
func (r *Report) Table(p *table.Page) {
	p.Say("file      %s\n", r.File)
	p.Say("index     %s (%s)\n", r.Name, r.Kind)
	p.Say("version   %s\n", r.Version)
	p.Say("objects   %d in %s\n", r.Objects, human.Count(r.Tiles, "tile"))
	p.Say("postings  %d\n", r.Postings)
	p.Say("size      %s\n", human.Bytes(r.Bytes))
	if r.Verified != nil {
		state := "intact: every checksum and every posting"
		if !*r.Verified {
			state = "DAMAGED"
		}
		p.Say("verified  %s\n", state)
	}
	n := table.Number
	t := table.New(table.Text("attribute"), table.Text("type"), table.Text("layout"), n("keywords"), n("objects"), n("postings"), n("bits/posting"),
		n("median list"), n("p99"), n("longest"), table.Text("of"))
	for _, a := range r.Attributes {
		t.Row(a.Name, a.Type, a.Layout, a.Keywords, a.Objects, a.Postings, fmt.Sprintf("%.2f", a.BitsPerPosting), a.MedianList, a.P99List, a.MaxList, a.LongestList)
	}
	fmt.Fprintln(p)
	t.Print(p)
	r.distanceTable(p)
	r.hashTable(p)

	t = table.New(table.Text("section"), n("count"), n("bytes"), n("share"))
	for _, s := range r.Sections {
		t.Row(s.Kind, s.Count, human.Bytes(s.Bytes), fmt.Sprintf("%.1f %%", 100*float64(s.Bytes)/float64(r.Bytes)))
	}
	fmt.Fprintln(p)
	t.Print(p)

	t = table.New(table.Text("on a GPU"), n("takes"), table.Text("needed"))
	for _, f := range r.GPUMemory {
		t.Row(f.Form, human.Bytes(f.Bytes), map[bool]string{true: "yes", false: "no"}[f.Needed])
	}
	fmt.Fprintln(p)
	t.Print(p)
}

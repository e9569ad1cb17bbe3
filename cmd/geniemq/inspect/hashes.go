package inspect

import (
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/lsh"
)

// hashInspection is what inspect tells of a column of vectors that is counted by hash functions.
type hashInspection struct {
	Column     string  `json:"column"`
	Similarity string  `json:"similarity"`
	Dims       int     `json:"dims"`
	Functions  int     `json:"functions"`
	Buckets    int     `json:"buckets"`
	Width      float64 `json:"width,omitempty"`
	Reach      int     `json:"reach"`
	// Wanted is the recall that the schema asks for. Recalls are what was measured, with Queries vectors that were held out of all.
	Wanted  float64            `json:"recall_wanted,omitempty"`
	Queries uint32             `json:"recall_queries,omitempty"`
	Recalls []hashesInspection `json:"recall,omitempty"`
}

// hashesInspection is the share of the k nearest neighbours that is among the candidates, with its interval of 95 %.
type hashesInspection struct {
	K          uint32  `json:"k"`
	Candidates uint32  `json:"candidates"`
	Share      float64 `json:"recall"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
}

func inspectHashes(x *index.Index) (all []hashInspection) {
	columns := x.Schema().Columns
	for i := range columns {
		c := &columns[i]
		p, err := lsh.Decode(c.Learned)
		if c.Learned == nil || err != nil { // of what Open has checked
			continue
		}
		h := hashInspection{
			Column: c.Name, Similarity: p.Family.String(), Dims: p.Dim, Functions: p.Functions, Buckets: p.Buckets, Width: p.Width, Reach: p.Reach,
			Wanted: c.Recall, Queries: p.Recall.Queries,
		}
		for _, row := range p.Recall.Of(p.Reach).Rows {
			r, _ := p.Recall.Lookup(row.K, row.Candidates, row.Reach)
			h.Recalls = append(h.Recalls, hashesInspection{row.K, row.Candidates, rounded(r.Share), rounded(r.Low), rounded(r.High)})
		}
		all = append(all, h)
	}
	return all
}

func rounded(share float64) float64 { return math.Round(1e4*share) / 1e4 }

func (r *Report) hashTable(p *table.Page) {
	if len(r.Hashes) == 0 {
		return
	}
	t := table.New(table.Text("by hash functions"), table.Text("similarity"), table.Number("dims"), table.Number("functions"), table.Number("buckets"), table.Number("width"),
		table.Number("reach"), table.Number("recall wanted"))
	for _, h := range r.Hashes {
		wanted := ""
		if h.Wanted > 0 {
			wanted = fmt.Sprint(h.Wanted)
		}
		t.Row(h.Column, h.Similarity, h.Dims, h.Functions, h.Buckets, fmt.Sprintf("%.4g", h.Width), h.Reach, wanted)
	}
	fmt.Fprintln(p)
	t.Print(p)
	for i := range r.Hashes {
		r.Hashes[i].table(p)
	}
}

// shown are the numbers of candidates that people see. There are more in JSON.
var shown = []uint32{10, 20, 50, 80, 160, 320, 1280}

// table writes which share of how many neighbours is among how many candidates: a line for each number of neighbours.
func (h *hashInspection) table(p *table.Page) {
	if len(h.Recalls) == 0 {
		return
	}
	columns := []table.Column{table.Number("nearest")}
	for _, candidates := range shown {
		columns = append(columns, table.Number(fmt.Sprintf("among %d", candidates)))
	}
	t := table.New(columns...)
	t.Indent = 2
	for at := 0; at < len(h.Recalls); {
		k := h.Recalls[at].K
		cells := []any{k}
		for _, candidates := range shown {
			i := slices.IndexFunc(h.Recalls, func(r hashesInspection) bool { return r.K == k && r.Candidates == candidates })
			if i < 0 {
				cells = append(cells, "")
				continue
			}
			r := &h.Recalls[i]
			cells = append(cells, fmt.Sprintf("%.3f (%.3f to %.3f)", r.Share, r.Low, r.High))
		}
		t.Row(cells...)
		for at < len(h.Recalls) && h.Recalls[at].K == k {
			at++
		}
	}
	p.Say("\n%s, share of the nearest that is found among the first by count, with its interval of 95 %%, by %d vectors held out\n", h.Column, h.Queries)
	t.Print(p)
}

package answers

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/wire"
)

// CSV writes hits as CSV (RFC 4180), a row each: which query, by number and id, the hit's rank from 1, what it is and how well it fits, and the
// stored columns. Results that are errors have no rows.
type CSV struct {
	out     *csv.Writer
	clean   bool // a person looks: nothing may command the terminal
	columns []string
	begun   bool
	lost    map[string]bool
}

// fixed are the columns before the stored ones.
var fixed = []string{"query", "id", "rank", "key", "object", "count", "distance", "score", "similarity", "conditions", "met", "matched"}

// NewCSV writes to a page. columns are the stored columns to write; nil stands for those of the first result that has hits.
func NewCSV(p *table.Page, columns []string) *CSV {
	return &CSV{out: csv.NewWriter(p), clean: p.Terminal(), columns: columns, lost: make(map[string]bool)}
}

// Write writes the hits of a query, which is known by its number. lost are stored columns that the file has no place for, each told once.
func (c *CSV) Write(number int, q *wire.Query, r *wire.Result) (lost []string, err error) {
	if r.Err != nil || len(r.Hits) == 0 {
		return nil, nil
	}
	stored := storedOf(r.Hits)
	if !c.begun {
		named := c.columns != nil
		if !named {
			c.columns = stored.names
		}
		c.begun = true
		if err := c.row(slices.Concat(fixed, c.columns)); err != nil {
			return nil, err
		}
		for _, name := range stored.names {
			c.lost[name] = named // nobody wants to hear of columns that he left out
		}
	}
	for _, name := range stored.names {
		if !c.lost[name] && !slices.Contains(c.columns, name) {
			c.lost[name] = true
			lost = append(lost, name)
		}
	}
	asked := conditions(q)
	for i := range r.Hits {
		h := &r.Hits[i]
		row := []string{strconv.Itoa(number), r.ID, strconv.Itoa(r.FirstHit + i + 1), h.Key, fmt.Sprint(h.ID), fmt.Sprint(h.Count),
			number64(h.HasDistance, h.Distance), number64(h.HasScore, h.Score), "", "", "", ""}
		if h.HasSimilarity {
			row[8] = strconv.FormatFloat(float64(h.Similarity), 'g', -1, 32)
		}
		if h.Detail != nil && h.Detail.Matched != nil && len(asked) > 0 {
			row[9], row[10], row[11] = strconv.Itoa(len(asked)), strconv.Itoa(len(h.Detail.Matched)), strings.Join(h.Detail.Matched, " ")
		}
		for _, name := range c.columns {
			row = append(row, stored.cell(h, name).Text)
		}
		if err := c.row(row); err != nil {
			return lost, err
		}
	}
	c.out.Flush()
	return lost, c.out.Error()
}

func (c *CSV) row(cells []string) error {
	if c.clean {
		for i := range cells {
			cells[i] = table.Clean(cells[i])
		}
	}
	return c.out.Write(cells)
}

func number64(has bool, v float64) string {
	if !has {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

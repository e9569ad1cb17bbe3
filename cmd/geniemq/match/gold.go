package match

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/match/journal"
	"github.com/geniemq/geniemq/index/load/source"
)

// gold are the pairs that people found to be right, by keys. A nil one has none and takes everything.
type gold struct {
	path    string
	pairs   map[[2]string]bool
	columns [2]map[string]bool // what stands in them
	rows    [2]int             // rows of the input whose key stands in them
	seen    map[string]bool    // keys of rows of the input that stand in one
	said    bool               // which column is the input's was said
	swapped bool               // the second column is the input's
}

// readGold reads a CSV file with a header and, compressed or not, pairs in its first two columns or those that are named.
func readGold(path, columns string) (g *gold, err error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--gold: %w", err)
	}
	defer file.Close()
	text, err := source.Open(file, path, source.Options{})
	if err != nil {
		return nil, fmt.Errorf("--gold %s: %w", path, err)
	}
	defer text.Close()
	r := csv.NewReader(text.Text)
	r.FieldsPerRecord = -1
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("--gold %s: reading its header: %w", path, err)
	}
	g = &gold{path: path, pairs: make(map[[2]string]bool), seen: make(map[string]bool), columns: [2]map[string]bool{{}, {}}}
	at := [2]int{0, 1}
	if columns != "" {
		g.said = true
		for i, name := range strings.Split(columns, ",") {
			if at[i] = slices.Index(header, strings.TrimSpace(name)); at[i] < 0 {
				return nil, fmt.Errorf("--gold-columns: %s has no column %q; it has %s", path, name, strings.Join(header, ", "))
			}
		}
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return g, nil
		}
		if err == nil && len(record) <= max(at[0], at[1]) {
			err = fmt.Errorf("line %d has %d fields", line(r), len(record))
		}
		if err != nil {
			return nil, fmt.Errorf("--gold %s: %w", path, err)
		}
		pair := [2]string{strings.TrimSpace(record[at[0]]), strings.TrimSpace(record[at[1]])}
		g.pairs[pair] = true
		g.columns[0][pair[0]], g.columns[1][pair[1]] = true, true
	}
}

func line(r *csv.Reader) int {
	n, _ := r.FieldPos(0)
	return n
}

// row takes note of a row of the input.
func (g *gold) row(row *journal.Row) {
	if g == nil {
		return
	}
	for i := range g.columns {
		if g.columns[i][row.Key] {
			g.rows[i]++
			g.seen[row.Key] = true
		}
	}
}

// orient finds which column has the keys of the input, when all rows are known.
func (g *gold) orient() error {
	if g == nil || g.said {
		return nil
	}
	g.swapped = g.rows[1] > g.rows[0]
	if g.rows[0]+g.rows[1] == 0 && len(g.pairs) > 0 {
		return fmt.Errorf("--gold %s: no row of the input has a key that stands there; --key names the column with keys", g.path)
	}
	return nil
}

// has says whether a row and an object, by their keys, are a pair.
func (g *gold) has(row, object string) bool {
	if g.swapped {
		row, object = object, row
	}
	return g.pairs[[2]string{row, object}]
}

// count is how many pairs there are, and how many of them name a row that the input does not have.
func (g *gold) count() (all, lost int) {
	for pair := range g.pairs {
		row := pair[0]
		if g.swapped {
			row = pair[1]
		}
		if !g.seen[row] {
			lost++
		}
	}
	return len(g.pairs), lost
}

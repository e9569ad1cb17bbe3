package match

import (
	"bytes"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/cmd/geniemq/match/pairing"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// TestReportTable: F1 by threshold stands in columns, numbers under numbers, and no line is wider than the page; what a file is called commands no terminal.
func TestReportTable(t *testing.T) {
	p := &report{Input: "shop\x1b[2J.csv", Rows: 1200, Paired: 900, Pairs: 1500, Seconds: 2.5, Considered: 1.44e6, PerMillion: 1.736, Gold: 1000, GoldLost: 3}
	for i := range 21 {
		at := float64(i) * step
		p.Thresholds = append(p.Thresholds, pairing.Quality{Threshold: at, Pairs: 1500 - 70*i, Right: 900 - 44*i, Precision: .6 + at/4, Recall: .9 - at*.88, F1: .72 - at*.7})
	}
	p.Best = &p.Thresholds[0]
	const head = `shop␛[2J.csv: 1200 rows, 900 of them in 1500 pairs
2.5 s; 1.44e+06 pairs considered, 1.74 s per million that were asked now

1000 pairs are right by the gold, of which 3 name rows that the input lacks

threshold  pairs  right  precision  recall     F1
     0.00   1500    900      0.600   0.900  0.720  best
     0.05   1430    856      0.612   0.856  0.685
`
	for _, width := range []int{0, 40, 80, 120, 200} {
		var b bytes.Buffer
		p.table(&table.Page{Writer: &b, Width: width})
		text := b.String()
		if width != 40 && !strings.HasPrefix(text, head) {
			t.Errorf("at %d cells:\n%s\nwant it to begin with\n%s", width, text, head)
		}
		_, shares, _ := strings.Cut(text, "\n\n1000 pairs")
		_, shares, _ = strings.Cut(shares, "\n\n")
		if !strings.Contains(shares, " 0.00 ┤") {
			t.Errorf("at %d cells no curve:\n%s", width, text)
		}
		for line := range strings.Lines(shares) {
			if w := table.Width(strings.TrimSuffix(line, "\n")); width > 0 && w > width {
				t.Errorf("at %d cells a line has %d: %q", width, w, line)
			}
		}
	}
}

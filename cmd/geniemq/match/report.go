package match

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"

	"github.com/geniemq/geniemq/cmd/geniemq/figure"
	"github.com/geniemq/geniemq/cmd/geniemq/match/pairing"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// report is what a run has found, for people and for programs.
type report struct {
	Input      string  `json:"input"`
	Index      string  `json:"index"`
	Version    string  `json:"version"`
	Rows       int64   `json:"rows"`
	Objects    uint64  `json:"objects"`
	Skipped    int64   `json:"skipped"` // records and rows
	Paired     int     `json:"paired"`  // rows with a pair
	Pairs      int     `json:"pairs"`
	Clusters   int     `json:"clusters,omitempty"` // of more than one row
	Seconds    float64 `json:"seconds"`
	Considered float64 `json:"pairs_considered"` // every row with every object
	PerMillion float64 `json:"seconds_per_million_pairs"`

	Gold       int               `json:"gold,omitempty"`
	GoldLost   int               `json:"gold_without_row,omitempty"` // of these, such as name a row that the input does not have
	Best       *pairing.Quality  `json:"best,omitempty"`
	Thresholds []pairing.Quality `json:"thresholds,omitempty"`
}

// step is between thresholds.
const step = 0.05

// thresholds are those from the one of a run up to 1.
func thresholds(from float64) (at []float64) {
	at = append(at, from)
	for i := int(math.Floor(from/step+1e-9)) + 1; i <= int(math.Round(1/step)); i++ {
		at = append(at, math.Round(float64(i)*step*100)/100)
	}
	return at
}

// reportOf sums up what was found.
func (r *runner) reportOf(t *target, f *found, fresh int64, seconds float64) *report {
	p := &report{
		Input: r.input, Index: t.index, Version: t.version, Rows: f.rows, Objects: t.objects, Skipped: r.skipped.Load(), Pairs: len(f.pairs), Seconds: seconds,
		Considered: float64(f.rows) * float64(t.objects), Gold: f.wanted, GoldLost: f.lost,
	}
	if asked := float64(fresh) * float64(t.objects); asked > 0 { // those that an earlier run asked took their time then
		p.PerMillion = seconds / (asked / 1e6)
	}
	paired := make(map[uint32]bool)
	for _, pair := range f.pairs {
		if paired[pair.Row] = true; r.within {
			paired[pair.Object] = true
		}
	}
	p.Paired = len(paired)
	if r.clusters {
		size := make(map[uint32]int)
		for _, c := range pairing.Clusters(int(f.rows), f.pairs) {
			if size[c]++; size[c] == 2 {
				p.Clusters++
			}
		}
	}
	if r.gold != "" {
		p.Thresholds = pairing.Judge(f.pairs, func(p pairing.Pair) bool { return f.right[[2]uint32{p.Row, p.Object}] }, f.wanted, thresholds(r.min))
		p.Best = &p.Thresholds[pairing.Best(p.Thresholds)]
	}
	return p
}

// table is the report for people.
func (p *report) table(out *table.Page) {
	more := ""
	if p.Clusters > 0 {
		more = fmt.Sprintf(" and %d clusters", p.Clusters)
	}
	if p.Skipped > 0 {
		more += fmt.Sprintf("; skipped: %d", p.Skipped)
	}
	out.Say("%s: %d rows, %d of them in %d pairs%s\n", p.Input, p.Rows, p.Paired, p.Pairs, more)
	out.Say("%.1f s; %.3g pairs considered, %.3g s per million that were asked now\n", p.Seconds, p.Considered, p.PerMillion)
	if p.Thresholds == nil {
		return
	}
	more = ""
	if p.GoldLost > 0 {
		more = fmt.Sprintf(", of which %d name rows that the input lacks", p.GoldLost)
	}
	out.Say("\n%d pairs are right by the gold%s\n\n", p.Gold, more)
	shares := table.New(table.Number("threshold").Kept(), table.Number("pairs"), table.Number("right"), table.Number("precision").Kept(), table.Number("recall").Kept(), table.Number("F1").Kept(),
		table.Text("").Kept())
	share := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for i := range p.Thresholds {
		q := &p.Thresholds[i]
		mark := ""
		if q == p.Best {
			mark = "best"
		}
		shares.Row(strconv.FormatFloat(q.Threshold, 'f', 2, 64), q.Pairs, q.Right, share(q.Precision), share(q.Recall), share(q.F1), mark)
	}
	shares.Print(out)
	if _, _, f1 := p.curves(); len(f1) > 1 {
		figure.Letters(out, fmt.Sprintf("F1 against thresholds of %.2f to 1", p.Thresholds[0].Threshold), 2, f1)
	}
}

func (p *report) curves() (precision, recall, f1 []float64) {
	for _, q := range p.Thresholds {
		precision, recall, f1 = append(precision, q.Precision), append(recall, q.Recall), append(f1, q.F1)
	}
	return precision, recall, f1
}

// draw writes the curves into an SVG file.
func (p *report) draw(path string) error {
	var at []float64
	for _, q := range p.Thresholds {
		at = append(at, q.Threshold)
	}
	precision, recall, f1 := p.curves()
	least := math.Floor(at[0]*10) / 10
	if least == 1 {
		least = .9
	}
	drawn := figure.Figure{
		Title: fmt.Sprintf("%s in %s: %d right pairs", filepath.Base(p.Input), p.Index, p.Gold),
		X:     figure.Axis{Name: "threshold", Least: least, Most: 1, Step: .1},
		Y:     figure.Axis{Name: "share", Most: 1, Step: .1},
		Curves: []figure.Curve{
			{Name: "F1", X: at, Y: f1}, {Name: "precision", X: at, Y: precision}, {Name: "recall", X: at, Y: recall},
		},
		Marks: []figure.Mark{{X: p.Best.Threshold, Y: p.Best.F1, Text: fmt.Sprintf("F1 = %.3f at %.2f", p.Best.F1, p.Best.Threshold)}},
	}
	return drawn.Draw(path)
}

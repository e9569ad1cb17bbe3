// Package planned tells how many hash functions a column of vectors needs: as a table, as JSON, as GENIE's Figure 8.
package planned

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/cmd/geniemq/figure"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index/lsh/planner"
)

// Report says how many functions epsilon and delta ask for, and how far off the estimates of hits may be with as many. Hits are no objects that were chosen before
// they were counted, as the theorem and the equation have them: so both are told.
type Report struct {
	Epsilon   float64 `json:"epsilon"`
	Delta     float64 `json:"delta"`
	Theorem41 int     `json:"theorem_4_1"`
	Eqn9      struct {
		Rule    string          `json:"rule"`
		Largest planner.Point   `json:"largest"`
		Points  []planner.Point `json:"points"`
	} `json:"eqn_9"`
	Hits struct {
		Objects uint64 `json:"objects"`
		// How far off the estimates of hits may be with as many functions as Theorem 4.1, Eqn 9 at its worst and the paper have.
		Theorem41 float64 `json:"epsilon_by_theorem_4_1"`
		Eqn9      float64 `json:"epsilon_by_eqn_9"`
		Paper     float64 `json:"epsilon_of_237"`
	} `json:"hits"`
}

// hundredths are the similarities of Figure 8.
const hundredths = 100

// paperFunctions is what the paper found in its Figure 8 and used since.
const paperFunctions = 237

// For asks the planner, for an index of so many objects. What it refuses of epsilon and delta is no business of a report: planner.Check says it.
func For(epsilon, delta float64, objects uint64) *Report {
	r := &Report{Epsilon: epsilon, Delta: delta, Theorem41: planner.Theorem41(epsilon, delta)}
	r.Eqn9.Rule = planner.Rule
	r.Eqn9.Points, r.Eqn9.Largest = planner.Curve(epsilon, delta, hundredths)
	r.Hits.Objects = objects
	r.Hits.Theorem41 = planner.Selected(objects, r.Theorem41, delta)
	r.Hits.Eqn9 = planner.Selected(objects, r.Eqn9.Largest.Functions, delta)
	r.Hits.Paper = planner.Selected(objects, paperFunctions, delta)
	return r
}

// Table shows the report to a person.
func (r *Report) Table(out *table.Page) {
	out.Say("|c/m - s| <= %g with probability %g\n\n", r.Epsilon, 1-r.Delta)
	table.New(table.Text("by"), table.Number("m"), table.Text("holds")).
		Row("Theorem 4.1", r.Theorem41, "whatever s is").
		Row("Eqn 9", r.Eqn9.Largest.Functions, fmt.Sprintf("at the worst s of 0.01 to 0.99, s = %.2f", r.Eqn9.Largest.Similarity)).
		Print(out)
	out.Say("\nBy Eqn 9 m is %s.\nOther readings give other numbers, the paper 237 at epsilon = delta = 0.06.\n\n", r.Eqn9.Rule)

	const columns = 5
	var heads []table.Column
	for range columns {
		heads = append(heads, table.Number("s"), table.Number("m"))
	}
	points := table.New(heads...)
	// Each twentieth, read down the columns.
	const step = hundredths / 20
	rows := (len(r.Eqn9.Points)/step + columns - 1) / columns
	for row := range rows {
		var cells []any
		for column := range columns {
			if at := (column*rows+row+1)*step - 1; at < len(r.Eqn9.Points) {
				cells = append(cells, fmt.Sprintf("%.2f", r.Eqn9.Points[at].Similarity), r.Eqn9.Points[at].Functions)
			}
		}
		points.Row(cells...)
	}
	points.Print(out)

	m := make([]float64, len(r.Eqn9.Points))
	for i, p := range r.Eqn9.Points {
		m[i] = float64(p.Functions)
	}
	figure.Letters(out, "m by Eqn 9 against s = 0.01 to 0.99", 0, m)

	out.Say("Hits are chosen by their counts, so they are off by more. Of %d objects, with probability %g, none by more than\n", r.Hits.Objects, 1-r.Delta)
	off := table.New(table.Number("epsilon"), table.Number("functions"))
	off.Indent = 2
	off.Row(fmt.Sprintf("%.3f", r.Hits.Theorem41), r.Theorem41).
		Row(fmt.Sprintf("%.3f", r.Hits.Eqn9), r.Eqn9.Largest.Functions).
		Row(fmt.Sprintf("%.3f", r.Hits.Paper), paperFunctions).
		Print(out)
}

// Draw writes Figure 8 into an SVG file.
func (r *Report) Draw(path string) error {
	var s, m []float64
	for _, p := range r.Eqn9.Points {
		s, m = append(s, p.Similarity), append(m, float64(p.Functions))
	}
	worst := r.Eqn9.Largest
	step := math.Pow(10, math.Floor(math.Log10(float64(worst.Functions))))
	if float64(worst.Functions) < 5*step {
		step /= 2
	}
	drawn := figure.Figure{
		Title:  fmt.Sprintf("|c/m - s| ≤ %g with probability %g; Theorem 4.1: %d", r.Epsilon, 1-r.Delta, r.Theorem41),
		X:      figure.Axis{Name: "similarity s", Most: 1, Step: .1},
		Y:      figure.Axis{Name: "hash functions m", Most: step * math.Ceil(1.05*float64(worst.Functions)/step), Step: step},
		Curves: []figure.Curve{{Name: "Eqn 9", X: s, Y: m}},
		Marks:  []figure.Mark{{X: worst.Similarity, Y: float64(worst.Functions), Text: fmt.Sprintf("m = %d at s = %.2f", worst.Functions, worst.Similarity)}},
	}
	return drawn.Draw(path)
}

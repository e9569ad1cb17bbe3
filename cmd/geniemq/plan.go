package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/figure"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index/lsh/planner"
)

func (c *cli) planCommand() *cobra.Command {
	var epsilon, delta float64
	var objects uint64
	var plot string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "How many hash functions a column of vectors needs",
		Long: `Plan says how many hash functions m make the estimate c/m of a similarity s right to
within epsilon with probability 1 - delta: by GENIE's Theorem 4.1, whatever s is, and
by its Eqn 9 for each s (Figure 8). Both are about one object that was chosen before it
was counted. For the hits of a query, which were chosen because of their counts, the error
is larger: it is printed too. It needs no index and no data.`,
		Example: `  geniemq plan --epsilon 0.06 --delta 0.06
  geniemq plan --epsilon 0.1 --delta 0.05 --plot functions.svg
  geniemq plan --json | jq .eqn_9.largest`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.environment(cmd); err != nil {
				return err
			}
			if err := planner.Check(epsilon, delta); err != nil {
				return usageError{err}
			}
			if objects == 0 {
				return usagef("--objects 0: take at least 1")
			}
			report := planFor(epsilon, delta, objects)
			if plot != "" {
				if err := report.draw(plot); err != nil {
					return err
				}
			}
			return c.report(cmd, report, report.table)
		},
	}
	cmd.Flags().Float64Var(&epsilon, "epsilon", .06, "how far the estimate may be off")
	cmd.Flags().Float64Var(&delta, "delta", .06, "how often it may be off further")
	cmd.Flags().Uint64Var(&objects, "objects", 1_000_000, "objects of the index, for the error of hits")
	cmd.Flags().StringVar(&plot, "plot", "", "also draw m against s into this SVG file")
	reportFlag(cmd)
	return cmd
}

// planning is what plan tells.
type planning struct {
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

func planFor(epsilon, delta float64, objects uint64) *planning {
	r := &planning{Epsilon: epsilon, Delta: delta, Theorem41: planner.Theorem41(epsilon, delta)}
	r.Eqn9.Rule = planner.Rule
	r.Eqn9.Points, r.Eqn9.Largest = planner.Curve(epsilon, delta, hundredths)
	r.Hits.Objects = objects
	r.Hits.Theorem41 = planner.Selected(objects, r.Theorem41, delta)
	r.Hits.Eqn9 = planner.Selected(objects, r.Eqn9.Largest.Functions, delta)
	r.Hits.Paper = planner.Selected(objects, paperFunctions, delta)
	return r
}

func (r *planning) table(out *table.Page) {
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

// draw writes Figure 8 into an SVG file.
func (r *planning) draw(path string) error {
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

package inspect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric/cost"
)

// distanceInspection is what inspect tells of a column that is searched by distance.
type distanceInspection struct {
	Column  string   `json:"column"`
	Of      string   `json:"of"` // vectors, points or texts
	Metric  string   `json:"metric"`
	Storage string   `json:"storage,omitempty"`
	Dims    int      `json:"dims,omitempty"`
	Objects uint32   `json:"objects"` // with a value
	Methods []string `json:"methods"`
	// Built says what was built of the methods beside the scan.
	Built []string `json:"built,omitempty"`
	// IntrinsicDimension is mean^2 / (2 variance) of the distances of sampled pairs: above 10 or so nothing but a scan is fast and exact.
	IntrinsicDimension float64 `json:"intrinsic_dimension"`
	Mean               float64 `json:"mean_distance"`
	// Costs are what searches are expected to take a core of this machine, by way, and which is taken; Shapes those of a tree that were considered; Recall what was measured of paths that may miss hits.
	Costs  []costInspection   `json:"costs,omitempty"`
	Shapes []string           `json:"tree_shapes,omitempty"`
	Recall []recallInspection `json:"recall,omitempty"`
}

type costInspection struct {
	K       int                `json:"k"`
	Queries int                `json:"queries"` // of the batch
	Recall  float64            `json:"recall,omitempty"`
	Method  string             `json:"method"`      // that auto takes
	Expects map[string]float64 `json:"expected_us"` // by method, per query
}

type recallInspection struct {
	Path   string  `json:"path"`
	Steps  string  `json:"effort_counts"`
	K      uint32  `json:"k"`
	Effort float64 `json:"effort"`
	Share  float64 `json:"recall"`
	Low    float64 `json:"lower_bound"`
}

func inspectDistances(x *index.Index) (all []distanceInspection, err error) {
	columns, device := x.Distances(), cost.Host()
	for i := range columns.Len() {
		c := columns.At(i)
		spread, err := c.Spread()
		if err != nil {
			return nil, err
		}
		objects := x.Objects()
		if present := c.Present(); present != nil {
			objects = uint32(present.Len())
		}
		var built []string
		for _, method := range c.Built() {
			built = append(built, method+": "+c.Path(method).String())
		}
		all = append(all, distanceInspection{
			Built: built, Costs: costs(c, device, objects), Shapes: c.Shapes(), Recall: recalls(c),
			Column: c.Name, Of: c.Of.String(), Metric: distance.MetricName(c.Metric), Storage: c.Storage, Dims: c.Dims, Objects: objects, Methods: c.Methods(),
			IntrinsicDimension: spread.Dimension(), Mean: spread.Mean,
		})
	}
	return all, nil
}

func costs(c *distance.Column, device *cost.Device, objects uint32) (all []costInspection) {
	for _, o := range c.Outlooks(device, objects) {
		one := costInspection{K: o.K, Queries: o.Queries, Recall: o.Recall, Method: o.Choice.Method, Expects: make(map[string]float64)}
		for _, w := range o.Choice.Considered {
			one.Expects[w.Method] = math.Round(float64(w.Predicted)/100) / 10
		}
		all = append(all, one)
	}
	return all
}

func recalls(c *distance.Column) (all []recallInspection) {
	for _, r := range c.Recalls() {
		all = append(all, recallInspection{r.Path, r.Steps, r.K, r.Effort, math.Round(1e4*r.Share) / 1e4, math.Round(1e4*r.Low) / 1e4})
	}
	return all
}

func (r *Report) distanceTable(p *table.Page) {
	if len(r.Distances) == 0 {
		return
	}
	t := table.New(table.Text("by distance"), table.Text("of"), table.Text("metric"), table.Text("storage"), table.Number("dims"), table.Number("objects"),
		table.Text("methods"), table.Number("mean distance"), table.Number("intrinsic dimension"))
	for _, d := range r.Distances {
		t.Row(d.Column, d.Of, d.Metric, d.Storage, d.Dims, d.Objects, strings.Join(d.Methods, " "), fmt.Sprintf("%.4g", d.Mean), fmt.Sprintf("%.1f", d.IntrinsicDimension))
	}
	fmt.Fprintln(p)
	t.Print(p)
	for _, d := range r.Distances {
		for _, built := range d.Built {
			p.Say("  %s, %s\n", d.Column, built)
		}
	}
	for i := range r.Distances {
		r.Distances[i].tables(p)
	}
}

// tables writes what searches of a column are expected to take, and to find.
func (d *distanceInspection) tables(p *table.Page) {
	ways := append([]string{distance.Scan}, slices.DeleteFunc(slices.Clone(d.Methods), func(m string) bool { return m == distance.Scan || m == distance.Ngram })...)
	columns := []table.Column{table.Number("k"), table.Number("recall"), table.Number("queries")}
	for _, way := range ways {
		columns = append(columns, table.Number(way))
	}
	t := table.New(append(columns, table.Text("taken"))...)
	t.Indent = 2
	for _, c := range d.Costs {
		cells := []any{c.K, orExact(c.Recall), c.Queries}
		for _, way := range ways {
			cells = append(cells, fmt.Sprintf("%.1f", c.Expects[way]))
		}
		t.Row(append(cells, c.Method)...)
	}
	p.Say("\n%s, us per query here\n", d.Column)
	t.Print(p)
	for _, s := range d.Shapes {
		p.Say("  %s, shape of the tree on the reference device: %s\n", d.Column, s)
	}
	for i, r := range d.Recall {
		if i == 0 || r.Path != d.Recall[i-1].Path {
			p.Say("%s, recall of %s\n", d.Column, r.Path)
			t = table.New(table.Number("k"), table.Number(r.Steps), table.Number("found"), table.Number("at least"))
			t.Indent = 2
		}
		t.Row(r.K, r.Effort, fmt.Sprintf("%.2f %%", 100*r.Share), fmt.Sprintf("%.2f %%", 100*r.Low))
		if i+1 == len(d.Recall) || r.Path != d.Recall[i+1].Path {
			t.Print(p)
		}
	}
}

func orExact(recall float64) string {
	if recall == 0 {
		return "all"
	}
	return fmt.Sprint(recall)
}

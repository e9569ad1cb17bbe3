package inspect

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

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

func (r *Report) distanceTable(out io.Writer) {
	if len(r.Distances) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "by distance\tof\tmetric\tstorage\tdims\tobjects\tmethods\tmean distance\tintrinsic dimension\t")
	for _, d := range r.Distances {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%.4g\t%.1f\t\n", d.Column, d.Of, d.Metric, d.Storage, d.Dims, d.Objects,
			strings.Join(d.Methods, " "), d.Mean, d.IntrinsicDimension)
	}
	w.Flush()
	for _, d := range r.Distances {
		for _, built := range d.Built {
			fmt.Fprintf(out, "  %s, %s\n", d.Column, built)
		}
	}
	for i := range r.Distances {
		r.Distances[i].tables(out)
	}
}

// tables writes what searches of a column are expected to take, and to find.
func (d *distanceInspection) tables(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	ways := append([]string{distance.Scan}, slices.DeleteFunc(slices.Clone(d.Methods), func(m string) bool { return m == distance.Scan || m == distance.Ngram })...)
	fmt.Fprintf(w, "\n%s, us per query here\tk\trecall\tqueries\t%s\ttaken\t\n", d.Column, strings.Join(ways, "\t"))
	for _, c := range d.Costs {
		fmt.Fprintf(w, "\t%d\t%s\t%d", c.K, orExact(c.Recall), c.Queries)
		for _, way := range ways {
			fmt.Fprintf(w, "\t%.1f", c.Expects[way])
		}
		fmt.Fprintf(w, "\t%s\t\n", c.Method)
	}
	w.Flush()
	for _, s := range d.Shapes {
		fmt.Fprintf(out, "  %s, shape of the tree on the reference device: %s\n", d.Column, s)
	}
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, r := range d.Recall {
		if i == 0 || r.Path != d.Recall[i-1].Path {
			fmt.Fprintf(w, "%s, recall of %s\tk\t%s\tfound\tat least\t\n", d.Column, r.Path, r.Steps)
		}
		fmt.Fprintf(w, "\t%d\t%g\t%.2f %%\t%.2f %%\t\n", r.K, r.Effort, 100*r.Share, 100*r.Low)
	}
	w.Flush()
}

func orExact(recall float64) string {
	if recall == 0 {
		return "all"
	}
	return fmt.Sprint(recall)
}

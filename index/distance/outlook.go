package distance

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/geniemq/geniemq/index/metric/cost"
)

// Outlook is what a search of a column is expected to take on a device, by each way, for people.
type Outlook struct {
	K       int
	Queries int     // of the batch
	Recall  float64 // that is asked for; 0: none
	Choice  Choice
}

// Outlooks are those of the nearest 1, 10 and 100, alone and in a batch, and of a recall where a path knows any. Texts are asked for one of mean length.
func (c *Column) Outlooks(d *cost.Device, objects uint32) (all []Outlook) {
	p := c.Planner(d, objects, nil)
	recalls := []float64{0}
	for i := range c.paths {
		if !c.paths[i].path.Exact() {
			recalls = []float64{0, 0.95}
		}
	}
	q := Query{Column: c, Most: math.Inf(1), Method: Auto, Explain: true}
	if c.Of == Texts {
		q.Text = strings.Repeat("x", int(c.textBytes()))
	}
	for _, recall := range recalls {
		for _, k := range []int{1, 10, 100} {
			for _, queries := range []int{1, usual} {
				q.K, q.Recall = k, recall
				all = append(all, Outlook{k, queries, recall, p.Choose(&q, Situation{Passing: c.Objects, Queries: queries})})
			}
		}
	}
	return all
}

// Recalled is what was measured of a path that may miss hits: of the K nearest the Share that is found with an effort, and its lower bound.
type Recalled struct {
	Path       string
	Steps      string // what the effort counts
	K          uint32
	Effort     float64
	Share, Low float64
}

// Recalls are the recall tables of the column's paths.
func (c *Column) Recalls() (all []Recalled) {
	for i := range c.paths {
		table, steps := c.paths[i].path.Recall()
		if table == nil {
			continue
		}
		for _, k := range table.Ks {
			for _, effort := range table.Efforts {
				if r, ok := table.At(int(k), effort); ok {
					all = append(all, Recalled{c.paths[i].name, steps, k, effort, r.Share, r.Low})
				}
			}
		}
	}
	return all
}

// Shapes says to people which shapes of a tree were considered when it was built, what a search of each was expected to take on the reference device, and which was built; nil of a
// column without a tree.
func (c *Column) Shapes() (lines []string) {
	t, ok := c.Path("tree").(openedTree)
	if !ok {
		return nil
	}
	own := t.Shape()
	for rest := t.Calibration().Rows; len(rest) > 0; {
		first, n := rest[0], 1
		for n < len(rest) && rest[n].Bounds == first.Bounds && rest[n].Capacity == first.Capacity && rest[n].Leaf == first.Leaf {
			n++
		}
		mean := time.Duration(math.Exp(t.Tree.Price(rest[:n])))
		line := fmt.Sprintf("%s, capacity %d, leaf %d: %v", first.Bounds, first.Capacity, first.Leaf, mean.Round(10*time.Nanosecond))
		if first.Bounds == own.Bounds && first.Capacity == own.Capacity && first.Leaf == own.Leaf {
			line += ", built"
		}
		lines, rest = append(lines, line), rest[n:]
	}
	return lines
}

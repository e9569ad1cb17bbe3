package records

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// graph is one of few vertices, as JSON has it.
type graph struct {
	Labels []string `json:"labels"`
	Edges  [][2]int `json:"edges"`
}

func randomGraph(r *rand.Rand) (g graph) {
	g.Edges = [][2]int{}
	for i := range 1 + r.IntN(4) {
		g.Labels = append(g.Labels, string(rune('a'+r.IntN(3))))
		for j := range i {
			if r.IntN(2) == 0 {
				g.Edges = append(g.Edges, [2]int{j, i})
			}
		}
	}
	return g
}

// String is the graph as JSON.
func (g graph) String() string {
	text, _ := json.Marshal(g) // nothing of it can fail
	return string(text)
}

func parseGraph(text string) (g graph) {
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		panic(err) // String wrote it
	}
	return g
}

func (g graph) joined(i, j int) bool {
	return slices.Contains(g.Edges, [2]int{i, j}) || slices.Contains(g.Edges, [2]int{j, i})
}

// stars counts vertices by their label and those of their neighbours.
func (g graph) stars() map[string]int {
	counts := make(map[string]int)
	for i, label := range g.Labels {
		var around []string
		for j, other := range g.Labels {
			if g.joined(i, j) {
				around = append(around, other)
			}
		}
		slices.Sort(around)
		counts[label+":"+strings.Join(around, ",")]++
	}
	return counts
}

// degree is the largest number of neighbours.
func (g graph) degree() (most int) {
	for i := range g.Labels {
		n := 0
		for j := range g.Labels {
			if g.joined(i, j) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// edits is the edit distance of two graphs: the least cost of all ways to let vertices stand for others, or go, or come.
func (g graph) edits(h graph, stands []int) int {
	if i := len(stands); i < len(g.Labels) {
		best := math.MaxInt
		for j := -1; j < len(h.Labels); j++ {
			if j < 0 || !slices.Contains(stands, j) {
				best = min(best, g.edits(h, append(stands[:i:i], j)))
			}
		}
		return best
	}
	cost, kept := 0, 0
	for i, j := range stands {
		if j < 0 || g.Labels[i] != h.Labels[j] {
			cost++
		}
		if j >= 0 {
			kept++
		}
	}
	cost += len(h.Labels) - kept
	same := 0
	for _, e := range g.Edges {
		if a, b := stands[e[0]], stands[e[1]]; a >= 0 && b >= 0 && h.joined(a, b) {
			same++
		}
	}
	return cost + len(g.Edges) - same + len(h.Edges) - same
}

func (w *world) askGraph(c *column) *condition {
	asked := randomGraph(w.r)
	if id := w.r.IntN(2*len(c.values) + 1); id < len(c.values) && len(c.values[id]) > 0 {
		asked = parseGraph(c.values[id][0].(string))
	}
	q := &condition{c: c, graph: &asked, json: object{"labels": asked.Labels, "edges": asked.Edges}, items: []uint64{1}}
	own := asked.stars()
	q.count = func(id int) (n uint64) {
		for _, v := range c.values[id] {
			for star, times := range parseGraph(v.(string)).stars() {
				n += uint64(min(times, own[star]))
			}
		}
		return n
	}
	return q
}

// graphDistance compares an object's graph. Those without one come last.
func (r *rescore) graphDistance(id int) score {
	values := r.is.c.values[id]
	if len(values) == 0 {
		return score{key: math.Inf(1), value: math.Inf(1)}
	}
	d := float64(r.is.graph.edits(parseGraph(values[0].(string)), nil))
	return score{key: d, value: d}
}

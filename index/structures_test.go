package index_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/value"
)

// node is a tree, written plainly.
type node struct {
	label    string
	children []*node
}

func randomTree(r *rand.Rand, depth int) *node {
	n := &node{label: string("abc"[r.IntN(3)])}
	for range r.IntN(3) * min(depth, 1) {
		n.children = append(n.children, randomTree(r, depth-1))
	}
	return n
}

func (n *node) brackets() string {
	text := "{" + n.label
	for _, c := range n.children {
		text += c.brackets()
	}
	return text + "}"
}

// branches counts the binary branches: a node, its first child, its next sibling.
func (n *node) branches(next string, counts map[string]int) {
	first := "-"
	if len(n.children) > 0 {
		first = n.children[0].label
	}
	counts[n.label+first+next]++
	for i, c := range n.children {
		sibling := "-"
		if i+1 < len(n.children) {
			sibling = n.children[i+1].label
		}
		c.branches(sibling, counts)
	}
}

// json is the tree as labels and parents.
func (n *node) json() []byte {
	var labels []string
	var parents []int
	var visit func(n *node, parent int)
	visit = func(n *node, parent int) {
		at := len(labels)
		labels, parents = append(labels, n.label), append(parents, parent)
		for _, c := range n.children {
			visit(c, at)
		}
	}
	visit(n, -1)
	text, _ := json.Marshal(map[string]any{"labels": labels, "parents": parents})
	return text
}

// network is a graph, written plainly.
type network struct {
	Labels []string `json:"labels"`
	Edges  [][2]int `json:"edges"`
}

func randomNetwork(r *rand.Rand) (n network) {
	n.Edges = [][2]int{}
	for range 1 + r.IntN(6) {
		n.Labels = append(n.Labels, string("CON"[r.IntN(3)]))
	}
	for a := range n.Labels {
		for b := range a {
			if r.IntN(3) == 0 {
				n.Edges = append(n.Edges, [2]int{b, a})
			}
		}
	}
	return n
}

// stars counts the stars: a vertex and its neighbours.
func (n network) stars() map[string]int {
	counts := make(map[string]int)
	for v, label := range n.Labels {
		var near []string
		for _, e := range n.Edges {
			if e[0] == v || e[1] == v {
				near = append(near, n.Labels[e[0]+e[1]-v])
			}
		}
		slices.Sort(near)
		counts[label+strings.Join(near, "")]++
	}
	return counts
}

func common(a, b map[string]int) (n uint64) {
	for k, times := range a {
		n += uint64(min(times, b[k]))
	}
	return n
}

// valueOf makes of JSON what a condition of another shape holds.
func valueOf(t testing.TB, text []byte) value.Tree {
	t.Helper()
	var l struct {
		Labels  []string
		Parents []int64
		Edges   [][2]int64
	}
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	return tree(t, func(b *value.Builder) {
		b.Map().Name("labels").Array()
		for _, label := range l.Labels {
			b.String(label)
		}
		b.End()
		if l.Parents != nil {
			b.Name("parents").Array()
			for _, p := range l.Parents {
				b.Int(p)
			}
		} else {
			b.Name("edges").Array()
			for _, e := range l.Edges {
				b.Array().Int(e[0]).Int(e[1]).End()
			}
		}
		b.End().End()
	})
}

// TestStructures: the count of a tree is how many binary branches it shares with an object's, that of a graph how many stars, however either was
// written.
func TestStructures(t *testing.T) {
	random := seeded.Rand(t)
	b := newBuilder(t, parseSchema(t, "name: s\ncolumns: [{name: t, type: tree, store: true}, {name: g, type: graph}]"))
	var trees []*node
	var networks []network
	for i := range 300 {
		n, g := randomTree(random, 4), randomNetwork(random)
		trees, networks = append(trees, n), append(networks, g)
		text, _ := json.Marshal(g)
		rec := schema.Record{Cells: []schema.Cell{{Values: []string{n.brackets()}}, {JSON: text}}}
		if i%3 == 0 {
			rec.Cells[1] = schema.Cell{Values: []string{string(text)}} // as CSV has it
		}
		if i%2 == 0 {
			rec.Cells[0] = schema.Cell{JSON: n.json()}
		}
		b.add(&rec)
	}
	x, q := b.open()
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	query := new(postings.MatchQuery)
	for i := range 300 {
		n, g := trees[random.IntN(len(trees))], randomNetwork(random)
		c := column.Condition{Attr: "t", Value: text(n.brackets())}
		if i%2 == 0 {
			c = column.Condition{Attr: "t", Other: valueOf(t, n.json())}
		}
		asked, _ := json.Marshal(g)
		if _, err := q.Plan(query, &index.Request{Conditions: []column.Condition{c, {Attr: "g", Other: valueOf(t, asked), Weight: 1000}}}); err != nil {
			t.Fatal(err)
		}
		mine := make(map[string]int)
		n.branches("-", mine)
		for id, count := range matchCounts(x, query) {
			theirs := make(map[string]int)
			trees[id].branches("-", theirs)
			if want := common(mine, theirs) + 1000*common(g.stars(), networks[id].stars()); count != want {
				t.Fatalf("%s and %s, of %s and %v: count %d, want %d", n.brackets(), asked, trees[id].brackets(), networks[id], count, want)
			}
		}
	}
}

// TestStructuresRefused: what is no tree or graph is refused, in records and in queries, in words that say what one is.
func TestStructuresRefused(t *testing.T) {
	b := newBuilder(t, parseSchema(t, "name: s\ncolumns: [{name: t, type: tree, store: true}, {name: g, type: graph}]"))
	for _, c := range []struct {
		cell schema.Cell
		want string
	}{
		{schema.Cell{Values: []string{"{a"}}, "column t"}, {schema.Cell{Values: []string{"{a}", "{b}"}}, "one value"},
		{schema.Cell{JSON: json.RawMessage(`{"labels":["a"],"edges":[]}`)}, `a tree is`},
		{schema.Cell{JSON: json.RawMessage(`{"labels":["a"],"parents":[-1],"colour":1}`)}, `unknown field "colour"`},
		{schema.Cell{JSON: json.RawMessage(`{"labels":["a"],"parents":[0.5]}`)}, "cannot unmarshal"},
		{schema.Cell{Values: []string{strings.Repeat("{a", 600) + strings.Repeat("}", 600)}}, "512 nodes"},
	} {
		err := b.objects.Add(&schema.Record{Line: 1, Cells: []schema.Cell{c.cell, {}}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: %v", fmt.Sprint(c.cell.Values, string(c.cell.JSON)), err)
		}
	}
	_, q := b.open()
	query := new(postings.MatchQuery)
	for _, c := range []column.Condition{
		{Attr: "t", Value: number(5)}, {Attr: "t", Value: text("{a}}")}, {Attr: "g", Value: text("{a}")}, {Attr: "g", Other: list(t, "labels", []string{"a"})},
		{Attr: "t", Other: list(t, "colours", nil)}, {Attr: "t", In: []column.Value{*text("{a}")}},
	} {
		_, err := q.Plan(query, &index.Request{Conditions: []column.Condition{c}})
		wantRefusal(t, err, c.Attr)
		_, err = q.Plan(query, &index.Request{Filter: []column.Condition{c}})
		wantRefusal(t, err, "filter and exclude take no conditions")
	}
}

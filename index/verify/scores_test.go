package verify_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/tree"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// A world is objects with a column of each form, small enough for many of them to have the same score.
type world struct {
	values  [][]schema.Values // by object and column
	forward *forward.Forward
	words   []string // ascending, those that some object has
	df      map[string]int
	length  int // of all objects' words
}

const (
	columnWords = iota
	columnVector
	columnBytes
	columnHalves
	columnText
	columnTree
	columnGraph
	columns
)

var columnNames = [columns]string{"words", "vector", "bytes", "halves", "text", "tree", "graph"}

// testRandom prints its seed; GENIEMQ_SEED repeats one.
func testRandom(t testing.TB) *rand.Rand {
	return rand.New(rand.NewPCG(seeded.Seed(t), 3))
}

func randomText(r *rand.Rand) string {
	b := make([]rune, r.IntN(9))
	for i := range b {
		b[i] = []rune("abcé")[r.IntN(4)]
	}
	return string(b)
}

func randomTree(r *rand.Rand) string {
	var t tree.Tree
	labels, parents := []string{"a"}, []int{-1}
	for i := range r.IntN(6) {
		labels = append(labels, string(rune('a'+r.IntN(3))))
		parents = append(parents, r.IntN(i+1))
	}
	if err := t.Build(labels, parents, tree.Limits{}); err != nil {
		panic(err)
	}
	return string(t.Append(nil))
}

func randomGraph(r *rand.Rand) string {
	var g graph.Graph
	n := 1 + r.IntN(5)
	if r.IntN(20) == 0 {
		n = graph.MaxCompared + 1
	}
	labels, edges := make([]string, n), [][2]int{}
	for i := range labels {
		labels[i] = string(rune('a' + r.IntN(2)))
		for j := range i {
			if r.IntN(3) == 0 {
				edges = append(edges, [2]int{j, i})
			}
		}
	}
	if err := g.Build(labels, edges, graph.Limits{}); err != nil {
		panic(err)
	}
	return string(g.Append(nil))
}

func newWorld(t testing.TB, r *rand.Rand, n int) *world {
	t.Helper()
	s := &schema.Schema{}
	for _, name := range columnNames {
		s.Columns = append(s.Columns, schema.Column{Name: name})
	}
	b, err := forward.NewBuilder(s, []schema.KeptSpec{
		{Form: schema.KeptTerms, IDFScale: []int{1, 16}[r.IntN(2)]},
		{Form: schema.KeptVectors, Dimensions: 11},
		{Form: schema.KeptVectors, Dimensions: 3, Bytes: true},
		{Form: schema.KeptVectors, Dimensions: 9, Halves: true},
		{Form: schema.KeptTexts},
		{Form: schema.KeptTrees},
		{Form: schema.KeptGraphs},
	}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{df: make(map[string]int)}
	vocabulary := 3 + r.IntN(30)
	for range n {
		v := make([]schema.Values, columns)
		if r.IntN(8) > 0 {
			for _, word := range r.Perm(vocabulary)[:r.IntN(min(8, vocabulary))] {
				v[columnWords].Strings = append(v[columnWords].Strings, fmt.Sprintf("w%02d", word))
			}
			for range v[columnWords].Strings {
				f := uint32(1 + r.IntN(2)*r.IntN(4))
				v[columnWords].Frequencies = append(v[columnWords].Frequencies, f)
				w.length += int(f)
			}
			for _, word := range v[columnWords].Strings {
				w.df[word]++
			}
			for range 11 {
				v[columnVector].Vector = append(v[columnVector].Vector, float32(r.IntN(3)-1)/2)
			}
			for range 3 {
				v[columnBytes].Vector = append(v[columnBytes].Vector, float32(r.IntN(4)))
			}
			for range 9 {
				v[columnHalves].Vector = append(v[columnHalves].Vector, float32(r.IntN(3)-1)/2)
			}
			v[columnText].Text = randomText(r)
			v[columnTree].Stored = []byte(randomTree(r))
			v[columnGraph].Stored = []byte(randomGraph(r))
		}
		if err := b.Add(v); err != nil {
			t.Fatal(err)
		}
		w.values = append(w.values, v)
	}
	for word := range w.df {
		w.words = append(w.words, word)
	}
	slices.Sort(w.words)
	draft, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := store.Memory(t.Context(), uint32(n), []store.Draft{draft})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.OpenBytes(data, forward.Family{}.Sections(), func(f *store.File) error {
		x, err := forward.Family{}.Open(f, s)
		if err == nil {
			w.forward = x.(*forward.Forward)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A question is a query with everything that is known of its objects by brute force.
type question struct {
	name     string
	asked    verify.Asked
	distance bool
	exact    func(a, b uint32) int // the order of scores, where floats are not to be trusted
	score    []float64             // by object, infinite: none
	count    []uint32
	minCount uint32
	passing  filter.Set
}

func (q *question) Count(id uint32) uint32 { return q.count[id] }

// before is the total order, by definition.
func (q *question) before(a, b uint32) int {
	c := 0
	switch {
	case q.exact != nil:
		c = q.exact(a, b)
	case q.distance || math.IsInf(q.score[a], 1) || math.IsInf(q.score[b], 1):
		c = cmp.Compare(q.score[a], q.score[b])
	default:
		c = cmp.Compare(q.score[b], q.score[a])
	}
	return cmp.Or(c, cmp.Compare(q.count[b], q.count[a]), cmp.Compare(a, b))
}

// candidates are the first K objects that pass by (count, id).
func (q *question) candidates(k int) []verify.Candidate {
	var all []verify.Candidate
	for id, n := range q.count {
		if n >= max(1, q.minCount) && q.passing.Has(uint32(id)) {
			all = append(all, verify.Candidate{ID: uint32(id), Count: n})
		}
	}
	slices.SortFunc(all, func(a, b verify.Candidate) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.ID, b.ID)) })
	return all[:min(k, len(all))]
}

// truth is the first k of some objects in the total order.
func (q *question) truth(ids []uint32) []uint32 {
	slices.SortFunc(ids, q.before)
	return ids[:min(len(ids), q.asked.K)]
}

func (q *question) all() (ids []uint32) {
	for id := range q.count {
		if q.count[id] >= q.minCount && q.passing.Has(uint32(id)) {
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// stops is a pace that stops now and then.
func stops(r *rand.Rand) verify.Pace {
	return func() error {
		if r.IntN(3) > 0 {
			return errStop
		}
		return nil
	}
}

// patiently calls work until it is done.
func patiently(t testing.TB, work func() error) {
	t.Helper()
	for range 1_000_000 {
		err := work()
		if err == nil {
			return
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	}
	t.Fatal("it does not end")
}

// check compares hits with what they should be.
func (q *question) check(t testing.TB, what string, hits []verify.Scored, want []uint32) {
	t.Helper()
	same := len(hits) == len(want)
	for i := 0; same && i < len(hits); i++ {
		score := q.score[hits[i].ID]
		same = hits[i].ID == want[i] && hits[i].Count == q.count[want[i]] &&
			(hits[i].Score == score || math.Abs(hits[i].Score-score) <= 1e-7*math.Abs(score)+1e-7)
	}
	if same {
		return
	}
	for i := range max(len(hits), len(want)) {
		if i < len(hits) {
			t.Logf("%d: object %d count %d score %v", i, hits[i].ID, hits[i].Count, hits[i].Score)
		}
		if i < len(want) {
			t.Logf("%d: should be object %d count %d score %v", i, want[i], q.count[want[i]], q.score[want[i]])
		}
	}
	t.Fatalf("%s: %s, unit %d, k %d, min count %d, %+v", q.name, what, q.asked.Unit, q.asked.K, q.minCount, q.asked)
}

// TestScores asks every measure about random objects: the hits are the first of the candidates in the order that is defined, an answer that is
// certified is that of all objects, and so is what a scan in parts makes of it; interrupted as well as in one go.
func TestScores(t *testing.T) {
	r := testRandom(t)
	worlds, questions := 60, 60
	if testing.Short() {
		worlds = 8
	}
	certified, answers := make(map[string]int), make(map[string]int)
	memory := make(map[int]verify.Rescorer)
	for range worlds {
		n := 1 + r.IntN(40)
		w := newWorld(t, r, n)
		for _, m := range verify.Measures() {
			for i := range questions {
				q := w.ask(t, r, &m)
				s, err := m.New(&q.asked)
				if refused := (*verify.UnsupportedError)(nil); m.Name == "graph" && errors.As(err, &refused) {
					continue // more vertices than are compared
				}
				if err != nil {
					t.Fatalf("%s: %v", m.Name, err)
				}
				rescorer := s.New(memory[i%3])
				memory[i%3] = rescorer
				pace, work := verify.Pace(nil), 0
				if i%2 == 0 {
					pace, work = stops(r), 1
				}
				// Candidates double from K until all are there, as run has it.
				k := q.asked.K + r.IntN(3)
				for {
					c := q.candidates(k)
					patiently(t, func() error { return rescorer.Offer(c, nil, pace, work) })
					rest := uint32(0)
					if len(c) == k {
						rest = c[k-1].Count
					}
					var ids []uint32
					for _, o := range c {
						ids = append(ids, o.ID)
					}
					hits := rescorer.Hits(nil)
					q.check(t, "of the candidates", hits, q.truth(ids))
					answers[m.Name]++
					if rescorer.Certified(rest) {
						certified[m.Name]++
						q.check(t, fmt.Sprintf("certified by %d of %d candidates", len(c), n), hits, q.truth(q.all()))
					}
					if len(c) < k || r.IntN(3) == 0 {
						break
					}
					k *= 2
				}
				q.scan(t, r, rescorer, pace, work)
			}
		}
	}
	for _, m := range verify.Measures() {
		t.Logf("%s: %d answers, %d certified", m.Name, answers[m.Name], certified[m.Name])
		if certifies := m.Form != schema.KeptVectors; certifies != (certified[m.Name] > 0) {
			t.Errorf("%s: %d certified answers", m.Name, certified[m.Name])
		}
	}
}

// scan scans all objects in some parts.
func (q *question) scan(t testing.TB, r *rand.Rand, whole verify.Rescorer, pace verify.Pace, work int) {
	t.Helper()
	n := uint32(len(q.count))
	parts := 1 + r.IntN(3)
	var joined []verify.Rescorer
	for i := range parts {
		lo, hi := n*uint32(i)/uint32(parts), n*uint32(i+1)/uint32(parts)
		part := whole.Part(nil)
		patiently(t, func() (err error) {
			lo, err = part.Scan(lo, hi, q.minCount, q.passing, pace, work)
			return err
		})
		joined = append(joined, part)
	}
	for _, part := range joined {
		whole.Join(part)
	}
	q.check(t, "after a scan", whole.Hits(nil), q.truth(q.all()))
}

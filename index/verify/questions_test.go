package verify_test

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/tree"
	"github.com/geniemq/geniemq/index/verify"
)

// ask makes a random question of a measure.
func (w *world) ask(t testing.TB, r *rand.Rand, m *verify.Measure) *question {
	t.Helper()
	n := len(w.values)
	q := &question{name: m.Name, distance: !m.Similarity, score: make([]float64, n), count: make([]uint32, n)}
	q.asked = verify.Asked{K: 1 + r.IntN(1+r.IntN(2*n)), Unit: uint32(1 + r.IntN(4)), Matching: q}
	switch m.Form {
	case schema.KeptTerms:
		w.askTerms(r, q)
	case schema.KeptVectors:
		w.askVector(r, q)
	case schema.KeptTexts:
		w.askText(r, q)
	case schema.KeptTrees:
		q.asked.Column, q.asked.Stored = w.forward.Column("tree"), []byte(randomTree(r))
		var query tree.Tree
		if err := query.Decode(string(q.asked.Stored)); err != nil {
			t.Fatal(err)
		}
		var p tree.Pattern
		p.Reset(&query)
		w.askStructure(t, q, columnTree, func(stored string) (int, error) {
			var other tree.Tree
			err := other.Decode(stored)
			return inCommon(treeKeys(&query), treeKeys(&other)), err
		}, p.Distance)
	case schema.KeptGraphs:
		q.asked.Column, q.asked.Stored = w.forward.Column("graph"), []byte(randomGraph(r))
		var query graph.Graph
		if err := query.Decode(string(q.asked.Stored)); err != nil {
			t.Fatal(err)
		}
		var p graph.Pattern
		p.Reset(&query)
		w.askStructure(t, q, columnGraph, func(stored string) (int, error) {
			var other graph.Graph
			err := other.Decode(stored)
			return inCommon(graphKeys(&query), graphKeys(&other)), err
		}, p.Distance)
	}
	other := r.IntN(3) * r.IntN(6) // what other columns count
	for id := range q.count {
		q.count[id] = q.count[id]*q.asked.Unit + uint32(r.IntN(1+other))
	}
	if q.asked.Unit = q.asked.Unit * uint32(1-r.IntN(6)/5); q.asked.Unit == 0 { // the items prove nothing
		for id := range q.count {
			q.count[id] = uint32(r.IntN(4))
		}
	}
	q.minCount = uint32(r.IntN(3) * r.IntN(3))
	if m.Overlap {
		q.minCount = max(1, q.minCount) // what has count 0 is no hit
	}
	if r.IntN(3) == 0 {
		q.passing = make(filter.Set, filter.Words(n))
		for i := range q.passing {
			q.passing[i] = r.Uint64() | r.Uint64()*uint64(r.IntN(2))
		}
	}
	return q
}

func (w *world) askTerms(r *rand.Rand, q *question) {
	q.asked.Column = w.forward.Column("words")
	n := len(w.values)
	q.asked.IDF, q.asked.Unknown = r.IntN(2) == 0, r.IntN(3)*r.IntN(2)
	weight := func(df int) uint64 { return 1 }
	if q.asked.IDF {
		idf, _ := similarity.NewIDF(q.asked.Column.IDFScale, uint64(n))
		weight = func(df int) uint64 { return uint64(idf.Weight(uint64(df))) }
	}
	query, total := make(map[string]bool), uint64(q.asked.Unknown)*weight(0)
	if len(w.words) > 0 {
		for _, i := range r.Perm(len(w.words))[:r.IntN(min(7, len(w.words)+1))] {
			query[w.words[i]] = true
			q.asked.Terms = append(q.asked.Terms, uint32(i))
			total += weight(w.df[w.words[i]])
		}
	}
	slices.Sort(q.asked.Terms)
	fractions := make([]*big.Rat, n)
	for id := range n {
		v := &w.values[id][columnWords]
		common, whole := uint64(0), uint64(0)
		for _, word := range v.Strings {
			whole += weight(w.df[word])
			if query[word] {
				common += weight(w.df[word])
			}
		}
		q.count[id] = uint32(common)
		fractions[id] = fraction(q.name, common, total, whole)
		q.score[id], _ = fractions[id].Float64()
		if q.name == "cosine" {
			q.score[id] = math.Sqrt(q.score[id])
		}
		if q.name == "bm25" {
			q.score[id] = w.bm25(v, query)
		}
	}
	if q.name != "bm25" {
		q.exact = func(a, b uint32) int {
			if q.name != "cosine" { // those are rounded to floats
				return cmp.Compare(q.score[b], q.score[a])
			}
			return fractions[b].Cmp(fractions[a])
		}
	}
}

// fraction is a measure of sets, of cosine the square.
func fraction(name string, common, query, object uint64) *big.Rat {
	i, q, o := new(big.Int).SetUint64(common), new(big.Int).SetUint64(query), new(big.Int).SetUint64(object)
	num, den := i, q // containment
	switch name {
	case "jaccard":
		den = new(big.Int).Sub(new(big.Int).Add(q, o), i)
	case "dice":
		num, den = new(big.Int).Add(i, i), new(big.Int).Add(q, o)
	case "cosine":
		num, den = new(big.Int).Mul(i, i), new(big.Int).Mul(q, o)
	}
	if common == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).SetFrac(num, den)
}

func (w *world) bm25(v *schema.Values, query map[string]bool) float64 {
	type term struct {
		word string
		tf   uint32
	}
	var terms []term
	length := 0.0
	for i, word := range v.Strings {
		terms = append(terms, term{word, v.Frequencies[i]})
		length += float64(v.Frequencies[i])
	}
	slices.SortFunc(terms, func(a, b term) int { return cmp.Compare(a.word, b.word) })
	sum, n := 0.0, float64(len(w.values))
	for _, t := range terms {
		if query[t.word] {
			tf := float64(t.tf)
			norm := float64(1.2 * float64((1-.75)+float64(.75*float64(length/(float64(w.length)/n)))))
			gain := float64(similarity.Ln((2*n+2)/(2*float64(w.df[t.word])+1)) * (1.2 + 1))
			sum += float64(float64(gain*tf) / float64(tf+norm))
		}
	}
	return sum
}

func (w *world) askVector(r *rand.Rand, q *question) {
	column := columnVector + r.IntN(3)
	q.asked.Column = w.forward.Column(columnNames[column])
	for range q.asked.Column.Dimensions {
		q.asked.Vector = append(q.asked.Vector, float32(r.IntN(5)-1)/2)
	}
	keys := make([]float64, len(w.values))
	for id := range w.values {
		v := w.values[id][column].Vector
		q.count[id] = uint32(r.IntN(5))
		if len(v) == 0 {
			q.score[id], keys[id] = math.Inf(1), math.Inf(1)
			continue
		}
		var d, l1, ip, qq, oo float64
		for i, o := range v {
			a, b := float64(q.asked.Vector[i]), float64(o)
			d, l1, ip, qq, oo = d+(a-b)*(a-b), l1+math.Abs(a-b), ip+a*b, qq+a*a, oo+b*b
		}
		switch q.name { // small multiples of a quarter: without rounding
		case "l2":
			q.score[id], keys[id] = math.Sqrt(d), d
		case "l1":
			q.score[id], keys[id] = l1, l1
		case "ip":
			q.score[id], keys[id] = ip, -ip
		case "angular":
			if ip != 0 {
				keys[id] = -ip * math.Abs(ip) / (qq * oo)
			}
			q.score[id] = math.Acos(-math.Copysign(math.Sqrt(math.Abs(keys[id])), keys[id]))
		}
	}
	q.exact = func(a, b uint32) int { return cmp.Compare(keys[a], keys[b]) }
}

func (w *world) askText(r *rand.Rand, q *question) {
	q.asked.Column, q.asked.Text, q.asked.NGram = w.forward.Column("text"), randomText(r), 1+r.IntN(3)
	grams := func(s string) map[string]bool {
		set := make(map[string]bool)
		var g ngram.Scanner
		for g.Reset([]rune(s), q.asked.NGram); g.Next(); {
			set[string(g.Key())] = true
		}
		return set
	}
	query := grams(q.asked.Text)
	for id := range w.values {
		text := w.values[id][columnText].Text
		q.score[id] = float64(naiveEdit([]rune(q.asked.Text), []rune(text)))
		if text == "" {
			continue // has no grams
		}
		for gram := range grams(text) {
			if query[gram] {
				q.count[id]++
			}
		}
	}
}

func naiveEdit(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0]++
		for j := range b {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// treeKeys are the keywords of a tree, graphKeys those of a graph: no object has one twice.
func treeKeys(t *tree.Tree) map[string]bool {
	keys := make(map[string]bool)
	var s tree.Scanner
	for s.Reset(t); s.Next(); {
		keys[string(s.Key())] = true
	}
	return keys
}

func graphKeys(g *graph.Graph) map[string]bool {
	keys := make(map[string]bool)
	var s graph.Scanner
	for s.Reset(g); s.Next(); {
		keys[string(s.Key())] = true
	}
	return keys
}

func inCommon(a, b map[string]bool) (n int) {
	for key := range a {
		if b[key] {
			n++
		}
	}
	return n
}

// askStructure takes match counts and distances from packages tree and graph, whose tests compare them with definitions.
func (w *world) askStructure(t testing.TB, q *question, column int, common func(string) (int, error),
	distance func(string, int, func() error) (int, bool, error)) {
	t.Helper()
	for id := range w.values {
		stored := string(w.values[id][column].Stored)
		q.score[id] = math.Inf(1)
		if stored == "" {
			continue
		}
		n, err := common(stored)
		if err != nil {
			t.Fatal(err)
		}
		d, within, err := distance(stored, 100, nil)
		if q.count[id] = uint32(n); err == nil && within {
			q.score[id] = float64(d)
		} else if !errors.Is(err, graph.ErrTooLarge) {
			t.Fatal(err)
		}
	}
}

var errStop = errors.New("stop")

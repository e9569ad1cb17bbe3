package records

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/similarity"
)

// rescore is a wanted order of hits.
type rescore struct {
	by string
	is *condition // the query's side
	// single: the query has no other condition on the column, so that counts prove something.
	single bool
}

// score is how an object compares: by key, ascending, or of a cosine by the fraction squared, descending; value is what is told.
type score struct {
	key    float64
	square *big.Rat
	value  float64
}

// overlap: it is of what query and object have in common, and what has nothing is no hit.
func (r *rescore) overlap() bool { return r.is.c.terms() }

// rescoring asks for an order of hits, where a column is asked that has one.
func (w *world) rescoring(q *query, body object) {
	var can []*condition
	for _, is := range q.asked {
		if is.terms != nil || is.c.kind == "string" && !is.presence || is.vector != nil || is.tree != nil || is.graph != nil {
			can = append(can, is)
		}
	}
	if len(can) == 0 {
		return
	}
	is := can[w.r.IntN(len(can))]
	on := 0
	for _, other := range q.asked {
		if other.c == is.c {
			on++
		}
	}
	if on > 1 {
		return // what would be compared?
	}
	q.rescore = &rescore{by: "edit", is: is, single: true}
	if is.tree != nil {
		q.rescore.by = "tree"
	}
	if is.graph != nil {
		q.rescore.by = "graph"
	}
	if is.vector != nil {
		q.rescore.by = metrics[w.r.IntN(len(metrics))]
	}
	if is.c.terms() {
		q.rescore.by = []string{"jaccard", "dice", "cosine", "containment", "bm25"}[w.r.IntN(5)]
	}
	body["rescore"] = object{"by": q.rescore.by, "column": is.c.name}
	k := w.place(q)
	if q.k = min(q.k, k); w.r.IntN(2) == 0 {
		q.k = min(q.k, 1+w.r.IntN(10))
	}
	q.candidates = max(k, q.k)
	body["k"], body["candidates"] = q.k, q.candidates
	if q.certify = w.r.IntN(2) == 0; q.certify {
		body["certify"] = true
	}
}

// termWeight is what a term weighs in a measure.
func (w *world) termWeight(is *condition, v any) uint64 {
	if !is.weighed {
		return 1
	}
	return w.weight(is.c, v)
}

// scores compares an object with the query.
func (w *world) score(r *rescore, id int) score {
	c := r.is.c
	if r.by == "edit" {
		text := ""
		if len(c.values[id]) > 0 {
			text = c.values[id][0].(string)
		}
		d := float64(levenshtein([]rune(r.is.text), []rune(text)))
		return score{key: d, value: d}
	}
	switch {
	case r.is.vector != nil:
		return r.distance(id)
	case r.is.tree != nil:
		return r.treeDistance(id)
	case r.is.graph != nil:
		return r.graphDistance(id)
	}
	if r.by == "bm25" {
		v := w.bm25(r.is, id)
		return score{key: -v, value: v}
	}
	var asked, own, common uint64
	has := distinct(c.values[id])
	for _, v := range r.is.terms {
		asked += w.termWeight(r.is, v)
		if slices.Contains(has, v) {
			common += w.termWeight(r.is, v)
		}
	}
	for _, v := range has {
		own += w.termWeight(r.is, v)
	}
	var v float64
	switch {
	case common == 0 && r.by == "cosine":
		return score{square: new(big.Rat)}
	case common == 0:
		return score{}
	}
	switch r.by {
	case "jaccard":
		v = float64(common) / float64(asked+own-common)
	case "dice":
		v = float64(2*common) / float64(asked+own)
	case "containment":
		v = float64(common) / float64(asked)
	default:
		square := big.NewRat(int64(common*common), int64(asked*own))
		rounded, _ := square.Float64()
		return score{square: square, value: math.Sqrt(rounded)}
	}
	return score{key: -v, value: v}
}

// bm25 adds the words that the query and an object share, in the order of their bytes.
func (w *world) bm25(is *condition, id int) float64 {
	const k1, b = 1.2, 0.75
	if is.c.words == nil { // once per column
		words := 0
		for _, values := range is.c.values {
			words += w.length(is.c, values)
		}
		is.c.words = &words
	}
	mean := 1.0
	if words := *is.c.words; words > 0 {
		mean = float64(words) / float64(w.objects)
	}
	length := float64(w.length(is.c, is.c.values[id]))
	norm := float64(k1 * float64((1-b)+float64(b*float64(length/mean))))
	terms := slices.Clone(is.terms)
	slices.SortFunc(terms, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	sum := 0.0
	for _, v := range terms {
		times := 0
		for _, own := range is.c.values[id] {
			if own == v {
				times++
			}
		}
		if is.c.kind == "set" {
			times = min(times, 1)
		}
		if times == 0 {
			continue
		}
		idf := similarity.Ln(float64(2*w.objects+2) / float64(2*is.c.holders[v]+1))
		gain := float64(idf * (k1 + 1))
		sum += float64(float64(gain*float64(times)) / float64(float64(times)+norm))
	}
	return sum
}

// key is a term in the order of keywords: words in a row are told from words by a byte that sorts before those of words.
func key(v any) string { return v.(string) }

// length is the number of terms of an object.
func (w *world) length(c *column, values []any) int {
	if c.kind == "set" {
		return len(distinct(values))
	}
	return len(values)
}

// better compares two scores: negative when a is the better one.
func (a score) better(b score) int {
	if a.square != nil {
		return b.square.Cmp(a.square)
	}
	return cmp.Compare(a.key, b.key)
}

// ranked is an object with its place.
type ranked struct {
	id int
	score
}

// ranks puts objects into the order of scores.
func (w *world) ranks(q *query, ids []int) (all []ranked) {
	for _, id := range ids {
		all = append(all, ranked{id, w.score(q.rescore, id)})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(a.better(b.score), cmp.Compare(q.counts[b.id], q.counts[a.id]), cmp.Compare(a.id, b.id))
	})
	return all
}

// judgeScores makes the answer of a query that is rescored.
func (w *world) judgeScores(q *query) {
	q.want.Scored = true
	var able, candidates []int // those that may be hits, by count
	for _, id := range q.order {
		if q.counts[id] >= uint64(q.minCount) {
			able = append(able, id)
		}
	}
	candidates = able[:min(q.candidates, len(able))]
	// Where nothing has to match, objects without anything in common have a distance too.
	all := able
	if q.minCount == 0 && !q.rescore.overlap() {
		for id := range w.objects {
			if q.passes[id] && q.counts[id] == 0 {
				all = append(all[:len(all):len(all)], id)
			}
		}
	}
	// An engine knows that it has seen all that may be hits when it has seen all objects, or fewer than it asked for where something must match.
	complete := len(candidates) == w.objects || len(candidates) < q.candidates && (q.minCount > 0 || q.rescore.overlap())
	truth := w.ranks(q, all)
	truth = truth[:min(q.k, len(truth))]
	best := w.ranks(q, candidates)
	best = best[:min(q.k, len(best))]
	rest := uint64(0)
	if len(candidates) == q.candidates {
		rest = q.counts[candidates[len(candidates)-1]]
	}
	q.want.Exact = q.certify || complete || w.certified(q, best, rest)
	if q.want.Exact {
		if !q.certify && !slices.EqualFunc(best, truth, func(a, b ranked) bool { return a.id == b.id }) {
			w.t.Fatalf("the certificate is wrong: %s\n%s\n%v\n%v", w.schema, q.json, best, truth)
		}
		best = truth
	}
	for _, r := range best {
		q.want.Hits = append(q.want.Hits, gpuexec.Hit{ID: uint32(r.id), Count: uint32(q.counts[r.id]), Score: r.value})
	}
	if len(best) == q.k {
		q.want.MCK = q.want.Hits[q.k-1].Count
	}
}

// certified says that no object with a count of at most rest, which was no candidate, comes before the last hit.
func (w *world) certified(q *query, best []ranked, rest uint64) bool {
	r := q.rescore
	if r.is.vector != nil {
		return false // which functions agree proves nothing
	}
	if len(best) < q.k {
		return rest == 0 && r.overlap() && r.single
	}
	if !r.single {
		return false
	}
	last, most := best[len(best)-1], rest/q.unit(r.is)
	if r.is.tree != nil {
		return !math.IsInf(last.key, 1) && int(most) < r.is.tree.size()-3*(int(last.key)-1)
	}
	if r.is.graph != nil { // of objects that are not known the query's degree is what is known
		return !math.IsInf(last.key, 1) && int(most) < len(r.is.graph.Labels)-max(2, 1+r.is.graph.degree())*(int(last.key)-1)
	}
	if r.by == "edit" {
		n := r.is.c.gram
		return r.is.text != "" && int(most) < len([]rune(r.is.text))+n-1-n*(int(last.key)-1)
	}
	var asked uint64
	for _, v := range r.is.terms {
		asked += w.termWeight(r.is, v)
	}
	x := min(most, asked)
	switch r.by {
	case "jaccard", "containment":
		return asked == 0 || last.value >= float64(x)/float64(asked)
	case "dice":
		return asked == 0 || last.value >= float64(2*x)/float64(asked+x)
	case "cosine":
		return asked == 0 || last.square.Cmp(big.NewRat(int64(x), int64(asked))) >= 0
	}
	bound := 0.0
	for _, v := range r.is.terms {
		if r.is.c.holders[v] > 0 {
			idf := similarity.Ln(float64(2*w.objects+2) / float64(2*r.is.c.holders[v]+1))
			bound = max(bound, idf*2.2/float64(w.termWeight(r.is, v)))
		}
	}
	return last.value >= float64(most)*bound*(1+1e-12)
}

// levenshtein is the edit distance of two strings.
func levenshtein(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

package records

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// query is a random query: as it is sent, and what it means.
type query struct {
	json    string
	refused bool // it counts beyond the largest weight

	asked           []*condition // that count
	filter, exclude []*condition
	filters         bool // there is a filter, be it of nothing
	columnWeights   map[*column]uint64
	total           bool
	k, candidates   int
	minCount        uint32
	rescore         *rescore
	certify         bool
	row             bool // conditions are members of a row
	matched         bool
	explained       bool

	counts []uint64 // by object
	passes []bool
	order  []int // those that pass and count, in their order

	plan translate.Query
	want answer
}

// answer is what is compared: an answer without what is no promise.
type answer struct {
	Hits   []gpuexec.Hit
	MCK    uint32
	Exact  bool
	Scored bool
	Total  uint64
}

// largestWeight is the most that an item may weigh.
const largestWeight = 65535

// random makes a query and its answer.
func (w *world) random() *query {
	q := &query{columnWeights: make(map[*column]uint64)}
	body := make(object)
	idf := func(c *column) bool { return c.weighs }
	if w.r.IntN(2) == 0 {
		all := w.r.IntN(2) == 0
		body["idf"] = all
		idf = func(*column) bool { return all }
	}
	w.form(q, body, idf)
	if q.filters = w.conditions(body, "filter", &q.filter); w.conditions(body, "exclude", &q.exclude) {
		q.filters = true
	}
	if q.total = w.r.IntN(3) == 0 || !q.filters && q.asked == nil; q.total {
		body["total"] = true
	}
	if w.r.IntN(3) == 0 {
		w.columnWeights(q, body)
	}
	w.count(q)
	w.sizes(q, body)
	if len(q.asked) > 0 && w.r.IntN(2) == 0 {
		w.rescoring(q, body)
	}
	w.tell(q, body)
	text, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	q.json = string(text)
	w.judge(q)
	return q
}

// form makes what counts: a row, items, a text, a set, or nothing.
func (w *world) form(q *query, body object, idf func(*column) bool) {
	one := func(c *column) *condition {
		is := w.ask(c, true, idf(c))
		if w.r.IntN(3) == 0 {
			is.weight = 1 + w.r.Uint64N([]uint64{9, 300, largestWeight}[min(w.r.IntN(3), w.r.IntN(3))])
		}
		q.asked = append(q.asked, is)
		return is
	}
	form := w.r.IntN(7)
	if w.presences = 0; 1 <= form && form <= 3 {
		w.presences = filter.MaxPresences
	}
	switch form {
	case 0:
	case 1, 2:
		row := make(object)
		for _, at := range w.r.Perm(len(w.columns))[:1+w.r.IntN(len(w.columns))] {
			c := w.columns[at]
			is := one(c)
			row[c.name] = is.within()
		}
		body["row"], q.row = row, true
	case 3:
		var items []any
		for range 1 + w.r.IntN(5) {
			c := w.columns[w.r.IntN(len(w.columns))]
			is := one(c)
			item := object{"attr": c.name}
			if fields, ok := is.json.(object); ok {
				for name, v := range fields {
					item[name] = v
				}
			} else {
				item["value"] = is.json
			}
			if is.weight > 0 {
				item["weight"] = is.weight
			}
			items = append(items, item)
		}
		body["items"] = items
	case 4: // of the one column that takes texts
		texts := slices.DeleteFunc(slices.Clone(w.columns), func(c *column) bool { return c.kind != "text" && c.kind != "string" })
		if len(texts) != 1 {
			w.form(q, body, idf)
			return
		}
		is := one(texts[0])
		is.weight = 0
		body["text"] = is.json
	case 5:
		vectors := slices.DeleteFunc(slices.Clone(w.columns), func(c *column) bool { return c.kind != "vector" })
		if len(vectors) != 1 {
			w.form(q, body, idf)
			return
		}
		is := one(vectors[0])
		is.weight = 0
		body["vector"] = is.json
	default:
		sets := slices.DeleteFunc(slices.Clone(w.columns), func(c *column) bool { return c.kind != "set" })
		if len(sets) != 1 {
			w.form(q, body, idf)
			return
		}
		is := one(sets[0])
		is.weight = 0
		list, ok := is.json.([]any)
		if !ok {
			list = []any{is.json}
		}
		body["set"] = list
	}
}

// within is a condition as a member of a row.
func (q *condition) within() any {
	if q.weight == 0 {
		return q.json
	}
	member := object{"weight": q.weight}
	if fields, ok := q.json.(object); ok {
		for name, v := range fields {
			member[name] = v
		}
		return member
	}
	member["value"] = q.json
	return member
}

// conditions makes a filter, or what is excluded: an object or a list of them. It says whether there is one.
func (w *world) conditions(body object, field string, to *[]*condition) bool {
	if w.r.IntN(3) > 0 {
		return false
	}
	var list []object
	for range 1 + w.r.IntN(2) {
		members := make(object)
		for _, at := range w.r.Perm(len(w.columns))[:min(len(w.columns), 1+w.r.IntN(2))] {
			is := w.ask(w.columns[at], false, false)
			members[is.c.name] = is.json
			*to = append(*to, is)
		}
		list = append(list, members)
	}
	switch {
	case len(list) == 1 && w.r.IntN(2) == 0:
		body[field] = list[0]
	default:
		body[field] = list
	}
	return true
}

func (w *world) columnWeights(q *query, body object) {
	weights := make(object)
	for _, c := range w.columns {
		if w.r.IntN(2) == 0 {
			q.columnWeights[c] = 1 + w.r.Uint64N([]uint64{5, 20, largestWeight}[min(w.r.IntN(3), w.r.IntN(3), w.r.IntN(3))])
			weights[c.name] = q.columnWeights[c]
		}
	}
	if len(weights) > 0 {
		body["weights"] = weights
	}
}

// unit is the weight of a condition and its column.
func (q *query) unit(is *condition) uint64 { return max(1, is.weight) * max(1, q.columnWeights[is.c]) }

// count counts all objects and sees which pass.
func (w *world) count(q *query) {
	for _, is := range q.asked {
		unit := q.unit(is)
		q.refused = q.refused || unit > largestWeight
		for _, weight := range is.items {
			q.refused = q.refused || unit*weight > largestWeight
		}
	}
	for id := range w.objects {
		count, passes := uint64(0), true
		for _, is := range q.asked {
			count += q.unit(is) * is.count(id)
		}
		for _, is := range q.filter {
			passes = passes && is.holds(id)
		}
		for _, is := range q.exclude {
			passes = passes && !is.holds(id)
		}
		q.counts, q.passes = append(q.counts, count), append(q.passes, passes)
		if passes && (count > 0 || len(q.asked) == 0) {
			q.order = append(q.order, id)
		}
	}
	slices.SortStableFunc(q.order, func(a, b int) int { return cmp.Compare(q.counts[b], q.counts[a]) })
}

// place draws a number of hits around a boundary: of what is found, of equal counts, of all objects.
func (w *world) place(q *query) int {
	n := len(q.order)
	k := 1 + w.r.IntN(max(1, n))
	switch w.r.IntN(5) {
	case 0:
		k = n - 1 + w.r.IntN(3)
	case 1:
		for k < n && q.counts[q.order[k]] == q.counts[q.order[k-1]] {
			k++
		}
		k += w.r.IntN(3) - 1
	case 2:
		k = w.objects - 1 + w.r.IntN(3)
	case 3:
		k = 1 + w.r.IntN(3)
	}
	return min(max(k, 1), gpuexec.MaxK)
}

// sizes draws k and min_count.
func (w *world) sizes(q *query, body object) {
	q.k = w.place(q)
	body["k"] = q.k
	if len(q.asked) > 0 && w.r.IntN(3) == 0 {
		count := uint64(1 + w.r.IntN(4))
		if n := len(q.order); n > 0 {
			count = q.counts[q.order[w.r.IntN(n)]] + w.r.Uint64N(3)
		}
		q.minCount = uint32(max(1, count-min(count, 1)))
		body["min_count"] = q.minCount
	}
}

// judge makes the answer.
func (w *world) judge(q *query) {
	for _, passes := range q.passes {
		if passes && q.total {
			q.want.Total++
		}
	}
	q.want.Exact = true
	if q.rescore != nil {
		w.judgeScores(q)
		return
	}
	for _, id := range q.order {
		if len(q.want.Hits) < q.k && q.counts[id] >= uint64(q.minCount) {
			q.want.Hits = append(q.want.Hits, gpuexec.Hit{ID: uint32(id), Count: uint32(q.counts[id])})
		}
	}
	if len(q.want.Hits) == q.k {
		q.want.MCK = q.want.Hits[q.k-1].Count
	}
}

// encode makes the plan, by the ways that a message takes.
func (w *world) encode(q *query) *wire.Error {
	message, err := wire.DecodeMessage(wire.JSON, []byte(q.json), wire.Limits{})
	if err != nil {
		w.t.Fatalf("%s: %v", q.json, err)
	}
	one := &message.Queries[0]
	if one.Err != nil {
		w.t.Fatalf("%s: %v", q.json, one.Err)
	}
	w.translator.Plan(&q.plan, &one.Query)
	return q.plan.Err
}

// check compares an answer with what it must be.
func (w *world) check(q *query, engine string, got *gpuexec.Answer) {
	w.t.Helper()
	is := answer{Hits: got.Hits, MCK: got.MCK, Exact: got.Exact, Scored: got.Scored}
	if q.total { // else nobody is told
		is.Total = got.Total
	}
	if got.Err == nil && q.want.equal(&is) {
		if engine == "CPU" { // the hits of others are the same
			w.told(q, engine, got)
		}
		return
	}
	var objects strings.Builder
	for i := range max(len(q.want.Hits), len(got.Hits)) {
		for _, hits := range [][]gpuexec.Hit{q.want.Hits, got.Hits} {
			if i < len(hits) && (i >= len(q.want.Hits) || i >= len(got.Hits) || got.Hits[i] != q.want.Hits[i]) {
				objects.WriteString("\n  " + w.describe(int(hits[i].ID)))
			}
		}
		if objects.Len() > 2000 {
			break
		}
	}
	w.t.Fatalf("%s, of %d objects:\n%s\n%s\nis   %+v %v\nnot  %+v%s", engine, w.objects, w.schema, q.json, is, got.Err, q.want, objects.String())
}

func (a *answer) equal(b *answer) bool {
	return slices.Equal(a.Hits, b.Hits) && a.MCK == b.MCK && a.Exact == b.Exact && a.Scored == b.Scored && a.Total == b.Total
}

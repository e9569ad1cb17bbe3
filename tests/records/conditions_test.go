package records

import (
	"math"
	"slices"
	"strings"
)

// condition is what a query asks of a column: as it is written, and what it means.
type condition struct {
	c      *column
	json   any
	weight uint64
	// count is what it counts for an object, without its own weight and its column's; items are what the index's items of it weigh, by idf.
	count func(id int) uint64
	items []uint64
	holds func(id int) bool
	// Of texts and sets that are asked for: their distinct terms. Of strings the text.
	terms   []any
	weighed bool // terms weigh by how rare they are
	// presence is of what counts for a value that is there or missing.
	presence bool
	text     string
	vector   *vector
	tree     *node
	graph    *graph
}

type object = map[string]any

// ask makes a random condition on a column: to count, or to filter by.
func (w *world) ask(c *column, counts, idf bool) *condition {
	if !counts && (w.r.IntN(6) == 0 || c.kind == "vector" || c.kind == "tree" || c.kind == "graph" || c.functions > 0) {
		missing := w.r.IntN(2) == 0
		return &condition{c: c, json: object{"missing": missing}, holds: func(id int) bool { return (len(c.values[id]) == 0) == missing }}
	}
	if counts && w.presences > 0 && w.r.IntN(6) == 0 {
		w.presences--
		missing := w.r.IntN(2) == 0
		holds := func(id int) bool { return (len(c.values[id]) == 0) == missing }
		return &condition{c: c, json: object{"missing": missing}, holds: holds, presence: true, items: []uint64{1}, count: func(id int) uint64 {
			if holds(id) {
				return 1
			}
			return 0
		}}
	}
	switch {
	case c.numeric():
		return w.askNumbers(c)
	case c.kind == "vector":
		return w.askVector(c)
	case c.kind == "tree":
		return w.askTree(c)
	case c.kind == "graph":
		return w.askGraph(c)
	case c.kind == "string":
		return w.askString(c, counts)
	case c.kind == "text":
		return w.askText(c, counts, idf)
	}
	return w.askNames(c, counts, idf)
}

// span is an interval of numbers.
type span struct{ low, high float64 }

func (s span) has(v float64) bool { return s.low <= v && v <= s.high }

func (w *world) number(c *column) (json any, of span) {
	if c.kind == "date" {
		raw, from, to := moment(w.r)
		return raw, span{from, to}
	}
	v := tenths(w.r)
	if id := w.r.IntN(len(c.values) + 1); id < len(c.values) && len(c.values[id]) > 0 {
		v = c.values[id][0].(float64) // one that there is
	}
	return v, span{v, v}
}

func (w *world) askNumbers(c *column) *condition {
	q := &condition{c: c}
	var spans []span
	switch w.r.IntN(4) {
	case 0:
		json, of := w.number(c)
		q.json, spans = json, []span{of}
	case 1:
		var list []any
		for range 1 + w.r.IntN(3) {
			json, of := w.number(c)
			list, spans = append(list, json), append(spans, of)
		}
		q.json = object{"in": list}
	default:
		from, low := w.number(c)
		to, high := w.number(c)
		if low.low > high.high {
			from, to, low, high = to, from, high, low
		}
		switch of := (span{low.low, high.high}); w.r.IntN(3) {
		case 0:
			q.json, spans = object{"min": from}, []span{{of.low, math.Inf(1)}}
		case 1:
			q.json, spans = object{"max": to}, []span{{math.Inf(-1), of.high}}
		default:
			q.json, spans = object{"min": from, "max": to}, []span{of}
		}
	}
	has := func(v any) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.has(v.(float64)) })
	}
	// Where counts have buckets a condition stands for those that it touches; outside of all data there are none.
	touched := func(v any) bool {
		return slices.ContainsFunc(spans, func(s span) bool {
			b := c.bucket(v.(float64))
			return s.high >= c.least && s.low <= c.most && c.bucket(s.low) <= b && b <= c.bucket(s.high)
		})
	}
	if c.exact {
		touched = has
	}
	q.count = func(id int) (n uint64) {
		for _, v := range c.values[id] {
			if touched(v) {
				n++
			}
		}
		return n
	}
	q.holds = func(id int) bool { return slices.ContainsFunc(c.values[id], has) }
	q.items = []uint64{1}
	return q
}

// weigh makes a condition count the distinct values of terms, of a bag each.
func (w *world) weigh(q *condition, terms []any, weighed bool) {
	c := q.c
	weights := make(map[any]uint64)
	for _, v := range terms {
		if weights[v] = 1; weighed {
			weights[v] = w.weight(c, v)
		}
		if c.holders[v] > 0 {
			q.items = append(q.items, weights[v])
		}
	}
	q.count = func(id int) (n uint64) {
		values := c.values[id]
		if c.terms() {
			values = distinct(values)
		}
		for _, v := range values {
			n += weights[v]
		}
		return n
	}
}

// all and any say what a condition on several values means as a filter.
func (q *condition) all(values []any) {
	q.holds = func(id int) bool {
		return !slices.ContainsFunc(values, func(v any) bool { return !slices.Contains(q.c.values[id], v) })
	}
}

func (q *condition) any(values []any) {
	q.holds = func(id int) bool {
		return slices.ContainsFunc(values, func(v any) bool { return slices.Contains(q.c.values[id], v) })
	}
}

func (w *world) askText(c *column, counts, idf bool) *condition {
	q := &condition{c: c}
	if counts {
		raw, words := c.text(w.r, 6)
		if strings.TrimSpace(raw) == "" {
			raw, words = "nobody", []string{"nobody"}
		}
		if w.r.IntN(6) == 0 {
			raw, words = raw+" nowhere", append(words, "nowhere")
		}
		q.json, q.terms, q.weighed = raw, distinct(c.rows(words)), idf
		w.weigh(q, q.terms, idf)
		return q
	}
	var list []any
	var meant []any
	var raw string
	for words := 0; words == 0 || w.r.IntN(3) == 0; words = len(meant) {
		var some []string
		if raw, some = c.text(w.r, 2); raw == "" {
			continue
		}
		list = append(list, raw)
		for _, word := range some {
			meant = append(meant, word)
		}
	}
	if w.r.IntN(8) == 0 {
		list, meant = append(list, "nowhere"), append(meant, "nowhere")
	}
	joined := make([]string, len(list))
	for i := range list {
		joined[i] = list[i].(string)
	}
	text := strings.Join(joined, " ")
	q.all(meant)
	switch w.r.IntN(4) {
	case 0:
		q.json = text
	case 1:
		q.json = object{"all": []any{list, text}[w.r.IntN(2)]}
	default:
		q.json = object{"any": []any{list, text}[w.r.IntN(2)]}
		q.any(meant)
	}
	return q
}

// askNames asks categories, sets and bools.
func (w *world) askNames(c *column, counts, idf bool) *condition {
	q := &condition{c: c}
	var list, meant []any
	for range 1 + w.r.IntN(3) {
		if c.kind == "bool" {
			v := w.r.IntN(2) == 0
			list, meant = append(list, v), append(meant, map[bool]any{true: "true", false: "false"}[v])
			continue
		}
		raw, one := c.name1(w.r)
		switch {
		case w.r.IntN(8) == 0:
			raw, one = "nobody", "nobody"
		case raw == "5" && w.r.IntN(2) == 0:
			list, meant = append(list, 5.0), append(meant, "5") // a number stands for its text
			continue
		}
		list, meant = append(list, raw), append(meant, one)
	}
	one := func() { list, meant = list[:1], meant[:1] }
	form := []string{"value", "in", "list", "all", "any"}[w.r.IntN(5)]
	switch {
	case c.kind == "set" && counts:
		if q.json = list; form == "value" {
			one()
			q.json = list[0]
		}
		if c.functions > 0 {
			q.hashes(meant)
			return q
		}
		q.terms, q.weighed = distinct(meant), idf
		w.weigh(q, q.terms, idf)
		return q
	case counts && form != "in" || form == "value" || form == "list" && c.kind != "set":
		one()
		q.json = list[0]
		w.weigh(q, meant, idf && c.kind != "bool")
		q.any(meant)
		return q
	case form == "in":
		q.json = object{"in": list}
		q.any(meant)
	case form == "list":
		q.json = list
		q.all(meant)
	case form == "all":
		q.json = object{"all": list}
		q.all(meant)
	default:
		q.json = object{"any": list}
		q.any(meant)
	}
	w.weigh(q, distinct(meant), false)
	q.items = []uint64{1}
	return q
}

// grams are the n-grams of a string between n-1 marks at each end, and how often each occurs.
func grams(s string, n int) map[string]int {
	var padded []string
	for i := range n - 1 {
		padded = append(padded, string(rune('0'+i))+"<")
	}
	for _, c := range s {
		padded = append(padded, string(c))
	}
	for i := range n - 1 {
		padded = append(padded, ">"+string(rune('0'+i)))
	}
	counts := make(map[string]int)
	for i := 0; i+n <= len(padded); i++ {
		counts[strings.Join(padded[i:i+n], "\x00")]++
	}
	return counts
}

func (w *world) askString(c *column, counts bool) *condition {
	q := &condition{c: c, text: randomString(w.r), items: []uint64{1}}
	if id := w.r.IntN(len(c.values) + 1); id < len(c.values) && len(c.values[id]) > 0 {
		q.text = c.values[id][0].(string)
	}
	if q.json = q.text; !counts {
		q.json = object{"is": q.text}
	}
	asked := grams(q.text, c.gram)
	q.count = func(id int) (n uint64) {
		for _, v := range c.values[id] {
			for gram, times := range grams(v.(string), c.gram) {
				n += uint64(min(times, asked[gram]))
			}
		}
		return n
	}
	q.holds = func(id int) bool { return slices.Contains(c.values[id], any(q.text)) }
	return q
}

package records

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// tell asks for what is told beside hits.
func (w *world) tell(q *query, body object) {
	if q.matched = w.r.IntN(2) == 0; q.matched {
		body["matched"] = true
	}
	if q.explained = w.r.IntN(3) == 0; q.explained {
		body["explain"] = true
	}
}

// told compares what an answer tells beside hits with what must be told.
func (w *world) told(q *query, engine string, answer *gpuexec.Answer) {
	w.t.Helper()
	q.plan.Answer = *answer
	made := w.translator.Answer(translate.Message{Codec: wire.JSON, Arrived: time.Now(), Len: 1, Query: func(int) *translate.Query { return &q.plan }}, 1<<28)
	r := made.Results.At(0, 0)
	if r.Err != nil || len(r.Hits) != len(answer.Hits) {
		w.t.Fatalf("%s: %d hits of %d, %v\n%s\n%s", engine, len(r.Hits), len(answer.Hits), r.Err, w.schema, q.json)
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		must, may := w.matched(q, int(h.ID))
		if q.matched && (h.Detail == nil || !within(must, h.Detail.Matched) || !within(h.Detail.Matched, slices.Concat(must, may)) || len(slices.Compact(slices.Sorted(slices.Values(h.Detail.Matched)))) < len(h.Detail.Matched)) {
			w.t.Fatalf("%s: object %d matches %v: %+v\n%s\n%s\n%s", engine, h.ID, must, h.Detail, w.schema, q.json, w.describe(int(h.ID)))
		}
		w.estimates(q, engine, h)
	}
	w.warned(q, engine, r.Warnings)
	if q.explained {
		w.explained(q, engine, answer, r.Explain)
	}
}

// asks are the conditions in the order of the query: members of a row by their names.
func (q *query) inOrder() []*condition {
	all := slices.Clone(q.asked)
	if q.row {
		slices.SortStableFunc(all, func(a, b *condition) int { return strings.Compare(a.c.name, b.c.name) })
	}
	return all
}

// within says that all names are among others.
func within(names, others []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(others, name) })
}

// matched are the columns whose conditions an object meets, of those that count keywords of one attribute, and of what is missing. Of others it may be told that they have a value.
func (w *world) matched(q *query, id int) (must, may []string) {
	for _, is := range q.asked {
		left := is.c.kind == "string" || is.c.kind == "vector" && !strings.Contains(is.c.options, "functions: 1,") || is.c.functions > 1
		switch {
		case is.count(id) == 0:
		case !left, is.presence && is.json.(object)["missing"].(bool):
			must = append(must, is.c.name)
		case is.presence:
			may = append(may, is.c.name)
		}
	}
	return must, may
}

// estimates are right of sets by hash functions: c of m agree, one in 8,192 by chance.
func (w *world) estimates(q *query, engine string, h *wire.Hit) {
	w.t.Helper()
	if h.Detail == nil {
		return
	}
	told := slices.Clone(h.Detail.Columns)
	for _, is := range q.inOrder() { // a column may be asked several times
		at := slices.IndexFunc(told, func(e wire.ColumnEstimate) bool { return e.Column == is.c.name })
		if at >= 0 && is.c.functions > 0 && !is.presence {
			const chance = 1. / 8192
			want := math.Max(0, (float64(is.count(int(h.ID)))/float64(is.c.functions)-chance)/(1-chance))
			if math.Abs(told[at].Similarity-want) > 1e-12 {
				w.t.Fatalf("%s: object %d has the similarity %v, want %v\n%s\n%s", engine, h.ID, told[at].Similarity, want, w.schema, q.json)
			}
			told = slices.Delete(told, at, at+1)
		}
	}
}

// warned: every warning is true, and of each value that is asked for by its name and that nothing has there is one.
func (w *world) warned(q *query, engine string, warnings []string) {
	w.t.Helper()
	full := slices.Contains(warnings, "and more of the kind")
	for _, warning := range warnings {
		if !w.isTrue(q, warning) {
			w.t.Fatalf("%s: %q is not so\n%s\n%s", engine, warning, w.schema, q.json)
		}
	}
	passing := 0
	for _, passes := range q.passes {
		if passes {
			passing++
		}
	}
	anything := func(is *condition) bool {
		return !w.none(is.c, []*condition{is}, func(is *condition, id int) bool { return is.count(id) > 0 })
	}
	if none := passing == 0 && q.filters && (q.total || len(q.asked) == 0 || slices.ContainsFunc(q.asked, anything)); none && !slices.Contains(warnings, nonePass) {
		w.t.Fatalf("%s: of the %d that pass the warnings say %q\n%s\n%s", engine, passing, warnings, w.schema, q.json)
	}
	for c := range q.columnWeights {
		if warning := "column " + c.name + ": " + unasked; !full && w.isTrue(q, warning) && !slices.Contains(warnings, warning) {
			w.t.Fatalf("%s: %s is weighed and not asked, and the warnings are %q\n%s\n%s", engine, c.name, warnings, w.schema, q.json)
		}
	}
	for _, is := range q.asked {
		shares := is.c.kind == "string" || is.c.kind == "tree" || is.c.kind == "graph"
		if shares && !is.presence && !full && !anything(is) && !slices.Contains(warnings, "column "+is.c.name+": "+unmeetable) {
			w.t.Fatalf("%s: nothing shares anything with %s, and the warnings are %q\n%s\n%s", engine, is.c.name, warnings, w.schema, q.json)
		}
		for _, v := range is.terms {
			text, ok := v.(string)
			if ok && !is.c.fold && is.c.holders[v] == 0 && !full && !strings.Contains(text, " ") && !slices.Contains(warnings, unknown(is.c, text)) {
				w.t.Fatalf("%s: nothing has %q, and the warnings are %q\n%s\n%s", engine, text, warnings, w.schema, q.json)
			}
		}
	}
}

const (
	nonePass   = "no object passes the filter"
	unmeetable = "no object can meet the condition"
	unasked    = "its weight has no effect, since nothing that counts asks the column"
)

func unknown(c *column, value string) string {
	return "column " + c.name + ": no object has " + strconv.Quote(value)
}

// isTrue says whether a warning is.
func (w *world) isTrue(q *query, warning string) bool {
	if warning == nonePass {
		return q.filters && !slices.Contains(q.passes, true)
	}
	if warning == "and more of the kind" {
		return true
	}
	name, what, ok := strings.Cut(strings.TrimPrefix(warning, "column "), ": ")
	at := slices.IndexFunc(w.columns, func(c *column) bool { return c.name == name })
	if !ok || at < 0 {
		return false
	}
	c := w.columns[at]
	if value, ok := strings.CutPrefix(what, "no object has "); ok {
		text, err := strconv.Unquote(value)
		if err != nil {
			return false
		}
		if c.numeric() {
			return true // what is there by buckets and by values is more than can be said in few words
		}
		return c.holders[text] == 0
	}
	if what == unasked {
		return q.columnWeights[c] > 0 && !slices.ContainsFunc(q.asked, func(is *condition) bool { return is.c == c })
	}
	if strings.HasPrefix(what, "nothing is left") {
		return slices.ContainsFunc(q.asked, func(is *condition) bool { return is.c == c && len(is.terms) == 0 })
	}
	return what == unmeetable &&
		(w.none(c, q.asked, func(is *condition, id int) bool { return is.count(id) > 0 }) ||
			w.none(c, slices.Concat(q.filter, q.exclude), func(is *condition, id int) bool { return is.holds(id) }))
}

// none says that no object meets some condition on a column.
func (w *world) none(c *column, conditions []*condition, meets func(is *condition, id int) bool) bool {
	return slices.ContainsFunc(conditions, func(is *condition) bool {
		if is.c != c {
			return false
		}
		for id := range w.objects {
			if meets(is, id) {
				return false
			}
		}
		return true
	})
}

// explained: what is said to have counted adds up to the counts of hits, and presences are those of the query.
func (w *world) explained(q *query, engine string, answer *gpuexec.Answer, text []byte) {
	w.t.Helper()
	var x translate.Explanation
	if err := json.Unmarshal(text, &x); err != nil {
		w.t.Fatalf("%s: %q: %v", engine, text, err)
	}
	fail := func(what string) {
		w.t.Helper()
		w.t.Fatalf("%s: %s\n%s\n%s\n%s", engine, what, w.schema, q.json, text)
	}
	var presences []*condition
	for _, is := range q.inOrder() {
		if is.presence {
			presences = append(presences, is)
		}
	}
	// A value that is there may be an item of all values instead.
	at := 0
	for _, is := range presences {
		missing := is.json.(object)["missing"].(bool)
		if at < len(x.Presences) && x.Presences[at] == (translate.ExplainedPresence{Column: is.c.name, Weight: uint32(q.unit(is)), Missing: missing}) {
			presences[at] = is
			at++
		} else if missing {
			fail("a presence is not told")
		}
	}
	if at < len(x.Presences) {
		fail("a presence is another")
	}
	if len(x.Hits)+x.HitsMore != len(answer.Hits) {
		fail("hits are missing")
	}
	for i, h := range x.Hits {
		sum := h.More
		for _, item := range h.Items {
			if item.Item >= len(x.Items) || item.Count != uint64(item.Times)*uint64(x.Items[item.Item].Weight) {
				fail("an item that is none, or counts otherwise")
			}
			sum += item.Count
		}
		for _, at := range h.Presences {
			if presences[at].count(int(h.ID)) == 0 {
				fail("a presence counts that does not")
			}
			sum += uint64(x.Presences[at].Weight)
		}
		if h.ID != answer.Hits[i].ID || h.Count != answer.Hits[i].Count || sum != uint64(h.Count) || h.More > 0 && x.ItemsMore == 0 {
			fail("hit " + strconv.Itoa(i) + " is " + strconv.FormatUint(sum, 10))
		}
	}
}

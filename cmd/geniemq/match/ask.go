package match

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/cmd/geniemq/match/alike"
	"github.com/geniemq/geniemq/cmd/geniemq/match/journal"
	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// column is one that input and index both have.
type column struct {
	alike.Column
	name   string // in the index
	input  int    // in the schema of the input
	stored bool   // hits may have it, for all that is known
}

// question is how rows are asked and their hits compared.
//
// Candidates are found by one column, the first text: the objects of the highest count are put into order by the service, by a measure from 0 to 1 that weighs
// words by how rare they are. The other columns are compared here, by what hits have stored. A row without that column is asked by all others.
type question struct {
	columns []column
	leading int    // of columns: by which candidates are found; -1: by all
	by      string // what measures it: cosine, jaccard or edit; "": nothing does, and hits have it stored
	text    bool   // it is asked as a text, of kinds that have one
}

// query asks for the candidates of a row; ok is false where nothing can be asked.
func (q *question) query(rec *schema.Record, k int) (query wire.Query, ok bool, err error) {
	fields := map[string]any{"k": k, "with_payload": true}
	row := make(map[string]any)
	if q.leading >= 0 && !rec.Cells[q.columns[q.leading].input].Empty() {
		c := &q.columns[q.leading]
		text := strings.Join(rec.Cells[c.input].Values, " ")
		switch {
		case q.text:
			fields["text"] = text
		case c.Type == schema.SetColumn:
			row[c.name] = rec.Cells[c.input].Values
		default:
			row[c.name] = text
		}
		if q.by != "" && !(q.text && q.by == "edit") { // which sequences are always in the order of
			fields["rescore"] = map[string]any{"by": q.by, "column": c.name}
		}
	} else {
		for i := range q.columns {
			c := &q.columns[i]
			if condition := c.condition(rec.Cells[c.input].Values); condition != nil {
				row[c.name] = condition
			}
		}
	}
	if len(row) > 0 {
		fields["row"] = row
	}
	if fields["row"] == nil && fields["text"] == nil {
		return query, false, nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return query, false, err
	}
	message, err := wire.DecodeMessage(wire.JSON, text, wire.Limits{})
	if err == nil && message.Queries[0].Err != nil {
		err = message.Queries[0].Err
	}
	if err != nil {
		return query, false, err
	}
	return message.Queries[0].Query, true, nil
}

// near is how far from a number candidates are looked for, as a share of it.
const near = 0.1

// condition is what a row asks of a column, nil nothing.
func (c *column) condition(values []string) any {
	if len(values) == 0 {
		return nil
	}
	switch c.Type {
	case schema.NumberColumn:
		v, err := strconv.ParseFloat(values[0], 64)
		switch {
		case err != nil:
			return nil
		case c.Exact:
			return v
		}
		return map[string]any{"min": min(v*(1-near), v*(1+near)), "max": max(v*(1-near), v*(1+near))}
	case schema.DateColumn:
		if _, ok := dates.Parse(values[0]); !ok {
			return nil
		}
		return values[0]
	case schema.SetColumn:
		return values
	case schema.BoolColumn:
		return values[0]
	case schema.CategoryColumn:
		if len(values) > 1 {
			return map[string]any{"in": values}
		}
		return values[0]
	case schema.TextColumn, schema.StringColumn:
		return strings.Join(values, " ")
	}
	return nil
}

// values are those of a row, made ready; nil where it has none.
func (q *question) values(rec *schema.Record) []*alike.Value {
	values := make([]*alike.Value, len(q.columns))
	for i := range q.columns {
		if texts := rec.Cells[q.columns[i].input].Values; len(texts) > 0 {
			values[i] = q.columns[i].Value(texts)
		}
	}
	return values
}

// score says how alike a row and a hit are.
func (q *question) score(rec *schema.Record, values []*alike.Value, hit *wire.Hit) (float64, error) {
	stored, err := alike.Stored(hit.Payload)
	if err != nil {
		return 0, fmt.Errorf("reading the payload of object %d: %w", hit.ID, err)
	}
	var s alike.Score
	for i := range q.columns {
		c := &q.columns[i]
		other := stored[c.name]
		switch {
		case values[i] == nil:
		case i == q.leading && hit.HasDistance && q.by == "edit":
			s.Add(byDistance(rec.Cells[c.input].Values, other, hit.Distance), c.Weight)
		case i == q.leading && hit.HasScore:
			s.Add(hit.Score, c.Weight)
		case len(other) > 0 && alike.Compares(c.Type):
			s.Add(c.Alike(values[i], c.Value(other)), c.Weight)
		}
	}
	return s.Value(), nil
}

// byDistance is the share of the longer text that is not edited.
func byDistance(mine, other []string, distance float64) float64 {
	count := func(texts []string) int { return len(levenshtein.AppendRunes(nil, strings.Join(texts, " "))) }
	return 1 - distance/max(1, float64(count(mine)), float64(count(other)))
}

// batch is some rows on their way.
type batch struct {
	records []schema.Record
	first   int64 // the number of the first
	n       int
	rows    []journal.Row
	bytes   int64 // of the input, up to its end
}

// ask finds the pairs of a batch.
func (r *runner) ask(ctx context.Context, t *target, b *batch) error {
	b.rows = slices.Grow(b.rows[:0], b.n)[:b.n]
	var queries []wire.Query
	var places []int
	for i := range b.n {
		rec := &b.records[i]
		b.rows[i] = journal.Row{Number: b.first + int64(i), Key: rec.Key, Pairs: b.rows[i].Pairs[:0]}
		query, ok, err := r.question.query(rec, r.candidates+r.own())
		if err != nil {
			if err := r.refused(rec, err); err != nil {
				return err
			}
		} else if ok {
			queries, places = append(queries, query), append(places, i)
		}
	}
	results, err := r.results(ctx, t, queries)
	if err != nil {
		return err
	}
	for i := range results {
		rec, row := &b.records[places[i]], &b.rows[places[i]]
		if err := results[i].Err; err != nil && !client.IsRefusal(err) {
			return fmt.Errorf("asking index %s: %w", t.index, err)
		} else if err != nil {
			if err := r.refused(rec, err); err != nil {
				return err
			}
			continue
		}
		if results[i].Version != t.version {
			return fmt.Errorf("index %s was replaced while it was asked (version %s, then %s): begin anew with --restart", t.index, t.version, results[i].Version)
		}
		if err := r.pairs(rec, row, results[i].Hits); err != nil {
			return err
		}
	}
	return nil
}

// own is how many of a row's hits are itself.
func (r *runner) own() int {
	if r.within {
		return 1
	}
	return 0
}

// pairs takes the best hits of a row.
func (r *runner) pairs(rec *schema.Record, row *journal.Row, hits []wire.Hit) error {
	values := r.question.values(rec)
	for i := range hits {
		if r.within && int64(hits[i].ID) == row.Number {
			continue
		}
		score, err := r.question.score(rec, values, &hits[i])
		if err != nil {
			return err
		}
		if score >= r.min {
			row.Pairs = append(row.Pairs, journal.Pair{ID: hits[i].ID, Key: hits[i].Key, Score: score})
		}
	}
	slices.SortStableFunc(row.Pairs, func(a, b journal.Pair) int {
		switch { // hits of equal score stay in the service's order
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	row.Pairs = row.Pairs[:min(len(row.Pairs), r.k)]
	return nil
}

// results are the answers to queries, in their order. A direct answer is one message: where that is too small, fewer are asked at a time from then on.
func (r *runner) results(ctx context.Context, t *target, queries []wire.Query) (all []wire.Result, err error) {
	for len(queries) > 0 {
		most := r.perMessage.Load()
		some := queries[:min(int64(len(queries)), most)]
		results, err := r.persist(ctx, func(ctx context.Context) ([]wire.Result, error) { return t.asker.SearchBatch(ctx, t.index, some) })
		switch {
		case errors.Is(err, wire.TooLarge) && len(some) > 1:
			r.perMessage.CompareAndSwap(most, int64(len(some)+1)/2)
			continue
		case errors.Is(err, wire.TooLarge):
			results = []wire.Result{{Err: wire.AsError(err)}}
		case err != nil:
			return nil, fmt.Errorf("asking index %s: %w", t.index, err)
		}
		all, queries = append(all, results...), queries[len(some):]
	}
	return all, nil
}

// refused decides on a row that cannot be asked.
func (r *runner) refused(rec *schema.Record, err error) error {
	return r.bad(fmt.Errorf("%s: line %d: %w", r.input, rec.Line, err))
}

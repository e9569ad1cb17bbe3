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
	by     string // of vectors that are found by hash functions: what measures them; "": the service searches by distance
}

// question is how rows are asked and their hits compared.
//
// Candidates are found by one column, the first text: the objects of the highest count are put into order by the service, by a measure from 0 to 1 that weighs
// words by how rare they are. Without texts it may be vectors or points, of which the nearest are candidates. The other columns are compared here, by what hits have stored. A row without
// that column is asked by all others.
type question struct {
	columns []column
	leading int      // of columns: by which candidates are found; -1: by all
	by      string   // what measures it: cosine, jaccard or edit, of hashed vectors l2, l1 or angular; "": nothing does, and hits have it stored, or the service searches by distance
	left    []string // columns of vectors or points that are not compared, for want of a scale
	silent  []string // which columns of vectors are not compared since they say nothing of likeness, and why
	text    bool     // it is asked as a text, of kinds that have one
}

// query asks for the candidates of a row; ok is false where nothing can be asked.
func (q *question) query(rec *schema.Record, k int) (query wire.Query, ok bool, err error) {
	fields := map[string]any{"k": k, "with_payload": !q.apart() || len(q.columns) > 1}
	row := make(map[string]any)
	near, err := q.nearest(rec, fields, row)
	switch {
	case err != nil:
		return query, false, err
	case near:
	case q.leading >= 0 && !q.apart() && !rec.Cells[q.columns[q.leading].input].Empty():
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
	default:
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
	if fields["row"] == nil && fields["text"] == nil && !near {
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

// apart says that candidates are the nearest of a column of vectors or points.
func (q *question) apart() bool { return q.leading >= 0 && alike.Far(q.columns[q.leading].Type) }

// nearest asks for the nearest of a row in the leading column; ok is false where that has no distances, or the row has nothing in it.
func (q *question) nearest(rec *schema.Record, fields, row map[string]any) (ok bool, err error) {
	if !q.apart() {
		return false, nil
	}
	c := &q.columns[q.leading]
	place, err := alike.PlaceOf(c.Type, &rec.Cells[c.input])
	if place == nil {
		return false, err
	}
	switch {
	case c.by != "":
		row[c.name] = place.Vector
		fields["rescore"] = map[string]any{"by": c.by, "column": c.name}
		return true, nil
	case c.Type == schema.PointColumn:
		fields["point"] = []float64{place.Point.Lat, place.Point.Lon}
	default:
		fields["vector"] = place.Vector
	}
	fields["column"] = c.name
	if c.Scale.Limit {
		fields["radius"] = c.Scale.Most
	}
	return true, nil
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
		values[i] = q.columns[i].Value(&rec.Cells[q.columns[i].input])
	}
	return values
}

// pair says how alike a row and a hit are; ok is false where they are too far apart.
func (q *question) pair(rec *schema.Record, values []*alike.Value, hit *wire.Hit) (p journal.Pair, ok bool, err error) {
	p = journal.Pair{ID: hit.ID, Key: hit.Key}
	stored, err := alike.Stored(hit.Payload)
	if err != nil {
		return p, false, fmt.Errorf("reading the payload of object %d: %w", hit.ID, err)
	}
	var s alike.Score
	for i := range q.columns {
		c := &q.columns[i]
		other := stored[c.name]
		switch {
		case values[i] == nil:
		case alike.Far(c.Type):
			d, ok := c.distance(values[i], other, hit, i == q.leading)
			if !ok {
				continue
			}
			if c.Scale.Beyond(d) {
				return p, false, nil
			}
			if s.Add(c.Scale.Alike(d), c.Weight); i == q.leading {
				p.Distance = &d
			}
		case i == q.leading && hit.HasDistance && q.by == "edit":
			s.Add(byDistance(rec.Cells[c.input].Values, other, hit.Distance), c.Weight)
		case i == q.leading && hit.HasScore:
			s.Add(hit.Score, c.Weight)
		case len(other) > 0 && alike.Compares(c.Type):
			s.Add(c.Alike(values[i], c.Value(&schema.Cell{Values: other})), c.Weight)
		}
	}
	p.Score = s.Value()
	return p, true, nil
}

// distance is how far a hit is from a row in a column of vectors or points: as the service says where it was asked by that, else by what the hit has stored.
func (c *column) distance(mine *alike.Value, other []string, hit *wire.Hit, leading bool) (d float64, ok bool) {
	if leading && hit.HasDistance {
		return c.degrees(hit.Distance), true
	}
	value := c.Value(&schema.Cell{Values: other})
	if value == nil {
		return 0, false
	}
	return c.Distance(mine, value)
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
		p, ok, err := r.question.pair(rec, values, &hits[i])
		if err != nil {
			return err
		}
		if ok && p.Score >= r.min {
			row.Pairs = append(row.Pairs, p)
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

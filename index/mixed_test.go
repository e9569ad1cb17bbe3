package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/value"
)

// mixed is an index of records as plain values: what it holds, and what a query means, written without anything that the index uses but the
// edges of its buckets, which the data decide.
type mixed struct {
	t       testing.TB
	random  *rand.Rand
	columns []*mixedColumn
	objects int
	x       *index.Index
	queries *index.Queries
}

// mixedColumn is one column: for each object its values in the model's own form: float64 (number; of dates microseconds), string.
type mixedColumn struct {
	name, kind, options string
	many, fold, idf     bool
	scale, ngrams       int
	exact               bool
	stop                []string
	values              [][]any
	attr                int // its first attribute
}

// spellings are texts that fold to the same, by hand.
var spellings = [][]string{
	{"emile", "Émile", "EMILE", "émile"}, {"strasse", "Straße", "STRASSE"}, {"aegir", "Aegir"}, {"øre", "ØRE"}, {"istanbul", "Istanbul"}, {"x y", "X Y"},
}

var mixedWords = []string{"red", "shoes", "the", "of", "graph", "index", "naïve", "search", "a", "gpu"}

func (m *mixed) schema() string {
	text := "name: mixed\nkey: k\ncolumns:\n"
	r := m.random
	for i := range 1 + r.IntN(7) {
		c := &mixedColumn{name: fmt.Sprintf("c%d", i), scale: schema.DefaultIDFScale}
		c.kind = []string{"number", "date", "category", "bool", "text", "set", "string"}[r.IntN(7)]
		switch c.kind {
		case "number", "date":
			c.many = r.IntN(3) == 0
			switch r.IntN(3) {
			case 0:
				c.options, c.exact = ", edges: exact", true
			case 1:
				c.options = fmt.Sprintf(", edges: equi-depth, buckets: %d", 1+r.IntN(9))
			default:
				c.options = fmt.Sprintf(", buckets: %d", 1+r.IntN(9))
			}
		case "category":
			c.many, c.fold = r.IntN(3) == 0, r.IntN(2) == 0
		case "set":
			c.many, c.fold = true, r.IntN(2) == 0
		case "text":
			c.ngrams = r.IntN(4)
			if c.ngrams > 0 {
				c.options = fmt.Sprintf(", ngrams: %d", c.ngrams)
			}
			c.stop = []string{"the", "of", "a"}
			if r.IntN(3) == 0 {
				c.stop, c.options = nil, c.options+", stop_words: none"
			}
		case "string":
			c.ngrams = 1 + r.IntN(3)
			c.options = fmt.Sprintf(", ngram: %d", c.ngrams)
		}
		if c.fold {
			c.options += ", fold: true"
		}
		if c.kind == "category" || c.kind == "set" || c.kind == "text" {
			if r.IntN(3) == 0 {
				c.idf, c.options = true, c.options+", idf: true"
			}
			if r.IntN(3) == 0 {
				c.scale = 1 + r.IntN(20)
				c.options += fmt.Sprintf(", idf_scale: %d", c.scale)
			}
		}
		if r.IntN(4) == 0 {
			c.options += ", store: true"
		}
		text += fmt.Sprintf("- {name: %s, type: %s%s}\n", c.name, c.kind, c.options)
		m.columns = append(m.columns, c)
	}
	return text
}

// spelt returns a text and what the column takes it for.
func (m *mixed) spelt(c *mixedColumn) (raw, meant string) {
	class := spellings[m.random.IntN(len(spellings))]
	raw = class[m.random.IntN(len(class))]
	if c.fold {
		return raw, class[0]
	}
	return raw, raw
}

func (m *mixed) date() (raw string, at float64) {
	r := m.random
	t := time.Date(1990+r.IntN(4), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	if r.IntN(2) == 0 {
		return t.Format(time.DateOnly), float64(t.UnixMicro())
	}
	t = t.Add(time.Duration(r.IntN(24*3600)) * time.Second).Add(time.Duration(r.IntN(1e6)) * time.Microsecond)
	zone := time.FixedZone("", (r.IntN(27)-13)*1800)
	return t.In(zone).Format("2006-01-02T15:04:05.999999Z07:00"), float64(t.UnixMicro())
}

func (m *mixed) text() string {
	var words []string
	for range m.random.IntN(6) {
		word := mixedWords[m.random.IntN(len(mixedWords))]
		if m.random.IntN(4) == 0 {
			word = strings.ToUpper(word)
		}
		words = append(words, word+[]string{"", "", ",", "!"}[m.random.IntN(4)])
	}
	return strings.Join(words, " ")
}

// words are the words of a text that are no stop words, and those in a row.
func (c *mixedColumn) words(text string, row int) (all []any) {
	var words []string
	for _, word := range strings.Fields(text) {
		if word = strings.ToLower(strings.Trim(word, ",!")); !slices.Contains(c.stop, word) {
			words = append(words, word)
		}
	}
	for n := 1; n <= max(1, row); n++ {
		for i := 0; i+n <= len(words); i++ {
			all = append(all, strings.Join(words[i:i+n], " "))
		}
	}
	return all
}

func distinct(values []any) (out []any) {
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// cell makes a random cell and the model's values.
func (m *mixed) cell(c *mixedColumn) (cell schema.Cell, values []any) {
	r := m.random
	if r.IntN(8) == 0 {
		return cell, nil
	}
	n := 1
	if c.many {
		n = r.IntN(4)
	}
	for range n {
		switch c.kind {
		case "number":
			v := math.Round(r.NormFloat64()*100) / 10
			cell.Values, values = append(cell.Values, strconv.FormatFloat(v, 'g', -1, 64)), append(values, v+0)
		case "date":
			raw, at := m.date()
			cell.Values, values = append(cell.Values, raw), append(values, at)
		case "category", "set":
			raw, meant := m.spelt(c)
			cell.Values, values = append(cell.Values, raw), append(values, meant)
		case "bool":
			v := r.IntN(2) == 0
			raw := map[bool][]string{true: {"true", "Yes", "1"}, false: {"false", "no", "F"}}[v]
			cell.Values, values = append(cell.Values, raw[r.IntN(3)]), append(values, strconv.FormatBool(v))
		case "text":
			raw := m.text()
			cell.Values, values = append(cell.Values, raw), append(values, c.words(raw, c.ngrams)...)
		case "string":
			raw := m.title()
			cell.Values, values = append(cell.Values, raw), append(values, raw)
		}
	}
	if c.kind == "set" || c.kind == "text" {
		values = distinct(values)
	}
	return cell, values
}

func (m *mixed) title() string {
	return strings.Repeat("ab", m.random.IntN(3)) + []string{"x", "abab", "äöü und mehr als vierundzwanzig Bytes", "b"}[m.random.IntN(4)]
}

func (m *mixed) build() {
	text := m.schema()
	s, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		m.t.Fatalf("%s\n%v", text, err)
	}
	b := newBuilder(m.t, s)
	m.objects = m.random.IntN(60)
	for id := range m.objects {
		rec := schema.Record{Cells: make([]schema.Cell, len(m.columns)), Key: strconv.Itoa(id)}
		for i, c := range m.columns {
			var values []any
			rec.Cells[i], values = m.cell(c)
			c.values = append(c.values, values)
		}
		b.add(&rec)
	}
	m.x, m.queries = b.open()
	if err := m.x.Validate(); err != nil {
		m.t.Fatal(err)
	}
	for i := range m.columns {
		m.columns[i].attr = attributeOf(m.t, m.x, m.columns[i].name)
	}
	m.stored()
}

// stored checks what is kept of objects: numbers as filters want them, values as hits return them.
func (m *mixed) stored() {
	kept := filter.StoredBy(m.x.Structure(filter.StoredFamily))
	for i, c := range m.columns {
		if c.kind != "number" && c.kind != "date" || c.exact && !m.x.Schema().Columns[i].Store {
			continue
		}
		numbers, ok := kept.StoredNumbers(c.name)
		if !ok {
			m.t.Fatalf("no numbers of %s (%s) are kept", c.name, c.options)
		}
		for id, want := range c.values {
			got := slices.DeleteFunc(slices.Clone(numbers.Numbers(uint32(id))), math.IsNaN)
			if !slices.EqualFunc(got, want, func(v float64, w any) bool { return v == w }) {
				m.t.Fatalf("object %d has %v in column %s, want %v", id, got, c.name, want)
			}
		}
	}
}

// meaning is what a condition asks of an object's values: what it counts, without a column's weight, and whether it is met.
type meaning struct {
	column    *mixedColumn
	condition column.Condition
	count     func(values []any) uint64
	met       func(values []any) bool
	refused   bool // it is no condition that can be asked so
}

// tree makes a value of another shape.
func tree(t testing.TB, add func(b *value.Builder)) value.Tree {
	t.Helper()
	var b value.Builder
	add(&b)
	tree, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// list is an array of strings, named or not.
func list(t testing.TB, name string, values []string) value.Tree {
	return tree(t, func(b *value.Builder) {
		if name != "" {
			b.Map().Name(name)
		}
		b.Array()
		for _, v := range values {
			b.String(v)
		}
		b.End()
		if name != "" {
			b.End()
		}
	})
}

// passing says which objects pass a query's filter, by its definition.
func (m *mixed) passing(q *postings.MatchQuery) []bool {
	pass := make([]bool, m.objects)
	var decoder postings.Decoder
	for id := range pass {
		keywords := func(attr uint32) (all []uint32) {
			p := decoder.Postings(m.x.Lists, id/store.TileObjects, int(attr))
			for k := range m.x.Attribute(int(attr)).Keywords {
				if slices.Contains(p.Run(k, k+1), uint16(id%store.TileObjects)) {
					all = append(all, k)
				}
			}
			return all
		}
		pass[id] = naive.Passes(q.Filter, keywords, func(attr uint32) (numbers []float64) {
			for _, c := range m.columns {
				if c.attr == int(attr) {
					for _, v := range c.values[id] {
						numbers = append(numbers, v.(float64))
					}
				}
			}
			return numbers
		})
	}
	return pass
}

// TestMixedRecords: random schemas, records and queries mean what a model says that was written by itself.
func TestMixedRecords(t *testing.T) {
	random := seeded.Rand(t)
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	asked, refused := 0, 0
	for range rounds {
		m := &mixed{t: t, random: random}
		m.build()
		for range 30 {
			if m.ask() {
				asked++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d queries answered, %d refused", asked, refused)
}

// ask asks one random query and says whether it was taken.
func (m *mixed) ask() bool {
	r := m.random
	request := new(index.Request)
	weights := make(map[string]uint64)
	for _, c := range m.columns {
		if r.IntN(3) == 0 {
			weights[c.name] = 1 + r.Uint64N(20)
			request.Weights = append(request.Weights, index.ColumnWeight{Column: c.name, Weight: uint32(weights[c.name])})
		}
	}
	idf := func(c *mixedColumn) bool { return c.idf }
	if r.IntN(2) == 0 {
		all := r.IntN(2) == 0
		request.IDF, idf = &all, func(*mixedColumn) bool { return all }
	}
	var row, filter, exclude []*meaning
	refused := false
	add := func(to *[]*meaning, conditions *[]column.Condition, counts bool) {
		one := m.condition(counts, idf)
		*to, refused = append(*to, one), refused || one.refused
		if counts && r.IntN(3) == 0 {
			one.condition.Weight = 1 + r.Uint32N(9)
		}
		*conditions = append(*conditions, one.condition)
	}
	for range r.IntN(4) {
		add(&row, &request.Conditions, true)
	}
	for range r.IntN(3) {
		add(&filter, &request.Filter, false)
	}
	for range r.IntN(3) {
		add(&exclude, &request.Exclude, false)
	}
	refused = refused || len(row)+len(filter)+len(exclude) == 0
	query := new(postings.MatchQuery)
	_, err := m.queries.Plan(query, request)
	if (err != nil) != refused {
		m.t.Fatalf("%+v of %+v: %v, refused: %v", request, m.x.Schema().Columns, err, refused)
	}
	if refused {
		return false
	}
	counts := matchCounts(m.x, query)
	bound := m.x.CountBound(query)
	pass := make([]bool, m.objects)
	for id := range pass {
		pass[id] = true
	}
	if query.Filter != nil {
		pass = m.passing(query)
	}
	for id := range m.objects {
		want := uint64(0)
		for _, is := range row {
			want += is.count(is.column.values[id]) * uint64(max(1, is.condition.Weight)) * max(1, weights[is.column.name])
		}
		passes := true
		for _, is := range filter {
			passes = passes && is.met(is.column.values[id])
		}
		for _, is := range exclude {
			passes = passes && !is.met(is.column.values[id])
		}
		if counts[id] != want || pass[id] != passes || want > bound {
			m.t.Fatalf("object %d %v: count %d, want %d (at most %d); passes %v, want %v\n%+v\nof %+v", id, m.describe(id), counts[id], want, bound,
				pass[id], passes, request, m.x.Schema().Columns)
		}
	}
	return true
}

func (m *mixed) describe(id int) (all []string) {
	for _, c := range m.columns {
		all = append(all, fmt.Sprintf("%s: %v", c.name, c.values[id]))
	}
	return all
}

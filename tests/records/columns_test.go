package records

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/index/schema"
)

// column is a column of random records as it was made: what each object holds, in the words of the model.
type column struct {
	name, kind string
	options    string
	many       bool // cells may be lists
	fold       bool // spellings of a text are one
	exact      bool // numbers are their own buckets
	weighs     bool // by the schema, values weigh by how rare they are
	scale      int  // of these weights
	row        int  // most words in a row
	gram       int  // of strings
	stop       []string

	values  [][]any // by object: float64 (of dates microseconds), string; a bag
	holders map[any]int
	words   *int      // of all objects together, when that is known
	edges   []float64 // of buckets: the data decide them, and the file says
	least   float64   // of all numbers
	most    float64

	functions int // of a set by hash functions; 0: by its elements

	bytes  bool // vectors are kept as bytes
	hashes *hashes
}

var kinds = []string{"number", "date", "category", "bool", "text", "set", "string", "vector", "tree", "graph"}

// newColumn makes a random column.
func newColumn(r *rand.Rand, name string) *column {
	c := &column{name: name, kind: kinds[r.IntN(len(kinds))], scale: schema.DefaultIDFScale, row: 1, holders: make(map[any]int)}
	say := func(format string, args ...any) { c.options += fmt.Sprintf(", "+format, args...) }
	layouts := []string{"postings", "auto"}
	switch c.kind {
	case "number", "date":
		c.many = r.IntN(3) == 0
		switch r.IntN(4) {
		case 0:
			c.exact = true
			say("edges: exact")
		case 1:
			say("edges: equi-depth, buckets: %d", 1+r.IntN(12))
		case 2:
			say("buckets: %d", 1+r.IntN(12))
		}
	case "category":
		c.many, c.fold = r.IntN(3) == 0, r.IntN(3) == 0
	case "bool":
		c.many = r.IntN(5) == 0
	case "set":
		if c.many, c.fold = true, r.IntN(3) == 0; r.IntN(3) == 0 {
			c.functions = 1 + r.IntN(9)
			say("minhash: %d", c.functions)
		}
	case "text":
		c.many = r.IntN(4) == 0
		if c.row = 1 + r.IntN(4); c.row > 1 {
			say("ngrams: %d", c.row)
		}
		switch c.stop = []string{"the", "of", "and", "a"}; r.IntN(3) {
		case 0:
			c.stop = nil
			say("stop_words: none")
		case 1:
			c.stop = []string{"red", "of"}
			say("stop_words: [red, of]")
		}
	case "vector":
		c.bytes = r.IntN(3) == 0
		say("similarity: %s, functions: %d, keep: %s", []string{"l2", "l1", "cosine", "laplacian"}[r.IntN(4)], 1+r.IntN(12), map[bool]string{true: "u8", false: "f32"}[c.bytes])
	case "string":
		c.gram = 1 + r.IntN(4)
		say("ngram: %d", c.gram)
	}
	if c.fold {
		say("fold: true")
	}
	if c.rare() {
		layouts = append(layouts, "rare")
		if c.weighs = r.IntN(3) == 0; c.weighs {
			say("idf: true")
		}
		if r.IntN(3) == 0 {
			c.scale = 1 + r.IntN(64)
			say("idf_scale: %d", c.scale)
		}
	}
	if !c.many && !c.exact && (c.kind == "number" || c.kind == "date" || c.kind == "category" || c.kind == "bool") {
		layouts = append(layouts, "sliced")
	}
	if r.IntN(2) == 0 {
		say("layout: %s", layouts[r.IntN(len(layouts))])
	}
	if r.IntN(4) == 0 {
		say("store: true")
	}
	return c
}

// rare: the values may weigh by how rare they are.
func (c *column) rare() bool {
	return c.kind == "category" || c.kind == "set" && c.functions == 0 || c.kind == "text"
}

// terms: the values are a set of which queries ask for several at a time.
func (c *column) terms() bool { return c.kind == "set" && c.functions == 0 || c.kind == "text" }

func (c *column) numeric() bool { return c.kind == "number" || c.kind == "date" }

// spellings of the same texts with fold, the first being what all stand for.
var spellings = [][]string{
	{"emile", "Émile", "EMILE", "émile"}, {"strasse", "Straße", "STRASSE"}, {"5", "5"}, {"istanbul", "Istanbul"}, {"x y", "X Y"}, {"b"}, {"c"}, {"d"}, {"1e+06"},
}

// name draws a text of a category or a set, and what the column takes it for.
func (c *column) name1(r *rand.Rand) (raw, meant string) {
	class := spellings[min(r.IntN(len(spellings)), r.IntN(len(spellings)))]
	raw = class[r.IntN(len(class))]
	if c.fold {
		return raw, class[0]
	}
	return raw, raw
}

var vocabulary = strings.Fields("red the of graph index search naïve a gpu and shoes o'neil 3.5 x2 blue hat small tree über fast")

// text draws a text and returns its words that are no stop words, in order. Words stand between blanks, so that it is plain what
// they are.
func (c *column) text(r *rand.Rand, most int) (raw string, words []string) {
	var out strings.Builder
	for i := range r.IntN(most + 1) {
		word := vocabulary[min(r.IntN(len(vocabulary)), r.IntN(len(vocabulary)))]
		if !slices.Contains(c.stop, word) {
			words = append(words, word)
		}
		if r.IntN(4) == 0 {
			word = strings.ToUpper(word)
		}
		if i > 0 {
			out.WriteString([]string{" ", " ", ", ", " - ", "! (", "\t"}[r.IntN(6)])
		}
		out.WriteString(word)
	}
	return out.String(), words
}

// rows are the words and those in a row.
func (c *column) rows(words []string) (all []any) {
	for n := 1; n <= c.row; n++ {
		for i := 0; i+n <= len(words); i++ {
			all = append(all, strings.Join(words[i:i+n], " "))
		}
	}
	return all
}

func randomString(r *rand.Rand) string {
	var out []rune
	for range 1 + r.IntN(7) {
		out = append(out, []rune("aabcä")[r.IntN(5)])
	}
	if r.IntN(12) == 0 {
		return string(out) + " and much more than twenty-four bytes"
	}
	return string(out)
}

// moment draws a date as it is written, and the microseconds from and to of what it stands for.
func moment(r *rand.Rand) (raw string, from, to float64) {
	day := time.Date(1990+r.IntN(3), time.Month(1+r.IntN(12)), 1+r.IntN(28), 0, 0, 0, 0, time.UTC)
	micro := func(t time.Time) float64 { return float64(t.UnixMicro()) }
	switch r.IntN(5) {
	case 0:
		return day.Format("2006"), micro(time.Date(day.Year(), 1, 1, 0, 0, 0, 0, time.UTC)), micro(time.Date(day.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)) - 1
	case 1:
		return day.Format("2006-01"), micro(time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)),
			micro(time.Date(day.Year(), day.Month()+1, 1, 0, 0, 0, 0, time.UTC)) - 1
	case 2:
		return day.Format(time.DateOnly), micro(day), micro(day.AddDate(0, 0, 1)) - 1
	}
	t := day.Add(time.Duration(r.IntN(24*3600)) * time.Second).Add(time.Duration(r.IntN(1e6)) * time.Microsecond)
	zone := time.FixedZone("", (r.IntN(27)-13)*1800)
	return t.In(zone).Format([]string{"2006-01-02T15:04:05.999999Z07:00", "2006-01-02 15:04:05.000000Z07:00"}[r.IntN(2)]), micro(t), micro(t)
}

func tenths(r *rand.Rand) float64 {
	v := math.Round(r.NormFloat64()*100) / 10
	return v + 0 // no -0
}

// add draws the next object's cell.
func (c *column) add(r *rand.Rand) (cell schema.Cell) {
	var values []any
	n := 1
	switch {
	case c.kind == "vector" && len(c.values) == 0: // hash functions are made of the first
	case r.IntN(8) == 0:
		n = 0
	case c.many:
		n = r.IntN(4)
	}
	for range n {
		raw, some := c.value(r)
		cell.Values, values = append(cell.Values, raw), append(values, some...)
	}
	c.values = append(c.values, values)
	for _, v := range distinct(values) {
		c.holders[v]++
	}
	return cell
}

// value draws one value, and what it is.
func (c *column) value(r *rand.Rand) (raw string, values []any) {
	switch c.kind {
	case "number":
		v := tenths(r)
		return strconv.FormatFloat(v, 'g', -1, 64), []any{v}
	case "date":
		raw, from, _ := moment(r)
		return raw, []any{from}
	case "bool":
		v := r.IntN(2) == 0
		texts := map[bool][]string{true: {"true", "Yes", "1", "T"}, false: {"false", "no", "0", "F"}}[v]
		return texts[r.IntN(len(texts))], []any{strconv.FormatBool(v)}
	case "text":
		raw, words := c.text(r, 7)
		return raw, c.rows(words)
	case "string":
		raw := randomString(r)
		return raw, []any{raw}
	case "tree":
		raw := randomTree(r, 6).String()
		return raw, []any{raw}
	case "graph":
		raw := randomGraph(r).String()
		return raw, []any{raw}
	case "vector":
		v := c.vector(r)
		return fmt.Sprintf([]string{"%v,%v,%v,%v", "%v %v  %v %v"}[r.IntN(2)], v[0], v[1], v[2], v[3]), []any{v}
	}
	raw, meant := c.name1(r)
	return raw, []any{meant}
}

// distinct are values without repeats, in order of their first.
func distinct(values []any) (out []any) {
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// bucket is the number of edges that a number does not lie below.
func (c *column) bucket(v float64) (n int) {
	for _, edge := range c.edges {
		if edge <= v {
			n++
		}
	}
	return n
}

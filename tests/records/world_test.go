package records

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/service/translate"
)

// world is an index of random records, and what was put into it.
//
// It is the definition that engines, encoders and the index are held against: written from the contract, by counting over plain values, and
// knowing nothing of keywords, lists and plans. Few things it takes from elsewhere, since nobody would write them
// otherwise: the edges of buckets, which the data decide and the file says; the one logarithm of BM25 (similarity.Ln), whose last bit orders
// hits; and that words of its texts stand between blanks, so that it needs no rules of segmentation. Hash functions of vectors are those of
// package lsh, and so is one arc cosine of package similarity.
type world struct {
	t       testing.TB
	r       *rand.Rand
	schema  string
	columns []*column
	objects int
	weights map[int]*rarities // by scale

	presences int // conditions of what is missing that the query at hand may still count

	x          *index.Index
	translator *translate.Translator
}

// newWorld makes a random schema, some objects and their index.
func newWorld(t testing.TB, r *rand.Rand, objects int) *world {
	t.Helper()
	w := &world{t: t, r: r, objects: objects, weights: make(map[int]*rarities)}
	var text strings.Builder
	text.WriteString("name: mixed\ncolumns:\n")
	for i := range 1 + r.IntN(7) {
		c := newColumn(r, fmt.Sprintf("c%d", i))
		for c.kind == "vector" && objects == 0 || (c.kind == "tree" || c.kind == "graph") && objects > 2000 { // nothing to make hash functions of; the model is slow
			c = newColumn(r, c.name)
		}
		w.columns = append(w.columns, c)
		fmt.Fprintf(&text, "- {name: %s, type: %s%s}\n", c.name, c.kind, c.options)
	}
	w.schema = text.String()
	s, err := index.Builtin().ParseSchema([]byte(w.schema))
	if err != nil {
		t.Fatalf("%v\n%s", err, w.schema)
	}
	records := make([]schema.Record, objects)
	for id := range records {
		records[id].Cells = make([]schema.Cell, len(w.columns))
		for i, c := range w.columns {
			records[id].Cells[i] = c.add(r)
		}
	}
	next := 0
	if _, err := index.Builtin().Learn(s, func(rec *schema.Record) error {
		if next == objects {
			return io.EOF
		}
		*rec = records[next]
		next++
		return nil
	}, nil); err != nil {
		t.Fatalf("%v\n%s", err, w.schema)
	}
	b, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := b.Add(&records[i]); err != nil {
			t.Fatalf("%v: %+v\n%s", err, records[i], w.schema)
		}
	}
	file, err := b.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w.x, err = index.OpenBytes(file); err != nil {
		t.Fatal(err)
	}
	if objects < store.TileObjects {
		if err := w.x.Validate(); err != nil {
			t.Fatal(err)
		}
	}
	if w.translator, err = translate.New("mixed", w.x, 0); err != nil {
		t.Fatal(err)
	}
	w.ends()
	for i, c := range w.columns {
		if c.kind == "vector" {
			w.hash(c, w.x.Schema().Columns[i].Learned)
		}
	}
	return w
}

// ends takes the edges of buckets from the index.
func (w *world) ends() {
	attrs := w.x.Attributes()
	for _, c := range w.columns {
		if !c.numeric() {
			continue
		}
		at := slices.IndexFunc(attrs, func(a postings.Attribute) bool { return a.Name == c.name })
		c.edges = attrs[at].Edges
		c.least, c.most = math.Inf(1), math.Inf(-1)
		for _, values := range c.values {
			for _, v := range values {
				c.least, c.most = min(c.least, v.(float64)), max(c.most, v.(float64))
			}
		}
	}
}

// weight is what a value weighs by how rare it is.
func (w *world) weight(c *column, v any) uint64 {
	r := w.weights[c.scale]
	if r == nil {
		r = newRarities(c.scale, w.objects)
		w.weights[c.scale] = r
	}
	return r.weight(c.holders[v])
}

// describe says what objects hold.
func (w *world) describe(id int) string {
	var all []string
	for _, c := range w.columns {
		all = append(all, fmt.Sprintf("%s: %v", c.name, c.values[id]))
	}
	return strings.Join(all, "; ")
}

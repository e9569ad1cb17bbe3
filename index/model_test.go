package index_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// model is the plainest form of an index: the objects themselves. It is what a built index is compared with.
type model struct {
	specs   []schema.AttributeSpec
	objects []modelObject
}

type modelObject struct {
	values   [][]any // by attribute: string, float64 or uint32
	key      string
	payload  string
	sequence string
}

func schemaFor(t testing.TB, kind schema.Kind) *schema.Schema {
	t.Helper()
	text := "name: test\nkind: rows\nkey: id\nmissing: ['', '?']\ncolumns:\n- {name: a, type: number}\n"
	if kind == schema.Sequences {
		text = "name: test\nkind: sequences\nngram: 2\n"
	}
	s, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// builder returns a builder with all objects of the model added.
func (m *model) builder(t testing.TB, options index.BuilderOptions) *onebyone.Builder {
	t.Helper()
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), m.specs, options)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range m.objects {
		m.add(t, b, o)
		if err := b.EndObject(o.key, []byte(o.payload), o.sequence); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (m *model) add(t testing.TB, b *onebyone.Builder, o modelObject) {
	t.Helper()
	for attr, values := range o.values {
		for _, v := range values {
			var err error
			switch v := v.(type) {
			case string:
				b.AddString(attr, v)
			case float64:
				err = b.AddNumber(attr, v)
			case uint32:
				err = b.AddOrdinal(attr, v)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (m *model) bytes(t testing.TB, options index.BuilderOptions) []byte {
	t.Helper()
	data, err := m.builder(t, options).Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (m *model) open(t testing.TB) *index.Index {
	t.Helper()
	x, err := index.OpenBytes(m.bytes(t, index.BuilderOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// check compares everything an index tells with the model.
func (m *model) check(t *testing.T, x *index.Index, random *rand.Rand) {
	t.Helper()
	if err := x.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	if int(x.Objects()) != len(m.objects) {
		t.Fatalf("%d objects, want %d", x.Objects(), len(m.objects))
	}
	sum := 0
	for tile := range x.Tiles() {
		sum += x.TileLen(tile)
	}
	if sum != len(m.objects) {
		t.Fatalf("tiles hold %d objects, want %d", sum, len(m.objects))
	}
	for id, o := range m.objects {
		key := o.key
		if key == "" {
			key = strconv.Itoa(id)
		}
		if got := x.Key(uint32(id)); got != key {
			t.Fatalf("Key(%d) = %q, want %q", id, got, key)
		}
		if got := string(x.Payload(uint32(id))); got != o.payload {
			t.Fatalf("Payload(%d) = %q, want %q", id, got, o.payload)
		}
		if got := x.Text(uint32(id)); got != o.sequence {
			t.Fatalf("Text(%d) = %q, want %q", id, got, o.sequence)
		}
	}
	for attr := range m.specs {
		m.checkAttribute(t, x, attr, random)
	}
}

func (m *model) checkAttribute(t *testing.T, x *index.Index, attr int, random *rand.Rand) {
	t.Helper()
	a := x.Attributes()[attr]
	spec := m.specs[attr]
	if a.Name != spec.Name || a.Type != spec.Type {
		t.Fatalf("attribute %d is %+v, want %+v", attr, a, spec)
	}
	var all []any
	most, objects := 0, 0
	for _, o := range m.objects {
		all = append(all, o.values[attr]...)
		most = max(most, len(o.values[attr]))
		if len(o.values[attr]) > 0 {
			objects++
		}
	}
	if a.Postings != uint64(len(all)) || a.Objects != uint64(objects) || a.MaxPerObject != uint32(most) {
		t.Fatalf("attribute %d: %d postings of %d objects, at most %d; want %d, %d, %d",
			attr, a.Postings, a.Objects, a.MaxPerObject, len(all), objects, most)
	}
	keyword := m.checkVocabulary(t, x, attr, all, random)

	// Lists by keyword, ids ascending with repeats.
	lists := make([][]uint32, a.Keywords)
	for id, o := range m.objects {
		for _, v := range o.values[attr] {
			kw := keyword(v)
			lists[kw] = append(lists[kw], uint32(id))
		}
	}
	tiles := make([]postings.Decoder, x.Tiles())
	postings := make([]postings.Postings, x.Tiles())
	for tile := range postings {
		postings[tile] = tiles[tile].Postings(x.Lists, tile, attr)
	}
	run := func(lo, hi uint32) (ids []uint32) {
		for tile := range x.Tiles() {
			for _, id := range postings[tile].Run(lo, hi) {
				ids = append(ids, uint32(tile)*store.TileObjects+uint32(id))
			}
		}
		return ids
	}
	step := uint32(1 + len(lists)/500) // every keyword, or 500 of many
	for kw := uint32(0); kw < a.Keywords; kw += step {
		if got := run(kw, kw+1); !slices.Equal(got, lists[kw]) {
			t.Fatalf("attribute %d keyword %d (%s): %v, want %v", attr, kw, x.KeywordName(attr, kw), head(got), head(lists[kw]))
		}
	}
	for range 20 {
		lo := random.Uint32N(a.Keywords + 1)
		hi := lo + random.Uint32N(a.Keywords-lo+1)
		want := slices.Concat(lists[lo:hi]...)
		got := run(lo, hi)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("attribute %d keywords [%d,%d): %v, want %v", attr, lo, hi, head(got), head(want))
		}
	}

	s := x.ListStatistics(attr)
	longest := 0
	for _, list := range lists {
		longest = max(longest, len(list))
	}
	if int(s.Max) != longest || longest > 0 && len(lists[s.Longest]) != longest {
		t.Fatalf("attribute %d: statistics %+v, want longest %d", attr, s, longest)
	}
}

// checkVocabulary compares the position map with the values and returns the keyword of a value that occurs.
func (m *model) checkVocabulary(t *testing.T, x *index.Index, attr int, all []any, random *rand.Rand) func(any) uint32 {
	t.Helper()
	a := x.Attributes()[attr]
	switch m.specs[attr].Type {
	case schema.Ordinal:
		if a.Keywords != m.specs[attr].Keywords {
			t.Fatalf("attribute %d: %d keywords, want %d", attr, a.Keywords, m.specs[attr].Keywords)
		}
		return func(v any) uint32 { return v.(uint32) }
	case schema.Number:
		if len(all) == 0 {
			if a.Keywords != 0 || len(a.Edges) != 0 {
				t.Fatalf("attribute %d without values has %d keywords", attr, a.Keywords)
			}
			return nil
		}
		return func(v any) uint32 {
			kw, ok := a.Bucket(v.(float64))
			if !ok || kw >= a.Keywords {
				t.Fatalf("attribute %d: Bucket(%v) = %d, %v of %d", attr, v, kw, ok, a.Keywords)
			}
			return kw
		}
	}
	values := make([]string, len(all))
	for i, v := range all {
		values[i] = v.(string)
	}
	sort.Strings(values)
	values = slices.Compact(values)
	if int(a.Keywords) != len(values) {
		t.Fatalf("attribute %d: %d keywords, want %d", attr, a.Keywords, len(values))
	}
	for i, v := range values {
		if kw, ok := x.Lookup(attr, v); !ok || int(kw) != i {
			t.Fatalf("attribute %d: Lookup(%q) = %d, %v, want %d", attr, v, kw, ok, i)
		}
		if name := x.KeywordName(attr, uint32(i)); name != v {
			t.Fatalf("attribute %d: KeywordName(%d) = %q, want %q", attr, i, name, v)
		}
	}
	for range 200 {
		probe := randomString(random)
		want, found := slices.BinarySearch(values, probe)
		if got := x.LowerBound(attr, probe); int(got) != want {
			t.Fatalf("attribute %d: LowerBound(%q) = %d, want %d", attr, probe, got, want)
		}
		if kw, ok := x.Lookup(attr, probe); ok != found || ok && int(kw) != want {
			t.Fatalf("attribute %d: Lookup(%q) = %d, %v, want %v", attr, probe, kw, ok, found)
		}
	}
	return func(v any) uint32 {
		kw, _ := x.Lookup(attr, v.(string))
		return kw
	}
}

// attributeOf returns the position of an attribute.
func attributeOf(t testing.TB, x *index.Index, name string) int {
	t.Helper()
	at := slices.IndexFunc(x.Attributes(), func(a postings.Attribute) bool { return a.Name == name })
	if at < 0 {
		t.Fatalf("there is no attribute %q", name)
	}
	return at
}

func head(ids []uint32) string {
	if len(ids) > 20 {
		return fmt.Sprint(ids[:20], "... of ", len(ids))
	}
	return fmt.Sprint(ids)
}

func randomString(random *rand.Rand) string {
	letters := []rune("abcdeé€𝄞")
	s := make([]rune, random.IntN(6))
	for i := range s {
		s[i] = letters[random.IntN(len(letters))]
	}
	return string(s)
}

// randomModel makes n objects with every kind of attribute: dense and sparse, with repeats, skew and gaps.
func randomModel(random *rand.Rand, n int) *model {
	m := &model{specs: []schema.AttributeSpec{
		{Name: "width", Type: schema.Number, Buckets: 1 + random.IntN(200)},
		{Name: "depth", Type: schema.Number, Buckets: 1 + random.IntN(200), Edges: schema.EquiDepth},
		{Name: "exact", Type: schema.Number, Edges: schema.Exact},
		{Name: "word", Type: schema.Text},
		{Name: "bag", Type: schema.Text},
		{Name: "hash", Type: schema.Ordinal, Keywords: 1 + random.Uint32N(300)},
		{Name: "never", Type: schema.Text},
		{Name: "no number", Type: schema.Number},
		{Name: "rare", Type: schema.Ordinal, Keywords: 70000},
		{Name: "none", Type: schema.Ordinal},
	}}
	withKeys, withPayload, withText := random.IntN(3), random.IntN(2) == 0, random.IntN(2) == 0
	for id := range n {
		o := modelObject{values: make([][]any, len(m.specs))}
		if random.IntN(10) > 0 { // else an empty object
			o.values[0] = []any{math.Round(random.NormFloat64()*1000) / 10}
			for range random.IntN(3) {
				o.values[1] = append(o.values[1], random.ExpFloat64())
			}
			o.values[2] = []any{float64(random.IntN(50)) - 25}
			o.values[3] = []any{randomString(random)}
			for range random.IntN(5) {
				word := strconv.Itoa(int(random.ExpFloat64() * 20))
				o.values[4] = append(o.values[4], word)
				if random.IntN(4) == 0 {
					o.values[4] = append(o.values[4], word)
				}
			}
			o.values[5] = []any{random.Uint32N(m.specs[5].Keywords)}
			if random.IntN(50) == 0 {
				o.values[8] = []any{random.Uint32N(70000)}
			}
		}
		if withKeys == 1 || withKeys == 2 && random.IntN(2) == 0 {
			o.key = "key " + strconv.Itoa(id)
		}
		if withPayload && random.IntN(3) == 0 {
			o.payload = `{"id":` + strconv.Itoa(id) + `}`
		}
		if withText && random.IntN(3) == 0 {
			o.sequence = randomString(random)
		}
		m.objects = append(m.objects, o)
	}
	return m
}

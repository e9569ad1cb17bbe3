package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/tree"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// allForms is a schema with a column of every form, and what is kept of them.
func allForms() (*schema.Schema, []schema.KeptSpec) {
	s := &schema.Schema{}
	var specs []schema.KeptSpec
	for _, c := range []struct {
		name string
		spec schema.KeptSpec
	}{
		{"price", schema.KeptSpec{Form: schema.KeptNumbers, Returned: true}},
		{"nothing", schema.KeptSpec{}},
		{"sizes", schema.KeptSpec{Form: schema.KeptNumbers}},
		{"title", schema.KeptSpec{Form: schema.KeptTerms, Returned: true, IDFScale: 16}},
		{"tags", schema.KeptSpec{Form: schema.KeptTerms, Vocabulary: true}},
		{"image", schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 5, Returned: true}},
		{"pixels", schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 3, Bytes: true, Returned: true}},
		{"name", schema.KeptSpec{Form: schema.KeptTexts, Returned: true}},
		{"tree", schema.KeptSpec{Form: schema.KeptTrees, Returned: true}},
		{"graph", schema.KeptSpec{Form: schema.KeptGraphs}},
		{"note", schema.KeptSpec{Returned: true}},
	} {
		s.Columns = append(s.Columns, schema.Column{Name: c.name})
		specs = append(specs, c.spec)
	}
	return s, specs
}

// randomObject is one that may have anything or nothing in each column.
func randomObject(r *rand.Rand, specs []schema.KeptSpec) []schema.Values {
	values := make([]schema.Values, len(specs))
	for i := range specs {
		v, spec := &values[i], &specs[i]
		if r.IntN(5) == 0 {
			continue
		}
		switch spec.Form {
		case schema.KeptNumbers:
			for range 1 + r.IntN(2)*r.IntN(3)*i { // the first column has one at most
				v.Numbers = append(v.Numbers, float64(r.IntN(1000))/8)
			}
		case schema.KeptTerms:
			for _, word := range r.Perm(40)[:r.IntN(9)] {
				v.Strings = append(v.Strings, "w"+strconv.Itoa(word))
			}
			if r.IntN(3) == 0 {
				for range v.Strings {
					v.Frequencies = append(v.Frequencies, uint32(1+r.IntN(2)*r.IntN(1+r.IntN(300))))
				}
			}
		case schema.KeptVectors:
			for range spec.Dimensions {
				e := float32(r.IntN(256))
				if !spec.Bytes {
					e = e/7 - 10
				}
				v.Vector = append(v.Vector, e)
			}
		case schema.KeptTexts:
			v.Text = fmt.Sprintf("text %d é\"", r.IntN(100))
		case schema.KeptTrees, schema.KeptGraphs:
			v.Stored = randomBlob(r, spec.Form)
		}
		if inRows(spec) {
			v.JSON = []byte(strconv.Quote(string(make([]byte, r.IntN(30)*r.IntN(30)))))
			v.JSON = bytes.ReplaceAll(v.JSON, []byte(`\x00`), []byte("ab"))
		}
	}
	return values
}

func randomBlob(r *rand.Rand, form schema.KeptForm) []byte {
	labels := []string{"a", "é", "b"}[:1+r.IntN(3)]
	if form == schema.KeptTrees {
		var t tree.Tree
		if err := t.Build(labels, []int{-1, 0, r.IntN(2)}[:len(labels)], tree.Limits{}); err != nil {
			panic(err)
		}
		return t.Append(nil)
	}
	var g graph.Graph
	if err := g.Build(labels, nil, graph.Limits{}); err != nil {
		panic(err)
	}
	return g.Append(nil)
}

func newTestBuilder(t testing.TB, workers int) (*Builder, []schema.KeptSpec) {
	t.Helper()
	s, specs := allForms()
	b, err := NewBuilder(s, specs, workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b, specs
}

func content(t testing.TB, b *Builder) []byte {
	t.Helper()
	draft, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	data, err := store.Memory(t.Context(), b.objects, []store.Draft{draft})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openForward(data []byte) (*Forward, error) {
	var x *Forward
	_, err := store.OpenBytes(data, Family{}.Sections(), func(f *store.File) error {
		var err error
		x, err = open(f)
		return err
	})
	return x, err
}

// TestRoundTrip keeps random objects, of several tiles, and compares all that is returned of them; the bytes do not depend on the
// number of workers, on how often they were asked for or on what waited in a file.
func TestRoundTrip(t *testing.T) {
	r := seeded.Rand(t)
	for _, n := range []int{0, 1, 63, 64, 65, 700, store.TileObjects + 100} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			a, specs := newTestBuilder(t, 1)
			b, _ := newTestBuilder(t, 4)
			b.spool.limit = 1 << 10
			var objects [][]schema.Values
			for i := range n {
				o := make([]schema.Values, len(specs))
				if few := n > store.TileObjects; !few || i%8 == 0 || i > store.TileObjects-200 { // most have nothing
					o = randomObject(r, specs)
				}
				objects = append(objects, o)
				for _, builder := range []*Builder{a, b} {
					if err := builder.Add(o); err != nil {
						t.Fatal(err)
					}
				}
				if i == n/2 {
					content(t, b)
				}
			}
			data := content(t, a)
			if !bytes.Equal(data, content(t, b)) {
				t.Fatal("workers, a file or asking half-way change the bytes")
			}
			if n > store.TileObjects && b.spool.file == nil {
				t.Error("nothing waited in a file")
			}
			x, err := openForward(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			compareAll(t, x, objects, specs)
		})
	}
}

func compareAll(t *testing.T, x *Forward, objects [][]schema.Values, specs []schema.KeptSpec) {
	t.Helper()
	s, _ := allForms()
	counts := make([]map[string]uint32, len(specs))
	for _, o := range objects {
		for i := range o {
			for _, w := range o[i].Strings {
				if counts[i] == nil {
					counts[i] = make(map[string]uint32)
				}
				counts[i][w]++
			}
		}
	}
	reader := x.NewReader()
	for id, o := range objects {
		if id > 1000 && id < store.TileObjects-100 && id%41 > 0 {
			continue
		}
		for i := range o {
			c := x.Column(s.Columns[i].Name)
			if c == nil {
				if specs[i] != (schema.KeptSpec{}) {
					t.Fatalf("column %q is not there", s.Columns[i].Name)
				}
				continue
			}
			compareValue(t, c, uint32(id), &o[i], counts[i], uint32(len(objects)))
			if specs[i].Returned {
				compareJSON(t, reader, c, uint32(id), &o[i])
			}
			if t.Failed() {
				t.Fatalf("column %q of object %d: %+v", c.Name, id, o[i])
			}
		}
	}
}

func compareValue(t *testing.T, c *Column, id uint32, v *schema.Values, counts map[string]uint32, n uint32) {
	t.Helper()
	if got := c.Numbers(id); !slices.Equal(got, v.Numbers) {
		t.Errorf("numbers %v", got)
	}
	floats, elements := c.Vector(id)
	for _, e := range elements {
		floats = append(floats, float32(e))
	}
	if !slices.Equal(floats, v.Vector) {
		t.Errorf("vector %v", floats)
	}
	if got := c.Text(id); got != v.Text+string(v.Stored) {
		t.Errorf("text %q", got)
	}
	if c.Form != schema.KeptTerms {
		return
	}
	names := slices.Sorted(maps.Keys(counts))
	frequencies := make(map[string]uint32)
	for i, w := range v.Strings {
		frequencies[w] = 1
		if len(v.Frequencies) > 0 {
			frequencies[w] = v.Frequencies[i]
		}
	}
	record, row := c.Terms(id)
	length, sum := uint32(0), uint32(0)
	for i, w := range slices.Sorted(maps.Keys(frequencies)) {
		if names[row.Keywords[i]] != w || row.Frequency(i) != frequencies[w] || c.Frequency(row.Keywords[i]) != counts[w] {
			t.Errorf("term %d is %q %d times and in %d objects, should be %q", i, names[row.Keywords[i]], row.Frequency(i),
				c.Frequency(row.Keywords[i]), w)
		}
		length += frequencies[w]
		if c.IDFScale > 0 {
			idf, err := similarity.NewIDF(c.IDFScale, uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			sum += idf.Weight(uint64(counts[w]))
		}
		if found, ok := c.Lookup(w); c.Vocabulary && (!ok || found != row.Keywords[i]) {
			t.Errorf("%q is found as %d", w, found)
		}
	}
	if record.Length != length || record.Sum != sum || int(record.Terms) != len(frequencies) || len(row.Keywords) != len(frequencies) {
		t.Errorf("record %+v, length %d, sum %d", record, length, sum)
	}
}

func compareJSON(t *testing.T, r *Reader, c *Column, id uint32, v *schema.Values) {
	t.Helper()
	got, ok := r.AppendJSON([]byte("x"), c, id)
	got = got[1:]
	var want any
	switch {
	case inRows(&c.KeptSpec):
		if string(got) != string(v.JSON) || ok != (len(v.JSON) > 0) {
			t.Errorf("stored %q, not %q", got, v.JSON)
		}
		return
	case len(v.Numbers) == 1:
		want = v.Numbers[0]
	case len(v.Numbers) > 1:
		want = v.Numbers
	case len(v.Vector) > 0:
		want = v.Vector
	case v.Text != "":
		want = v.Text
	}
	if want == nil {
		if ok {
			t.Errorf("returns %s of nothing", got)
		}
		return
	}
	expect, _ := json.Marshal(want)
	if !ok || string(got) != string(expect) {
		t.Errorf("returns %s, not %s", got, expect)
	}
}

// TestRepeats: frequencies around the borders of their forms, terms given twice, and large rows among small ones.
func TestRepeats(t *testing.T) {
	s := &schema.Schema{Columns: []schema.Column{{Name: "text"}}}
	specs := []schema.KeptSpec{{Form: schema.KeptTerms, Returned: true, IDFScale: 1}}
	b, err := NewBuilder(s, specs, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(v schema.Values) {
		t.Helper()
		if err := b.Add([]schema.Values{v}); err != nil {
			t.Fatal(err)
		}
	}
	frequencies := []uint32{1, 2, 254, 255, 256, 257, 65536, 1 << 30}
	for _, f := range frequencies {
		add(schema.Values{Strings: []string{"b", "a", "c"}, Frequencies: []uint32{f, 1, 1}, JSON: bytes.Repeat([]byte("9"), int(f%100_000))})
	}
	add(schema.Values{Strings: []string{"b", "a", "b", "b"}, Frequencies: []uint32{1, 2, 3, 4}})
	x, err := openForward(content(t, b))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	c := x.Column("text")
	reader := x.NewReader()
	for i, f := range frequencies {
		record, row := c.Terms(uint32(i))
		if record.Length != f+2 || row.Frequency(0) != 1 || row.Frequency(1) != f || row.Frequency(2) != 1 {
			t.Errorf("object %d: %+v, %d", i, record, row.Frequency(1))
		}
		if got, _ := reader.AppendJSON(nil, c, uint32(i)); len(got) != int(f%100_000) {
			t.Errorf("object %d: %d bytes are returned, not %d", i, len(got), f%100_000)
		}
	}
	record, row := c.Terms(uint32(len(frequencies)))
	if !slices.Equal(row.Keywords, []uint32{0, 1}) || row.Frequency(0) != 2 || row.Frequency(1) != 8 || record.Length != 10 {
		t.Errorf("terms that are given twice: %+v %+v", record, row)
	}
}

// TestLargeRows: blocks leave memory before their tile is full, and blocks of one large row are found among others.
func TestLargeRows(t *testing.T) {
	r := seeded.Rand(t)
	s := &schema.Schema{Columns: []schema.Column{{Name: "note"}}}
	var builders []*Builder
	for _, workers := range []int{1, 3} {
		b, err := NewBuilder(s, []schema.KeptSpec{{Returned: true}}, workers, nil)
		if err != nil {
			t.Fatal(err)
		}
		builders = append(builders, b)
	}
	builders[1].spool.limit = 1 << 10
	pool := make([]byte, 1<<20) // compressed to some half
	for i := range pool {
		pool[i] = 'a' + byte(r.IntN(26)*r.IntN(2))
	}
	var notes [][]byte
	for range 500 {
		n, from := r.IntN(2)*r.IntN(200_000)+r.IntN(100), r.IntN(len(pool)/2)
		note := pool[from : from+n]
		notes = append(notes, note)
		for _, b := range builders {
			if err := b.Add([]schema.Values{{JSON: note}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(builders[0].stored.early) == 0 {
		t.Error("nothing left memory early")
	}
	data := content(t, builders[0])
	if !bytes.Equal(data, content(t, builders[1])) {
		t.Fatal("workers or a file change the bytes")
	}
	x, err := openForward(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	reader := x.NewReader()
	for range 2 {
		for _, id := range r.Perm(len(notes)) {
			if got, _ := reader.AppendJSON(nil, x.Column("note"), uint32(id)); !bytes.Equal(got, notes[id]) {
				t.Fatalf("object %d returns %d bytes, not %d", id, len(got), len(notes[id]))
			}
		}
	}
}

// TestRefuses: specs that cannot be, and values that do not fit them.
func TestRefuses(t *testing.T) {
	s := &schema.Schema{Columns: []schema.Column{{Name: "c"}}}
	for _, spec := range []schema.KeptSpec{
		{Form: schema.KeptVectors}, {Form: schema.KeptVectors, Dimensions: MaxDimensions + 1}, {Form: schema.KeptTexts, Dimensions: 1},
		{Form: schema.KeptTexts, Bytes: true}, {Form: schema.KeptNumbers, IDFScale: 1}, {Form: schema.KeptTerms, IDFScale: 65},
		{Form: schema.KeptTexts, Vocabulary: true}, {Form: schema.KeptTerms, IDFScale: -1},
	} {
		if _, err := NewBuilder(s, []schema.KeptSpec{spec}, 1, nil); err == nil {
			t.Errorf("%+v is taken", spec)
		}
	}
	if b, err := NewBuilder(s, []schema.KeptSpec{{}}, 1, nil); b != nil || err != nil {
		t.Error("something is built of nothing")
	}
	for _, c := range []struct {
		spec  schema.KeptSpec
		value schema.Values
	}{
		{schema.KeptSpec{Form: schema.KeptNumbers}, schema.Values{Numbers: []float64{math.NaN()}}},
		{schema.KeptSpec{Form: schema.KeptNumbers}, schema.Values{Numbers: []float64{1, math.Inf(1)}}},
		{schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 2}, schema.Values{Vector: []float32{1}}},
		{schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 1}, schema.Values{Vector: []float32{float32(math.Inf(-1))}}},
		{schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 1, Bytes: true}, schema.Values{Vector: []float32{256}}},
		{schema.KeptSpec{Form: schema.KeptVectors, Dimensions: 1, Bytes: true}, schema.Values{Vector: []float32{.5}}},
		{schema.KeptSpec{Form: schema.KeptTerms}, schema.Values{Strings: []string{"a", "b"}, Frequencies: []uint32{1 << 31, 1}}},
	} {
		b, err := NewBuilder(s, []schema.KeptSpec{c.spec}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b.Add([]schema.Values{c.value}) == nil {
			t.Errorf("%+v takes %+v", c.spec, c.value)
		}
	}
}

// TestCancelled: writing ends with its context, without a goroutine left.
func TestCancelled(t *testing.T) {
	b, specs := newTestBuilder(t, 3)
	r := seeded.Rand(t)
	for range 1000 {
		if err := b.Add(randomObject(r, specs)); err != nil {
			t.Fatal(err)
		}
	}
	draft, err := b.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Memory(ctx, b.objects, []store.Draft{draft}); err == nil {
		t.Error("a cancelled context does not end writing")
	}
	if _, err := b.Finish(ctx); err == nil {
		t.Error("a cancelled context does not end finishing")
	}
}

// BenchmarkRow is what it takes to return a stored value of an object anywhere.
func BenchmarkRow(b *testing.B) {
	s := &schema.Schema{Columns: []schema.Column{{Name: "note"}}}
	builder, err := NewBuilder(s, []schema.KeptSpec{{Returned: true}}, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	const n = 100_000
	values := make([]schema.Values, 1)
	total := 0
	for i := range n {
		values[0].JSON = fmt.Appendf(values[0].JSON[:0], `"a title of number %d with price %d and some more words, as titles have"`, i, r.IntN(1000))
		total += len(values[0].JSON)
		if err := builder.Add(values); err != nil {
			b.Fatal(err)
		}
	}
	data := content(b, builder)
	x, err := openForward(data)
	if err != nil {
		b.Fatal(err)
	}
	reader, column := x.NewReader(), x.Column("note")
	var out []byte
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		out, _ = reader.AppendJSON(out[:0], column, r.Uint32N(n))
	}
	b.ReportMetric(float64(len(data))/float64(total), "bytes/byte")
}

// TestTooManyWordsOfATile sets the limit by hand: nobody adds 16 GiB of words in a test. What the limit lets in is found again, and one word more is refused.
func TestTooManyWordsOfATile(t *testing.T) {
	for _, c := range []struct {
		most    uint64
		refused int // object; -1: none
	}{{12, -1}, {11, 2}, {7, 2}, {5, 1}} {
		s := &schema.Schema{Columns: []schema.Column{{Name: "a"}}}
		b, err := NewBuilder(s, []schema.KeptSpec{{Form: schema.KeptTerms, Vocabulary: true}}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.columns[0].tile.(*termsBuilder).most = c.most
		refused := -1
		for i, v := range []schema.Values{
			{Strings: []string{"a", "b"}}, {Strings: []string{"a", "b"}, Frequencies: []uint32{300, 1}}, {Strings: []string{"a", "c", "d"}, Frequencies: []uint32{1, 2, 3}},
		} {
			if err := b.Add([]schema.Values{v}); err != nil {
				if refused = i; !strings.Contains(err.Error(), fmt.Sprintf(`column "a": the last %d objects have more different words`, i+1)) {
					t.Errorf("%d: %v", i, err)
				}
				break
			}
		}
		if refused != c.refused {
			t.Errorf("of at most %d words object %d is refused, not %d", c.most, refused, c.refused)
		}
	}
}

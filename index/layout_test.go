package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// inLayout is the model's index with every attribute that can have the layout in it, others in postings.
func (m *model) inLayout(t testing.TB, layout schema.Layout) *index.Index {
	t.Helper()
	copied := *m
	copied.specs = slices.Clone(m.specs)
	for i := range copied.specs {
		copied.specs[i].Layout = schema.LayoutPostings.String()
		most, used := 0, make(map[any]bool)
		for _, o := range m.objects {
			most = max(most, len(o.values[i]))
			for _, v := range o.values[i] {
				used[v] = true
			}
		}
		if layout == schema.LayoutSliced && most <= 1 && len(used) <= postings.MaxSlicedKeywords || layout == schema.LayoutRare && m.specs[i].Type == schema.Text {
			copied.specs[i].Layout = layout.String()
		}
	}
	x := copied.open(t)
	for i, a := range x.Attributes() {
		if a.Layout.String() != copied.specs[i].Layout {
			t.Fatalf("attribute %q has layout %v, not %s", a.Name, a.Layout, copied.specs[i].Layout)
		}
	}
	return x
}

// sameEverywhere compares what a Decoder makes of an index with the postings of the same objects in LayoutPostings,
// tile by tile in ascending and in random order, and what Validate and the statistics say.
func sameEverywhere(t testing.TB, random *rand.Rand, want, got *index.Index) {
	t.Helper()
	if err := got.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	var decoder postings.Decoder
	compare := func(tile, attr int) {
		a, b := want.Postings(tile, attr), decoder.Postings(got.Lists, tile, attr)
		aw, as, ai := a.Arrays()
		bw, bs, bi := b.Arrays()
		if !slices.Equal(aw, bw) || !slices.Equal(as, bs) || !slices.Equal(ai, bi) {
			t.Fatalf("tile %d, attribute %q in layout %v: %d postings in %d lists, want %d in %d, or others", tile,
				want.Attributes()[attr].Name, got.Attributes()[attr].Layout, b.Len(), b.Lists(), a.Len(), a.Lists())
		}
	}
	for attr := range want.Attributes() {
		for tile := range want.Tiles() {
			compare(tile, attr)
		}
		a, b := want.ListStatistics(attr), got.ListStatistics(attr)
		if a.Median != b.Median || a.P99 != b.P99 || a.Max != b.Max || a.Longest != b.Longest {
			t.Fatalf("attribute %d: statistics %+v, want %+v", attr, b, a)
		}
	}
	if want.Tiles() > 0 && len(want.Attributes()) > 0 {
		for range 50 {
			compare(random.IntN(want.Tiles()), random.IntN(len(want.Attributes())))
		}
	}
}

// TestLayoutsHoldTheSame builds random data in every layout, at the sizes where words, groups and tiles end.
func TestLayoutsHoldTheSame(t *testing.T) {
	raced.Skip(t, raced.Same)
	const T = store.TileObjects
	for _, n := range []int{0, 1, 31, 32, 33, 1023, 1024, 1025, T - 1, T, T + 1, 3*T + 5} {
		if testing.Short() && n > 1025 && n != T+1 {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			random := seeded.Rand(t)
			m := randomModel(random, n)
			want := m.inLayout(t, schema.LayoutPostings)
			for _, layout := range []schema.Layout{schema.LayoutSliced, schema.LayoutRare} {
				sameEverywhere(t, random, want, m.inLayout(t, layout))
			}
		})
	}
}

// TestSlicedVocabularies checks the numbers of keywords at which planes begin and codes grow a byte, and gaps among
// the keywords.
func TestSlicedVocabularies(t *testing.T) {
	raced.Skip(t, raced.One)
	for _, used := range []int{0, 1, 2, 3, 127, 128, 255, 256, 257, postings.MaxSlicedKeywords - 1, postings.MaxSlicedKeywords} {
		for _, gap := range []uint32{1, 7} {
			t.Run(fmt.Sprint(used, gap), func(t *testing.T) {
				random := seeded.Rand(t)
				m := &model{specs: []schema.AttributeSpec{{Name: "code", Type: schema.Ordinal, Keywords: uint32(used)*gap + 3}}}
				for id := range max(2*used, 1500) {
					o := modelObject{values: make([][]any, 1)}
					if used > 0 && (id < used || random.IntN(4) > 0) {
						o.values[0] = []any{uint32(id%used)*gap + 1}
					}
					m.objects = append(m.objects, o)
				}
				x := m.inLayout(t, schema.LayoutSliced)
				sameEverywhere(t, random, m.inLayout(t, schema.LayoutPostings), x)
				if planes := x.Planes(0, 0); planes.Planes() != bits.Len(uint(used)) || x.Codes(0).Len() != used {
					t.Errorf("%d planes of %d codes, want %d of %d", planes.Planes(), x.Codes(0).Len(), bits.Len(uint(used)), used)
				}
			})
		}
	}
}

// TestPlanesAreWhereTheyAreSaidToBe reads the planes as docs/format.md and the kernels do, and the codes as queries do.
func TestPlanesAreWhereTheyAreSaidToBe(t *testing.T) {
	random := seeded.Rand(t)
	m := &model{specs: []schema.AttributeSpec{{Name: "code", Type: schema.Ordinal, Keywords: 1000}}}
	counts := make([]uint64, 1000)
	for range store.TileObjects + 1500 {
		o := modelObject{values: make([][]any, 1)}
		if random.IntN(5) > 0 {
			keyword := random.Uint32N(500) * 2
			o.values[0] = []any{keyword}
			counts[keyword]++
		}
		m.objects = append(m.objects, o)
	}
	x := m.inLayout(t, schema.LayoutSliced)
	codes := x.Codes(0)
	for tile := range x.Tiles() {
		planes := x.Planes(tile, 0)
		for local := range len(planes.Words()) / planes.Planes() * 32 {
			code := uint32(0)
			for p := range planes.Planes() {
				word := planes.Words()[(local/1024*planes.Planes()+p)*32+local%1024/32]
				code |= word >> (local % 32) & 1 << p
			}
			want := uint32(codes.Len())
			if id := tile*store.TileObjects + local; id < len(m.objects) && m.objects[id].values[0] != nil {
				want = codes.Of(m.objects[id].values[0][0].(uint32))
			}
			if code != want {
				t.Fatalf("tile %d, object %d has code %d, want %d", tile, local, code, want)
			}
		}
	}
	before := uint64(0)
	for keyword, n := range counts {
		lo, hi := codes.Before(codes.Of(uint32(keyword))), codes.Before(codes.Of(uint32(keyword)+1))
		if lo != before || hi != before+n {
			t.Fatalf("keyword %d: objects %d to %d, want %d to %d", keyword, lo, hi, before, before+n)
		}
		before += n
	}
}

// TestRareRuns reads spans from frequent and rare lists as engines do.
func TestRareRuns(t *testing.T) {
	raced.Skip(t, raced.One)
	random := seeded.Rand(t)
	m := randomModel(random, 4*store.TileObjects+77)
	want, x := m.inLayout(t, schema.LayoutPostings), m.inLayout(t, schema.LayoutRare)
	bag := attributeOf(t, x, "bag")
	r, keywords := x.Rare(bag), x.Attributes()[bag].Keywords
	if r.Lists() == 0 || r.Lists() == int(keywords) {
		t.Fatalf("%d of %d keywords are rare: the test needs some", r.Lists(), keywords)
	}
	missing := make([]int, x.Objects()) // how often an object is in the one and not in the other
	for range 200 {
		lo := random.Uint32N(keywords + 1)
		hi := lo + random.Uint32N(keywords-lo+1)
		for tile := range x.Tiles() {
			for _, id := range want.Postings(tile, bag).Run(lo, hi) {
				missing[tile*store.TileObjects+int(id)]++
			}
			for _, id := range x.Postings(tile, bag).Run(r.Frequent(lo), r.Frequent(hi)) {
				missing[tile*store.TileObjects+int(id)]--
			}
		}
		for _, id := range r.Run(lo, hi) {
			missing[id]--
		}
		if id := slices.IndexFunc(missing, func(n int) bool { return n != 0 }); id >= 0 {
			t.Fatalf("keywords [%d,%d): object %d, among others, is missing %d times", lo, hi, id, missing[id])
		}
	}
}

// TestLayoutThatDoesNotFit checks what a schema that asks for the wrong layout is told, and that it is told before all
// objects are in where that can be.
func TestLayoutThatDoesNotFit(t *testing.T) {
	const most = postings.MaxSlicedKeywords
	text := func(b *onebyone.Builder, i int) error { b.AddString(0, fmt.Sprint(i)); return nil }
	cases := []struct {
		spec schema.AttributeSpec
		add  func(b *onebyone.Builder, i int) error
		then int // objects that are taken before the one that is not; -1: none is asked for, -2: all are taken
		want string
	}{
		{schema.AttributeSpec{Name: "a", Type: schema.Text, Layout: "sliced"}, func(b *onebyone.Builder, i int) error {
			for range 1 + i/7 {
				b.AddString(0, "x")
			}
			return nil
		}, 7, `"a" has 2 values in one object`},
		{schema.AttributeSpec{Name: "a", Type: schema.Text, Layout: "sliced"}, text, most, "has 16385 values, layout sliced is for at most 16384"},
		{schema.AttributeSpec{Name: "a", Type: schema.Number, Edges: schema.Exact, Layout: "sliced"},
			func(b *onebyone.Builder, i int) error { return b.AddNumber(0, float64(i)) }, -2, "has 16386 values, layout sliced"},
		{schema.AttributeSpec{Name: "a", Type: schema.Number, Layout: "rare"}, nil, -1, "for categories and texts"},
		{schema.AttributeSpec{Name: "a", Type: schema.Ordinal, Keywords: 1 << 31, Layout: "rare"}, nil, -1, "for categories and texts"},
		{schema.AttributeSpec{Name: "a", Type: schema.Number, Layout: "flat"}, nil, -1, "use auto, postings, sliced or rare"},
	}
	for _, c := range cases {
		b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{c.spec}, index.BuilderOptions{})
		taken := -1
		for i := 0; err == nil && i < most+2; i++ {
			taken = i
			if err = c.add(b, i); err == nil {
				err = b.EndObject("", nil, "")
			}
		}
		if err == nil {
			taken = -2
			_, err = b.Bytes(context.Background())
		} else if taken == most { // the schema is wrong for whatever comes
			b.AddString(0, "x")
			if again := b.EndObject("", nil, ""); again != err {
				t.Errorf("%+v: a later object is told %v", c.spec, again)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || taken != c.then {
			t.Errorf("%+v: %v after %d objects, want %q after %d", c.spec, err, taken, c.want, c.then)
		}
	}

	// A text that only a dropped object had does not count.
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{{Name: "a", Type: schema.Text, Layout: "sliced"}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dropped := b.NewBatch()
	dropped.AddString(0, "dropped")
	if err := errors.Join(dropped.EndObject(), b.Append(dropped, []bool{true})); err != nil {
		t.Fatal(err)
	}
	for i := range most {
		if err := errors.Join(text(b, i), b.EndObject("", nil, "")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Bytes(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestValidateFindsInLayouts makes damage in planes, codes and rare lists that Open has no reason to see.
func TestValidateFindsInLayouts(t *testing.T) {
	cases := []struct {
		name   string
		change func(x *index.Index)
		want   string
	}{
		{"another code", func(x *index.Index) { x.Planes(0, 0).Words()[0] ^= 1 }, "its directory says"},
		{"an object lost", func(x *index.Index) { x.Planes(0, 0).Words()[0] |= 1; x.Planes(0, 0).Words()[64] |= 1 }, "its entry says"},
		{"a rare object moved", func(x *index.Index) {
			_, _, ids := x.Rare(1).Arrays()
			ids[len(ids)-1] = x.Objects() - 1
		}, "its entry says"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := layoutsIndex(t)
			x, err := index.OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			c.change(x)
			reseal(data)
			if x, err = index.OpenBytes(data); err != nil {
				t.Fatalf("Open sees it: %v", err)
			}
			if err := x.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Validate: %v, want %q", err, c.want)
			}
			exercise(x)
		})
	}
}

// TestOpenFindsWhatIsNotThere makes postings and codes of objects that a tile has not, and codes that there are not.
func TestOpenFindsWhatIsNotThere(t *testing.T) {
	for _, objects := range []int{1, 31, 32, 33, 1023, 1024, 1025, 2049, 3000, store.TileObjects} {
		m := &model{specs: []schema.AttributeSpec{
			{Name: "sliced", Type: schema.Ordinal, Keywords: 5, Layout: "sliced"}, {Name: "plain", Type: schema.Ordinal, Keywords: 5, Layout: "postings"},
		}}
		for id := range objects {
			m.objects = append(m.objects, modelObject{values: [][]any{{uint32(id % 5)}, {uint32(id % 5)}}})
		}
		random := seeded.Rand(t)
		for range raced.Of(20, 2) {
			data := m.bytes(t, index.BuilderOptions{})
			x, err := index.OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			planes, v := x.Planes(0, 0), x.Codes(0).Len()
			if beyond := (objects+postings.GroupObjects-1)/postings.GroupObjects*postings.GroupObjects - objects; beyond > 0 && random.IntN(2) == 0 {
				place := objects + random.IntN(beyond)
				x.Planes(0, 0).Words()[(place/postings.GroupObjects*planes.Planes()+random.IntN(planes.Planes()))*32+place%postings.GroupObjects/32] ^= 1 << (place % 32)
				want = fmt.Sprintf("object %d", place) // has a code, maybe above V
			} else if random.IntN(2) == 0 && v > 1 && v&(v+1) != 0 {
				place := random.IntN(objects) // gets a code of all ones
				for p := range planes.Planes() {
					x.Planes(0, 0).Words()[(place/postings.GroupObjects*planes.Planes()+p)*32+place%postings.GroupObjects/32] |= 1 << (place % 32)
				}
				want = fmt.Sprintf("object %d has a code above", place)
			} else {
				_, _, ids := x.Postings(0, 1).Arrays()
				ids[random.IntN(objects)] = uint16(objects + random.IntN(1<<16-objects))
				want = "a posting is of object"
			}
			reseal(data)
			var damaged *store.CorruptError
			if _, err := index.OpenBytes(data); !errors.As(err, &damaged) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%d objects: %v, want %q", objects, err, want)
			}
		}
	}
}

// TestRareHead: a section that says another number of ids than it has is refused.
func TestRareHead(t *testing.T) {
	data := layoutsIndex(t)
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Sections() {
		if s.Kind == postings.SectionRare {
			data[s.Offset+4]++
			reseal(data)
			_, err := index.OpenBytes(data)
			if err == nil || !strings.Contains(err.Error(), "bytes of ids") {
				t.Errorf("opening gives %v", err)
			}
			return
		}
	}
	t.Error("nothing is rare")
}

package index

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// inLayout is the model's index with every attribute that can have the layout in it, others in postings.
func (m *model) inLayout(t testing.TB, layout Layout) *Index {
	t.Helper()
	copied := *m
	copied.specs = slices.Clone(m.specs)
	for i := range copied.specs {
		copied.specs[i].Layout = LayoutPostings.String()
		most, used := 0, make(map[any]bool)
		for _, o := range m.objects {
			most = max(most, len(o.values[i]))
			for _, v := range o.values[i] {
				used[v] = true
			}
		}
		if layout == LayoutSliced && most <= 1 && len(used) <= MaxSlicedKeywords || layout == LayoutRare && m.specs[i].Type == Text {
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
func sameEverywhere(t testing.TB, random *rand.Rand, want, got *Index) {
	t.Helper()
	if err := got.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	var decoder Decoder
	compare := func(tile, attr int) {
		a, b := want.Postings(tile, attr), decoder.Postings(got, tile, attr)
		if !slices.Equal(a.words, b.words) || !slices.Equal(a.starts, b.starts) || !slices.Equal(a.ids, b.ids) {
			t.Fatalf("tile %d, attribute %q in layout %v: %d postings in %d lists, want %d in %d, or others", tile,
				want.Attributes()[attr].Name, got.Attributes()[attr].Layout, b.Len(), b.Lists(), a.Len(), a.Lists())
		}
	}
	for attr := range want.Attributes() {
		for tile := range want.Tiles() {
			compare(tile, attr)
		}
		a, b := want.ListStatistics(attr), got.ListStatistics(attr)
		if a.Used != b.Used || a.Median != b.Median || a.P99 != b.P99 || a.Max != b.Max || a.Longest != b.Longest {
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
	const T = TileObjects
	for _, n := range []int{0, 1, 31, 32, 33, 1023, 1024, 1025, T - 1, T, T + 1, 3*T + 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			random := newRandom(t)
			m := randomModel(random, n)
			want := m.inLayout(t, LayoutPostings)
			for _, layout := range []Layout{LayoutSliced, LayoutRare} {
				sameEverywhere(t, random, want, m.inLayout(t, layout))
			}
		})
	}
}

// TestSlicedVocabularies checks the numbers of keywords at which planes begin and codes grow a byte, and gaps among
// the keywords.
func TestSlicedVocabularies(t *testing.T) {
	for _, used := range []int{0, 1, 2, 3, 127, 128, 255, 256, 257, MaxSlicedKeywords - 1, MaxSlicedKeywords} {
		for _, gap := range []uint32{1, 7} {
			t.Run(fmt.Sprint(used, gap), func(t *testing.T) {
				random := newRandom(t)
				m := &model{specs: []AttributeSpec{{Name: "code", Type: Ordinal, Keywords: uint32(used)*gap + 3}}}
				for id := range max(2*used, 1500) {
					o := modelObject{values: make([][]any, 1)}
					if used > 0 && (id < used || random.IntN(4) > 0) {
						o.values[0] = []any{uint32(id%used)*gap + 1}
					}
					m.objects = append(m.objects, o)
				}
				x := m.inLayout(t, LayoutSliced)
				sameEverywhere(t, random, m.inLayout(t, LayoutPostings), x)
				if planes := x.Planes(0, 0); planes.Planes() != bits.Len(uint(used)) || x.Codes(0).Len() != used {
					t.Errorf("%d planes of %d codes, want %d of %d", planes.Planes(), x.Codes(0).Len(), bits.Len(uint(used)), used)
				}
			})
		}
	}
}

// TestPlanesAreWhereTheyAreSaidToBe reads the planes as docs/format.md and the kernels do, and the codes as queries do.
func TestPlanesAreWhereTheyAreSaidToBe(t *testing.T) {
	random := newRandom(t)
	m := &model{specs: []AttributeSpec{{Name: "code", Type: Ordinal, Keywords: 1000}}}
	counts := make([]uint64, 1000)
	for range TileObjects + 1500 {
		o := modelObject{values: make([][]any, 1)}
		if random.IntN(5) > 0 {
			keyword := random.Uint32N(500) * 2
			o.values[0] = []any{keyword}
			counts[keyword]++
		}
		m.objects = append(m.objects, o)
	}
	x := m.inLayout(t, LayoutSliced)
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
			if id := tile*TileObjects + local; id < len(m.objects) && m.objects[id].values[0] != nil {
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
	random := newRandom(t)
	m := randomModel(random, 4*TileObjects+77)
	want, x := m.inLayout(t, LayoutPostings), m.inLayout(t, LayoutRare)
	bag, _ := x.AttributeByName("bag")
	r, keywords := x.Rare(bag), x.Attributes()[bag].Keywords
	if r.Lists() == 0 || r.Lists() == int(keywords) {
		t.Fatalf("%d of %d keywords are rare: the test needs some", r.Lists(), keywords)
	}
	for range 200 {
		lo := random.Uint32N(keywords + 1)
		hi := lo + random.Uint32N(keywords-lo+1)
		var all, got []uint32
		for tile := range x.Tiles() {
			for _, id := range want.Postings(tile, bag).Run(lo, hi) {
				all = append(all, uint32(tile)*TileObjects+uint32(id))
			}
			for _, id := range x.Postings(tile, bag).Run(r.Frequent(lo), r.Frequent(hi)) {
				got = append(got, uint32(tile)*TileObjects+uint32(id))
			}
		}
		got = append(got, r.Run(lo, hi)...)
		slices.Sort(all)
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Fatalf("keywords [%d,%d): %v, want %v", lo, hi, head(got), head(all))
		}
	}
}

// TestLayoutThatDoesNotFit checks what a schema that asks for the wrong layout is told, and that it is told before all
// objects are in where that can be.
func TestLayoutThatDoesNotFit(t *testing.T) {
	const most = MaxSlicedKeywords
	text := func(b *Builder, i int) error { b.AddString(0, fmt.Sprint(i)); return nil }
	cases := []struct {
		spec AttributeSpec
		add  func(b *Builder, i int) error
		then int // objects that are taken before the one that is not; -1: none is asked for, -2: all are taken
		want string
	}{
		{AttributeSpec{Name: "a", Type: Text, Layout: "sliced"}, func(b *Builder, i int) error {
			for range 1 + i/7 {
				b.AddString(0, "x")
			}
			return nil
		}, 7, `"a" has 2 values in one object`},
		{AttributeSpec{Name: "a", Type: Text, Layout: "sliced"}, text, most, "has 16385 values, layout sliced is for at most 16384"},
		{AttributeSpec{Name: "a", Type: Number, Edges: Exact, Layout: "sliced"},
			func(b *Builder, i int) error { return b.AddNumber(0, float64(i)) }, -2, "has 16386 values, layout sliced"},
		{AttributeSpec{Name: "a", Type: Number, Layout: "rare"}, nil, -1, "for categories and texts"},
		{AttributeSpec{Name: "a", Type: Ordinal, Keywords: 1 << 31, Layout: "rare"}, nil, -1, "for categories and texts"},
		{AttributeSpec{Name: "a", Type: Number, Layout: "flat"}, nil, -1, "use auto, postings, sliced or rare"},
	}
	for _, c := range cases {
		b, err := NewBuilder(schemaFor(t, Rows), []AttributeSpec{c.spec}, BuilderOptions{})
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
		} else if taken >= 0 { // the schema is wrong for whatever comes
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
	b, err := NewBuilder(schemaFor(t, Rows), []AttributeSpec{{Name: "a", Type: Text, Layout: "sliced"}}, BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.AddString(0, "dropped")
	b.DiscardObject()
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
		change func(x *Index)
		want   string
	}{
		{"another code", func(x *Index) { x.planes[0].words[0] ^= 1 }, "its directory says"},
		{"an object lost", func(x *Index) { x.planes[0].words[0] |= 1; x.planes[0].words[64] |= 1 }, "its entry says"},
		{"a rare object moved", func(x *Index) {
			ids := x.rare[1].ids
			ids[len(ids)-1] = x.objects - 1
		}, "its entry says"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := layoutsIndex(t)
			x, err := OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			c.change(x)
			reseal(data)
			if x, err = OpenBytes(data); err != nil {
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
	for _, objects := range []int{1, 31, 32, 33, 1023, 1024, 1025, 2049, 3000, TileObjects} {
		m := &model{specs: []AttributeSpec{
			{Name: "sliced", Type: Ordinal, Keywords: 5, Layout: "sliced"}, {Name: "plain", Type: Ordinal, Keywords: 5, Layout: "postings"},
		}}
		for id := range objects {
			m.objects = append(m.objects, modelObject{values: [][]any{{uint32(id % 5)}, {uint32(id % 5)}}})
		}
		random := newRandom(t)
		for range 20 {
			data := m.bytes(t, BuilderOptions{})
			x, err := OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			planes, v := x.Planes(0, 0), x.Codes(0).Len()
			if beyond := groupsOf(objects)*GroupObjects - objects; beyond > 0 && random.IntN(2) == 0 {
				place := objects + random.IntN(beyond)
				x.planes[0].words[(place/GroupObjects*planes.Planes()+random.IntN(planes.Planes()))*32+place%GroupObjects/32] ^= 1 << (place % 32)
				want = fmt.Sprintf("object %d", place) // has a code, maybe above V
			} else if random.IntN(2) == 0 && v > 1 && v&(v+1) != 0 {
				place := random.IntN(objects) // gets a code of all ones
				for p := range planes.Planes() {
					x.planes[0].words[(place/GroupObjects*planes.Planes()+p)*32+place%GroupObjects/32] |= 1 << (place % 32)
				}
				want = fmt.Sprintf("object %d has a code above", place)
			} else {
				x.postings[1].ids[random.IntN(objects)] = uint16(objects + random.IntN(1<<16-objects))
				want = "a posting is of object"
			}
			reseal(data)
			var damaged *CorruptError
			if _, err := OpenBytes(data); !errors.As(err, &damaged) || !strings.Contains(err.Error(), want) {
				t.Fatalf("%d objects: %v, want %q", objects, err, want)
			}
		}
	}
}

// TestRareHead: a section that says another number of ids than it has is refused.
func TestRareHead(t *testing.T) {
	data := layoutsIndex(t)
	x, err := OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Sections() {
		if s.Kind == SectionRare {
			data[s.Offset+4]++
			reseal(data)
			_, err := OpenBytes(data)
			if err == nil || !strings.Contains(err.Error(), "bytes of ids") {
				t.Errorf("opening gives %v", err)
			}
			return
		}
	}
	t.Error("nothing is rare")
}

// FuzzDecodeRare reads sections of any bytes as rare keywords and as codes and uses what is accepted.
func FuzzDecodeRare(f *testing.F) {
	f.Add([]byte{}, uint32(0), uint32(0))
	x, err := OpenBytes(layoutsIndex(f))
	if err != nil {
		f.Fatal(err)
	}
	for i := range x.sections {
		if s := &x.sections[i]; s.Kind == SectionRare || s.Kind == SectionCodes {
			f.Add(x.bytes(s), x.attributes[s.Attribute].Keywords, x.objects)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, keywords, objects uint32) {
		section := raw(make([]uint64, len(data)/8+1))[:len(data)] // aligned, as sections are
		copy(section, data)
		if r, err := decodeRare(section, keywords, objects); err == nil {
			for _, id := range r.Run(0, keywords) {
				if id >= objects {
					t.Fatalf("object %d of %d", id, objects)
				}
			}
			r.Run(keywords/3, keywords/2)
			if r.Lists()+int(r.Frequent(keywords)) != int(keywords) {
				t.Fatalf("%d rare and %d frequent keywords of %d", r.Lists(), r.Frequent(keywords), keywords)
			}
		}
		if c, err := decodeCodes(section, keywords); err == nil {
			planes := bits.Len(uint(c.Len()))
			words := make([]uint32, planes*32)
			for i := range words {
				words[i] = uint32(i) * 2654435761
			}
			p, err := decodePlanes(raw(words), c, 1000)
			if err != nil {
				t.Fatal(err)
			}
			var d Decoder
			if all := d.sliced(p, c, 1000); len(all.Run(0, keywords)) > 1000 {
				t.Fatalf("%d postings of 1000 objects", all.Len())
			}
		}
	})
}

// TestCostRule checks the choice of auto on either side of each crossover that chooseLayout tells of.
func TestCostRule(t *testing.T) {
	even := func(keywords int, postings uint64, lists uint32) []frequency {
		return slices.Repeat([]frequency{{postings: postings, lists: lists}}, keywords)
	}
	cases := []struct {
		name        string
		a           Attribute
		frequencies []frequency
		objects     uint32
		want        Layout
	}{
		{"67 values, all objects", Attribute{Type: Ordinal, MaxPerObject: 1}, even(67, 10_000, 11), 670_000, LayoutSliced},
		{"67 values, half of the objects", Attribute{Type: Ordinal, MaxPerObject: 1}, even(67, 10_000, 22), 1_340_000, LayoutSliced},
		{"67 values, two fifths of the objects", Attribute{Type: Ordinal, MaxPerObject: 1}, even(67, 10_000, 26), 1_675_000, LayoutPostings},
		{"two values an object", Attribute{Type: Ordinal, MaxPerObject: 2}, even(67, 10_000, 11), 670_000, LayoutPostings},
		{"too many values", Attribute{Type: Ordinal, MaxPerObject: 1}, even(MaxSlicedKeywords+1, 1000, 254), 1000 * (MaxSlicedKeywords + 1), LayoutPostings},
		{"32 categories", Attribute{Type: Text, MaxPerObject: 1}, even(32, 10_000, 5), 320_000, LayoutSliced},
		{"40 categories", Attribute{Type: Text, MaxPerObject: 1}, even(40, 10_000, 7), 400_000, LayoutPostings},
		{"40 categories, one frequent", Attribute{Type: Text, MaxPerObject: 1},
			append(even(39, 1000, 2), frequency{postings: 61_000, lists: 2}), 100_000, LayoutSliced},
		{"a handful of objects", Attribute{Type: Ordinal, MaxPerObject: 1}, even(3, 1, 1), 3, LayoutPostings},
		{"a text, two postings a word", Attribute{Type: Text, MaxPerObject: 9}, even(100_000, 2, 2), 30 * TileObjects, LayoutRare},
		{"the same in few tiles", Attribute{Type: Text, MaxPerObject: 9}, even(100_000, 2, 2), 10 * TileObjects, LayoutPostings},
		{"a text, ten postings a word and tile", Attribute{Type: Text, MaxPerObject: 9}, even(10_000, 100, 10), 10 * TileObjects, LayoutPostings},
		{"a text in one tile", Attribute{Type: Text, MaxPerObject: 9}, even(10_000, 2, 1), 5000, LayoutPostings},
		{"nothing", Attribute{Type: Text}, nil, 5000, LayoutPostings},
	}
	for _, c := range cases {
		c.a.Keywords = uint32(len(c.frequencies))
		for _, f := range c.frequencies {
			c.a.Postings += f.postings
		}
		if got := chooseLayout(&c.a, c.frequencies, c.objects, tilesOf(c.objects)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

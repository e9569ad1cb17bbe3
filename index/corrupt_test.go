package index_test

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// smallIndex is an index in LayoutPostings with every kind of section of it in a few kilobytes.
func smallIndex(t testing.TB) []byte {
	t.Helper()
	m := &model{specs: []schema.AttributeSpec{
		{Name: "number", Type: schema.Number, Buckets: 9, Layout: "postings"},
		{Name: "exact", Type: schema.Number, Edges: schema.Exact, Layout: "postings"},
		{Name: "text", Type: schema.Text, Layout: "postings"},
		{Name: "ordinal", Type: schema.Ordinal, Keywords: 40, Layout: "postings"},
		{Name: "never", Type: schema.Text, Layout: "postings"},
	}}
	words := strings.Fields("a bee see dee eee")
	for id := range 70 {
		m.objects = append(m.objects, modelObject{
			values:   [][]any{{float64(id * id)}, {float64(id % 3)}, {words[id%5], words[id%3]}, {uint32(id % 40)}, nil},
			key:      "k" + words[id%5] + string(rune('0'+id)),
			payload:  `{"a":1}`,
			sequence: words[id%4],
		})
	}
	return m.bytes(t, index.BuilderOptions{})
}

// layoutsIndex is an index with the other layouts. It has two tiles, or nothing were rare, of objects most of which
// have nothing.
func layoutsIndex(t testing.TB) []byte {
	t.Helper()
	m := &model{specs: []schema.AttributeSpec{
		{Name: "sliced", Type: schema.Ordinal, Keywords: 40, Layout: "sliced"},
		{Name: "rare", Type: schema.Text, Layout: "rare"},
		{Name: "never", Type: schema.Ordinal, Keywords: 5, Layout: "sliced"},
		{Name: "nowhere", Type: schema.Text, Layout: "rare"},
	}}
	m.objects = make([]modelObject, store.TileObjects+40)
	for id := range m.objects {
		m.objects[id].values = make([][]any, 4)
		if id%store.TileObjects < 30 {
			m.objects[id].values[0] = []any{uint32(id % 5)}
			m.objects[id].values[1] = []any{"often", string(rune('a' + id%store.TileObjects)), string(rune('A' + id%9))}
		}
	}
	return m.bytes(t, index.BuilderOptions{})
}

// distancesIndex is an index of columns that are searched by distance, with every access path, of objects some of which have no value.
func distancesIndex(t testing.TB) []byte {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(`{name: near, columns: [
		{name: v, type: vector, storage: f16, dims: 3, index: [tree, cells, permutation], tree: {leaf: 4, capacity: 3, bounds: pivot}, cells: {cells: 4}, permutation: {permutants: 5}},
		{name: p, type: point, index: [tree, permutation], permutation: {permutants: 5}},
		{name: s, type: string, index: [tree], tree: {leaf: 3, capacity: 2}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		cells := make([]schema.Cell, 3)
		if i%7 > 0 {
			cells[0].Vector = []float32{float32(i % 4), float32(i % 5), 0.5}
		}
		if i%6 > 0 {
			cells[1].Values = []string{strconv.Itoa(i), strconv.Itoa(5 * i)}
		}
		if i%5 > 0 {
			cells[2].Values = []string{strings.Repeat("ab", i%6) + "c"}
		}
		if err := objects.Add(&schema.Record{Cells: cells}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := objects.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// exerciseDistances searches every column that can be searched by distance in every way; on any bytes that open it must come to an end.
func exerciseDistances(x *index.Index) (sum int) {
	columns := x.Distances()
	for i := range columns.Len() {
		c := columns.At(i)
		all, err := c.Space()
		if err != nil {
			continue
		}
		space, ids, err := c.Dense(all)
		if err != nil {
			panic(err) // which says nothing of the file
		}
		sum += len(ids)
		q := &distance.Query{Column: c, Vector: make([]float32, c.Dims), Text: "abc", K: 3, Most: math.Inf(1), Method: distance.Auto}
		for j := range q.Vector {
			q.Vector[j] = 1
		}
		if q.Check() != nil {
			continue
		}
		for _, method := range c.Built() {
			searcher, err := c.Path(method).Bind(space)
			if err != nil {
				continue
			}
			search, err := searcher.Begin(q, q.Column.Objects)
			if err != nil {
				continue
			}
			search.Run(nil, metric.Until(context.Background()))
			hits := search.End(new(distance.Answer), nil)
			for _, h := range hits {
				if h.ID >= space.Len() {
					panic("a hit that is no object")
				}
			}
			sum += len(hits)
		}
	}
	return sum
}

// exercise calls every accessor over its whole domain; on any bytes that open it must neither panic nor leave
// the file, whatever it answers. It returns a number so that nothing is optimised away.
func exercise(x *index.Index) (sum int) {
	var decoder postings.Decoder
	count := func(ids []uint16) {
		var counters [1 << 16]uint8
		for _, id := range ids {
			counters[id]++
		}
		sum += int(counters[0])
	}
	for attr := range x.Attributes() {
		a := &x.Attributes()[attr]
		switch a.Layout {
		case schema.LayoutSliced:
			codes := x.Codes(attr)
			last := codes.Of(a.Keywords)
			if int(last) != codes.Len() {
				panic("the codes are not all keywords")
			}
			sum += int(codes.Of(a.Keywords/2)) + int(codes.Before(last/2)) + int(codes.Before(last))
		case schema.LayoutRare:
			rare := x.Rare(attr)
			for _, id := range rare.Run(0, a.Keywords) {
				sum += len(x.Key(id)) + int(id)/store.TileObjects/x.Tiles()
				if id >= x.Objects() {
					panic("a rare keyword has an object that does not exist")
				}
			}
			for tile := range x.Tiles() {
				count(x.Postings(tile, attr).Run(0, rare.Frequent(a.Keywords)))
			}
			sum += len(rare.Run(a.Keywords/3, a.Keywords/2))
		}
		var keywords []uint32
		for kw := range min(a.Keywords, 100) {
			keywords = append(keywords, kw, a.Keywords-1-kw)
		}
		for _, kw := range append(keywords, a.Keywords) {
			name := x.KeywordName(attr, kw)
			found, _ := x.Lookup(attr, name)
			sum += int(found) + int(x.LowerBound(attr, name))
			if found > a.Keywords || x.LowerBound(attr, name) > a.Keywords {
				panic("keyword out of range")
			}
		}
		for tile := range x.Tiles() {
			p := decoder.Postings(x.Lists, tile, attr)
			for _, kw := range append(keywords, a.Keywords) {
				if kw < a.Keywords {
					count(p.Run(kw, kw+1))
				}
				count(p.Run(0, kw))
				count(p.Run(kw, a.Keywords))
				if p.Len() != len(p.Run(0, a.Keywords)) {
					panic("the lists are not all postings")
				}
			}
		}
		for _, v := range []float64{math.Inf(-1), a.Min, 0, 1, 1e9, a.Max, math.NaN()} {
			if kw, ok := a.Bucket(v); ok && kw >= a.Keywords {
				panic("bucket out of range")
			}
		}
		if a.Keywords < 1<<16 {
			sum += int(x.ListStatistics(attr).Max)
		}
	}
	for _, id := range []uint32{0, 1, x.Objects() / 2, x.Objects() - 1, x.Objects(), x.Objects() + store.TileObjects, math.MaxUint32} {
		sum += len(x.Key(id)) + len(x.Payload(id)) + len(x.Text(id))
	}
	q := new(postings.MatchQuery)
	for attr := range x.Attributes() {
		q.StartItem(uint32(attr), postings.MaxWeight)
		q.AddSpan(0, 1)
	}
	return sum + exerciseDistances(x) + int(x.CountBound(q)) + len(x.Sections()) + len(x.Schema().Name)
}

// What docs/format.md says of the file.
const (
	headBytes      = 128 // of the header
	tableEntry     = 40  // bytes of an entry of the section table
	attributesHead = 8   // bytes before the first entry of the attribute table
)

// crc32c is the checksum of the format.
func crc32c(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// reseal makes all checksums of data right again, so that damage gets past them, as in a file made on purpose.
func reseal(data []byte) {
	le := binary.LittleEndian
	if len(data) < headBytes {
		return
	}
	table, count := le.Uint64(data[48:]), uint64(le.Uint32(data[44:]))
	if size := uint64(len(data)); table <= size && count <= (size-table)/tableEntry {
		for i := range count {
			e := data[table+i*tableEntry:]
			offset, length := le.Uint64(e[16:]), le.Uint64(e[24:])
			if offset <= size && length <= size-offset {
				le.PutUint32(e[32:], crc32c(data[offset:offset+length]))
			}
		}
		le.PutUint32(data[120:], crc32c(data[table:table+count*tableEntry]))
	}
	le.PutUint32(data[124:], crc32c(data[:124]))
}

// TestFlippedBytes damages bytes of a file, each with GENIEMQ_FULL=1, else some that the seed chooses. As it stands every damage must be found, by Open or, in padding, by
// Validate. With the checksums made right again nothing may panic, and nothing may be read outside.
func TestFlippedBytes(t *testing.T) {
	t.Run("postings", func(t *testing.T) { flipBytes(t, smallIndex(t), chosen(1, 29, 97)) })
	t.Run("layouts", func(t *testing.T) { flipBytes(t, layoutsIndex(t), chosen(1, 29, 97)) })
	t.Run("distances", func(t *testing.T) { flipBytes(t, distancesIndex(t), chosen(1, 29, 431)) })
}

// chosen is the first number with GENIEMQ_FULL=1, the last with -short, as which the race detector runs, and the second otherwise.
func chosen(full, usual, short int) int {
	switch {
	case os.Getenv("GENIEMQ_FULL") == "1":
		return full
	case testing.Short():
		return short
	}
	return usual
}

func flipBytes(t *testing.T, original []byte, step int) {
	x, err := index.OpenBytes(original)
	if err != nil {
		t.Fatal(err)
	}
	refused, opened := 0, 0
	random := seeded.Rand(t)
	for first := 0; first < len(original); first += step {
		i := min(first+random.IntN(step), len(original)-1)
		if skipped := slices.ContainsFunc(x.Sections(), func(s store.Section) bool {
			return s.Kind == postings.SectionPlanes && s.Offset <= int64(i) && int64(i) < s.Offset+s.Length && i%201 != 0
		}); skipped {
			continue // there is much of it, and all the same
		}
		for _, flip := range []byte{0x01, 0x80} {
			data := append([]byte(nil), original...)
			data[i] ^= flip
			if x, err := index.OpenBytes(data); err == nil && x.Validate() == nil {
				t.Fatalf("byte %d ^ %#x is not noticed", i, flip)
			}
			reseal(data)
			x, err := index.OpenBytes(data)
			if err != nil {
				refused++
				continue
			}
			opened++
			exercise(x)
			x.Validate()
		}
	}
	t.Logf("%d bytes: resealed, %d refused and %d opened", len(original), refused, opened)
	if refused == 0 || opened == 0 {
		t.Error("the test does not reach both ways")
	}
}

// TestRandomDamage damages several numbers at a time, with values at the edges of their types.
func TestRandomDamage(t *testing.T) {
	random := seeded.Rand(t)
	originals := [][]byte{smallIndex(t), layoutsIndex(t), distancesIndex(t)}
	for i := range chosen(7_500, 2_250, 300) {
		data := append([]byte(nil), originals[i%3]...)
		for range 1 + random.IntN(3) {
			damage(data, random)
		}
		reseal(data)
		if x, err := index.OpenBytes(data); err == nil {
			exercise(x)
			x.Validate()
		}
	}
}

func damage(data []byte, random *rand.Rand) {
	at := random.IntN(len(data)-8) &^ 3
	values := []uint32{0, 1, 31, 32, 33, math.MaxUint32, math.MaxUint32 - 1, 1 << 31, random.Uint32(), store.TileObjects}
	v := values[random.IntN(len(values))]
	switch random.IntN(3) {
	case 0:
		v = binary.LittleEndian.Uint32(data[at:]) + 1
	case 1:
		v = binary.LittleEndian.Uint32(data[at:]) - 1
	}
	binary.LittleEndian.PutUint32(data[at:], v)
}

// TestTruncated cuts a file at every boundary of a section, one byte to each side, and at every length up to the
// first section. All must be refused, whether or not the header's length is changed with it.
func TestTruncated(t *testing.T) {
	t.Run("postings", func(t *testing.T) { truncate(t, smallIndex(t)) })
	t.Run("layouts", func(t *testing.T) { truncate(t, layoutsIndex(t)) })
	t.Run("distances", func(t *testing.T) { truncate(t, distancesIndex(t)) })
}

func truncate(t *testing.T, original []byte) {
	x, err := index.OpenBytes(original)
	if err != nil {
		t.Fatal(err)
	}
	sections := x.Sections()
	var cuts []int
	for n := range int(sections[0].Offset) {
		cuts = append(cuts, n)
	}
	for _, s := range sections {
		for _, at := range []int64{s.Offset, s.Offset + s.Length} {
			cuts = append(cuts, int(at)-1, int(at), int(at)+1)
		}
	}
	for _, n := range cuts {
		if n >= len(original) {
			continue
		}
		data := append([]byte(nil), original[:n]...)
		if _, err := index.OpenBytes(data); err == nil {
			t.Fatalf("cut to %d of %d bytes opens", n, len(original))
		}
		if n < headBytes {
			continue
		}
		binary.LittleEndian.PutUint64(data[56:], uint64(n))
		reseal(data)
		if x, err := index.OpenBytes(data); err == nil {
			exercise(x)
			if x.Validate() == nil {
				t.Fatalf("cut to %d of %d bytes with the header changed is not noticed", n, len(original))
			}
		}
	}
}

// TestOpenErrors checks what users get to read, and what callers branch on.
func TestOpenErrors(t *testing.T) {
	original := smallIndex(t)
	le := binary.LittleEndian
	entry := func(data []byte, kind store.SectionKind) []byte {
		for e := data[headBytes:]; ; e = e[tableEntry:] {
			if le.Uint16(e) == uint16(kind) {
				return e
			}
		}
	}
	attributeTable := func(data []byte) []byte {
		return data[le.Uint64(entry(data, postings.SectionAttributes)[16:]):]
	}
	cases := []struct {
		name   string
		change func([]byte) []byte
		want   string
		as     any
	}{
		{"empty", func([]byte) []byte { return nil }, "not a geniemq index", nil},
		{"text", func([]byte) []byte { return []byte("age,sex\n1,2\n") }, "not a geniemq index", nil},
		{"short", func(d []byte) []byte { return d[:50] }, "it was cut off", new(*store.CorruptError)},
		{"cut", func(d []byte) []byte { return d[:len(d)-1] }, "it was cut off", new(*store.CorruptError)},
		{"no version", func(d []byte) []byte { le.PutUint32(d[8:], 0); return d }, "format version 0", new(*store.CorruptError)},
		{"version", func(d []byte) []byte { le.PutUint32(d[8:], 2); return d }, "format version 2", new(*store.UnsupportedError)},
		{"feature", func(d []byte) []byte { le.PutUint64(d[16:], 1<<5); return d }, "required feature bits 0x20", new(*store.UnsupportedError)},
		{"tile", func(d []byte) []byte { le.PutUint32(d[32:], 1024); return d }, "tiles of 1024 objects", new(*store.UnsupportedError)},
		{"base", func(d []byte) []byte { le.PutUint64(d[64:], 7); return d }, "id base 7", new(*store.UnsupportedError)},
		{"section", func(d []byte) []byte { le.PutUint16(entry(d, objects.SectionTexts), 99); return d }, "sections of kind 99", new(*store.UnsupportedError)},
		{"missing", func(d []byte) []byte {
			e := entry(d, postings.SectionStrings)
			le.PutUint16(e, 99)
			le.PutUint16(e[2:], 0)
			return d
		},
			"strings section of attribute 2, tile -1 is missing", new(*store.CorruptError)},
		{"twice", func(d []byte) []byte {
			le.PutUint16(entry(d, objects.SectionTexts), uint16(objects.SectionKeys))
			return d
		}, "is there twice", new(*store.CorruptError)},
		{"layout", func(d []byte) []byte { le.PutUint16(attributeTable(d)[attributesHead+10:], 7); return d },
			`attribute "number" in layout 7`, new(*store.UnsupportedError)},
		{"codec", func(d []byte) []byte { le.PutUint16(attributeTable(d)[attributesHead+12:], 3); return d },
			`attribute "number" in codec 3`, new(*store.UnsupportedError)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := c.change(append([]byte(nil), original...))
			reseal(data)
			path := filepath.Join(t.TempDir(), "x.gmq")
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := index.Open(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("Open: %v, want %q and the path", err, c.want)
			}
			if c.as != nil && !errors.As(err, c.as) {
				t.Errorf("%v is not a %T", err, c.as)
			}
			if c.as == nil && !errors.Is(err, store.ErrNotIndex) {
				t.Errorf("%v is not ErrNotIndex", err)
			}
		})
	}
	if _, err := index.Open(filepath.Join(t.TempDir(), "absent.gmq")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
	if _, err := index.Open(t.TempDir()); !errors.Is(err, store.ErrNotIndex) {
		t.Errorf("directory: %v", err)
	}
}

// TestOptionalSection checks that a section of an unknown kind without the required flag is skipped, whatever it is of.
func TestOptionalSection(t *testing.T) {
	data := smallIndex(t)
	le := binary.LittleEndian
	for e := data[headBytes:]; ; e = e[tableEntry:] {
		if store.SectionKind(le.Uint16(e)) == objects.SectionTexts {
			le.PutUint16(e, 999)
			le.PutUint16(e[2:], 0)
			le.PutUint32(e[4:], 5000) // of an attribute, or what the kind means by it
			break
		}
	}
	le.PutUint64(data[24:], 1<<63) // an optional feature
	reseal(data)
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Validate(); err != nil {
		t.Error(err)
	}
	if text := x.Text(3); text != "" {
		t.Errorf("Text = %q of a section that was skipped", text)
	}
}

// TestValidateFinds makes damage that Open has no reason to see, each of another kind.
func TestValidateFinds(t *testing.T) {
	var data []byte // of the index, over which it lies
	section := func(x *index.Index, kind store.SectionKind, attribute int) []byte {
		for _, s := range x.Sections() {
			if s.Kind == kind && (s.Attribute == attribute || attribute < 0) {
				return data[s.Offset : s.Offset+s.Length]
			}
		}
		t.Fatalf("no %v section", kind)
		return nil
	}
	le := binary.LittleEndian
	cases := []struct {
		name   string
		change func(x *index.Index)
		want   string
	}{
		{"ids out of order", func(x *index.Index) { ids := x.Postings(0, 3).Run(0, 1); ids[0], ids[1] = ids[1], ids[0] }, "does not ascend"},
		{"strings out of order", func(x *index.Index) { section(x, postings.SectionStrings, 2)[4*6+1] = 'A' }, "is not above its predecessor"},
		{"hash slot lost", func(x *index.Index) { clear(section(x, postings.SectionLookup, 2)[:4*8]) }, "does not find keyword"},
		{"hash slot too many", func(x *index.Index) {
			for slots := section(x, postings.SectionLookup, 2); ; slots = slots[8:] {
				if le.Uint64(slots) == 0 {
					le.PutUint64(slots, 1)
					return
				}
			}
		}, "6 entries for 5 keywords"},
		{"edges", func(x *index.Index) { e := x.Attributes()[0].Edges; e[1] = e[0] }, "is not above its predecessor"},
		{"edge NaN", func(x *index.Index) { x.Attributes()[0].Edges[1] = math.NaN() }, "NaN, is not above"},
		{"values", func(x *index.Index) { x.Attributes()[1].Values[0] = 9 }, "do not run from"},
		{"totals", func(x *index.Index) { le.PutUint32(section(x, postings.SectionAttributes, -1)[attributesHead+20:], 2) }, "at most 2"},
		{"key twice", func(x *index.Index) {
			table := section(x, objects.SectionKeys, -1)
			offset := func(id int) uint32 { return le.Uint32(table[4*id:]) }
			keys := table[4*(x.Objects()+1):]
			copy(keys[offset(5):offset(6)], keys[offset(0):offset(1)])
		}, "the same key"},
		{"payload", func(x *index.Index) { x.Payload(3)[0] = '[' }, "payload of object 3 is not a JSON object"},
		{"padding", func(x *index.Index) { s := x.Sections()[2]; data[s.Offset-1] = 1 }, "padding before section 2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data = smallIndex(t)
			x, err := index.OpenBytes(data)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Validate(); err != nil {
				t.Fatalf("sound index: %v", err)
			}
			c.change(x) // the index lies over data
			if err := x.Validate(); err == nil || !strings.Contains(err.Error(), "checksum") && c.name != "padding" {
				t.Errorf("Validate does not see the checksum: %v", err)
			}
			reseal(data)
			if x, err = index.OpenBytes(data); err != nil {
				t.Fatalf("Open sees it: %v", err)
			}
			var damaged *store.CorruptError
			if err := x.Validate(); !errors.As(err, &damaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Validate: %v, want %q", err, c.want)
			}
		})
	}
}

// FuzzOpen opens anything, with its size and checksums made right, and uses what opens.
func FuzzOpen(f *testing.F) {
	f.Add(distancesIndex(f))
	f.Add(smallIndex(f)) // FuzzDamage and FuzzDecodeRare have the other layouts, whose tiles are larger
	empty, err := (&model{}).builder(f, index.BuilderOptions{}).Bytes(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty)
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte(nil), data...)
		if len(data) >= headBytes {
			binary.LittleEndian.PutUint64(data[56:], uint64(len(data)))
		}
		reseal(data)
		if x, err := index.OpenBytes(data); err == nil {
			exercise(x)
			x.Validate()
		}
	})
}

// FuzzDamage changes words of a sound file, each edit being an offset and what to add to the word there; it gets
// further into the sections than FuzzOpen.
func FuzzDamage(f *testing.F) {
	originals := [][]byte{smallIndex(f), layoutsIndex(f), distancesIndex(f)}
	f.Add([]byte{0x10, 0, 1, 0, 0, 0})
	f.Add([]byte{0x80, 0x02, 0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x04, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, edits []byte) {
		le := binary.LittleEndian
		data := append([]byte(nil), originals[len(edits)%6%3]...)
		for ; len(edits) >= 6; edits = edits[6:] {
			word := data[int(le.Uint16(edits))*4%len(data):]
			le.PutUint32(word, le.Uint32(word)+le.Uint32(edits[2:]))
		}
		reseal(data)
		if x, err := index.OpenBytes(data); err == nil {
			exercise(x)
			x.Validate()
		}
	})
}

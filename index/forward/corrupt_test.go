package forward

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// What docs/format.md says of the file.
const (
	headBytes = 128 // of the header
	entry     = 40  // bytes of an entry of the section table
)

// smallFile is a file with every kind of section in a few kilobytes.
func smallFile(t testing.TB) []byte {
	t.Helper()
	b, specs := newTestBuilder(t, 1)
	r := rand.New(rand.NewPCG(1, 2))
	for range 70 {
		if err := b.Add(randomObject(r, specs)); err != nil {
			t.Fatal(err)
		}
	}
	return content(t, b)
}

// exercise calls every accessor, in a file that may be anything that opens.
func exercise(x *Forward) int {
	sum := 0
	reader := x.NewReader()
	for _, id := range []uint32{0, 1, 2, 3, 5, 31, 32, 63, 64, 65, 68, 69, 70, 71, store.TileObjects, math.MaxUint32} {
		for i := range x.columns {
			c := &x.columns[i]
			for _, v := range c.Numbers(id) {
				sum += int(math.Float64bits(v))
			}
			floats, elements := c.Vector(id)
			for _, v := range floats {
				sum += int(math.Float32bits(v))
			}
			for _, v := range elements {
				sum += int(v)
			}
			sum += len(strings.ToUpper(c.Text(id)))
			record, row := c.Terms(id)
			for i, term := range row.Keywords {
				if term >= c.Keywords {
					panic("a term that is not there")
				}
				sum += int(row.Frequency(i)) + int(c.Frequency(term))
			}
			value, _ := reader.AppendJSON(nil, c, id)
			sum += len(strings.ToUpper(string(value))) + int(record.Length) + int(c.Frequency(id))
		}
	}
	for i := range x.columns {
		term, _ := x.columns[i].Lookup("w7")
		sum += int(term)
	}
	return sum
}

func crc32c(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// reseal makes all checksums of data right again, so that damage gets past them, as in a file made on purpose.
func reseal(data []byte) {
	le := binary.LittleEndian
	if len(data) < headBytes {
		return
	}
	table, count := le.Uint64(data[48:]), uint64(le.Uint32(data[44:]))
	if size := uint64(len(data)); table <= size && count <= (size-table)/entry {
		for i := range count {
			e := data[table+i*entry:]
			offset, length := le.Uint64(e[16:]), le.Uint64(e[24:])
			if offset <= size && length <= size-offset {
				le.PutUint32(e[32:], crc32c(data[offset:offset+length]))
			}
		}
		le.PutUint32(data[120:], crc32c(data[table:table+count*entry]))
	}
	le.PutUint32(data[124:], crc32c(data[:124]))
}

// TestFlippedBytes damages bytes all over. With the checksums made right again nothing may panic or be read outside; and of most bytes of
// sections some check sees it.
func TestFlippedBytes(t *testing.T) {
	raced.Skip(t, raced.One)
	original := smallFile(t)
	refused, found, unseen, step := 0, 0, 0, 3
	if testing.Short() {
		step = 11
	}
	for i := headBytes; i < len(original); i += step {
		for _, flip := range []byte{0x01, 0x80} {
			data := append([]byte(nil), original...)
			data[i] ^= flip
			reseal(data)
			x, err := openForward(data)
			if err != nil {
				refused++
				continue
			}
			exercise(x)
			if x.Verify(t.Context()) != nil {
				found++
			} else {
				unseen++ // values, padding
			}
		}
	}
	t.Logf("%d bytes: %d refused, %d found by Verify, %d are other values", len(original), refused, found, unseen)
	if refused == 0 || found == 0 {
		t.Error("the test does not reach all ways")
	}
}

// TestRandomDamage damages several numbers at a time, with values at the edges of their types.
func TestRandomDamage(t *testing.T) {
	raced.Skip(t, raced.One)
	r := seeded.Rand(t)
	original := smallFile(t)
	rounds := 10_000
	if testing.Short() {
		rounds = 1_000
	}
	opened := 0
	for range rounds {
		data := append([]byte(nil), original...)
		for range 1 + r.IntN(3) {
			at := headBytes + r.IntN(len(data)-8-headBytes)&^3
			values := []uint32{0, 1, 31, 32, 33, math.MaxUint32, math.MaxUint32 - 1, 1 << 31, r.Uint32(), store.TileObjects}
			v := values[r.IntN(len(values))]
			switch r.IntN(3) {
			case 0:
				v = binary.LittleEndian.Uint32(data[at:]) + 1
			case 1:
				v = binary.LittleEndian.Uint32(data[at:]) - 1
			}
			binary.LittleEndian.PutUint32(data[at:], v)
		}
		reseal(data)
		if x, err := openForward(data); err == nil {
			opened++
			exercise(x)
			_ = x.Verify(t.Context())
		}
	}
	if opened == 0 {
		t.Error("nothing opens")
	}
}

// TestOpenRefuses makes damage that accessors would not survive; TestVerifyFinds such that only makes answers wrong.
func TestOpenRefuses(t *testing.T) {
	checkDamage(t, []damage{
		{"record too long", SectionTerms, "title", func(d []byte) { put(d, 4, 1<<30); put(d, 8, 1<<30) }, "terms of object 0"},
		{"record out of place", SectionTerms, "title", func(d []byte) { put(d, 16, get(d, 16)+1) }, "should begin at"},
		{"length below terms", SectionTerms, "title", func(d []byte) { put(d, 8, 0); put(d, 4, 1) }, "the record of object 0"},
		{"term that is not there", SectionTerms, "title", func(d []byte) { put(d, 16*70, 1<<20) }, "has term 1048576 of"},
		{"starts go back", SectionFloats, "sizes", func(d []byte) { put(d, 8+4, 1<<20) }, "below its predecessor"},
		{"form of numbers", SectionFloats, "price", func(d []byte) { put(d, 0, 2) }, "form 2"},
		{"text beyond", SectionBlobs, "name", func(d []byte) { put(d, 4, 1<<20) }, "below its predecessor"},
		{"block too large", SectionStored, "", func(d []byte) { put(d, storedHead+2*storedMark+4, maxBlock+1) }, "block 0 of rows"},
		{"block beyond", SectionStored, "", func(d []byte) { put(d, storedHead+2*storedMark, 1<<31) }, "block 0 of rows"},
		{"mark", SectionStored, "", func(d []byte) { d[storedHead] ^= 2 }, "begins no block"},
		{"first mark", SectionStored, "", func(d []byte) { d[storedHead] ^= 1 }, "first object"},
		{"blocks before", SectionStored, "", func(d []byte) { d[storedHead+storedMark+8]++ }, "blocks of rows begin before"},
		{"no blocks", SectionStored, "", func(d []byte) { put(d, 0, 0) }, "0 blocks"},
		{"dimensions", SectionColumns, "", func(d []byte) { put(d, tableHead+12, 3) }, "dimensions"},
		{"form", SectionColumns, "", func(d []byte) { d[tableHead+8] = 99 }, "form 99"},
		{"keywords of numbers", SectionColumns, "", func(d []byte) { put(d, tableHead+16, 3) }, "keywords of what has none"},
		{"name", SectionColumns, "", func(d []byte) { put(d, tableHead+4, 1<<20) }, "has no name"},
		{"columns", SectionColumns, "", func(d []byte) { put(d, 0, 1<<24) }, "no table of"},
		{"texts of terabytes", SectionColumns, "", func(d []byte) {
			for e := d[tableHead:]; len(e) >= tableEntry; e = e[tableEntry:] {
				if schema.KeptForm(e[8]) == schema.KeptTexts {
					put(e, 36, 1<<10)
					return
				}
			}
		}, "its tables hold"},
		{"finder", SectionColumns, "", func(d []byte) { put(d, tableHead+3*tableEntry+16, 41) }, "frequencies"},
	}, false)
}

// TestVerifyFinds makes damage that Open has no reason to see.
func TestVerifyFinds(t *testing.T) {
	checkDamage(t, []damage{
		{"terms out of order", SectionTerms, "tags", func(d []byte) {
			for at := 0; ; at += 16 {
				if n := get(d, at+4); n > 1 {
					put(d, 16*70+4*int(get(d, at)), get(d, 16*70+4*int(get(d, at))+4))
					return
				}
			}
		}, "do not ascend"},
		{"sum", SectionTerms, "title", func(d []byte) { put(d, 12, get(d, 12)+1) }, "length"},
		{"infinite", SectionFloats, "price", func(d []byte) { put(d, 8+4, 0x7FF00000); put(d, 8, 0) }, "Inf"},
		{"vector", SectionVectors, "image", func(d []byte) {
			for i := range d[:70*20] {
				d[i] = 0xFF
			}
		}, "has"},
		{"rows", SectionStored, "", func(d []byte) {
			blocks := int(get(d, 0))
			for i := range d[storedHead+2*storedMark+blockEntry*blocks:] {
				d[storedHead+2*storedMark+blockEntry*blocks+i] = 0xAA
			}
		}, "block 0 of rows"},
		{"tree", SectionBlobs, "tree", func(d []byte) {
			for i := range d[4*71:] {
				d[4*71+i] = 0xFF
			}
		}, "not the encoding"},
		{"frequency", SectionFrequencies, "title", func(d []byte) { put(d, 0, get(d, 0)-1) }, ""},
		{"dictionary", SectionDictionary, "tags", func(d []byte) { d[len(d)-1] = '!' }, "dictionary"},
		{"finder", SectionFinder, "tags", func(d []byte) { clear(d) }, "does not find"},
		{"objects", SectionColumns, "", func(d []byte) { put(d, tableHead+20, get(d, tableHead+20)-1) }, "the table says"},
		{"most", SectionColumns, "", func(d []byte) { put(d, tableHead+24, 9) }, "the table says"},
	}, true)
}

type damage struct {
	name   string
	kind   store.SectionKind
	column string
	change func(d []byte)
	want   string
}

func get(d []byte, at int) uint32    { return binary.LittleEndian.Uint32(d[at:]) }
func put(d []byte, at int, v uint32) { binary.LittleEndian.PutUint32(d[at:], v) }

func checkDamage(t *testing.T, cases []damage, opens bool) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			data := smallFile(t)
			x, err := openForward(data)
			if err != nil {
				t.Fatal(err)
			}
			attribute := slices.IndexFunc(x.columns, func(column Column) bool { return column.Name == c.column })
			for _, s := range x.file.Sections() {
				if s.Kind == c.kind && s.Attribute == attribute {
					c.change(data[s.Offset : s.Offset+s.Length])
				}
			}
			reseal(data)
			x, err = openForward(data)
			if opens {
				if err != nil {
					t.Fatalf("Open sees it: %v", err)
				}
				exercise(x)
				err = x.Verify(t.Context())
			}
			damaged, unsupported := (*store.CorruptError)(nil), (*store.UnsupportedError)(nil)
			if !errors.As(err, &damaged) && !errors.As(err, &unsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// FuzzOpen opens a sound file with words of it changed: each edit is an offset and what to add to the word there.
func FuzzOpen(f *testing.F) {
	original := smallFile(f)
	f.Add([]byte{0x10, 0, 1, 0, 0, 0})
	f.Add([]byte{0x80, 0x02, 0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x04, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, edits []byte) {
		data := append([]byte(nil), original...)
		for ; len(edits) >= 6; edits = edits[6:] {
			at := int(binary.LittleEndian.Uint16(edits)) * 4 % (len(data) - 4)
			put(data, at, get(data, at)+binary.LittleEndian.Uint32(edits[2:]))
		}
		reseal(data)
		if x, err := openForward(data); err == nil {
			exercise(x)
			_ = x.Verify(t.Context())
		}
	})
}

// FuzzStored opens any bytes as rows, which a compressor did not write.
func FuzzStored(f *testing.F) {
	x, err := openForward(smallFile(f))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range x.file.Sections() {
		if s.Kind == SectionStored {
			f.Add(x.file.Bytes(&s))
		}
	}
	f.Fuzz(func(t *testing.T, section []byte) {
		section = append(aligned(len(section))[:0], section...)
		stored, err := decodeStored(section, 70)
		if err != nil {
			return
		}
		_ = stored.verify(70, 3)
		y := &Forward{file: x.file, columns: x.columns, rows: x.rows, stored: []storedTile{stored}}
		r := y.NewReader()
		for id := range uint32(70) {
			for i := range y.columns {
				r.AppendJSON(nil, &y.columns[i], id)
			}
		}
	})
}

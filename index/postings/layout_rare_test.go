package postings

import (
	"math/bits"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// FuzzDecodeRare reads sections of any bytes as rare keywords and as codes and uses what is accepted.
func FuzzDecodeRare(f *testing.F) {
	f.Add([]byte{}, uint32(0), uint32(0))
	b, err := NewBuilder([]schema.AttributeSpec{
		{Name: "sliced", Type: schema.Ordinal, Keywords: 40, Layout: "sliced"}, {Name: "rare", Type: schema.Text, Layout: "rare"},
	}, 0)
	if err != nil {
		f.Fatal(err)
	}
	batch := b.NewBatch()
	for id := range store.TileObjects + 40 { // two tiles, or nothing were rare
		if id%store.TileObjects < 30 {
			if err := batch.AddOrdinal(0, uint32(id%5)); err != nil {
				f.Fatal(err)
			}
			batch.AddString(1, "often")
			batch.AddString(1, string(rune('a'+id%store.TileObjects)))
		}
		if err := batch.EndObject(); err != nil {
			f.Fatal(err)
		}
	}
	if err := b.Append(batch, nil); err != nil {
		f.Fatal(err)
	}
	draft, err := b.Finish(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	data, err := store.Memory(f.Context(), b.objects, []store.Draft{draft})
	if err != nil {
		f.Fatal(err)
	}
	var lists store.Structure
	if _, err := store.OpenBytes(data, Family{}.Sections(), func(file *store.File) error {
		lists, err = Family{}.Open(file, nil)
		return err
	}); err != nil {
		f.Fatal(err)
	}
	x := lists.(*Lists)
	for _, s := range x.Sections() {
		if s.Kind == SectionRare || s.Kind == SectionCodes {
			f.Add(x.Bytes(&s), x.attributes[s.Attribute].Keywords, x.Objects())
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, keywords, objects uint32) {
		section := store.Raw(make([]uint64, len(data)/8+1))[:len(data)] // aligned, as sections are
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
			p, err := decodePlanes(store.Raw(words), c, 1000)
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

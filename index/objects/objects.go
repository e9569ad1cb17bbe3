// Package objects is what an index stores of single objects, whatever they are searched by: keys, payloads, texts.
package objects

import (
	"encoding/json"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/store"
)

// What sections hold of single objects.
const (
	SectionKeys     store.SectionKind = 7 // keys of the objects of a tile
	SectionPayloads store.SectionKind = 8 // payloads of the objects of a tile
	SectionTexts    store.SectionKind = 9 // texts of the objects of a tile
)

// Sections returns the kinds of sections of single objects.
func Sections() []store.SectionForm {
	return []store.SectionForm{
		{Kind: SectionKeys, Name: "keys", PerTile: true},
		{Kind: SectionPayloads, Name: "payloads", PerTile: true},
		{Kind: SectionTexts, Name: "texts", PerTile: true},
	}
}

// Stored is what an index stores of single objects. Each sort is there for all tiles or for none.
type Stored struct {
	file *store.File
	// By tile; nil when no object has one.
	keys, payloads, texts []store.StringTable
}

// Open opens the sections of single objects.
func Open(f *store.File) (*Stored, error) {
	o := &Stored{file: f}
	tables := map[store.SectionKind]*[]store.StringTable{SectionKeys: &o.keys, SectionPayloads: &o.payloads, SectionTexts: &o.texts}
	for kind, table := range tables {
		if !f.Has(kind, -1, 0) {
			continue // when tiles have them all have them; others are left over, which is an error
		}
		for tile := range f.Tiles() {
			if err := f.Need(kind, -1, tile); err != nil {
				return nil, err
			}
		}
		*table = make([]store.StringTable, f.Tiles())
	}
	err := f.Each(func(s *store.Section) bool {
		return s.Attribute < 0 && s.Tiles != 0 && tables[s.Kind] != nil && *tables[s.Kind] != nil
	},
		func(s *store.Section, data []byte) (err error) {
			(*tables[s.Kind])[s.Tile], err = store.DecodeStrings(data, uint32(f.TileLen(s.Tile)))
			return err
		})
	return o, err
}

// Key returns the key of an object: the user's, or else the decimal id. It points into the map, like Text.
func (o *Stored) Key(id uint32) string {
	if o.keys == nil || id >= o.file.Objects() {
		return strconv.FormatUint(uint64(id), 10)
	}
	return o.keys[id/store.TileObjects].At(id % store.TileObjects)
}

// Payload returns the payload of an object, a JSON object, or nil when it has none. It points into the map and must
// be neither changed nor kept after Close.
func (o *Stored) Payload(id uint32) []byte {
	if o.payloads == nil || id >= o.file.Objects() {
		return nil
	}
	payload := o.payloads[id/store.TileObjects].Bytes(id % store.TileObjects)
	if len(payload) == 0 {
		return nil
	}
	return payload
}

// Text returns the text of an object of a sequence index, "" in other indexes. It points into the map and must not be
// kept after Close.
func (o *Stored) Text(id uint32) string {
	if o.texts == nil || id >= o.file.Objects() {
		return ""
	}
	return o.texts[id/store.TileObjects].At(id % store.TileObjects)
}

// Longest returns how many bytes the longest key, payload and text of an object have.
func (o *Stored) Longest() (key, payload, text int) {
	longest := func(tables []store.StringTable) (n int) {
		for i := range tables {
			n = max(n, tables[i].Longest())
		}
		return n
	}
	return longest(o.keys), longest(o.payloads), longest(o.texts)
}

// TextBytes is the size of all texts of a sequence index, 0 of other indexes.
func (o *Stored) TextBytes() int64 {
	var bytes int64
	for i := range o.texts {
		bytes += int64(o.texts[i].Size())
	}
	return bytes
}

// Verify checks that keys are unique and payloads are JSON objects. It needs about 12 bytes per object where there are keys.
func (o *Stored) Verify() error {
	var faults store.Faults
	faults.Add(o.validateKeys())
	faults.Parallel(len(o.payloads), o.validatePayloads)
	return faults.Err()
}

func (o *Stored) validateKeys() error {
	if o.keys == nil {
		return nil
	}
	table := make(store.HashTable, store.HashSlots(int(o.file.Objects())))
	for id := range o.file.Objects() {
		key := o.Key(id)
		if key == "" {
			return store.Corrupt("object %d has an empty key", id)
		}
		hash := xxhash.Sum64String(key)
		if other, ok := table.Match(hash, func(other uint32) bool { return o.Key(other) == key }); ok {
			return store.Corrupt("objects %d and %d have the same key %q", other, id, key)
		}
		table.Insert(hash, id)
	}
	return nil
}

func (o *Stored) validatePayloads(tile int) error {
	for i := range uint32(o.file.TileLen(tile)) {
		id := uint32(tile)*store.TileObjects + i
		if payload := o.Payload(id); payload != nil && (payload[0] != '{' || !json.Valid(payload)) {
			return store.Corrupt("the payload of object %d is not a JSON object", id)
		}
	}
	return nil
}

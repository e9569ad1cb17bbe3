package index

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/store"
)

// DuplicateKeyError reports two objects with the same key.
type DuplicateKeyError struct {
	Key           string
	First, Second uint32 // object ids
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("key %q of object %d is already the key of object %d (objects count from 0); keys must be unique",
		e.Key, e.Second, e.First)
}

// objectsBuilder collects what is stored of single objects.
type objectsBuilder struct {
	keys    *objectKeys // nil as long as every key is the default
	payload objectStrings
	text    objectStrings
}

// fits says why an object cannot be stored.
func (b *objectsBuilder) fits(payload []byte, text string) error {
	if !b.payload.fits(len(payload)) {
		return errors.New("payloads of 64,512 consecutive objects have more than 4 GiB together; store less")
	}
	if !b.text.fits(len(text)) {
		return errors.New("texts of 64,512 consecutive objects have more than 4 GiB together; split the data into several indexes")
	}
	return nil
}

// addKey records the key of the next object. As long as no object has a key of its own nothing is kept; the first
// own key makes the decimal ids before it explicit, because from then on any two keys may collide.
func (b *objectsBuilder) addKey(id uint32, key string) error {
	if b.keys == nil {
		if key == "" {
			return nil
		}
		keys := new(objectKeys)
		for before := range id {
			if err := keys.add(before, strconv.FormatUint(uint64(before), 10)); err != nil {
				return err
			}
		}
		b.keys = keys
	}
	if key == "" {
		key = strconv.FormatUint(uint64(id), 10)
	}
	return b.keys.add(id, key)
}

// objectsDraft is what is stored of all objects, ready to be written.
type objectsDraft struct {
	tiles  int
	stored []storedStrings
}

type storedStrings struct {
	kind    store.SectionKind
	strings *objectStrings
}

func (b *objectsBuilder) finish(objects uint32) *objectsDraft {
	d := &objectsDraft{tiles: store.TilesOf(objects)}
	if b.keys != nil {
		d.stored = append(d.stored, storedStrings{SectionKeys, &b.keys.strings})
	}
	if b.payload.used {
		d.stored = append(d.stored, storedStrings{SectionPayloads, &b.payload})
	}
	if b.text.used {
		d.stored = append(d.stored, storedStrings{SectionTexts, &b.text})
	}
	return d
}

// Sections returns the number of sections.
func (d *objectsDraft) Sections() int { return d.tiles * len(d.stored) }

// Work returns 0: copying takes no time beside encoding postings.
func (d *objectsDraft) Work() int64 { return 0 }

// Write writes a section per tile and sort of strings.
func (d *objectsDraft) Write(ctx context.Context, w *store.Writer, _ func(int64)) error {
	for _, s := range d.stored {
		for tile := range d.tiles {
			if err := ctx.Err(); err != nil {
				return err
			}
			table := s.strings.tile(tile)
			w.Add(s.kind, -1, tile, table.Parts()...)
		}
	}
	return nil
}

// objectStrings holds one string per object, in one table per tile; nothing as long as all are empty.
type objectStrings struct {
	sealed []store.StringTable
	open   store.StringTable
	used   bool // some string is not empty
}

func (o *objectStrings) fits(n int) bool { return o.open.Fits(n) }

// add sets the string of object id, the objects being added in order.
func (o *objectStrings) add(id uint32, s string) {
	if !o.used {
		if s == "" {
			return
		}
		o.used = true
		for range id {
			o.push("")
		}
	}
	o.push(s)
}

func (o *objectStrings) push(s string) {
	o.open.Add(s)
	if o.open.Len() == store.TileObjects {
		o.sealed = append(o.sealed, o.open.Clone())
		o.open.Reset()
	}
}

// tile returns the strings of tile t.
func (o *objectStrings) tile(t int) *store.StringTable {
	if t < len(o.sealed) {
		return &o.sealed[t]
	}
	return &o.open
}

// objectKeys holds one key per object and finds a key that comes again.
type objectKeys struct {
	strings objectStrings
	table   store.HashTable
}

func (k *objectKeys) add(id uint32, key string) error {
	hash := xxhash.Sum64String(key)
	for p := k.table.Probe(hash); ; {
		other, ok := p.Next()
		if !ok {
			break
		}
		if k.at(other) == key {
			return &DuplicateKeyError{Key: key, First: other, Second: id}
		}
	}
	if !k.strings.fits(len(key)) {
		return errors.New("keys of 64,512 consecutive objects have more than 4 GiB together; use shorter keys")
	}
	if n := int(id) + 1; n*4 > len(k.table)*3 {
		table := make(store.HashTable, store.HashSlots(n))
		for i := range id {
			table.Insert(xxhash.Sum64String(k.at(i)), i)
		}
		k.table = table
	}
	k.strings.add(id, key)
	k.table.Insert(hash, id)
	return nil
}

func (k *objectKeys) at(id uint32) string {
	return k.strings.tile(int(id / store.TileObjects)).At(id % store.TileObjects)
}

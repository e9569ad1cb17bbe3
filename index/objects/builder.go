package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

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

// Builder collects what is stored of single objects.
type Builder struct {
	keys    keysBuilder
	payload stringsBuilder
	text    stringsBuilder
}

// Add records the next object, whose key AddKey has recorded and which Fits has let pass. The payload is copied.
func (b *Builder) Add(id uint32, payload []byte, text string) {
	b.payload.add(id, unsafe.String(unsafe.SliceData(payload), len(payload))) // add copies
	b.text.add(id, text)
}

// Fits says why an object cannot be stored.
func (b *Builder) Fits(payload []byte, text string) error {
	if !b.payload.fits(len(payload)) {
		return errors.New("payloads of 64,512 consecutive objects have more than 4 GiB together; store less")
	}
	if !b.text.fits(len(text)) {
		return errors.New("texts of 64,512 consecutive objects have more than 4 GiB together; split the data into several indexes")
	}
	return nil
}

// AddKey records the key of the next object. As long as no object has a key of its own nothing is kept; the first
// own key makes the decimal ids before it explicit, because from then on any two keys may collide.
func (b *Builder) AddKey(id uint32, key string) error {
	decimal := func(id uint32) string { return strconv.FormatUint(uint64(id), 10) }
	if !b.keys.strings.used {
		if key == "" {
			return nil
		}
		for before := range id {
			if err := b.keys.add(before, decimal(before)); err != nil {
				return err
			}
		}
	}
	return b.keys.add(id, cmp.Or(key, decimal(id)))
}

type storedStrings struct {
	kind    store.SectionKind
	strings *stringsBuilder
}

// Finish returns what is stored of all objects: a section per tile and sort of strings. Copying is no work beside encoding postings.
func (b *Builder) Finish(objects uint32) store.Draft {
	stored := slices.DeleteFunc([]storedStrings{
		{SectionKeys, &b.keys.strings}, {SectionPayloads, &b.payload}, {SectionTexts, &b.text},
	}, func(s storedStrings) bool { return !s.strings.used })
	tiles := store.TilesOf(objects)
	return store.Draft{Sections: tiles * len(stored), Write: func(ctx context.Context, w *store.Writer, _ func(int64)) error {
		for _, s := range stored {
			for tile := range tiles {
				if err := ctx.Err(); err != nil {
					return err
				}
				w.Add(s.kind, -1, tile, s.strings.tile(tile).Parts()...)
			}
		}
		return nil
	}}
}

// stringsBuilder holds one string per object, in one table per tile; nothing as long as all are empty.
type stringsBuilder struct {
	sealed []store.StringTable
	open   store.StringTable
	used   bool // some string is not empty
}

func (o *stringsBuilder) fits(n int) bool { return o.open.Fits(n) }

// add sets the string of object id, the objects being added in order.
func (o *stringsBuilder) add(id uint32, s string) {
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

func (o *stringsBuilder) push(s string) {
	o.open.Add(s)
	if o.open.Len() == store.TileObjects {
		o.sealed = append(o.sealed, o.open.Clone())
		o.open.Reset()
	}
}

// tile returns the strings of tile t.
func (o *stringsBuilder) tile(t int) *store.StringTable {
	if t < len(o.sealed) {
		return &o.sealed[t]
	}
	return &o.open
}

// keysBuilder holds one key per object and finds a key that comes again.
type keysBuilder struct {
	strings stringsBuilder
	table   store.HashTable
}

func (k *keysBuilder) add(id uint32, key string) error {
	hash := xxhash.Sum64String(key)
	if other, ok := k.table.Match(hash, func(other uint32) bool { return k.at(other) == key }); ok {
		return &DuplicateKeyError{Key: key, First: other, Second: id}
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

func (k *keysBuilder) at(id uint32) string {
	return k.strings.tile(int(id / store.TileObjects)).At(id % store.TileObjects)
}

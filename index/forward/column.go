package forward

import (
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Column is what is kept of one column.
type Column struct {
	schema.KeptSpec
	Name     string
	Keywords uint32 // of KeptTerms: terms are below
	Objects  uint32 // that have a value in the form
	Most     uint32 // numbers, terms or bytes that an object has at most
	Total    uint64 // all numbers, the lengths of all objects with terms, all bytes

	file       *store.File
	floats     floats
	terms      []TermsTile
	vectors    []VectorsTile
	blobs      []store.StringTable
	frequency  []uint32
	weigher    *weigher // of IDFScale
	dictionary store.StringTable
	finder     store.HashTable
}

// place finds an object; ok is false where there is none.
func (c *Column) place(id uint32) (tile int, local uint32, ok bool) {
	return int(id / store.TileObjects), id % store.TileObjects, id < c.file.Objects()
}

// Tiles returns the number of tiles.
func (c *Column) Tiles() int { return c.file.Tiles() }

// AllObjects returns the number of objects of the index, those too that have nothing here.
func (c *Column) AllObjects() uint32 { return c.file.Objects() }

// Text returns the text of an object, "" where it has none, in the form KeptTexts; of trees and graphs their bytes.
func (c *Column) Text(id uint32) string {
	tile, local, ok := c.place(id)
	if !ok || c.blobs == nil {
		return ""
	}
	return c.blobs[tile].At(local)
}

// Average is how many numbers or bytes an object has that has any; of terms their average length.
func (c *Column) Average() int64 { return int64(min(c.Total/max(1, uint64(c.Objects)), 1<<32)) } // whatever a file claims

// TextBytes is the size of all texts.
func (c *Column) TextBytes() int64 { return int64(c.Total) }

// String says what the column is, for people.
func (c *Column) String() string {
	return fmt.Sprintf("column %q, of which the index keeps %v", c.Name, c.Form)
}

// check says what is wrong with what is to be kept of a column.
func (c *Column) check() error {
	terms, vectors := c.Form == schema.KeptTerms, c.Form == schema.KeptVectors
	switch {
	case c.Form == 0 && !c.Returned:
		return errors.New("nothing is kept of it")
	case vectors != (c.Dimensions > 0) || c.Dimensions < 0 || c.Dimensions > MaxDimensions:
		return fmt.Errorf("%d dimensions: vectors have 1 to %d", c.Dimensions, MaxDimensions)
	case (c.Bytes || c.Halves) && !vectors || c.Bytes && c.Halves:
		return errors.New("only the elements of vectors are bytes, or else 16-bit floats")
	case (c.IDFScale > 0 || c.Vocabulary) && !terms:
		return errors.New("only terms have weights and a vocabulary")
	case c.IDFScale < 0 || c.IDFScale > maxIDFScale:
		return fmt.Errorf("scale %d of weights: 1 to %d", c.IDFScale, maxIDFScale)
	case !terms && c.Keywords > 0:
		return fmt.Errorf("%d keywords of what has none", c.Keywords)
	}
	return nil
}

// checkBlobs says what is wrong with the size of all texts, by which memory is taken.
func (c *Column) checkBlobs() error {
	held := uint64(0)
	for i := range c.blobs {
		held += uint64(c.blobs[i].Size())
	}
	if c.blobs != nil && c.Total > held {
		return store.Corrupt("kept column %q has %d bytes, and its tables hold %d", c.Name, c.Total, held)
	}
	return nil
}

// totals are what a table says of a column, as they are counted.
type totals struct {
	objects, most uint32
	total         uint64
	length        uint64 // of terms
}

// add counts an object that has n values.
func (t *totals) add(n uint32) {
	if n > 0 {
		t.objects++
	}
	t.most = max(t.most, n)
	t.total += uint64(n)
}

package postings

import (
	"math/bits"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

const (
	// slicedPays is the share of the objects that a typical item must select for planes to pay.
	slicedPays = 0.03
	// rarePays is the share of the bytes of LayoutPostings that LayoutRare may take at most.
	rarePays = 0.8
	// mostCounted bounds the keywords that are counted one by one to choose a layout, where they are not texts, of
	// which there are only those that occur.
	mostCounted = 1 << 20
)

// chooseLayout decides how an attribute is stored where the schema does not. frequencies may be nil, for an
// attribute that can have no other layout than LayoutPostings.
//
// # Sliced
//
// An attribute with at most one keyword per object is sliced when that takes fewer bytes, P bits per object against 16
// bits per posting and the directories, and when it pays to match it so. An engine adds the planes of 1,024 objects in
// the time of about 0.03 x 1,024 postings, however many they select (measured on an H200), so it pays when a typical item
// selects 3 % of the objects. A typical item of numbers and ordinals, whose keywords have an order, is taken to be a
// range that does. Of texts it is the keyword of a random object, which has sum(n^2) / sum(n) postings: columns with up
// to about 30 equally frequent values, and more when some are frequent. Not more because lists that short are the
// better form of a text for any engine, and the file would save 1/16 of the bytes for each bit below 16 only.
//
// In bytes alone the crossover is at a share of P / 16 of the objects having a value: a column of 67 values, of 7 bits, is
// sliced when more than 44 % of the objects have one.
//
// # Rare
//
// A text is split (LayoutRare) when the bytes fall to four fifths. It takes a vocabulary most of which is rare, and many
// tiles: see the costs at LayoutRare. A second place to look in costs time that a few bytes do not pay. Short documents of
// 17 words from a Zipf vocabulary come to 0.91 of the bytes at 16 tiles, where the CPU engine is as fast, and to 0.84 at 53,
// where the H200 takes 9 % more for the match (docs/benchmarks/history, cpu-layouts and h200-layouts). Columns of names, of
// which each tile has others, come to less than half at 50 tiles; the 3-grams of titles recur and are not split, nor is any
// text in a single tile. Where memory is what is short, the schema can say rare.
func chooseLayout(a *Attribute, frequencies []frequency, objects uint32, tiles int) schema.Layout {
	if frequencies == nil || a.Postings == 0 {
		return schema.LayoutPostings
	}
	var postings, split, square float64 // bytes in LayoutPostings and LayoutRare; postings of the typical item
	used := 0
	for _, f := range frequencies {
		if f.postings > 0 {
			used++
		}
		postings += f.frequentBytes(tiles)
		split += min(f.frequentBytes(tiles), f.rareBytes())
		square += float64(f.postings) * float64(f.postings)
	}
	if a.MaxPerObject == 1 && used <= MaxSlicedKeywords {
		typical := square / float64(a.Postings)
		planes := float64(bits.Len(uint(used)) * planeBytes * groupsOf(int(objects))) // a tile is whole groups
		if (a.Type != schema.Text || typical >= slicedPays*float64(objects)) && planes+4*float64(used)+float64(a.Keywords)/4 < postings {
			return schema.LayoutSliced
		}
	}
	if a.Type == schema.Text && split+float64(a.Keywords)/4 < rarePays*postings {
		return schema.LayoutRare
	}
	return schema.LayoutPostings
}

// layOut chooses the layout of a column and prepares what encoding it takes.
func (f *finalColumn) layOut(objects uint32) error {
	tiles := store.TilesOf(objects)
	a := &f.attribute
	frequencies := f.countKeywords(tiles)
	if a.Layout = f.source.override; a.Layout == 0 {
		a.Layout = chooseLayout(a, frequencies, objects, tiles)
	}
	if a.Layout != schema.LayoutPostings {
		f.frequencies = frequencies
	}
	return codecOf(a.Layout).prepare(f, tiles)
}

// countKeywords counts the postings of each keyword; nil of an attribute that can have no layout but LayoutPostings.
func (f *finalColumn) countKeywords(tiles int) []frequency {
	a := &f.attribute
	switch f.source.override {
	case schema.LayoutPostings:
		return nil
	case 0:
		if a.MaxPerObject > 1 && (a.Type != schema.Text || tiles == 1) || a.Type != schema.Text && a.Keywords > mostCounted {
			return nil
		}
	}
	if a.Type == schema.Text {
		// By the numbers that the strings had when they were first seen: frequent ones are small and stay in cache.
		counted := make([]frequency, len(f.keywords.Places))
		for tile := range tiles {
			countTile(counted, f.source.Tile(tile).Values, tile)
		}
		frequencies := make([]frequency, a.Keywords)
		for id, frequency := range counted {
			if frequency.postings > 0 {
				frequencies[f.keywords.Places[id]] = frequency
			}
		}
		return frequencies
	}
	frequencies := make([]frequency, a.Keywords)
	var keywords []uint32
	for tile := range tiles {
		keywords = f.keywords.Of(keywords[:0], f.source.Tile(tile))
		countTile(frequencies, keywords, tile)
	}
	return frequencies
}

// countTile adds the postings of a tile, tiles in ascending order.
func countTile(frequencies []frequency, keywords []uint32, tile int) {
	last := uint32(tile) + 1
	for _, keyword := range keywords {
		f := &frequencies[keyword]
		f.postings++
		if f.last != last {
			f.last = last
			f.lists++
		}
	}
}

package index

import (
	"slices"
	"testing"
)

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
		if got := chooseLayout(&c.a, c.frequencies, c.objects, TilesOf(c.objects)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

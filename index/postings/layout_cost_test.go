package postings

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
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
		want        schema.Layout
	}{
		{"67 values, all objects", Attribute{Type: schema.Ordinal, MaxPerObject: 1}, even(67, 10_000, 11), 670_000, schema.LayoutSliced},
		{"67 values, half of the objects", Attribute{Type: schema.Ordinal, MaxPerObject: 1}, even(67, 10_000, 22), 1_340_000, schema.LayoutSliced},
		{"67 values, two fifths of the objects", Attribute{Type: schema.Ordinal, MaxPerObject: 1}, even(67, 10_000, 26), 1_675_000, schema.LayoutPostings},
		{"two values per object", Attribute{Type: schema.Ordinal, MaxPerObject: 2}, even(67, 10_000, 11), 670_000, schema.LayoutPostings},
		{"too many values", Attribute{Type: schema.Ordinal, MaxPerObject: 1}, even(MaxSlicedKeywords+1, 1000, 254), 1000 * (MaxSlicedKeywords + 1), schema.LayoutPostings},
		{"32 categories", Attribute{Type: schema.Text, MaxPerObject: 1}, even(32, 10_000, 5), 320_000, schema.LayoutSliced},
		{"40 categories", Attribute{Type: schema.Text, MaxPerObject: 1}, even(40, 10_000, 7), 400_000, schema.LayoutPostings},
		{"40 categories, one frequent", Attribute{Type: schema.Text, MaxPerObject: 1},
			append(even(39, 1000, 2), frequency{postings: 61_000, lists: 2}), 100_000, schema.LayoutSliced},
		{"a handful of objects", Attribute{Type: schema.Ordinal, MaxPerObject: 1}, even(3, 1, 1), 3, schema.LayoutPostings},
		{"a text, two postings per word", Attribute{Type: schema.Text, MaxPerObject: 9}, even(100_000, 2, 2), 30 * store.TileObjects, schema.LayoutRare},
		{"the same in few tiles", Attribute{Type: schema.Text, MaxPerObject: 9}, even(100_000, 2, 2), 10 * store.TileObjects, schema.LayoutPostings},
		{"a text, ten postings per word and tile", Attribute{Type: schema.Text, MaxPerObject: 9}, even(10_000, 100, 10), 10 * store.TileObjects, schema.LayoutPostings},
		{"a text in one tile", Attribute{Type: schema.Text, MaxPerObject: 9}, even(10_000, 2, 1), 5000, schema.LayoutPostings},
		{"nothing", Attribute{Type: schema.Text}, nil, 5000, schema.LayoutPostings},
	}
	for _, c := range cases {
		c.a.Keywords = uint32(len(c.frequencies))
		for _, f := range c.frequencies {
			c.a.Postings += f.postings
		}
		if got := chooseLayout(&c.a, c.frequencies, c.objects, store.TilesOf(c.objects)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

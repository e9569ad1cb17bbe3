package postings

import (
	"errors"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSealedTiles: a closed tile has the numbers and objects that were added, in the smaller of its two forms, and they get the
// keywords that the attribute gives them.
func TestSealedTiles(t *testing.T) {
	rng := seeded.Rand(t)
	number := func(distinct int) float64 { return float64(rng.IntN(distinct))/4 - 100 }
	for _, c := range []struct {
		name     string
		distinct int
		values   func() int // of an object
		edges    schema.EdgeRule
		codes    bool
		every    bool // one of each object
	}{
		{"few", 67, func() int { return 1 }, schema.Exact, true, true},
		{"one", 1, func() int { return 1 }, schema.Exact, true, true},
		{"few, missing", 67, func() int { return min(1, rng.IntN(50)) }, schema.Exact, true, false},
		{"few, none or two", 67, noneOrTwo(), schema.Exact, true, false},
		{"few, several", 300, func() int { return rng.IntN(4) }, schema.EqualWidth, true, false},
		{"half", 40_000, func() int { return 1 }, schema.EquiDepth, true, true},
		{"hardly any equal", 1 << 30, func() int { return 1 }, schema.EquiDepth, false, true},
		{"several, hardly any equal", 1 << 30, func() int { return 2 }, schema.Exact, false, false},
		{"more than there are codes", 100_000, func() int { return 4 }, schema.Exact, false, false},
		{"none", 1, func() int { return 0 }, schema.Exact, false, false},
	} {
		b, err := NewBuilder([]schema.AttributeSpec{{Name: "n", Type: schema.Number, Edges: c.edges, Buckets: 64}}, 2)
		if err != nil {
			t.Fatal(err)
		}
		const tiles = 3
		batch := b.NewBatch()
		var want [tiles]values.Tile
		for id := range (tiles-1)*store.TileObjects + 1000 {
			w := &want[id/store.TileObjects]
			if rng.IntN(1000) == 0 {
				dropped := b.NewBatch()
				if err := errors.Join(b.Append(batch, nil), dropped.AddNumber(0, 1e6), dropped.EndObject(), b.Append(dropped, []bool{true})); err != nil {
					t.Fatal(err)
				}
				batch.Reset()
			}
			for range c.values() {
				v := number(c.distinct)
				if err := batch.AddNumber(0, v); err != nil {
					t.Fatal(err)
				}
				w.Numbers = append(w.Numbers, v)
				w.IDs = append(w.IDs, uint16(id%store.TileObjects))
			}
			if err := batch.EndObject(); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Append(batch, nil); err != nil {
			t.Fatal(err)
		}
		var added []float64
		for i := range want {
			added = append(added, want[i].Numbers...)
		}
		slices.Sort(added)
		if !slices.Equal(b.columns[0].Sorted(tiles), added) || !slices.Equal(b.columns[0].Distinct(tiles), slices.Compact(added)) {
			t.Errorf("%s: the numbers of all tiles are not those that were added", c.name)
		}
		var column finalColumn
		if err := column.finish(&b.columns[0], b.objects); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			tile := b.columns[0].Tile(i)
			if got := tile.AppendNumbers(nil); !slices.Equal(got, want[i].Numbers) || !slices.Equal(tile.IDs, want[i].IDs) {
				t.Fatalf("%s: tile %d has %d numbers of %d objects, not those that were added", c.name, i, len(got), len(tile.IDs))
			}
			if closed := i < tiles-1; (tile.Codes != nil) != (c.codes && closed) {
				t.Errorf("%s: tile %d has codes: %v", c.name, i, tile.Codes != nil)
			} else if closed && (len(tile.IDs) > 0 && &tile.IDs[0] == &b.every[0]) != c.every {
				t.Errorf("%s: tile %d shares its ids: %v", c.name, i, !c.every)
			}
			keywords := column.keywords.Of([]uint32{7}, tile)
			if keywords[0] != 7 || len(keywords) != 1+len(want[i].Numbers) {
				t.Fatalf("%s: %d keywords of %d numbers", c.name, len(keywords)-1, len(want[i].Numbers))
			}
			for j, v := range want[i].Numbers {
				if keyword, ok := column.attribute.Bucket(v); !ok || keyword != keywords[1+j] {
					t.Fatalf("%s: %v has keyword %d, want %d", c.name, v, keywords[1+j], keyword)
				}
			}
		}
	}
}

// noneOrTwo gives a tile as many values as it has objects, but not one of each.
func noneOrTwo() func() int {
	n := 0
	return func() int {
		n = 2 - n
		return n
	}
}

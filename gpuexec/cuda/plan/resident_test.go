package plan

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// partBytesOf is the memory of the largest tile.
func partBytesOf(t testing.TB, x *index.Index) (most int64) {
	if _, err := newResident(listsOf(x), run.AllTiles(x), Limits{Memory: 1 << 40, PartBytes: 1}); err == nil { // an index without anything
		return 1
	}
	for bytes := int64(1 << 10); ; bytes += bytes/64 + 16 {
		if layout, err := newResident(listsOf(x), run.AllTiles(x), Limits{Memory: 1 << 40, PartBytes: bytes}); err == nil {
			return layout.BufferBytes()
		}
	}
}

// TestCutParts: parts are contiguous, no larger than allowed, and as few as first fit makes them.
func TestCutParts(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		tileUnits := make([]int64, 1+rng.IntN(40))
		for i := range tileUnits {
			tileUnits[i] = int64(rng.IntN(100))
		}
		most := slices.Max(tileUnits) + int64(rng.IntN(200))
		tile, at := 0, int64(0)
		for i, part := range cutParts(tileUnits, most) {
			var sum int64
			for _, n := range tileUnits[part.FirstTile : part.FirstTile+part.Tiles] {
				sum += n
			}
			if part.FirstTile != tile || part.Tiles < 1 || part.At != at || part.Units != sum || sum > most {
				t.Fatalf("%v, at most %d: part %d is %+v", tileUnits, most, i, part)
			}
			tile += part.Tiles
			at += sum
			if tile < len(tileUnits) && sum+tileUnits[tile] <= most {
				t.Fatalf("%v, at most %d: part %d could be larger: %+v", tileUnits, most, i, part)
			}
		}
		if tile != len(tileUnits) {
			t.Fatalf("%v, at most %d: parts end at tile %d", tileUnits, most, tile)
		}
		if cutParts(tileUnits, slices.Max(tileUnits)-1) != nil {
			t.Fatal("a tile that does not fit is in a part")
		}
	}
}

// TestResidentLayout: sections and planes of a part lie apart and inside, for each form that memory allows.
func TestResidentLayout(t *testing.T) {
	rng := seeded.Rand(t)
	for range 60 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(3000))
		if rng.IntN(2) == 0 {
			w = enginetest.SlicedWorld(t, rng, 1+rng.IntN(3000))
		}
		x := w.Index
		full, err := newResident(listsOf(x), run.AllTiles(x), Limits{Memory: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		limits := []Limits{
			{Memory: full.DeviceBytes()}, {Memory: full.DeviceBytes() - 1}, {Memory: 1 << 30, PlanesOnly: true},
			{Memory: 1 << 30, PartBytes: partBytesOf(t, x)},
		}
		for i, limit := range limits {
			l, err := newResident(listsOf(x), run.AllTiles(x), limit)
			if err != nil {
				if i == 1 { // what is left out may be no more than what alignment fills, and a buffer is as large as the whole
					continue
				}
				t.Fatal(err)
			}
			if l.DeviceBytes() > limit.Memory && l.Units > 0 || l.Decoded && limit.PlanesOnly || i == 0 && (l.Streamed || l.Decoded != (l.Planes != nil)) {
				t.Errorf("layout %d: %d of %d bytes, %+v", i, l.DeviceBytes(), limit.Memory, l)
			}
			for _, part := range l.Parts {
				at := int64(part.Groups) * int64(planesOf(l)) * abi.RowUnits
				for tile := part.FirstTile; tile < part.FirstTile+part.Tiles; tile++ {
					for a := range l.Attributes {
						size := l.Section(tile, a)
						section := l.Sections[tile*l.Attributes+a]
						if size == (SectionUnits{}) {
							continue
						}
						if int64(section.Words) < at || int64(section.Starts) != int64(section.Words)+size.Words || int64(section.Ids) != int64(section.Starts)+size.Starts {
							t.Fatalf("layout %d, attribute %d: %+v of %+v at %d", i, a, section, size, at)
						}
						at = int64(section.Ids) + size.Ids
					}
				}
				if at > part.Units {
					t.Fatalf("layout %d: %d units in a part of %d", i, at, part.Units)
				}
			}
		}
	}
}

func planesOf(l *Resident) int {
	if l.Planes == nil {
		return 0
	}
	return l.Planes.OfGroup
}

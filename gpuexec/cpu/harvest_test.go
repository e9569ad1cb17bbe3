package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// randomRuns makes runs of ascending lists, and the largest count that they lead to.
func randomRuns(rng *rand.Rand, objects, lists, length int, heaviest uint32) (runs []listRun, postings int, highest uint32) {
	counts := make([]uint32, objects)
	for range lists {
		r := listRun{weight: 1 + rng.Uint32N(heaviest)}
		for range length {
			r.ids = append(r.ids, uint16(rng.IntN(objects)))
		}
		slices.Sort(r.ids)
		for _, id := range r.ids {
			counts[id] += r.weight
		}
		postings += len(r.ids)
		runs = append(runs, r)
	}
	return runs, postings, slices.Max(counts)
}

// dealRare makes rare postings of some runs, of those whose weight allows it.
func dealRare(rng *rand.Rand, runs []listRun) (lists []listRun, rare []uint32) {
	for _, r := range runs {
		if r.weight > postings.MaxWeight || rng.IntN(2) == 0 {
			lists = append(lists, r)
			continue
		}
		for _, id := range r.ids {
			rare = append(rare, uint32(id)<<16|r.weight)
		}
	}
	return lists, rare
}

// randomPass passes some of a tile's objects, or all of them without a filter.
func randomPass(rng *rand.Rand, objects int) tilePass {
	if rng.IntN(3) == 0 {
		return tilePass{}
	}
	p := tilePass{words: new(passing.Words)}
	one := []int{1, 2, 20, 500}[rng.IntN(4)]
	for id := range objects {
		if rng.IntN(one) == 0 {
			p.words[id/64] |= 1 << (id % 64)
			p.count++
		}
	}
	return p
}

// TestHarvestWays checks that sweeping, looking at what passes and revisiting, and revisiting where some postings are rare ones, give the
// same for every counter width, with filters and without, in tiles of every length, with thresholds below, at and above the sign bit of a lane, and that all
// leave the counters zero.
func TestHarvestWays(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	var c counters
	for range 1500 {
		objects := []int{1, 7, 8, 9, 15, 16, 17, 1000, 1<<15 - 1, 1 << 15, 1<<15 + 1, store.TileObjects}[rng.IntN(12)]
		heaviest := []uint32{1, 1, 3, 12, 200, 5000, 1 << 28}[rng.IntN(7)]
		runs, _, highest := randomRuns(rng, objects, rng.IntN(20), 1+rng.IntN(100), heaviest)
		var reference []topk.Entry
		pass := randomPass(rng, objects)
		for _, width := range []int{8, 16, 32} {
			if uint64(highest) >= 1<<width {
				continue
			}
			k := 1 + rng.IntN(100)
			minCount := 1 + rng.Uint32N(highest+1)
			for way := range 4 {
				if way == 3 && pass.words == nil {
					continue
				}
				own := c.of(width)
				lists, rare := runs, []uint32(nil)
				if way == 2 {
					lists, rare = dealRare(rng, runs)
				}
				own.add(lists)
				own.addRare(rare)
				var g topk.Gate
				g.Reset(k, minCount)
				switch way {
				case 0:
					sweep(own, &g, pass, width, 1000, objects)
				case 3:
					lookAndClear(own, &g, pass, width, 1000, objects)
				default:
					harvest(own, &g, pass, width, lists, rare, 0, 1000, objects) // so few postings are visited again
				}
				for i, word := range own.lanes() {
					if word != 0 {
						t.Fatalf("width %d, way %d: word %d is left as %x", width, way, i, word)
					}
				}
				got := g.Finish(nil)
				if way == 0 {
					reference = got
				} else if !slices.Equal(got, reference) {
					t.Fatalf("width %d, %d objects, k %d, minCount %d: sweep %v, revisit %v", width, objects, k, minCount, reference, got)
				}
			}
			counts := make(map[uint16]uint32)
			for _, r := range runs {
				for _, id := range r.ids {
					counts[id] += r.weight
				}
			}
			var want []topk.Entry
			for id, count := range counts {
				if count >= minCount && pass.has(id) {
					want = append(want, topk.NewEntry(count, 1000+uint32(id)))
				}
			}
			slices.Sort(want)
			want = want[max(0, len(want)-k):]
			if !slices.Equal(reference, want) {
				t.Fatalf("width %d, %d objects, k %d, minCount %d: got %v, want %v", width, objects, k, minCount, reference, want)
			}
		}
	}
}

func TestCounterWidth(t *testing.T) {
	for _, c := range []struct {
		bound uint32
		want  int
	}{
		{1, 8}, {15, 8}, {255, 8}, {256, 16}, {65535, 16}, {65536, 32}, {1<<32 - 1, 32},
	} {
		if got := counterWidth(c.bound); got != c.want {
			t.Errorf("bound %d: %d bits, want %d", c.bound, got, c.want)
		}
	}
}

// BenchmarkHarvest finds where sweeping begins to pay: counting and harvesting a tile by the number of postings.
func BenchmarkHarvest(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, width := range []int{8, 16, 32} {
		for _, postings := range []int{1000, 4000, 8000, 16000, 32000, 64000} {
			runs, _, _ := randomRuns(rng, store.TileObjects, 10, postings/10, 1)
			for _, way := range []string{"count", "sweep", "revisit"} {
				b.Run(fmt.Sprintf("width=%d/postings=%d/%s", width, postings, way), func(b *testing.B) {
					var c counters
					own := c.of(width)
					var g topk.Gate
					for range b.N {
						g.Reset(100, 5)
						own.add(runs)
						switch way {
						case "sweep":
							sweep(own, &g, tilePass{}, width, 0, store.TileObjects)
						case "revisit":
							own.revisit(&g, tilePass{}, runs, nil, 0)
						default:
							clear(own.lanes())
						}
					}
				})
			}
		}
	}
}

package nearest

import (
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// randomTree is the shape of a tree over so many objects: nodes split into up to capacity parts while they have more than a leaf, some of them unevenly.
func randomTree(rng *rand.Rand, objects int) *Tree {
	t := &Tree{Column: &Column{Of: &distance.Column{Objects: uint32(objects)}, Dims: 1 + rng.IntN(40), Objects: uint32(objects), Tiles: run.Tiles{End: (objects + run.TileObjects - 1) / run.TileObjects}}}
	t.Arrays = tree.Arrays{Capacity: 2 + rng.IntN(40), Leaf: 1 + rng.IntN(60), Order: make([]uint32, objects), Levels: []uint32{0}}
	if rng.IntN(2) == 0 {
		t.Pivots = []uint32{0}
	}
	for level := []uint32{uint32(objects)}; len(level) > 0; {
		t.Levels = append(t.Levels, t.Levels[len(t.Levels)-1]+uint32(len(level)))
		var next []uint32
		for _, n := range level {
			t.First = append(t.First, t.Levels[len(t.Levels)-1]+uint32(len(next)))
			t.Count, t.Begin = append(t.Count, n), append(t.Begin, 0)
			if int(n) <= t.Leaf {
				continue
			}
			for parts := uint32(min(t.Capacity, int(n), 2+rng.IntN(t.Capacity))); parts > 0; parts-- {
				next = append(next, n/parts)
				n -= n / parts
			}
		}
		level = next
	}
	t.First = append(t.First, uint32(len(t.Count)))
	t.Height = len(t.Levels) - 2
	return t
}

// TestDescentPieces: whatever the memory of a lane, pieces are all queries of a batch, in order, and lie within it; and whatever a tree looks like and whatever is pruned,
// no buffer holds more than it has room for, and every batch ends.
func TestDescentPieces(t *testing.T) {
	rng := seeded.Rand(t)
	waves := &profile.Of("").Near
	refused, several, deferred := 0, 0, 0
	// What must happen for the test to say anything happens in nearly every 150 worlds. Where it did not, more are made.
	for world := 0; world < 150 || world < 3000 && (refused == 0 || several == 0 || deferred == 0); world++ {
		own := randomTree(rng, 1+rng.IntN(1<<rng.IntN(15)))
		memory := int64(64<<10) << rng.IntN(15)
		room := plan.Room{Arena: memory, In: 32 << 20, Out: 32 << 20}
		var asks []Ask
		for range 1 + rng.IntN(60) {
			q := &distance.Query{Column: own.Column.Of, K: []int{0, 1, 8, rng.IntN(2000), 65_536}[rng.IntN(5)], Total: rng.IntN(3) == 0}
			fits := own.Fits(q, room, waves)
			if cost := own.Cost(q); !fits && cost+own.Column.setBytes()+4*slack < memory {
				t.Fatalf("a query that costs %d does not fit %d", cost, memory)
			}
			if !fits {
				refused++
				continue
			}
			asks = append(asks, Ask{Job: len(asks), Query: q, Set: -1})
		}
		for next := 0; len(asks) > 0; {
			p := own.Plan(asks, room, waves)
			if len(p.Asks) == 0 {
				t.Fatalf("the first of %d queries does not fit %d bytes, though it does alone", len(asks), memory)
			}
			if len(p.Asks) > 1 {
				several++
			}
			if p.Asks[0].Job != next || p.Used > memory || p.InBytes() > room.In || p.OutBytes() > room.Out || p.Most < 1 || p.Leaves < 1 {
				t.Fatalf("%d bytes of %d: %+v", p.Used, memory, p)
			}
			p.checkPlaces(t)
			deferred += p.simulate(t, rng)
			next += len(p.Asks)
			asks = asks[len(p.Asks):]
		}
	}
	if refused == 0 || several == 0 || deferred == 0 {
		t.Errorf("%d refused, %d pieces of several, %d leaves put off", refused, several, deferred)
	}
}

// checkPlaces: no array reaches into the next one.
func (p *DescentPiece) checkPlaces(t *testing.T) {
	t.Helper()
	n := int64(len(p.Asks))
	type array struct{ at, bytes int64 }
	derived := p.Sieves - p.Vectors
	if p.Column.Derives() && derived < 8*n*int64(p.Column.Dims) || !p.Column.Derives() && p.Vectors != p.Asked {
		t.Fatalf("vectors of %d queries lie at %d, and the next array at %d", n, p.Vectors, p.Sieves)
	}
	if !p.Column.Derives() {
		derived = 0
	}
	arrays := []array{{0, n * abi.NearQueryBytes}, {p.Asked, n * p.Column.askedBytes()}, {p.Levels, abi.DescentLevelBytes * int64(p.Tree.Height+1)},
		{p.Work, abi.DescentWorkBytes}, {p.Progress, abi.DescentStateBytes}, {p.States, n * abi.NearStateBytes}, {p.Answers, p.answers * abi.NearEntryBytes},
		{p.Sieves - derived, derived}, {p.Candidates, (p.answers + n*int64(p.Wave)) * abi.NearEntryBytes}}
	for d, entries := range p.Rooms {
		levels := int64(d)
		if p.Tree.Pivots == nil {
			levels = 0
		}
		arrays = append(arrays, array{p.Bounds[d], 8 * int64(entries)}, array{p.Distances[d], 8 * levels * int64(entries)}, array{p.Queries[d], 4 * int64(entries)}, array{p.Nodes[d], 4 * int64(entries)})
	}
	list := 4 * int64(p.ListRoom)
	arrays = append(arrays, array{p.Lists, 2 * list}, array{p.Places, list}, array{p.Grouped, list}, array{p.Bins, 4 * abi.DescentBins}, array{p.Admitted, 4 * n},
		array{p.Seeds, 4 * abi.DescentSeeds * n}, array{p.Used, 0})
	for i, a := range arrays[:len(arrays)-1] {
		if a.at+a.bytes > arrays[i+1].at {
			t.Fatalf("array %d lies at %d to %d, and the next one at %d", i, a.at, a.at+a.bytes, arrays[i+1].at)
		}
	}
}

// simulate goes down the tree as kernels/descent.cu does, pruning at random, and returns how many leaves were put off.
func (p *DescentPiece) simulate(t *testing.T, rng *rand.Rand) (deferred int) {
	t.Helper()
	type entry struct{ query, node uint32 }
	own, levels, fed := p.Tree, make([][]entry, p.Tree.Height+1), 0
	keep := []float64{0.1, 0.6, 1}[rng.IntN(3)]
	if len(own.Count)*len(p.Asks) > 200_000 {
		keep = 0.1
	}
	visited := make(map[entry]bool)
	var list []entry
	for rounds := 0; ; rounds++ {
		if rounds > 10*len(own.Count)*len(p.Asks)+100 {
			t.Fatal("it does not end")
		}
		if len(list) == 0 { // a round that takes entries
			level := own.Height
			for level >= 0 && len(levels[level]) == 0 {
				level--
			}
			if level < 0 {
				n := min(len(p.Asks)-fed, p.Rooms[0])
				if n == 0 {
					break
				}
				for range n {
					levels[0] = append(levels[0], entry{uint32(fed), 0})
					fed++
				}
				level = 0
			}
			taken := len(levels[level])
			if level < own.Height {
				taken = min(taken, p.Most)
			}
			begin := len(levels[level]) - taken
			for _, e := range levels[level][begin:] {
				if own.First[e.node] == own.First[e.node+1] {
					list = append(list, e)
					continue
				}
				for child := own.First[e.node]; child < own.First[e.node+1]; child++ {
					if rng.Float64() < keep {
						levels[level+1] = append(levels[level+1], entry{e.query, child})
					}
				}
			}
			levels[level] = levels[level][:begin]
			if level < own.Height && len(levels[level+1]) > p.Rooms[level+1] {
				t.Fatalf("level %d has %d entries, and room for %d", level+1, len(levels[level+1]), p.Rooms[level+1])
			}
		}
		if len(list) > p.ListRoom {
			t.Fatalf("%d leaves on a list of %d", len(list), p.ListRoom)
		}
		admitted, objects := make(map[uint32]int), make(map[uint32]int)
		later := list[:0]
		for _, e := range list {
			if admitted[e.query]++; admitted[e.query] > p.Leaves {
				later = append(later, e)
				deferred++
				continue
			}
			if visited[e] {
				t.Fatalf("query %d looks at leaf %d again", e.query, e.node)
			}
			visited[e] = true
			if objects[e.query] += int(own.Count[e.node]); objects[e.query] > p.Wave {
				t.Fatalf("a round finds %d candidates of a query, and there is room for %d", objects[e.query], p.Wave)
			}
		}
		list = later
	}
	if leaves := len(visited); keep == 1 && leaves == 0 {
		t.Fatal("nothing is pruned, and no leaf was looked at")
	}
	return deferred
}

// TestDescentMemory: a batch of 1,024 queries in 1 MiB, 16 MiB and 1 GiB, and a query alone, of a tree over as many objects as there are words.
func TestDescentMemory(t *testing.T) {
	rng := seeded.Rand(t)
	own := randomTree(rng, 663_473)
	for _, memory := range []int64{1 << 20, 16 << 20, 1 << 30} {
		room := plan.Room{Arena: memory, In: 32 << 20, Out: 32 << 20}
		asks := make([]Ask, 1024)
		for i := range asks {
			asks[i] = Ask{Job: i, Query: &distance.Query{Column: own.Column.Of, K: 8}, Set: -1}
		}
		for _, batch := range [][]Ask{asks, asks[:1]} {
			pieces, all := 0, len(batch)
			for len(batch) > 0 {
				p := own.Plan(batch, room, &profile.Of("").Near)
				if len(p.Asks) == 0 || p.Used > memory || p.Most < 1 {
					t.Fatalf("%d MiB: %d queries, %d bytes, %d entries a round", memory>>20, len(p.Asks), p.Used, p.Most)
				}
				p.checkPlaces(t)
				batch = batch[len(p.Asks):]
				pieces++
			}
			t.Logf("%d MiB: %d queries in %d pieces", memory>>20, all, pieces)
		}
	}
}

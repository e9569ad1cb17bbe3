package topk

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestEntryOrder(t *testing.T) {
	// Best first: count descending, id ascending, up to the extremes of 32 bits.
	best := []Entry{
		NewEntry(math.MaxUint32, 0), NewEntry(math.MaxUint32, math.MaxUint32), NewEntry(7, 3), NewEntry(7, 4),
		NewEntry(7, math.MaxUint32), NewEntry(6, 0), NewEntry(1, math.MaxUint32), NewEntry(0, 0),
	}
	for i := range best[1:] {
		if best[i] <= best[i+1] {
			t.Errorf("entry %d (count %d, id %d) does not precede the next", i, best[i].Count(), best[i].ID())
		}
	}
	if e := NewEntry(12, 34); e.Count() != 12 || e.ID() != 34 {
		t.Errorf("got count %d, id %d", e.Count(), e.ID())
	}
}

// entryStreams are orders in which entries may come, some of them bad for pivots.
var entryStreams = map[string]func(rng *rand.Rand, n int) []Entry{
	"random": func(rng *rand.Rand, n int) []Entry {
		var out []Entry
		for id := range n {
			out = append(out, NewEntry(rng.Uint32N(50), uint32(id)))
		}
		return out
	},
	"equal counts": func(_ *rand.Rand, n int) []Entry {
		var out []Entry
		for id := range n {
			out = append(out, NewEntry(5, uint32(id)))
		}
		return out
	},
	"rising": func(_ *rand.Rand, n int) []Entry {
		var out []Entry
		for id := range n {
			out = append(out, NewEntry(uint32(id+1), uint32(id)))
		}
		return out
	},
	"organ pipe": func(_ *rand.Rand, n int) []Entry {
		var out []Entry
		for id := range n {
			out = append(out, NewEntry(uint32(min(id, n-id)), uint32(id)))
		}
		return out
	},
	"any order": func(rng *rand.Rand, n int) []Entry {
		var out []Entry
		for id := range n {
			out = append(out, NewEntry(rng.Uint32N(3)*math.MaxUint32/2, uint32(id)))
		}
		rng.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	},
}

func TestKeepTop(t *testing.T) {
	rng := seeded.Rand(t)
	for name, stream := range entryStreams {
		for range 300 {
			entries := stream(rng, 1+rng.IntN(3000))
			k := 1 + rng.IntN(len(entries))
			want := slices.Clone(entries)
			slices.Sort(want)
			slices.Reverse(want)
			kth := Keep(entries, k)
			got := slices.Clone(entries[:k])
			slices.Sort(got)
			slices.Reverse(got)
			if !slices.Equal(got, want[:k]) || kth != want[k-1] {
				t.Fatalf("%s: the top %d of %d are wrong", name, k, len(entries))
			}
			rest := entries[k:]
			slices.Sort(rest)
			slices.Reverse(rest)
			if !slices.Equal(rest, want[k:]) {
				t.Fatalf("%s: entries were lost", name)
			}
		}
	}
}

// TestGate checks that the gate keeps the best k whatever the order, within its bound, that its threshold is what the
// comment says, and that parts join to the whole.
func TestGate(t *testing.T) {
	rng := seeded.Rand(t)
	for name, stream := range entryStreams {
		for range 300 {
			entries := stream(rng, rng.IntN(3000))
			k := []int{1, 2, 10, ordered, ordered + 1, 100, 2999, gpuexec.MaxK}[rng.IntN(8)]
			minCount := uint32(1 + rng.IntN(3))
			parts := make([]Gate, 1+rng.IntN(4))
			for i := range parts {
				parts[i].Reset(k, minCount)
			}
			for i, e := range entries {
				g := &parts[i*len(parts)/len(entries)]
				before := g.Threshold()
				rose := g.Offer(e)
				if len(g.entries) > g.limit || cap(g.entries) > 2*g.limit+slack {
					t.Fatalf("%s: %d entries stored for k = %d", name, len(g.entries), k)
				}
				a := g.Threshold()
				if rose != (a > before) {
					t.Fatalf("%s: offer says that the threshold rose: %v, but it went from %d to %d", name, rose, before, a)
				}
				reached := 0
				for _, stored := range g.entries {
					if uint64(stored.Count()) >= a-1 {
						reached++
					}
				}
				if a > uint64(minCount) && reached < k {
					t.Fatalf("%s: threshold %d but only %d of %d entries have %d", name, a, reached, k, a-1)
				}
			}
			passed := uint64(0)
			for i := range parts {
				passed += parts[i].Passed
				if i > 0 {
					parts[0].Add(&parts[i])
				}
			}
			got := parts[0].Finish(nil)
			slices.Reverse(got)
			want := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Count() < minCount })
			slices.Sort(want)
			slices.Reverse(want)
			want = want[:min(k, len(want))]
			if !slices.Equal(got, want) || parts[0].Passed != passed {
				t.Fatalf("%s: the gate kept %d entries, want %d; passed %d, want %d", name, len(got), len(want), parts[0].Passed, passed)
			}
		}
	}
}

func BenchmarkGate(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	entries := entryStreams["rising"](rng, 100_000)
	for _, k := range []int{1, 100, 65536} {
		b.Run(map[int]string{1: "k=1", 100: "k=100", 65536: "k=65536"}[k], func(b *testing.B) {
			var g Gate
			for range b.N {
				g.Reset(k, 1)
				for _, e := range entries {
					g.Offer(e)
				}
				g.cut()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(entries)), "ns/entry")
		})
	}
}

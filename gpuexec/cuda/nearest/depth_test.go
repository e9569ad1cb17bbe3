package nearest

import (
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestDepthPieces: whatever the memory of a lane, pieces are all queries that fit, in order, and lie within it, stacks behind everything else; and no stack holds more than it has
// room for, whatever is pruned and whichever child is entered first.
func TestDepthPieces(t *testing.T) {
	rng := seeded.Rand(t)
	waves := &profile.Of("").Near
	refused, several, fullest := 0, 0, 0.0
	for world := 0; world < 150 || world < 3000 && (refused == 0 || several == 0 || fullest < 1); world++ {
		own := randomTree(rng, 1+rng.IntN(1<<rng.IntN(15)))
		own.Boxes = make([]float32, 1) // they are not looked at
		memory := int64(16<<10) << rng.IntN(12)
		room := plan.Room{Arena: memory, In: 4 << 20, Out: 4 << 20}
		var asks []Ask
		for range 1 + rng.IntN(60) {
			q := &distance.Query{Column: own.Column.Of, K: []int{0, 1, 8, 128, 129}[rng.IntN(5)], Total: rng.IntN(3) == 0}
			if deep := own.Depth(q); deep != (q.K <= abi.WarpHits || own.Column.Objects <= abi.WarpHits) {
				t.Fatalf("k %d of %d objects: %v", q.K, own.Column.Objects, deep)
			} else if !deep {
				continue
			}
			fits := own.DepthFits(q, room)
			if cost := own.DepthCost(q); fits != (cost+own.Column.setBytes() <= memory) {
				t.Fatalf("a query that costs %d fits %d: %v", cost, memory, fits)
			}
			if !fits {
				refused++
				continue
			}
			asks = append(asks, Ask{Job: len(asks), Query: q, Set: -1})
		}
		for next := 0; len(asks) > 0; {
			p := own.PlanDepth(asks, room, waves)
			n := int64(len(p.Asks))
			if n == 0 {
				t.Fatalf("the first of %d queries does not fit %d bytes, though it does alone", len(asks), memory)
			}
			if n > 1 {
				several++
			}
			if p.Asks[0].Job != next || p.Used > memory || p.InBytes() > room.In || p.OutBytes() > room.Out || p.Stacks < p.End()-p.answers*abi.NearEntryBytes ||
				p.Stacks < p.Answers+p.answers*abi.NearEntryBytes || p.Used-p.Stacks < n*abi.DescentPlaceBytes*int64(own.StackRoom()) {
				t.Fatalf("%d bytes of %d: %+v", p.Used, memory, p)
			}
			next += len(p.Asks)
			asks = asks[n:]
		}
		fullest = max(fullest, float64(own.deepest(rng))/float64(own.StackRoom()))
	}
	if refused == 0 || several == 0 || fullest != 1 {
		t.Errorf("%d refused, %d pieces of several, %.2f of a stack used at most", refused, several, fullest)
	}
}

// deepest goes down the tree as kernels/descent_depth.cu does, and is how many nodes lay on the stack at most.
func (t *Tree) deepest(rng *rand.Rand) (most int) {
	keep := []float64{0.3, 1}[rng.IntN(2)]
	at, stack := uint32(0), []uint32(nil)
	for {
		begin := len(stack)
		for child := t.First[at]; child < t.First[at+1]; child++ {
			if rng.Float64() < keep {
				stack = append(stack, child)
			}
		}
		most = max(most, len(stack))
		if len(stack) == 0 {
			return most
		}
		last := len(stack) - 1
		if begin <= last {
			best := begin + rng.IntN(len(stack)-begin)
			stack[best], stack[last] = stack[last], stack[best]
		}
		at, stack = stack[last], stack[:last]
	}
}

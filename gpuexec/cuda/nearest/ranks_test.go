package nearest

import (
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRanksPieces: whatever the memory of a lane, pieces are all queries that fit alone, in order, and lie within it; what is sent of both searches comes first, and no array of one
// reaches into the other's.
func TestRanksPieces(t *testing.T) {
	rng := seeded.Rand(t)
	waves := profile.Of("").Near
	w := &enginetest.DistanceWorld{Metric: "l2", Storage: "f32", Dims: 3, Paths: true}
	for range 900 {
		w.Places = append(w.Places, w.Random(rng))
	}
	w.Build(t)
	c := w.Index.Distances().Column("vector")
	ranks := NewRanks(NewColumn(c, run.Tiles{End: 1}))
	if ranks == nil {
		t.Fatal("there are no ranks")
	}
	refused, several, guessed := 0, 0, 0
	waves.Guessed = 100
	for world := 0; world < 300 || world < 5000 && (refused == 0 || several == 0 || guessed == 0); world++ {
		ranks.Guesses = rng.IntN(2) == 0
		waves.Least = 1 + rng.IntN(600)
		room := plan.Room{Arena: int64(32<<10) << rng.IntN(10), In: int64(16<<10) << rng.IntN(8), Out: int64(8<<10) << rng.IntN(6)}
		var asks, asked []Ask
		for range 1 + rng.IntN(50) {
			q := &distance.Query{Column: c, K: []int{1, 8, 100, 899}[rng.IntN(4)], Fraction: rng.Float64()/2 + 0.001, Vector: make([]float32, 3)}
			if !ranks.Takes(q, &waves) || !ranks.Fits(q, room, &waves) {
				refused++
				continue
			}
			a := Ask{Job: len(asks), Query: q, Set: rng.IntN(4) - 2}
			a.Set = max(a.Set, -1)
			asks, asked = append(asks, a), append(asked, ranks.Asked(&a, make([]byte, len(ranks.Permutants()))))
		}
		for next := 0; len(asks) > 0; {
			p := ranks.Plan(asks, asked, room, &waves)
			n := int64(len(p.Asks))
			if n == 0 {
				t.Fatalf("the first of %d queries does not fit %+v, though it does alone", len(asks), room)
			}
			if n > 1 {
				several++
			}
			for i, at := range []int64{p.First.Queries, p.First.InBytes(), p.Queries, p.InBytes(), p.Answers, p.Answers + p.answers*abi.NearEntryBytes, p.Lists, p.Candidates, p.Piece.End(), p.First.Answers,
				p.First.Lists, p.First.Candidates, p.End(), room.Arena} {
				if before := []int64{0, p.First.Queries, p.First.InBytes(), p.Queries, p.InBytes(), p.Answers, p.Answers + p.answers*abi.NearEntryBytes, p.Lists, p.Candidates, p.Piece.End(), p.First.Answers,
					p.First.Lists, p.First.Candidates, p.End()}[i]; at < before {
					t.Fatalf("array %d lies at %d, and what is before it ends at %d: %+v", i, at, before, p)
				}
			}
			if p.Asks[0].Job != next || p.First.Asks[0].Job != next || len(p.First.Asks) != int(n) || p.InBytes() > room.In || p.OutBytes() > room.Out || p.Answers != p.InBytes() {
				t.Fatalf("%+v of %+v", p, room)
			}
			if g := p.First.Guess; g != nil {
				guessed++
				if g.Room > p.First.Wave || g.Sample > g.Room || g.Sample < 1 || g.Sample*g.Stride > 900 {
					t.Fatalf("%+v for waves of %d", g, p.First.Wave)
				}
			}
			for i := range p.First.Asks {
				if p.First.Asks[i].Query.K > p.ListRoom {
					t.Fatalf("a list of %d candidates has room for %d", p.First.Asks[i].Query.K, p.ListRoom)
				}
			}
			p.Encode(make([]byte, p.InBytes()), nil)
			next += int(n)
			asks, asked = asks[n:], asked[n:]
		}
	}
	if refused == 0 || several == 0 || guessed == 0 {
		t.Errorf("%d refused, %d pieces of several, %d guessed", refused, several, guessed)
	}
}

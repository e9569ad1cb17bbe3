package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// roomOf is the room of a lane with so much memory on the device.
func roomOf(arena int64) Room { return Room{Arena: arena, In: 32 << 20, Out: 32 << 20} }

// withTexts makes the index one whose candidates are compared on the device.
func (x *Index) withTexts() {
	x.device.MaxPattern = 2048
	x.Texts = &rescoring.Texts{Tiles: x.Tiles, Objects: int(x.Objects()), Source: noTexts(x.Objects())}
}

// noTexts are so many texts of no symbols.
type noTexts uint32

func (n noTexts) Objects() uint32    { return uint32(n) }
func (n noTexts) Text(uint32) string { return "" }
func (n noTexts) TextBytes() int64   { return 0 }

// randomText is a text to compare candidates with, short or long, or longer than the device compares.
func randomText(rng *rand.Rand) []rune {
	return make([]rune, []int{0, 1, rng.IntN(200), rng.IntN(2100)}[rng.IntN(4)])
}

// randomQueries are some on a random index, and by job what they cost.
func randomQueries(t *testing.T, rng *rand.Rand) (x *Index, queries []Query, costs map[*run.Job]int64) {
	var plan func(rng *rand.Rand) gpuexec.Plan
	limits := Limits{Memory: 1 << 40, PlanesOnly: rng.IntN(2) == 0}
	var stored filter.Stored
	if rng.IntN(2) == 0 {
		w := enginetest.RandomWorld(t, rng, 1+rng.IntN(2000))
		stored, limits.stored = w.Stored(), w.Stored()
		var filters []*filter.Filter
		x, plan = hostIndex(t, w.Index, limits), func(rng *rand.Rand) gpuexec.Plan { return w.RandomFilteredPlan(rng, &filters) }
	} else {
		w := enginetest.NewCodedWorld(t, rng, 1+rng.IntN(2000), 40+rng.IntN(60))
		x, plan = hostIndex(t, w.Index, limits), w.Plan
	}
	x.slots = max(x.slots, rng.IntN(3))
	if rng.IntN(3) == 0 {
		x.withTexts()
	}
	costs = map[*run.Job]int64{}
	for range 1 + rng.IntN([]int{100, 400, 1500}[rng.IntN(3)]) {
		p := plan(rng)
		bound, err := x.Lists.CheckQuery(p.Query, stored)
		if err != nil {
			continue
		}
		m := &p
		job := &run.Job{Query: enginetest.Query(m), K: m.K, MinCount: max(1, m.MinCount), Bound: bound}
		if x.Texts != nil && rng.IntN(2) == 0 {
			n := &verify.Nearest{Texts: x.Texts.Source, NGram: 3, Text: randomText(rng), K: 1 + rng.IntN(1000)}
			m.Rescore, job.Rescore, job.K = n, n, max(m.K, n.K)
		}
		job.K = min(job.K, int(x.Lists.Objects()))
		costs[job] = x.Cost(&p)
		queries = append(queries, x.Plan(job))
	}
	return x, queries, costs
}

// TestPieces: whatever the attributes, the kernels that are chosen and the memory of a lane, the pieces of a batch are all
// of its queries, each in memory of its own, and a query that fits by its cost is executed. A plan depends on what is given and
// leaves that as it is.
func TestPieces(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	var pieces, refused, moved, smaller int
	var by [3]int // queries by kernel
	missing := func() bool { return refused == 0 || moved == 0 || smaller == 0 || slices.Min(by[:]) == 0 }
	for round := 0; round < 300 || missing() && round < 3000; round++ { // one case is rare
		x, queries, costs := randomQueries(t, rng)
		room := roomOf([]int64{rng.Int64N(10 << 10), 4<<10 + rng.Int64N(1<<20), 1<<20 + rng.Int64N(16<<20)}[rng.IntN(3)])
		policy := hostPolicy()
		policy.Path = Path(rng.IntN(4))
		given := slices.Clone(queries)
		executed := map[*run.Job]bool{}
		for rest := queries; len(rest) > 0; {
			p := new(Piece)
			err := x.planPiece(p, rest, room, policy)
			if !slices.Equal(queries, given) {
				t.Fatal("planning has changed the queries")
			}
			if err != nil {
				job := rest[0].Job
				refused++
				if costs[job]+2048 <= room.Arena && costs[job] < 1<<20 {
					t.Fatalf("a query that costs %d of %d bytes was not executed: %v", costs[job], room.Arena, err)
				}
				executed[job] = true
				rest = rest[1:]
				continue
			}
			pieces++
			n := len(p.Queries)
			fits, _ := x.fitting(rest, room)
			if n < 1 || n > fits {
				t.Fatalf("%d queries of %d", n, fits)
			}
			if n < fits {
				smaller++
			}
			rest = rest[n:]
			checkPiece(t, x, p, room)
			by[0], by[1], by[2] = by[0]+p.Tiled, by[1]+n-p.Tiled-p.Bound.Count, by[2]+p.Bound.Count
			if policy.Path != ByCost && policy.Path != PathTile && p.Tiled == n && slices.ContainsFunc(p.Queries, func(q Query) bool { return q.counters >= 0 }) {
				moved++
			}
			for i := range p.Queries {
				if job := p.Queries[i].Job; executed[job] {
					t.Fatal("a query is in two pieces")
				} else {
					executed[job] = true
				}
			}
		}
		if len(executed) != len(queries) {
			t.Fatalf("%d of %d queries", len(executed), len(queries))
		}
	}
	t.Logf("%d pieces, for want of memory %d of them smaller and %d moved to the (query, tile) kernel; %d queries refused; queries by kernel %v", pieces, smaller, moved, refused, by)
	if missing() {
		t.Error("a case has not come up")
	}
}

// checkPiece checks that the arrays of a piece lie one after the other in the arena and the pinned buffers, each with the
// room that the kernels need.
func checkPiece(t *testing.T, x *Index, p *Piece, room Room) {
	t.Helper()
	n := int64(len(p.Queries))
	var spans, answers, entries, scoreIn, scoreOut int64
	for i := range p.Queries {
		q := &p.Queries[i]
		in, out, _ := q.Need()
		scoreIn, scoreOut = scoreIn+in, scoreOut+out
		spans += int64(q.spans)
		answers += int64(q.Job.K)
		need := uint64(q.Job.K) + uint64(p.TileWave)*uint64(waveEntries(q.Job.K, x.device.Tile[q.variant].Blocks))
		switch q.kernel {
		case kernelBound:
			need = 2*uint64(q.Job.K) + abi.BoundRoom
		case kernelSliced:
			need = 2*uint64(q.Job.K) + uint64(p.groupWave)*uint64(min(q.Job.K, postings.GroupObjects))
		}
		has := p.room(x, q)
		if has < need {
			t.Fatalf("room for %d candidates, %d are needed", has, need)
		}
		entries += int64(has)
	}
	end := int64(0)
	lies := func(name string, from, bytes int64) {
		t.Helper()
		if from < end || from+bytes > room.Arena {
			t.Fatalf("%s lie at %d to %d; what is before them ends at %d, the arena at %d", name, from, from+bytes, end, room.Arena)
		}
		end = from + bytes
	}
	lies("queries", 0, n*abi.QueryBytes)
	lies("spans", p.Spans, spans*abi.SpanBytes)
	lies("what is rescored", p.Tasks, scoreIn)
	checkFilters(t, x, p, lies)
	lies("states", p.States, n*abi.StateBytes)
	lies("totals", p.Totals, abi.TotalBytes*int64(p.Filters.Count))
	if end != p.InBytes() || end > room.In {
		t.Fatalf("%d bytes to copy of %d, the buffer has %d", p.InBytes(), end, room.In)
	}
	lies("answers", p.Answers, answers*topk.EntryBytes)
	lies("scores", p.Scored-scoreOut, scoreOut)
	if end-p.States != p.OutBytes() || p.OutBytes() > room.Out {
		t.Fatalf("%d bytes to copy back of %d, the buffer has %d", p.OutBytes(), end-p.States, room.Out)
	}
	lies("resolved spans", p.Resolved, int64(x.slots)*spans*abi.SpanBytes)
	if (p.Resolved-p.Spans)%abi.SpanBytes != 0 {
		t.Fatalf("resolved spans are %d bytes after the spans", p.Resolved-p.Spans)
	}
	if p.Filters.Count > 0 {
		lies("what passes", p.Filters.Passing, int64(p.Filters.Count*x.Tiles.Len())*abi.TileWords*abi.WordBytes)
		lies("how many pass in tiles", p.Filters.PassingOfTile, int64(p.Filters.Count*x.Tiles.Len())*abi.WordBytes)
	}
	lies("candidates", p.Candidates, entries*topk.EntryBytes)
	checkLaunches(t, p, lies)
	if p.End > room.Arena {
		t.Fatalf("planned for %d bytes of %d", p.End, room.Arena)
	}
	if p.TileWave < 1 || p.groupWave < 1 || p.Tiled > 0 && p.FirstWave < 1 {
		t.Fatalf("waves of %d tiles, the first of %d, and %d groups", p.TileWave, p.FirstWave, p.groupWave)
	}
}

// checkFilters checks that each query with a filter has the number of one, and where these lie.
func checkFilters(t *testing.T, x *Index, p *Piece, lies func(name string, from, bytes int64)) {
	t.Helper()
	f := &p.Filters
	if f.Count == 0 {
		return
	}
	var clauses, spans, ranges int
	for _, planned := range f.Planned {
		clauses, spans, ranges = clauses+planned.Clauses, spans+planned.Spans, ranges+planned.Ranges
	}
	lies("clauses", f.Clauses, abi.ClauseBytes*int64(clauses))
	lies("spans of filters", f.Spans, abi.SpanBytes*int64(spans))
	lies("ranges", f.Ranges, abi.RangeBytes*int64(ranges))
	lies("heads", f.Heads, abi.FilterHeadBytes*int64(f.Count))
	lies("filters of queries", f.Of, abi.WordBytes*int64(len(p.Queries)))
	if f.Of%abi.WordBytes != 0 || f.Clauses%16 != 0 || p.Totals%8 != 0 {
		t.Fatal("arrays of filters are not aligned")
	}
	for i := range p.Queries {
		if q := &p.Queries[i]; q.filter != nil && f.Planned[q.filterNumber] != q.filter || (q.filter != nil) != (queryOf(q.Job).Filter != nil) {
			t.Fatal("a query has another filter than its own")
		}
	}
	for _, l := range p.Tile {
		if l.Filtered != p.Filtered(l.First, l.Count) {
			t.Fatalf("a launch of %d queries has filters: %v", l.Count, l.Filtered)
		}
	}
}

// checkLaunches checks that the launches are all queries, in their order.
func checkLaunches(t *testing.T, p *Piece, lies func(name string, from, bytes int64)) {
	t.Helper()
	next := 0
	for _, l := range p.Tile {
		if l.First != next || l.Count < 1 {
			t.Fatalf("a launch of %d queries from %d on, those before end at %d", l.Count, l.First, next)
		}
		next += l.Count
	}
	if next != p.Tiled {
		t.Fatalf("%d queries are launched of %d", next, p.Tiled)
	}
	for i := range p.Sliced {
		l := &p.Sliced[i]
		if l.FirstWave < 1 || l.FirstWave > p.groupWave || l.WaveGroups != p.groupWave || !l.addressable() || l.First != next {
			t.Fatalf("waves of %d and %d groups, candidates for %d; queries from %d on", l.FirstWave, l.WaveGroups, p.groupWave, l.First)
		}
		next += l.Count
		lies("programs", l.Scratch, l.End)
	}
	if p.Bound.Count > 0 {
		if p.Bound.First != next {
			t.Fatalf("queries from %d on, not %d", p.Bound.First, next)
		}
		lies("masks, ranges and marks", p.Bound.Scratch, p.Bound.End)
	}
	if next+p.Bound.Count != len(p.Queries) {
		t.Fatalf("%d queries are launched of %d", next+p.Bound.Count, len(p.Queries))
	}
}

// TestTileWaves: waves of the (query, tile) kernel are WaveTiles wide or wider, up to Candidates a query, where there are tiles
// and memory for that; else as wide as there are.
func TestTileWaves(t *testing.T) {
	rng := seeded.Rand(t)
	w := enginetest.RandomWorld(t, rng, 300)
	x := hostIndex(t, w.Index, Limits{Memory: 1 << 40})
	policy := hostPolicy()
	policy.Path = PathTile
	sizes := &policy.Profile.Pieces
	var narrow, least, wider, whole int
	for range 1000 {
		x.Tiles = run.Tiles{End: 1 + rng.IntN([]int{10, 1000}[rng.IntN(2)])}
		var queries []Query
		var need, kept, tile int64
		most := []int{10, 1000, 65536}[rng.IntN(3)]
		for range 1 + rng.IntN([]int{10, 400}[rng.IntN(2)]) {
			p := w.RandomPlan(rng)
			q := x.Plan(&run.Job{Query: enginetest.Query(&p), K: 1 + rng.IntN(most), MinCount: 1, Bound: uint32(rng.Uint64() >> (32 + rng.IntN(32)))})
			blocks := x.device.Tile[q.variant].Blocks
			queries = append(queries, q)
			need += queryNeed(x.spanRoom(int(q.spans)), q.Job.K, blocks)
			kept, tile = kept+int64(q.Job.K), tile+waveEntries(q.Job.K, blocks)
		}
		room := roomOf(slack + need + rng.Int64N(2*int64(sizes.WaveTiles)*tile*topk.EntryBytes))
		if n, _ := x.fitting(queries, room); n < len(queries) {
			continue // an answer of its own size is too long to copy
		}
		p := new(Piece)
		if err := x.planPiece(p, queries, room, policy); err != nil {
			t.Fatal(err)
		}
		checkPiece(t, x, p, room)
		fits := ((room.Arena-p.Candidates)/topk.EntryBytes - kept) / tile
		wanted := (int64(sizes.Candidates)/topk.EntryBytes*int64(max(len(queries), sizes.SmallBatch)) - kept) / tile
		if want := min(int64(x.Tiles.Len()), fits, max(int64(sizes.WaveTiles), wanted)); int64(p.TileWave) != want {
			t.Fatalf("%d queries, memory for %d of %d tiles: waves of %d, want %d", len(queries), fits, x.Tiles.Len(), p.TileWave, want)
		}
		switch {
		case p.TileWave == x.Tiles.Len():
			whole++
		case p.TileWave < sizes.WaveTiles:
			narrow++
		case p.TileWave == sizes.WaveTiles:
			least++
		default:
			wider++
		}
	}
	t.Logf("%d narrow, %d of %d tiles, %d wider, %d of all", narrow, least, sizes.WaveTiles, wider, whole)
	if min(narrow, least, wider, whole) == 0 {
		t.Error("a case has not come up")
	}
}

// TestSmallerPieces: a piece without room for shared decode becomes smaller, down to a block of queries and as long as shared
// decode pays for it, with one more copy of a streamed index. Else all of it is the (query, tile) kernel's.
func TestSmallerPieces(t *testing.T) {
	raced.Skip(t, raced.One)
	wl := enginetest.DenseRows(300_000)
	x := hostIndex(t, wl.Build(t), Limits{Memory: 1 << 40})
	plans := wl.Plans()
	queries := make([]Query, len(plans))
	for i := range queries {
		m := &plans[i]
		queries[i] = x.Plan(&run.Job{Query: enginetest.Query(m), K: m.K, MinCount: 1, Bound: uint32(x.Lists.CountBound(enginetest.Query(m)))})
	}
	for _, c := range []struct {
		path     Path
		streamed bool
		want     []int
		whole    bool // pieces for the (query, tile) kernel too
	}{
		{PathSliced, false, []int{128, 256, 512, 1024}, false},
		{ByCost, false, []int{256, 512, 1024}, true},
		{ByCost, true, []int{512, 1024}, true},
	} {
		x.Streamed = c.streamed
		policy := hostPolicy()
		policy.Path = c.path
		var sizes []int
		whole := 0
		for memory := int64(64 << 20); ; memory -= memory / 50 {
			room := roomOf(memory)
			if n, _ := x.fitting(queries, room); n < len(queries) {
				break
			}
			p := new(Piece)
			if err := x.planPiece(p, queries, room, policy); err != nil {
				t.Fatal(err)
			}
			checkPiece(t, x, p, room)
			switch n := len(p.Queries); {
			case p.Tiled == 0:
				sizes = append(sizes, n)
			case p.Tiled == len(queries):
				whole++
			default:
				t.Fatalf("%v, %d bytes: a piece of %d, %d for the (query, tile) kernel", c.path, memory, n, p.Tiled)
			}
		}
		slices.Sort(sizes)
		if sizes = slices.Compact(sizes); !slices.Equal(sizes, c.want) || whole > 0 != c.whole {
			t.Errorf("%v, streamed %v: pieces of %d for shared decode, want %d; %d wholes for the (query, tile) kernel", c.path, c.streamed, sizes, c.want, whole)
		}
	}
}

// TestAddressable: what the numbers of the shared-decode kernel cannot hold is left to the other kernels.
func TestAddressable(t *testing.T) {
	v := &SlicedVariant{Warps: 8, Slots: 15, Decoders: 8} // records of 256 bytes
	for _, c := range []struct {
		units, trees int
		want         bool
	}{{1, 1, true}, {1 << 24, 1<<21 - 1, true}, {1<<24 + 1, 1, false}, {1, 1 << 21, false}} {
		l := SlicedLaunch{variant: v, unitsOfBlock: c.units, MaxTrees: c.trees}
		if got := l.addressable(); got != c.want {
			t.Errorf("%d units, %d trees: %v", c.units, c.trees, got)
		}
	}
}

//go:build cuda

package device

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
)

// hostLane is a lane of so many bytes without a device.
func hostLane(r *resident, memory int64) *lane {
	return &lane{resident: r, crew: run.NewCrew(1), bytes: memory, waves: defaultWaves, policy: defaultPolicy, filters: defaultFilters}
}

// withTexts makes the resident one whose candidates are compared on the device.
func (r *resident) withTexts() {
	r.kernels.verify.maxPattern = 2048
	r.texts = &residentTexts{textsLayout: textsLayout{tiles: r.tiles, objects: int(r.objects())}}
}

// randomText is a text to compare candidates with, short or long, or longer than the device compares.
func randomText(rng *rand.Rand) []rune {
	return make([]rune, []int{0, 1, rng.IntN(200), rng.IntN(2100)}[rng.IntN(4)])
}

// TestPieces: whatever the attributes, the kernels that are chosen and the memory of a lane, the pieces of a batch are all
// of its queries, each in memory of its own, and a query that fits by its cost is executed.
func TestPieces(t *testing.T) {
	rng := enginetest.NewRand(t)
	var pieces, refused, moved, smaller int
	var by [3]int // queries by kernel
	for range 300 {
		var r *resident
		var plan func(rng *rand.Rand) gpuexec.Plan
		limits := residentLimits{memory: 1 << 40, planesOnly: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			w := enginetest.RandomWorld(t, rng, 1+rng.IntN(2000))
			r, plan = hostResident(t, w.Index, limits), w.RandomPlan
		} else {
			w := newCodedWorld(t, rng, 1+rng.IntN(2000), 40+rng.IntN(60))
			r, plan = hostResident(t, w.index, limits), w.plan
		}
		if slots := rng.IntN(3); slots > 0 {
			r.forms = &residentForms{slots: slots}
		}
		if rng.IntN(3) == 0 {
			r.withTexts()
		}
		l := hostLane(r, []int64{rng.Int64N(10 << 10), 4<<10 + rng.Int64N(1<<20), 1<<20 + rng.Int64N(16<<20)}[rng.IntN(3)])
		l.policy.path = launchPath(rng.IntN(4))
		s := &cudaSearcher{engine: &cudaEngine{kernels: r.kernels}, resident: r, index: r.index}

		queries := make([]laneQuery, 0, 400)
		costs := map[*run.Job]int64{}
		for range 1 + rng.IntN([]int{100, 400, 1500}[rng.IntN(3)]) {
			p := plan(rng)
			bound, err := r.index.CheckQuery(p.Query)
			if err != nil {
				continue
			}
			m := &p
			job := &run.Job{Query: enginetest.Query(m), K: m.K, MinCount: max(1, m.MinCount), Bound: bound}
			if r.texts != nil && rng.IntN(2) == 0 {
				m.Rescore = &verify.Nearest{Texts: r.index, NGram: 3, Text: randomText(rng), K: 1 + rng.IntN(1000)}
				job.K, job.Rescore = m.Candidates(), m.Rescore
			}
			job.K = min(job.K, int(r.index.Objects()))
			costs[job] = s.Cost(&p)
			queries = append(queries, r.plan(job))
		}
		executed := map[*run.Job]bool{}
		for rest := queries; len(rest) > 0; {
			first := rest[0].job
			n := l.cut(rest)
			if n < 1 {
				t.Fatal("nothing is cut off")
			}
			if len(l.pieces) == 0 {
				rest = rest[n:]
				refused++
				if n != 1 || first.Err == nil || costs[first]+2048 <= l.bytes && costs[first] < 1<<20 {
					t.Fatalf("a query that costs %d of %d bytes was not executed: %v, %d cut", costs[first], l.bytes, first.Err, n)
				}
				executed[first] = true
				continue
			}
			if len(l.pieces) != n {
				t.Fatalf("%d queries of %d", len(l.pieces), n)
			}
			pieces++
			at, check := l.layout()
			if len(l.pieces) < n {
				smaller++
				n = len(l.pieces)
			}
			rest = rest[n:]
			l.checkPlaces(t, &at, &check)
			by[0], by[1], by[2] = by[0]+l.tiled, by[1]+n-l.tiled-l.filter.count, by[2]+l.filter.count
			if l.policy.path != pathByCost && l.policy.path != pathTile && l.tiled == n && slices.ContainsFunc(l.pieces, func(q laneQuery) bool { return q.counters >= 0 }) {
				moved++
			}
			for i := range l.pieces {
				if job := l.pieces[i].job; executed[job] {
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
	if refused == 0 || moved == 0 || smaller == 0 || slices.Min(by[:]) == 0 {
		t.Error("a case has not come up")
	}
}

// checkPlaces checks that the arrays of a piece lie one after the other in the arena and the pinned buffers, each with the
// room that the kernels need.
func (l *lane) checkPlaces(t *testing.T, at *pieceLayout, check *verifyRun) {
	t.Helper()
	n := int64(len(l.pieces))
	var spans, answers, entries int64
	for i := range l.pieces {
		q := &l.pieces[i]
		spans += int64(q.spans)
		answers += int64(q.job.K)
		need := uint64(q.job.K) + uint64(at.tileWave)*uint64(waveEntries(q.job.K, l.resident.kernels.matches[q.variant].Parts))
		if q.filter {
			need = 2*uint64(q.job.K) + abi.BoundRoom
		} else if q.sliced {
			need = 2*uint64(q.job.K) + uint64(at.groupWave)*uint64(min(q.job.K, index.GroupObjects))
		}
		room := l.room(q, at)
		if room < need {
			t.Fatalf("room for %d candidates, %d are needed", room, need)
		}
		entries += int64(room)
	}
	end := int64(0)
	place := func(name string, from, bytes int64) {
		t.Helper()
		if from < end || from+bytes > l.bytes {
			t.Fatalf("%s lie at %d to %d; what is before them ends at %d, the arena at %d", name, from, from+bytes, end, l.bytes)
		}
		end = from + bytes
	}
	place("queries", 0, n*abi.QueryBytes)
	place("spans", at.spans, spans*abi.SpanBytes)
	place("tasks and patterns", at.verify, check.bytes)
	place("states", at.states, n*abi.StateBytes)
	if end > inBytes {
		t.Fatalf("%d bytes to copy, the buffer has %d", end, inBytes)
	}
	place("answers", at.answers, answers*topk.EntryBytes)
	place("distances", at.distances, check.distancesBytes())
	if end-at.states > outBytes {
		t.Fatalf("%d bytes to copy back, the buffer has %d", end-at.states, outBytes)
	}
	if f := l.resident.forms; f != nil {
		place("resolved spans", at.resolved, int64(f.slots)*spans*abi.SpanBytes)
		if (at.resolved-at.spans)%abi.SpanBytes != 0 {
			t.Fatalf("resolved spans are %d bytes after the spans", at.resolved-at.spans)
		}
	}
	place("candidates", at.candidates, entries*topk.EntryBytes)
	scratch := at.programs
	for i := range l.runs {
		if run := &l.runs[i]; run.firstWave < 1 || run.firstWave > at.groupWave || run.waveGroups != at.groupWave || !run.addressable() {
			t.Fatalf("waves of %d and %d groups, candidates for %d", run.firstWave, run.waveGroups, at.groupWave)
		}
		place("programs", scratch, l.runs[i].end)
		scratch += alignUp(l.runs[i].end)
	}
	if l.filter.count > 0 {
		place("masks, ranges and marks", scratch, l.filter.end)
	}
	if at.end > l.bytes {
		t.Fatalf("laid out in %d bytes of %d", at.end, l.bytes)
	}
	if at.tileWave < 1 || at.groupWave < 1 {
		t.Fatalf("waves of %d tiles and %d groups", at.tileWave, at.groupWave)
	}
}

// TestTileWaves: waves of the (query, tile) kernel are waveTiles wide or wider, up to queryCandidates a query, where there are tiles
// and memory for that; else as wide as there are.
func TestTileWaves(t *testing.T) {
	rng := enginetest.NewRand(t)
	w := enginetest.RandomWorld(t, rng, 300)
	r := hostResident(t, w.Index, residentLimits{memory: 1 << 40})
	var narrow, least, wider, whole int
	for range 1000 {
		r.tiles = run.Tiles{End: 1 + rng.IntN([]int{10, 1000}[rng.IntN(2)])}
		var queries []laneQuery
		var need, kept, tile int64
		most := []int{10, 1000, 65536}[rng.IntN(3)]
		for range 1 + rng.IntN([]int{10, 400}[rng.IntN(2)]) {
			p := w.RandomPlan(rng)
			q := r.plan(&run.Job{Query: enginetest.Query(&p), K: 1 + rng.IntN(most), MinCount: 1, Bound: uint32(rng.Uint64() >> (32 + rng.IntN(32)))})
			parts := r.kernels.matches[q.variant].Parts
			queries = append(queries, q)
			need += queryNeed(r.spanRoom(q.spans), q.job.K, 1, parts)
			kept, tile = kept+int64(q.job.K), tile+waveEntries(q.job.K, parts)
		}
		l := hostLane(r, arenaSlack+need+rng.Int64N(30*tile*topk.EntryBytes))
		l.policy.path = pathTile
		if l.cut(queries) < len(queries) {
			continue // an answer of its own size is too long to copy
		}
		at, check := l.layout()
		l.checkPlaces(t, &at, &check)
		fits := ((l.bytes-at.candidates)/topk.EntryBytes - kept) / tile
		wanted := (queryCandidates/topk.EntryBytes*int64(max(len(queries), smallBatch)) - kept) / tile
		if want := min(int64(r.tiles.Len()), fits, max(waveTiles, wanted)); int64(at.tileWave) != want {
			t.Fatalf("%d queries, memory for %d of %d tiles: waves of %d, want %d", len(queries), fits, r.tiles.Len(), at.tileWave, want)
		}
		switch {
		case at.tileWave == r.tiles.Len():
			whole++
		case at.tileWave < waveTiles:
			narrow++
		case at.tileWave == waveTiles:
			least++
		default:
			wider++
		}
	}
	t.Logf("%d narrow, %d of %d tiles, %d wider, %d of all", narrow, least, waveTiles, wider, whole)
	if min(narrow, least, wider, whole) == 0 {
		t.Error("a case has not come up")
	}
}

// TestSmallerPieces: a piece without room for shared decode becomes smaller, down to a block of queries and as long as shared
// decode pays for it, with one more copy of a streamed index. Else all of it is the (query, tile) kernel's.
func TestSmallerPieces(t *testing.T) {
	wl := denseRows(300_000)
	r := hostResident(t, wl.build(t), residentLimits{memory: 1 << 40})
	plans := wl.plans()
	queries := make([]laneQuery, len(plans))
	for i := range queries {
		m := &plans[i]
		queries[i] = r.plan(&run.Job{Query: enginetest.Query(m), K: m.K, MinCount: 1, Bound: uint32(r.index.CountBound(enginetest.Query(m)))})
	}
	for _, c := range []struct {
		path     launchPath
		streamed bool
		want     []int
		whole    bool // pieces for the (query, tile) kernel too
	}{
		{pathSliced, false, []int{128, 256, 512, 1024}, false},
		{pathByCost, false, []int{256, 512, 1024}, true},
		{pathByCost, true, []int{512, 1024}, true},
	} {
		if r.stream = nil; c.streamed {
			r.stream = &partStream{}
		}
		var sizes []int
		whole := 0
		for memory := int64(64 << 20); ; memory -= memory / 50 {
			l := hostLane(r, memory)
			l.policy.path = c.path
			own := slices.Clone(queries)
			if l.cut(own) < len(own) {
				break
			}
			at, check := l.layout()
			l.checkPlaces(t, &at, &check)
			switch n := len(l.pieces); {
			case l.tiled == 0:
				sizes = append(sizes, n)
			case l.tiled == len(own):
				whole++
			default:
				t.Fatalf("%v, %d bytes: a piece of %d, %d for the (query, tile) kernel", c.path, memory, n, l.tiled)
			}
		}
		slices.Sort(sizes)
		if sizes = slices.Compact(sizes); !slices.Equal(sizes, c.want) || whole > 0 != c.whole {
			t.Errorf("%v, streamed %v: pieces of %d for shared decode, want %d; %d wholes for the (query, tile) kernel", c.path, c.streamed, sizes, c.want, whole)
		}
	}
}

// TestAbandoned: a query that the filter has given up is executed again by another kernel, and nothing of the first time
// counts but the steps that the filter took.
func TestAbandoned(t *testing.T) {
	rng := enginetest.NewRand(t)
	w := newCodedWorld(t, rng, 3000, 100)
	r := hostResident(t, w.index, residentLimits{memory: 1 << 40})
	l := hostLane(r, 1<<30)
	l.policy.path = pathFilter
	l.in, l.out = make(pinned, 8<<20), make(pinned, 8<<20)
	timed := &gpuexec.Trace{}
	l.timed = timed
	var queries []laneQuery
	for len(queries) < 100 {
		p := w.plan(rng)
		p.K = 1 + rng.IntN(20)
		bound, err := w.index.CheckQuery(p.Query)
		if err != nil || bound == 0 {
			continue
		}
		queries = append(queries, r.plan(&run.Job{Query: enginetest.Query(&p), K: p.K, MinCount: 1, Bound: bound}))
	}
	if l.cut(queries) != len(queries) {
		t.Fatal("the queries do not fit")
	}
	// round hands the queries at hand what the device might hand back.
	round := func(abandon func(q *laneQuery) bool) {
		at, _ := l.layout()
		states := pinnedArray[abi.State](l.out, 0, len(l.pieces))
		clear(l.out)
		for i := range l.pieces {
			q := &l.pieces[i]
			states[i] = abi.State{Threshold: 2, Kept: 1, Stored: 1, Passed: 7}
			if !q.sliced {
				states[i].Postings = 5
			}
			if q.filter && abandon(q) {
				states[i].Threshold = math.MaxUint32
			}
		}
		if err := l.decode(&at); err != nil {
			t.Fatal(err)
		}
	}
	given := map[*run.Job]bool{}
	round(func(q *laneQuery) bool {
		given[q.job] = rng.IntN(2) == 0
		return given[q.job]
	})
	filtered := l.filter.count
	again := 0
	for _, job := range given {
		if job {
			again++
		}
	}
	if again == 0 || again == filtered || len(l.again) != again {
		t.Fatalf("%d of %d queries are given up, %d executed again", again, filtered, len(l.again))
	}
	l.pieces, l.again = l.again, nil
	round(func(*laneQuery) bool { return false })
	if len(l.again) != 0 || l.filter.count != 0 {
		t.Fatalf("%d queries are executed a third time, %d by the filter", len(l.again), l.filter.count)
	}
	for i := range queries {
		q := &queries[i]
		postings := q.postings
		if q.counters < 0 {
			postings = 5
		}
		if q.job.Candidates != 7 || q.job.Units != postings || len(q.job.Entries) != 1 {
			t.Errorf("given up: %v; %d candidates, %d postings of %d, %d entries", given[q.job], q.job.Candidates, q.job.Units, postings, len(q.job.Entries))
		}
	}
	work := timed.Work
	if work.FilterQueries != filtered-again || work.FilterQueries+work.SlicedQueries+work.TileQueries != len(queries) {
		t.Errorf("%d queries, %d given up: %+v", len(queries), again, work)
	}
	blocks := (filtered + abi.BoundQueries - 1) / abi.BoundQueries
	if want := uint64(blocks * r.codes.steps() * (r.codes.objects / abi.BoundTile)); work.FilterSteps != want {
		t.Errorf("the filter took %d steps, not %d", work.FilterSteps, want)
	}
}

// TestAddressable: what the numbers of the shared-decode kernel cannot hold is left to the other kernels.
func TestAddressable(t *testing.T) {
	v := &cudaSliced{warps: 8, slots: 15, decoders: 8} // records of 256 bytes
	for _, c := range []struct {
		units, trees int
		want         bool
	}{{1, 1, true}, {1 << 24, 1<<21 - 1, true}, {1<<24 + 1, 1, false}, {1, 1 << 21, false}} {
		r := slicedLaunch{variant: v, unitsOfBlock: c.units, maxTrees: c.trees}
		if got := r.addressable(); got != c.want {
			t.Errorf("%d units, %d trees: %v", c.units, c.trees, got)
		}
	}
}

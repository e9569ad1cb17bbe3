package nearest

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestOrdered: values as integers have their order, and come back.
func TestOrdered(t *testing.T) {
	rng := seeded.Rand(t)
	values := []float64{math.Inf(-1), -math.MaxFloat64, -1, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, math.MaxFloat64, math.Inf(1)}
	for range 1000 {
		if v := math.Float64frombits(rng.Uint64()); v == v && v != 0 {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	for i, v := range values {
		if got := valueOf(ordered(v)); math.Float64bits(got) != math.Float64bits(v) {
			t.Errorf("%v comes back as %v", v, got)
		}
		if i > 0 && values[i-1] < v && ordered(values[i-1]) >= ordered(v) {
			t.Errorf("%v and %v are not in order", values[i-1], v)
		}
	}
	if ordered(0)-1 != ordered(math.Copysign(0, -1)) {
		t.Error("there is an integer between -0 and 0, so that a limit below 0 is none")
	}
}

// columnOf is one of vectors in an index of so many objects.
func columnOf(kind metric.Kind, dims int, objects uint32, sieve bool) *Column {
	m := metric.Metric{Kind: kind}
	if kind == metric.Lp {
		m.P = 3 + dims%6
	}
	of := &distance.Column{Name: "v", Of: distance.Vectors, Metric: m, Dims: dims, Storage: distance.StorageF32, Objects: objects}
	c := NewColumn(of, run.Tiles{End: int((uint64(objects) + run.TileObjects - 1) / run.TileObjects)})
	if sieve {
		c.Sieve = c.Sievable(1<<20, nil)
		c.Sieve.SetScale(1)
	}
	return c
}

// TestPieces: whatever the queries and the room are, a piece lies within the room, its arrays do not overlap, its waves cover all objects once, and candidates
// have room for the k and all that a wave may append.
func TestPieces(t *testing.T) {
	rng := seeded.Rand(t)
	waves := &profile.Of("").Near
	sieved, several, none := 0, 0, 0
	for range 500 {
		objects := []uint32{1, 127, 4096, 8193, 64_512, 200_000, 4_500_000}[rng.IntN(7)]
		kind := []metric.Kind{metric.L2, metric.L1, metric.Cosine, metric.Linf, metric.Lp, metric.Hamming}[rng.IntN(6)]
		c := columnOf(kind, 1+rng.IntN(300), objects, rng.IntN(3) > 0)
		sets := make([]filter.Set, 4)
		for i := range sets {
			sets[i] = make(filter.Set, c.SetWords()/2)
		}
		asks := make([]Ask, 1+rng.IntN(1500))
		for i := range asks {
			q := &distance.Query{Column: c.Of, Vector: make([]float32, c.Dims), K: []int{0, 1, 10, 100, 5000, 65_536}[rng.IntN(6)], Most: math.Inf(1), Total: rng.IntN(4) == 0}
			q.Vector[rng.IntN(c.Dims)] = rng.Float32() + 1
			asks[i] = Ask{Job: i, Query: q, Set: rng.IntN(8) - 4}
			if asks[i].Set = max(-1, asks[i].Set); asks[i].Set >= 0 {
				asks[i].Passes = sets[asks[i].Set]
			}
		}
		room := plan.Room{Arena: 1 << (16 + rng.IntN(15)), In: 1 << (18 + rng.IntN(8)), Out: 1 << (16 + rng.IntN(10))}
		fits := c.Fits(asks[0].Query, room, waves)
		p := c.Plan(asks, room, waves)
		if len(p.Asks) == 0 {
			asks[0].Exact = true // as those that the sieve has given up are
			if none++; fits && len(c.Plan(asks[:1], room, waves).Asks) == 0 {
				t.Fatalf("a query that fits alone is in no piece: %+v of %+v", asks[0].Query, room)
			}
			continue
		}
		checkPiece(t, &p, room, waves)
		if p.Sieved {
			sieved++
		}
		if len(p.Asks) > 1 {
			several++
		}
		in := make([]byte, p.InBytes())
		p.Encode(in, nil)
		checkEncoded(t, &p, in)
	}
	if sieved < 20 || several < 100 || none < 3 {
		t.Errorf("%d pieces are sieved, %d have several queries, %d are empty: the test sees too little", sieved, several, none)
	}
}

func checkPiece(t *testing.T, p *Piece, room plan.Room, waves *profile.NearWaves) {
	t.Helper()
	if p.End() > room.Arena || p.InBytes() > room.In || p.OutBytes() > room.Out {
		t.Fatalf("%d queries take %d, %d and %d bytes of %+v", len(p.Asks), p.End(), p.InBytes(), p.OutBytes(), room)
	}
	n := int64(len(p.Asks))
	c := p.Column
	starts := []int64{0, p.Asked, p.Sets, p.States, p.Answers, p.Vectors, p.Sieves, p.Lists, p.Candidates, p.End()}
	sizes := []int64{n * abi.NearQueryBytes, 4 * n * int64(c.Dims), int64(len(p.sets)) * c.setBytes(), n * abi.NearStateBytes,
		p.answers * abi.NearEntryBytes, 8 * n * int64(c.Dims), 0, n * int64(p.ListRoom) * abi.WordBytes, 0}
	if p.Sieved {
		sizes[6] = c.Sieve.QueriesBytes(len(p.Asks))
	}
	for i, size := range sizes {
		if starts[i]+size > starts[i+1] {
			t.Fatalf("array %d of %d bytes lies at %v", i, size, starts)
		}
	}
	if p.Sample > 0 {
		if parts := p.Sample / abi.SieveObjects; p.Sample%abi.SieveObjects != 0 || p.Sample > p.ListRoom || p.Apart() < abi.SieveObjects || (parts-1)*p.Apart()+abi.SieveObjects > int(c.Objects) || p.FirstWave != 0 {
			t.Fatalf("a sample of %d, %d apart, of %d objects, and lists of %d", p.Sample, p.Apart(), c.Objects, p.ListRoom)
		}
	}
	next := 0
	for first, count := range p.Waves() {
		if first != next || count < 1 {
			t.Fatalf("a wave of %d begins at %d, not at %d", count, first, next)
		}
		if scanned := !p.Sieved || first == 0 && p.Sample == 0; scanned && count > p.Wave || !scanned && (p.ListRoom > p.Wave || first%abi.SieveObjects != 0 || count > waves.Sieved) {
			t.Fatalf("a wave of %d objects from %d on, and there is room for %d, of a list for %d", count, first, p.Wave, p.ListRoom)
		}
		next = first + count
	}
	if next != int(p.Column.Objects) {
		t.Fatalf("waves end at %d of %d", next, p.Column.Objects)
	}
}

// checkEncoded looks at what is sent: candidates and answers of queries follow each other.
func checkEncoded(t *testing.T, p *Piece, in []byte) {
	t.Helper()
	var entries, out uint64
	states := abi.Array[abi.NearState](in, p.States, len(p.Asks))
	for i, q := range abi.Array[abi.NearQuery](in, 0, len(p.Asks)) {
		a := &p.Asks[i]
		if q.Entries != entries || q.Out != out || int64(q.K) != p.Column.hits(a.Query) || states[i] != (abi.NearState{Limit: q.Most}) || (q.Counts == 1) != counts(a.Query) {
			t.Fatalf("query %d is sent as %+v with %+v", i, q, states[i])
		}
		if (q.Passing == abi.NoFilter) != (a.Set < 0) || a.Set >= 0 && int(q.Passing) >= len(p.sets) {
			t.Fatalf("query %d has set %d of %d, and %d in the batch", i, q.Passing, len(p.sets), a.Set)
		}
		entries, out = entries+uint64(q.K)+uint64(p.Wave), out+uint64(q.K)
	}
	if int64(out) != p.answers {
		t.Fatalf("%d places of answers are given out, and there are %d", out, p.answers)
	}
}

// TestStretch: blocks go through whole units of objects and at most a tile, and the last round of them is nearly full where there is much to do.
func TestStretch(t *testing.T) {
	rng, waves := seeded.Rand(t), &profile.Of("").Near
	for range 2000 {
		objects, blocks, atOnce := 1+rng.IntN(8_000_000), 1+rng.IntN(130), 1+rng.IntN(300)
		n := Stretch(objects, blocks, atOnce, waves)
		if n%abi.SieveObjects != 0 || n < abi.SieveObjects || n > abi.TileObjects {
			t.Fatalf("%d objects at a time", n)
		}
		units, each := (objects+abi.SieveObjects-1)/abi.SieveObjects, n/abi.SieveObjects
		all := (units + each - 1) / each * blocks
		took, least := (all+atOnce-1)/atOnce*each, float64(units*blocks)/float64(atOnce)
		if each > 8 && blocks <= atOnce && float64(took) > 2.1*least+float64(waves.Prepares*waves.Rounds) {
			t.Fatalf("%d objects by %d blocks, %d at once: %d at a time take %d, %.0f at least", objects, blocks, atOnce, each, took, least)
		}
	}
	if n := Stretch(120_000, 8, 264, waves); (120_000+n-1)/n != 33 {
		t.Errorf("%d objects at a time do not fill one round", n)
	}
}

// TestDecode: what came back is told of each ask once, on however many cores, and those that were given up are asked again, as are those whose places were full.
func TestDecode(t *testing.T) {
	rng := seeded.Rand(t)
	waves := &profile.Of("").Near
	const places = 7
	for range 30 {
		c := columnOf(metric.L2, 8, 10_000, true)
		asks := make([]Ask, 1+rng.IntN(500))
		for i := range asks {
			asks[i] = Ask{Job: i, Query: &distance.Query{Column: c.Of, Vector: make([]float32, 8), K: rng.IntN(20), Most: []float64{math.Inf(1), 1}[rng.IntN(2)]}, Set: -1}
		}
		p := c.Plan(Spare(asks, places), plan.Room{Arena: 1 << 30, In: 1 << 30, Out: 1 << 30}, waves)
		out := make([]byte, p.OutBytes())
		states := abi.Array[abi.NearState](out, 0, len(p.Asks))
		at, given, full := p.Answers-p.States, 0, make([]bool, len(states))
		for i := range states {
			k := p.Asks[i].Query.K
			within := k > places && p.Asks[i].Query.Most == 1
			if within {
				k = places
			}
			states[i] = abi.NearState{Kept: uint32(rng.IntN(k + 1)), Passed: uint64(i)}
			if rng.IntN(10) == 0 {
				states[i].Given = 1
			}
			if full[i] = within && int(states[i].Kept) == places; full[i] || states[i].Given != 0 {
				given++
			}
			entries := abi.Array[abi.NearEntry](out, at, k)
			for j := range entries {
				entries[j] = abi.NearEntry{Value: ordered(float64(rng.IntN(3))), Id: uint32(i*100 + rng.IntN(1000))}
			}
			at += int64(k) * abi.NearEntryBytes
		}
		told := make([]int, len(p.Asks))
		each := func(units, _ int, work func(int)) error {
			var all sync.WaitGroup
			for unit := range units {
				all.Go(func() { work(unit) })
			}
			all.Wait()
			return nil
		}
		again, err := p.Decode(out, each, func(a *Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
			told[a.Job]++
			if len(hits) != int(states[a.Job].Kept) || passed != uint64(a.Job) || did.Method != distance.Scan {
				t.Errorf("%d: %d hits, %d passed, %+v", a.Job, len(hits), passed, did)
			}
			for i, h := range hits {
				if h.ID < uint32(a.Job*100) || h.ID >= uint32(a.Job*100+1000) || i > 0 && (hits[i-1].Value > h.Value || hits[i-1].Value == h.Value && hits[i-1].ID > h.ID) {
					t.Errorf("%d: hits %v", a.Job, hits)
				}
			}
		})
		if err != nil || len(again) != given {
			t.Fatalf("%d are asked again, %d were given up: %v", len(again), given, err)
		}
		for i, n := range told {
			if again := states[i].Given != 0 || full[i]; again != (n == 0) || n > 1 {
				t.Errorf("%d is told of %d times", i, n)
			}
		}
		for _, a := range again {
			if a.Exact != (states[a.Job].Given != 0) || !a.Exact && (!full[a.Job] || a.Places != waves.MorePlaces*places) {
				t.Errorf("asked again: %+v", a)
			}
		}
	}
}

// TestRadiusIsSieved: what a radius bounds is sieved, whatever its k, the one that it has by default too; the nearest of so many are not. With all the places that it may want it is never full.
func TestRadiusIsSieved(t *testing.T) {
	waves := &profile.Of("").Near
	c := columnOf(metric.L2, 32, 1_000_000, true)
	for _, k := range []int{1, waves.SievedHits, waves.SievedHits + 1, 1024, 65_536} {
		for _, most := range []float64{1, math.Inf(1)} {
			q := &distance.Query{Column: c.Of, Vector: make([]float32, 32), K: k, Most: most}
			a := Spare([]Ask{{Query: q}}, waves.Places)[0]
			if want := most == 1 || k <= waves.SievedHits; c.Sieves(&a, waves) != want {
				t.Errorf("k %d within %v: sieved %v, want %v", k, most, !want, want)
			}
			p := Piece{Column: c, Asks: []Ask{a}}
			if full, want := p.full(0, &abi.NearState{Kept: uint32(c.places(&a))}), most == 1 && k > waves.Places; full != want {
				t.Errorf("k %d within %v: full %v, want %v", k, most, full, want)
			}
		}
	}
}

// TestFewAreScanned: a block of a sieve computes for 128 queries whether they are there or not, so a few are compared with all objects where that takes less. Many are sieved, and
// no number of queries is priced above either way.
func TestFewAreScanned(t *testing.T) {
	waves := &profile.Of("").Near
	room := plan.Room{Arena: 1 << 30, In: 1 << 30, Out: 1 << 30}
	for _, c := range []struct {
		kind    metric.Kind
		dims    int
		objects uint32
		most    int // queries that are scanned: measured, docs/benchmarks/history/2026-11-28-h200-linf-lp-hamming.md
	}{{metric.Linf, 128, 1_000_000, 8}, {metric.Hamming, 128, 1_000_000, 8}, {metric.Lp, 126, 1_000_000, 32}, {metric.L2, 32, 4_500_000, 0}} {
		column := columnOf(c.kind, c.dims, c.objects, true)
		for _, n := range []int{1, 8, 9, 32, 128, 129, 1024} {
			asks := make([]Ask, n)
			for i := range asks {
				asks[i] = Ask{Job: i, Query: &distance.Query{Column: column.Of, Vector: make([]float32, c.dims), K: 10, Most: math.Inf(1)}, Set: -1}
			}
			p := column.Plan(asks, room, waves)
			if want := n > c.most; p.Sieved != want && (n <= c.most || n >= 128) {
				t.Errorf("%v, %d queries: sieved %v, want %v", c.kind, n, p.Sieved, want)
			}
			way := min(column.scanned(n, waves)+column.waited(waves), column.sieved(n, waves))
			if p.Sieved && way != column.sieved(n, waves) {
				t.Errorf("%v, %d queries are sieved, and priced as scanned", c.kind, n)
			}
			if price := column.Price(asks[0].Query, n, waves); price != time.Duration((waves.Batch+way)/float64(n)+10*waves.Place) {
				t.Errorf("%v, %d queries: the price is %v, the way that is taken %v", c.kind, n, price, time.Duration((waves.Batch+way)/float64(n)+10*waves.Place))
			}
		}
	}
}

// TestWaves: waves grow to the last one, about as the profile says, so that none is what is left over.
func TestWaves(t *testing.T) {
	waves := &profile.Of("").Near
	for objects := uint32(1000); objects < 8<<20; objects += 1 + objects/7 {
		p := Piece{Column: &Column{Objects: objects}, Sieved: true, waves: waves, Wave: waves.List, FirstWave: waves.First}
		before, most := 0, waves.First*(waves.Growth-1)*3/2
		for first, count := range p.Waves() {
			if count < before || count > most {
				t.Errorf("%d objects: after %d, of which the last wave had %d, come %d; at most %d", objects, first, before, count, most)
			}
			before, most = count, (first+count)*(waves.Growth-1)*3/2
		}
	}
}

// TestManyHitsAreDear: where a tree knows how many hits are within a radius, a scan is priced by them, and by how often it is asked again for more room.
func TestManyHitsAreDear(t *testing.T) {
	waves := &profile.Of("").Near
	w := enginetest.RandomDistanceWorld(t, seeded.Rand(t), 3_000, true)
	c := w.Index.Distances().Column("point")
	column := NewColumn(c, run.Tiles{End: 1})
	price := func(kilometres float64) (ns, hits float64) {
		q := &distance.Query{Column: c, K: 65_536, Most: c.Metric.Within(kilometres * 1000)}
		return float64(column.Price(q, 64, waves)), c.ExpectedHits(q)
	}
	few, none := price(.001)
	all, most := price(30_000)
	if none > 2000 || most < 2*float64(waves.Places) {
		t.Fatalf("%v objects are expected to be within a metre, %v within all of the earth", none, most)
	}
	scan := column.scanned(64, waves) + column.waited(waves)
	turns := 1.
	for places := float64(waves.Places); places < most; places *= float64(waves.MorePlaces) {
		turns++
	}
	if want := (turns-1)*scan/64 + waves.Hit*(most-none); math.Abs(all-few-want) > 2+.01*want {
		t.Errorf("within all of the earth, with %v hits, a scan takes %v ns more than within a metre; want %v", most, all-few, want)
	}
	if q := (&distance.Query{Column: c, K: 10, Most: math.Inf(1)}); c.ExpectedHits(q) != 0 {
		t.Errorf("without a radius %v hits are within it", c.ExpectedHits(q))
	}
}

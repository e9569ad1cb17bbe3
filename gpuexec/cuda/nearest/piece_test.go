package nearest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sums"
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
	of := &distance.Column{Name: "v", Of: distance.Vectors, Metric: metric.Metric{Kind: kind}, Dims: dims, Storage: distance.StorageF32, Objects: objects}
	c := NewColumn(of, run.Tiles{End: int((uint64(objects) + run.TileObjects - 1) / run.TileObjects)})
	if sieve {
		c.Sieve = c.Sievable(1<<20, 1)
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
		kind := []metric.Kind{metric.L2, metric.L1, metric.Cosine}[rng.IntN(3)]
		c := columnOf(kind, 1+rng.IntN(300), objects, kind != metric.L1 && rng.IntN(3) > 0)
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
		p.Encode(in)
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
	starts := []int64{0, p.Vectors, p.Sieves, p.Sets, p.States, p.Answers, p.Lists, p.Candidates, p.End()}
	sizes := []int64{n * abi.NearQueryBytes, 8 * n * int64(p.Column.Dims), 0, int64(len(p.sets)) * p.Column.setBytes(), n * abi.NearStateBytes,
		p.answers * abi.NearEntryBytes, n * int64(p.ListRoom) * abi.WordBytes, 0}
	if p.Sieved {
		sizes[2] = n * p.Column.Sieve.QueryBytes()
	}
	for i, size := range sizes {
		if starts[i]+size > starts[i+1] {
			t.Fatalf("array %d of %d bytes lies at %v", i, size, starts)
		}
	}
	next := 0
	for first, count := range p.Waves() {
		if first != next || count < 1 {
			t.Fatalf("a wave of %d begins at %d, not at %d", count, first, next)
		}
		if scanned := !p.Sieved || first == 0; scanned && count > p.Wave || !scanned && (p.ListRoom > p.Wave || first%abi.SieveObjects != 0 || count > waves.Sieved) {
			t.Fatalf("a wave of %d objects from %d on, and there is room for %d: %+v", count, first, p.Wave, p)
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

// TestHalf: float16s are the nearest ones.
func TestHalf(t *testing.T) {
	rng := seeded.Rand(t)
	for i := range 20_000 {
		v := (rng.Float64()*2 - 1) * math.Ldexp(1, rng.IntN(60)-44)
		if i < 4 {
			v = []float64{0, 65504, -65504, 65519}[i]
		}
		bits, few := half(v)
		if got := float64(sums.Half(bits).Float32()); got != few {
			t.Fatalf("%v becomes %x, which is %v, and %v is said", v, bits, got, few)
		}
		for _, other := range []uint16{bits - 1, bits + 1} {
			if next := float64(sums.Half(other).Float32()); math.Abs(v-next) < math.Abs(v-few) {
				t.Fatalf("%v becomes %v, and %v is nearer", v, few, next)
			}
		}
	}
}

// TestSieveEncodes: what is said of a query bounds it.
func TestSieveEncodes(t *testing.T) {
	rng := seeded.Rand(t)
	for range 500 {
		kind := []metric.Kind{metric.L2, metric.Cosine}[rng.IntN(2)]
		c := columnOf(kind, 1+rng.IntN(70), 100, true)
		s := c.Sieve
		for i := range s.Mean {
			s.Mean[i] = rng.NormFloat64()
		}
		s.SetScale(math.Ldexp(1+rng.Float64(), rng.IntN(20)-10))
		v := randomVector(rng, c.Dims)
		norm := 0.0
		if kind == metric.Cosine {
			norm = math.Sqrt(sums.Norm(v))
		}
		if !s.takes(v, norm) {
			continue
		}
		to := make([]byte, 3*s.QueryBytes())
		s.encode(to, 1, 3, v, norm)
		said := abi.Array[abi.NearSieved](to, 0, 3)[1]
		halves := abi.Array[uint16](to, HalvesAt(3)+int64(2*stepElements*s.Steps), stepElements*s.Steps)
		square, rest := 0.0, 0.0
		for i, h := range halves {
			few := float64(sums.Half(h).Float32())
			square += few * few
			if i < len(v) {
				rest += math.Pow(s.moved(v[i], i, norm)-few, 2)
			} else if h != 0 {
				t.Fatalf("element %d of %d is %x", i, len(v), h)
			}
		}
		if said.Norm < math.Sqrt(square) || said.Square > square || said.Remainder < math.Sqrt(rest) || said.Norm > math.Sqrt(square)*1.001 || said.Square < square*0.999 {
			t.Fatalf("%+v is said of a square %v and a remainder %v", said, square, math.Sqrt(rest))
		}
	}
	if bound.CautiousGamma(32) < bound.Gamma(32) {
		t.Error("what is not probed is believed too much")
	}
}

func randomVector(rng *rand.Rand, dims int) []float64 {
	v := make([]float64, dims)
	for i := range v {
		v[i] = float64(float32(rng.NormFloat64()))
	}
	return v
}

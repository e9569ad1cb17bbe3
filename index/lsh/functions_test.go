package lsh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/lsh/block"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// The keywords of files that exist must stay what they are, on every machine: whoever changes these sums has changed the format.
func TestKeywordsStay(t *testing.T) {
	want := map[string]uint64{
		"l2 false": 0x3d2794977979cffc, "l2 true": 0xe7b11345cf0d8937, "l1 true": 0x522a74afd641c370,
		"cosine false": 0x30d7b7fa0b6a49e5, "laplacian true": 0x6b5dbc7e84141408,
	}
	for _, family := range Families() {
		for _, rehash := range []bool{false, true} {
			p := Parameters{Family: family, Dim: 37, Functions: 101, Buckets: 250, Width: 1.5, Seed: 7, Rehash: rehash, Reach: 2}
			if !family.reaches() {
				p.Reach = 0
			}
			if family == Cosine {
				p.Buckets, p.Width = 2, 0
			}
			if p.Check() != nil {
				continue // never re-hashed, or always
			}
			if p.ordered() {
				p.Centre = make([]float32, p.Dim)
				p.Centre[3] = 2.5
			}
			vectors := make([]float32, 200*p.Dim)
			for i := range vectors {
				vectors[i] = float32(i*7919%1000)/100 - 5
			}
			keywords := make([]uint32, 200*p.Functions*p.Asked())
			if err := must(t, p).HashQueries(keywords, vectors, 1); err != nil {
				t.Fatal(err)
			}
			sum := fnv.New64a()
			for _, k := range keywords {
				sum.Write(binary.LittleEndian.AppendUint32(nil, k))
			}
			name := fmt.Sprintf("%v %v", family, rehash)
			if got := sum.Sum64(); got != want[name] {
				t.Errorf("%s: the keywords' sum is %#x, not %#x", name, got, want[name])
			}
		}
	}
}

// Assembly, plain Go, one worker, many, alone or among others, and of fewer functions: a vector has the same keywords.
func TestKeywordsDependOnNothingElse(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		p := some(rng, Families()[rng.IntN(4)])
		n := rng.IntN(150)
		vectors := normal(rng, n*p.Dim, math.Pow(10, float64(rng.IntN(8)-2)))
		f := must(t, p)
		want := hash(t, f, vectors)
		for _, k := range want {
			if k >= uint32(p.Buckets) {
				t.Fatalf("%+v: keyword %d of %d", p, k, p.Buckets)
			}
		}
		plain, err := newWith(p, block.Plain())
		if err != nil {
			t.Fatal(err)
		}
		if got := hash(t, plain, vectors); !slices.Equal(got, want) {
			t.Fatalf("%+v: plain Go hashes to something else", p)
		}
		queried, again := make([]uint32, n*p.Functions*p.Asked()), make([]uint32, n*p.Functions*p.Asked())
		if err := errors.Join(f.HashQueries(queried, vectors, 1), plain.HashQueries(again, vectors, 3)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(queried, again) {
			t.Fatalf("%+v: plain Go hashes queries to something else", p)
		}
		for i, k := range want {
			if queried[i*p.Asked()] != k {
				t.Fatalf("%+v: the first keyword of a query is %d, that of the object %d", p, queried[i*p.Asked()], k)
			}
		}
		if n == 0 {
			continue
		}
		v := rng.IntN(n)
		p.Functions = 1 + rng.IntN(p.Functions)
		alone := hash(t, must(t, p), vectors[v*p.Dim:(v+1)*p.Dim])
		if m := f.parameters.Functions; !slices.Equal(alone, want[v*m:v*m+p.Functions]) {
			t.Fatalf("%+v: alone and with fewer functions a vector hashes to something else", p)
		}
	}
}

// Tables hold all that keywords depend on, as kernels/hash.cu reads them.
func TestTables(t *testing.T) {
	rng := seeded.Rand(t)
	for range 50 {
		p := some(rng, Families()[rng.IntN(4)])
		f, x := must(t, p), normal(rng, p.Dim, 3)
		tables := f.Tables()
		for i, want := range hash(t, f, x) {
			if p.Family == Laplacian {
				h, panel := tables.Seeds[i], tables.Panels[i/8*p.Dim*16:]
				for j, e := range x {
					product := float32(e * panel[j*16+i%8])
					h ^= bits.RotateLeft32(uint32(int32(math.Floor(float64(product+panel[j*16+8+i%8]))))*0xcc9e2d51, 15) * 0x1b873593
					h = bits.RotateLeft32(h, 13)*5 + 0xe6546b64
				}
				h ^= uint32(4 * p.Dim)
				h = (h ^ h>>16) * 0x85ebca6b
				h = (h ^ h>>13) * 0xc2b2ae35
				if got := uint32(uint64(h^h>>16) * uint64(p.Buckets) >> 32); got != want {
					t.Fatalf("%+v: function %d makes %d of the tables, and %d", p, i, got, want)
				}
				continue
			}
			groups := (p.Dim + 7) / 8
			var s [8]float32
			for j, e := range x {
				product := float32(tables.Panels[((i/4*groups+j/8)*4+i%4)*8+j%8] * e)
				s[j%8] += product
			}
			bucket := int64(math.Floor(float64((((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) + tables.Offsets[i])))
			got := uint32(0)
			switch {
			case p.Family == Cosine && bucket >= 0:
				got = 1
			case p.Rehash:
				got = uint32(uint64(block.Murmur3(tables.Seeds[i], uint32(bucket))) * uint64(p.Buckets) >> 32)
			case p.Family == L2:
				got = uint32(max(0, min(int64(p.Buckets)-1, bucket-int64(tables.Low[i]))))
			}
			if got != want {
				t.Fatalf("%+v: function %d makes %d of the tables, and %d", p, i, got, want)
			}
		}
	}
}

// A query of a reach matches what hashes to a bucket at most so far away, and re-hashed what agrees by chance.
func TestReach(t *testing.T) {
	rng := seeded.Rand(t)
	for range 100 {
		p := some(rng, []Family{L2, L1}[rng.IntN(2)])
		p.Reach, p.Buckets, p.Centre = rng.IntN(6), MaxBuckets, nil
		f := must(t, p)
		query, object := normal(rng, p.Dim, 1), normal(rng, p.Dim, 1)
		w := f.workers.Get().(*worker)
		a, b := make([]int32, p.Functions), make([]int32, p.Functions)
		w.Buckets(a, f.matrix, query)
		w.Buckets(b, f.matrix, object)
		near := uint32(0)
		for i := range a {
			if d := int64(a[i]) - int64(b[i]); max(d, -d) <= int64(p.Reach) {
				near++
			}
		}
		// With that many buckets chance is one in a million.
		if c := matches(t, f, query, object); c != near && !(p.Rehash && c == near+1) {
			t.Fatalf("%+v: %d functions agree, %d buckets are near", p, c, near)
		}
		other, err := must(t, p).WithReach(0)
		if err != nil {
			t.Fatal(err)
		}
		if c := matches(t, other, query, query); c != uint32(p.Functions) {
			t.Fatalf("%+v: a vector agrees with itself on %d functions", p, c)
		}
	}
}

// What is beyond an end is in the last bucket there, and the centre in the middle.
func TestEndsClamp(t *testing.T) {
	p := Parameters{Family: L2, Dim: 3, Functions: 50, Buckets: 10, Width: 1, Centre: []float32{1000, -5, 3}}
	f := must(t, p)
	for i, k := range hash(t, f, p.Centre) {
		if k != 5 {
			t.Errorf("function %d: the centre is in %d", i, k)
		}
	}
	ends := map[uint32]int{}
	for _, k := range hash(t, f, []float32{1e9, -1e9, 1e9, -1e9, 1e9, -1e9}) {
		ends[k]++
	}
	if ends[0]+ends[9] != 100 || ends[0] < 20 || ends[9] < 20 {
		t.Errorf("far vectors are in %v", ends)
	}
	for _, want := range [][3]uint32{{0, 0, 3}, {1, 0, 4}, {5, 3, 8}, {9, 7, 10}} {
		p.Reach = 2
		if lo, hi := p.Span(want[0]); lo != want[1] || hi != want[2] {
			t.Errorf("keyword %d with reach 2: [%d, %d)", want[0], lo, hi)
		}
	}
}

func TestBadElements(t *testing.T) {
	rng := seeded.Rand(t)
	for _, family := range Families() {
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32} {
			p := some(rng, family)
			f := must(t, p)
			vectors := normal(rng, 500*p.Dim, 1)
			if p.Family == Laplacian && bad == math.MaxFloat32 {
				vectors[3] = float32(bad) // it is in the last cell
				hash(t, f, vectors)
				continue
			}
			first := rng.IntN(len(vectors))
			vectors[first] = float32(bad)
			vectors[first+rng.IntN(len(vectors)-first)] = float32(bad)
			var fault *ElementError
			err := f.Hash(make([]uint32, 500*p.Functions), vectors, 1+rng.IntN(4))
			if !errors.As(err, &fault) || fault.Vector != first/p.Dim || fault.Element != first%p.Dim {
				t.Fatalf("%v: element %d of vector %d is %v: %v", family, first%p.Dim, first/p.Dim, bad, err)
			}
			if words := map[bool]string{true: "NaN", false: "infinite"}[math.IsNaN(bad)]; bad != math.MaxFloat32 && !strings.Contains(err.Error(), words) {
				t.Errorf("the error does not say %s: %v", words, err)
			}
		}
		// The largest that is taken must not overflow.
		p := some(rng, family)
		f := must(t, p)
		vectors := make([]float32, p.Dim)
		for i := range vectors {
			vectors[i] = f.limit * float32(1-2*rng.IntN(2))
		}
		if want, got := hash(t, f, vectors), hash(t, f, vectors); !slices.Equal(want, got) {
			t.Errorf("%v: elements of %v", family, f.limit)
		}
	}
	// Of many it is the first, whoever of the workers comes to his own before.
	p := Parameters{Family: L2, Dim: 1000, Functions: 1, Buckets: 9, Width: 1}
	f, all := must(t, p), make([]float32, 20*stretch*p.Dim)
	for v := stretch - 1; v < 20*stretch; v += stretch {
		all[v*p.Dim+7] = float32(math.NaN())
	}
	for range 200 {
		var fault *ElementError
		if err := f.Hash(make([]uint32, 20*stretch), all, 8); !errors.As(err, &fault) || fault.Vector != stretch-1 || fault.Element != 7 {
			t.Fatalf("several elements are NaN: %v", err)
		}
	}
	if err := must(t, p).Hash(make([]uint32, 1), make([]float32, p.Dim+1), 1); err == nil {
		t.Error("vectors of the wrong length are taken")
	}
}

func BenchmarkHash(b *testing.B) {
	for _, family := range Families() {
		for _, reach := range []int{0, 2} {
			p := Parameters{Family: family, Dim: 128, Functions: 237, Buckets: 8192, Width: 1, Rehash: family == L1 || family == Laplacian, Reach: reach}
			if reach > 0 && !family.reaches() {
				continue
			}
			if family == Cosine {
				p.Buckets, p.Width = 2, 0
			}
			b.Run(fmt.Sprintf("%v/reach=%d", family, reach), func(b *testing.B) {
				const n = 1024
				vectors := normal(seeded.Rand(b), n*p.Dim, 1)
				f, dst := must(b, p), make([]uint32, n*p.Functions*p.Asked())
				b.ReportAllocs()
				for b.Loop() {
					if err := f.HashQueries(dst, vectors, 1); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(2*n*128*237*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, family := range Families() {
		b.Run(family.String(), func(b *testing.B) {
			p := Parameters{Family: family, Dim: 128, Functions: 237, Buckets: 8192, Width: 1, Rehash: family == L1 || family == Laplacian}
			if family == Cosine {
				p.Buckets, p.Width = 2, 0
			}
			for b.Loop() {
				must(b, p)
			}
		})
	}
}

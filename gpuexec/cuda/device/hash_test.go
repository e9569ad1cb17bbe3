//go:build cuda

package device

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// someFunctions are random functions of a family, of any shape that keeps a test short.
func someFunctions(t testing.TB, rng *rand.Rand, family lsh.Family) *lsh.Functions {
	t.Helper()
	dims := []int{1, 2, 7, 8, 9, 31, 128, 255, 256, 257, 300, 513, 960, 1 + rng.IntN(700)}
	p := lsh.Parameters{
		Family: family, Dim: dims[rng.IntN(len(dims))], Functions: 1 + rng.IntN(1+rng.IntN(300)), Buckets: 2 + rng.IntN(1+rng.IntN(1000)),
		Width: math.Exp(rng.NormFloat64()), Seed: rng.Uint64(),
	}
	switch family {
	case lsh.Cosine:
		p.Buckets, p.Width = 2, 0
	case lsh.L2:
		if p.Rehash = rng.IntN(2) == 0; !p.Rehash && rng.IntN(2) == 0 {
			p.Centre = make([]float32, p.Dim)
			for i := range p.Centre {
				p.Centre[i] = float32(rng.NormFloat64())
			}
		}
	default:
		p.Rehash = true
	}
	if family == lsh.L2 || family == lsh.L1 {
		p.Reach = rng.IntN(5)
	}
	f, err := lsh.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// someVectors are vectors of all sizes, and some at the edges of what floats are: zeros of both signs, the least and the largest that are taken,
// those whose sums cancel, and those that are all equal, so that buckets end where they are.
func someVectors(rng *rand.Rand, f *lsh.Functions, n int) []float32 {
	dim, limit := f.Parameters().Dim, f.Tables().Limit
	vectors := make([]float32, n*dim)
	for v := range n {
		x, scale := vectors[v*dim:(v+1)*dim], math.Exp(8*rng.NormFloat64())
		switch kind := rng.IntN(8); kind {
		case 0: // zeros
		case 1:
			for i := range x {
				x[i] = float32(math.Copysign(0, -1))
			}
		case 2:
			for i := range x {
				x[i] = math.SmallestNonzeroFloat32 * float32(rng.IntN(5)-2)
			}
		case 3:
			for i := range x {
				x[i] = float32(math.Copysign(float64(limit), rng.Float64()-.5))
			}
		case 4:
			for i := range x {
				x[i] = float32(scale) * float32(1-2*(i%2))
			}
		case 5:
			for i := range x {
				x[i] = float32(rng.IntN(5) - 2)
			}
		default:
			for i := range x {
				x[i] = max(-limit, min(limit, float32(rng.NormFloat64()*scale)))
			}
		}
	}
	return vectors
}

// TestHashOnDevice: a device hashes to the bits of the host, whatever the functions and the vectors are, and however many at a time.
func TestHashOnDevice(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	families, counts := []lsh.Family{lsh.L2, lsh.L1, lsh.Cosine, lsh.Laplacian}, []int{1, 2, 15, 16, 17, 200, 1024}
	different := map[uint32]bool{} // so that what is compared is not all the same
	for round := range scaled(200) {
		family := families[round%len(families)]
		f := someFunctions(t, rng, family)
		p, n := f.Parameters(), counts[rng.IntN(len(counts))]
		vectors := someVectors(rng, f, n)
		h, err := e.Hasher(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range []int{1, p.Asked()} {
			want, got := make([]uint32, n*p.Functions*asked), make([]uint32, n*p.Functions*asked)
			hash := f.HashQueries
			if asked == 1 {
				hash = f.Hash
			}
			if err := errors.Join(hash(want, vectors, 4), h.Hash(got, vectors, asked)); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if got[i] != want[i] {
					at := i / asked / p.Functions
					t.Fatalf("round %d, %v, %d dimensions, %d functions, %d buckets, asked %d, re-hashed %v: keyword %d of function %d of vector %d is %d, the host's %d: %v",
						round, family, p.Dim, p.Functions, p.Buckets, asked, p.Rehash, i%asked, i/asked%p.Functions, at, got[i], want[i], vectors[at*p.Dim:(at+1)*p.Dim])
				}
				different[want[i]] = true
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(different) < 100 && scaled(100) == 100 {
		t.Errorf("only %d different keywords came up", len(different))
	}
}

// TestHashTogether: calls at the same time, longer than a slot takes at once, do not disturb each other, and all memory comes back.
func TestHashTogether(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{}).(*Engine)
	p := lsh.Parameters{Family: lsh.L2, Dim: 128, Functions: 237, Buckets: 100, Width: 2, Seed: 1}
	f, err := lsh.New(p)
	if err != nil {
		t.Fatal(err)
	}
	n := 2*hashBatch(p.Dim, p.Functions, e.kernels.hashVectors) + 5
	held, before := len(e.Memory()), driverFree(t, e)
	h, err := e.Hasher(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Memory()) != held+1 {
		t.Errorf("%d holdings, before there were %d", len(e.Memory()), held)
	}
	var group sync.WaitGroup
	for range 5 {
		vectors := make([]float32, n*p.Dim)
		for i := range vectors {
			vectors[i] = float32(rng.NormFloat64())
		}
		want := make([]uint32, n*p.Functions)
		if err := f.Hash(want, vectors, 4); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for range 3 {
				got := make([]uint32, n*p.Functions)
				if err := f.By(h, 1).Hash(got, vectors, 1); err != nil || !slices.Equal(got, want) {
					t.Errorf("%v, or keywords differ", err)
				}
			}
		})
	}
	group.Wait()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if len(e.Memory()) != held {
		t.Errorf("%d holdings are left, before there were %d", len(e.Memory()), held)
	}
	nothingLeaked(t, e, before, "hashing")
}

// TestBuildHashedOnDevice: an index whose vectors a device hashed has the bytes of one that the host hashed.
func TestBuildHashedOnDevice(t *testing.T) {
	rng := seeded.Rand(t)
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1})
	for _, similarity := range []string{"l2", "l1", "cosine", "laplacian"} {
		s, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "name: v\ncolumns:\n- {name: a, type: vector, similarity: %s, functions: 50}\n- {name: b, type: vector, functions: 30}", similarity))
		if err != nil {
			t.Fatal(err)
		}
		records := make([]schema.Record, 3000)
		for i := range records {
			records[i] = schema.Record{Line: int64(i + 1), Cells: make([]schema.Cell, 2)}
			for c := range 2 {
				for range 20 + 10*c {
					records[i].Cells[c].Vector = append(records[i].Cells[c].Vector, float32(rng.NormFloat64()))
				}
			}
			if rng.IntN(10) == 0 {
				records[i].Cells[1].Vector = nil
			}
		}
		source := func() func(*schema.Record) error {
			next := 0
			return func(rec *schema.Record) error {
				if next == len(records) {
					return io.EOF
				}
				*rec = schema.Record{Line: records[next].Line, Cells: []schema.Cell{{Vector: slices.Clone(records[next].Cells[0].Vector)}, {Vector: slices.Clone(records[next].Cells[1].Vector)}}}
				next++
				return nil
			}
		}
		var files [][]byte
		for _, by := range []lsh.Engine{nil, e.(lsh.Engine)} {
			learned := s.Clone()
			next, err := index.Builtin().Learn(learned, source(), nil)
			if err != nil {
				t.Fatal(err)
			}
			o, err := index.NewObjects(learned, index.BuilderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			closed := func() error { return nil }
			if by != nil {
				if closed, err = o.HashBy(by); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(o.AddAll(t.Context(), index.Source{Next: next}), closed()); err != nil {
				t.Fatal(err)
			}
			file, err := o.Bytes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: the files differ", similarity)
		}
	}
}

// TestHashPieces: what is recorded of a call stays in its memory and covers all vectors and functions, and nothing needs a device for that.
func TestHashPieces(t *testing.T) {
	rng := seeded.Rand(t)
	k := &loaded{hashFunctions: 16, hashVectors: 16}
	for range 300 {
		dim, functions, asked := 1+rng.IntN(1+rng.IntN(lsh.MaxDim)), 1+rng.IntN(1+rng.IntN(5000)), 1+rng.IntN(5)
		most := hashBatch(dim, functions*asked, k.hashVectors)
		if most < 1 {
			t.Fatalf("%d dimensions, %d functions: no vector is hashed", dim, functions)
		}
		n := 1 + rng.IntN(min(most, 1+1<<20/dim))
		h := &hasher{engine: &Engine{kernels: k}, tables: abi.Hash{Dim: uint32(dim), Functions: uint32(functions)}, kernel: function{threads: 256}}
		s := &hashSlot{in: make(pinned, hashIn), out: make(pinned, hashOut)}
		vectors := make([]float32, n*dim)
		vectors[len(vectors)-1] = 1
		h.record(s, vectors, n, asked)
		if len(s.steps) != 3 || s.steps[0].kind != stepCopyIn || s.steps[1].kind != stepLaunch || s.steps[2].kind != stepCopyOut {
			t.Fatalf("%d steps", len(s.steps))
		}
		in, launched, out := &s.steps[0], &s.steps[1], &s.steps[2]
		if int(in.bytes) != 4*n*dim || int(out.bytes) != 4*n*functions*asked || abi.Array[float32](s.in, 0, n*dim)[n*dim-1] != 1 {
			t.Errorf("%d bytes in and %d out", in.bytes, out.bytes)
		}
		if int(launched.x)*k.hashFunctions < functions || int(launched.y)*k.hashVectors < n || launched.y > abi.MaxGridY {
			t.Errorf("a grid of %d times %d blocks for %d functions and %d vectors", launched.x, launched.y, functions, n)
		}
	}
	if n := hashBatch(1, lsh.MaxFunctions*(2*lsh.MaxReach+1), k.hashVectors); n != 0 {
		t.Errorf("%d vectors of more keywords than there is room for", n)
	}
}

// TestNoRoomForHashing: functions for which the budget has no room are refused, and nothing stays.
func TestNoRoomForHashing(t *testing.T) {
	e := openDevice(t, gpuexec.CUDAOptions{BatchMemory: 16 << 20, InFlight: 1}).(*Engine)
	f := someFunctions(t, seeded.Rand(t), lsh.L2)
	held := len(e.Memory())
	var free int64
	release, err := e.Host.Budget.Place(func(all int64) ([]gpuexec.Holding, error) {
		free = all
		return []gpuexec.Holding{{Owner: "test", Form: "nothing", Bytes: all - 1000}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := e.Hasher(f); err == nil || h != nil || !errors.As(err, new(*gpuexec.DeviceError)) {
		t.Errorf("with 1,000 of %d bytes: %v %v", free, h, err)
	}
	release()
	if len(e.Memory()) != held {
		t.Errorf("%d holdings are left, before there were %d", len(e.Memory()), held)
	}
}

// BenchmarkHash hashes 1,024 vectors of 128 dimensions by 237 functions, on the device and on one core.
func BenchmarkHash(b *testing.B) {
	e := openDevice(b, gpuexec.CUDAOptions{}).(*Engine)
	f, err := lsh.New(lsh.Parameters{Family: lsh.L2, Dim: 128, Functions: 237, Buckets: 100, Width: 2, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	h, err := e.Hasher(f)
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	}()
	vectors, dst := make([]float32, 1024*128), make([]uint32, 1024*237)
	for i := range vectors {
		vectors[i] = float32(i*i%97) / 31
	}
	for name, by := range map[string]*lsh.Functions{"device": f.By(h, 1), "core": f} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := by.Hash(dst, vectors, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var _ lsh.Engine = (*run.Engine)(nil)

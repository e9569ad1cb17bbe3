//go:build cuda

package neighbours

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// madeOf are n vectors: grids, on which distances tie and of which many are the same; clusters; elements of all sizes, beyond float16s too; neighbours that differ in the last bit.
func madeOf(rng *rand.Rand, sort, n, dims int) []float32 {
	v := make([]float32, n*dims)
	for i := range v {
		switch sort {
		case 0:
			v[i] = float32(rng.IntN(3))
		case 1:
			v[i] = float32(i/dims%7)*10 + float32(rng.NormFloat64())
		case 2:
			v[i] = float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(30)-15)))
		case 3:
			v[i] = math.Float32frombits(math.Float32bits(1) + rng.Uint32N(3))
		}
		if i%dims == 0 {
			v[i] += 0.5 // none is zero
		}
	}
	return v
}

// stored is a space of vectors in a storage that is wide enough, or makes them fit.
func stored(t *testing.T, rng *rand.Rand, m metric.Metric, dims int, v []float32) (s *metric.Vectors) {
	var err error
	switch rng.IntN(4) {
	case 0:
		halves := make([]sums.Half, len(v))
		for i, e := range v {
			halves[i], _ = sums.ToHalf(float32(int(min(2000, max(-2000, e)))))
		}
		for i := 0; i < len(v); i += dims {
			halves[i], _ = sums.ToHalf(1)
		}
		s, err = metric.NewVectors(m, dims, halves)
	case 1:
		octets := make([]uint8, len(v))
		for i, e := range v {
			octets[i] = uint8(min(255, max(1, e)))
		}
		s, err = metric.NewVectors(m, dims, octets)
	default:
		s, err = metric.NewVectors(m, dims, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCUDAFinds: for vectors of any storage the device finds the first objects of a space, values to the bit, as comparing everything does.
func TestCUDAFinds(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 2})
	rng := seeded.Rand(t)
	metrics := []metric.Metric{{Kind: metric.L2}, {Kind: metric.L1}, {Kind: metric.Cosine}, {Kind: metric.Angular}, {Kind: metric.Linf}, {Kind: metric.Lp, P: 3}, {Kind: metric.Hamming}}
	for round := range scaled(60) {
		m := metrics[(round+rng.IntN(2))%len(metrics)]
		dims, sort, n := 1+rng.IntN(40), rng.IntN(4), 1+rng.IntN(1200)
		space := stored(t, rng, m, dims, madeOf(rng, sort, n, dims))
		from := stored(t, rng, m, dims, madeOf(rng, sort, 1+rng.IntN(200), dims))
		if rng.IntN(3) == 0 {
			from = space
		}
		var objects []uint32
		for range rng.IntN(3) * 40 {
			objects = append(objects, rng.Uint32N(from.Len()))
		}
		asked := len(objects)
		if objects == nil {
			asked = int(from.Len())
		}
		f, err := Finds(e)(t.Context(), space)
		if err != nil || f == nil {
			t.Fatal(f, err)
		}
		k := []int{1, 1, 2, 30, 60, n, n + 1}[rng.IntN(7)]
		got := make([][]metric.Hit, asked)
		var mu sync.Mutex
		err = f.Find(t.Context(), from, objects, k, func(i int, hits []metric.Hit) {
			mu.Lock()
			defer mu.Unlock()
			if got[i] != nil {
				t.Errorf("vector %d is told of twice", i)
			}
			got[i] = slices.Clone(hits)
		})
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		wide, v := make([]float64, dims), make([]float32, dims)
		for i := range got {
			object := uint32(i)
			if objects != nil {
				object = objects[i]
			}
			from.Coordinates(object, wide)
			for j, e := range wide {
				v[j] = float32(e)
			}
			a, err := space.Query(v)
			if err != nil {
				t.Fatal(err)
			}
			var best metric.Best
			best.Reset(metric.Want{K: k, Most: math.Inf(1)})
			for id := range space.Len() {
				best.Add(metric.Hit{Value: a.Value(id), ID: id})
			}
			if want := best.Sorted(); !slices.Equal(got[i], want) {
				t.Fatalf("%s, %d elements, sort %d, the %d nearest of %d to vector %d: %v, not %v", m.Kind, dims, sort, k, n, i, got[i], want)
			}
		}
	}
}

// build builds an index of vectors, by an engine if there is one.
func build(ctx context.Context, t *testing.T, s *schema.Schema, vectors []float32, dims int, by metric.Engine) (data []byte, notes []string, err error) {
	t.Helper()
	o, err := index.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if by != nil {
		o.FindBy(by, func(note string) { notes = append(notes, note) })
	}
	at := 0
	err = o.AddAll(t.Context(), index.Source{Next: func(rec *schema.Record) error {
		if at == len(vectors) {
			return io.EOF
		}
		rec.Cells = []schema.Cell{{Vector: vectors[at : at+dims]}}
		at += dims
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	data, err = o.Bytes(ctx)
	return data, notes, err
}

// counting is an engine that says how often it has helped.
type counting struct {
	metric.Engine
	helped int
	cancel func() // what is called when something was laid out
}

func (c *counting) Finder(ctx context.Context, space *metric.Vectors) (metric.Finder, error) {
	f, err := c.Engine.Finder(ctx, space)
	if f != nil {
		c.helped++
	}
	if c.cancel != nil {
		c.cancel()
	}
	return f, err
}

// TestCUDABuilds: an index whose cells and recall the device has found has the bytes of one that the host has built.
func TestCUDABuilds(t *testing.T) {
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 2})
	e.Finds = Finds(e)
	rng := seeded.Rand(t)
	for round := range scaled(40) {
		dims, n := 1+rng.IntN(20), 20+rng.IntN(1500)
		sort := []int{0, 1, 3}[rng.IntN(3)]
		s, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "name: v\nkind: vectors\ncolumns:\n- {name: a, type: vector, dims: %d, metric: %s, index: [cells, permutation], cells: {cells: %d, seed: 7}}", dims,
			[]string{"l2", "cosine", "l1", "angular", "linf"}[(round+rng.IntN(2))%5], 1+rng.IntN(400)))
		if err != nil {
			t.Fatal(err)
		}
		vectors := madeOf(rng, sort, n, dims)
		want, _, err := build(t.Context(), t, s, vectors, dims, nil)
		if err != nil {
			t.Fatal(err)
		}
		by := &counting{Engine: e}
		got, notes, err := build(t.Context(), t, s, vectors, dims, by)
		if err != nil || !bytes.Equal(got, want) || len(notes) > 0 || by.helped == 0 {
			t.Fatalf("%d vectors of %d elements, sort %d: %v, notes %q, the device helped %d times, or other bytes", n, dims, sort, err, notes, by.helped)
		}
	}
	if left := e.Memory(); len(left) != 1 {
		t.Errorf("what is left on the device: %+v", left)
	}
}

// TestCUDABuildsAlone: without room, with a batch that has none, and once the device has gone the host builds the same, and a note says so. Building ends with its context.
func TestCUDABuildsAlone(t *testing.T) {
	const dims, n = 64, 4000
	s, err := index.Builtin().ParseSchema([]byte("name: v\nkind: vectors\ncolumns:\n- {name: a, type: vector, dims: 64, metric: linf, index: [cells], cells: {cells: 20}}"))
	if err != nil {
		t.Fatal(err)
	}
	vectors := madeOf(seeded.Rand(t), 1, n, dims)
	want, _, err := build(t.Context(), t, s, vectors, dims, nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(name, why string, helped int, e *device.Engine) {
		e.Finds = Finds(e)
		by := &counting{Engine: e}
		got, notes, err := build(t.Context(), t, s, vectors, dims, by)
		if err != nil || !bytes.Equal(got, want) || len(notes) != 1 || !strings.Contains(notes[0], why) || by.helped != helped {
			t.Errorf("%s: %v, or other bytes; the device helped %d times, and the notes are %q", name, err, by.helped, notes)
		}
	}
	check("a batch without room", "no room for one", 1, open(t, gpuexec.CUDAOptions{BatchMemory: 4 << 10, InFlight: 1, Memory: 64 << 20}))
	small := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1, Memory: 8<<20 + 64<<10})
	before := enginetest.Free(small.Host.Budget)
	if before >= 4*dims*n || before < 4*dims*20+8 {
		t.Fatalf("%d bytes are free, which is not what is tested", before)
	}
	small.Finds = Finds(small)
	by := &counting{Engine: small}
	got, notes, err := build(t.Context(), t, s, vectors, dims, by)
	if err != nil || !bytes.Equal(got, want) || len(notes) != 1 || !strings.Contains(notes[0], "no room") || by.helped < 2 {
		t.Errorf("too little memory: %v, or other bytes; the device helped %d times, and the notes are %q", err, by.helped, notes)
	}
	if enginetest.Free(small.Host.Budget) != before {
		t.Errorf("%d bytes are free, and %d were", enginetest.Free(small.Host.Budget), before)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no longer wanted")
	e := open(t, gpuexec.CUDAOptions{BatchMemory: 8 << 20, InFlight: 1})
	e.Finds = Finds(e)
	by = &counting{Engine: e, cancel: func() { cancel(why) }}
	if _, _, err := build(ctx, t, s, vectors, dims, by); !errors.Is(err, why) || by.helped != 1 {
		t.Errorf("cancelled: %v, after the device helped %d times", err, by.helped)
	}
	if left := e.Memory(); len(left) != 1 {
		t.Errorf("what is left on the device: %+v", left)
	}
}

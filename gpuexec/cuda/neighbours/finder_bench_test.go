//go:build cuda

package neighbours

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cells"
	"github.com/geniemq/geniemq/index/metric/permutation"
)

// clustered are n vectors in 4,096 overlapping clusters.
func clustered(n, dims int) []float32 {
	const clusters, chunk = 4096, 1 << 14
	rng := rand.New(rand.NewPCG(1, 1))
	centres, v := make([]float32, clusters*dims), make([]float32, n*dims)
	for i := range centres {
		centres[i] = float32(rng.NormFloat64())
	}
	var group sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for first := 0; first < n; first += chunk {
		room <- struct{}{}
		group.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(first)))
			for i := first; i < min(n, first+chunk); i++ {
				centre := rng.IntN(clusters) * dims
				for j := range dims {
					v[i*dims+j] = centres[centre+j] + 0.4*float32(rng.NormFloat64())
				}
			}
			<-room
		})
	}
	group.Wait()
	return v
}

// timed is an engine that says what its finders took, by how much is found: one nearest, and more.
type timed struct {
	metric.Engine
	laying, one, more time.Duration
	times             int
}

type timedFinder struct {
	metric.Finder
	by *timed
}

func (e *timed) Finder(ctx context.Context, space *metric.Vectors) (metric.Finder, error) {
	start := time.Now()
	f, err := e.Engine.Finder(ctx, space)
	e.laying += time.Since(start)
	e.times++
	return timedFinder{f, e}, err
}

func (f timedFinder) Find(ctx context.Context, from *metric.Vectors, objects []uint32, k int, found func(i int, hits []metric.Hit)) error {
	start := time.Now()
	err := f.Finder.Find(ctx, from, objects, k, found)
	if k == 1 {
		f.by.one += time.Since(start)
	} else {
		f.by.more += time.Since(start)
	}
	return err
}

// TestCUDABuildFigures says what building cells and rank vectors takes with the device and without, in turns: GENIEMQ_FULL=1, and GENIEMQ_BUILDS is sizes such as "4500000x32 1000000x128",
// GENIEMQ_NPY a file that the first of them is written to.
func TestCUDABuildFigures(t *testing.T) {
	if os.Getenv("GENIEMQ_FULL") != "1" {
		t.Skip("figures for docs/benchmarks: with GENIEMQ_FULL=1")
	}
	e := openEngine(t, gpuexec.CUDAOptions{})
	e.Finds = Finds(e)
	workers := runtime.GOMAXPROCS(0)
	for _, size := range strings.Fields(os.Getenv("GENIEMQ_BUILDS")) {
		var n, dims int
		if _, err := fmt.Sscanf(size, "%dx%d", &n, &dims); err != nil {
			t.Fatal(err)
		}
		v := clustered(n, dims)
		if path := os.Getenv("GENIEMQ_NPY"); path != "" {
			writeArray(t, path, v, n, dims)
			os.Unsetenv("GENIEMQ_NPY")
		}
		space, err := metric.NewVectors(metric.Metric{Kind: metric.L2}, dims, v)
		if err != nil {
			t.Fatal(err)
		}
		by := &timed{Engine: e}
		aid := &metric.Aid{Engine: by, Note: func(note string) { t.Error(note) }}
		var of [2]*cells.Index
		var ranked [2]*permutation.Index
		for i, aid := range []*metric.Aid{aid, nil} {
			start := time.Now()
			if of[i], err = cells.Build(t.Context(), space, cells.Parameters{}, workers, aid); err != nil {
				t.Fatal(err)
			}
			all := time.Since(start)
			what := fmt.Sprintf("%d x %d, %d cells, %d cores", n, dims, of[i].Cells(), workers)
			if aid != nil {
				t.Logf("%s, with the device: %.3f s; laid out %d times in %.3f s, nearest centroids %.3f s, neighbours %.3f s", what, all.Seconds(), by.times, by.laying.Seconds(), by.one.Seconds(), by.more.Seconds())
			} else {
				t.Logf("%s, without: %.3f s", what, all.Seconds())
			}
			before := by.more
			start = time.Now()
			if ranked[i], err = permutation.Build(t.Context(), space, permutation.Parameters{}, workers, aid); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d x %d, rank vectors, device %v: %.3f s; neighbours %.3f s", n, dims, aid != nil, time.Since(start).Seconds(), (by.more - before).Seconds())
		}
		if !reflect.DeepEqual(of[0].Sections(), of[1].Sections()) || !reflect.DeepEqual(ranked[0].Sections(), ranked[1].Sections()) {
			t.Errorf("%d x %d: the device builds another index", n, dims)
		}
	}
}

// writeArray writes vectors as npy.
func writeArray(t *testing.T, path string, v []float32, n, dims int) {
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", n, dims)
	head += fmt.Sprintf("%*s\n", 63-(10+len(head))%64, "")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range [][]byte{[]byte("\x93NUMPY\x01\x00"), {byte(len(head)), byte(len(head) >> 8)}, []byte(head), abi.Bytes(v)} {
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

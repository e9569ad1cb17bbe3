//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// foundBytes and foundVectors bound what is asked at a time: elements, and vectors.
const foundBytes, foundVectors = 8 << 20, 32 << 10

// finder finds nearest vectors for a builder, by the kernels of searches: the space is a column, vectors are queries. It implements metric.Finder.
type finder struct {
	engine  *device.Engine
	kernels *launches
	column  *column
	waves   profile.NearWaves
}

// Finds is what an engine on a device lays spaces of vectors out with (run.Engine.Finds).
func Finds(e *device.Engine) func(ctx context.Context, space *metric.Vectors) (metric.Finder, error) {
	return func(_ context.Context, space *metric.Vectors) (metric.Finder, error) {
		f, err := newFinder(e, space)
		if err != nil {
			return nil, fmt.Errorf("laying %d vectors out on %s: %w", space.Len(), e.About.Device, err)
		}
		if f == nil {
			return nil, nil
		}
		return f, nil
	}
}

// newFinder lays a space out; nil without an error: it is none of vectors as files have them.
func newFinder(e *device.Engine, space *metric.Vectors) (*finder, error) {
	paths := e.Device().Profile.Paths
	of := spaceColumn(space)
	if of == nil || !paths.Vectors && !e.Untried() {
		return nil, nil
	}
	k, err := find(e)
	if err != nil {
		return nil, err
	}
	f := &finder{engine: e, kernels: k, waves: e.Device().Profile.Near}
	r := room.New(e, "build")
	rows := func(write func([]byte)) {
		for _, part := range space.Parts() {
			switch part := part.(type) {
			case []float32:
				write(abi.Bytes(part))
			case []sums.Half:
				write(abi.Bytes(part))
			case []uint8:
				write(part)
			}
		}
	}
	if f.column, err = load(e, k, r, of, space, rows, nil, paths.Sieves || e.Untried()); err != nil {
		return nil, err
	}
	if f.column == nil {
		return nil, &gpuexec.DeviceError{Op: "making room", OutOfMemory: true, Err: errors.New("the device's memory has no room for them")}
	}
	return f, nil
}

// spaceColumn is a space as a column; nil: it is none.
func spaceColumn(space *metric.Vectors) *nearest.Column {
	parts := space.Parts()
	if len(parts) == 0 || space.Len() == 0 {
		return nil
	}
	c := &distance.Column{Name: "vectors", Of: distance.Vectors, Metric: space.Metric(), Objects: space.Len(), Dims: space.Dims()}
	switch parts[0].(type) {
	case []float32:
		c.Storage = distance.StorageF32
	case []sums.Half:
		c.Storage = distance.StorageF16
	case []uint8:
		c.Storage = distance.StorageU8
	default:
		return nil
	}
	return nearest.NewColumn(c, run.Tiles{End: int((uint64(c.Objects) + run.TileObjects - 1) / run.TileObjects)})
}

// Find implements metric.Finder. While one lane computes, the vectors of the next are made, and the answers of another read.
func (f *finder) Find(ctx context.Context, from *metric.Vectors, objects []uint32, k int, found func(i int, hits []metric.Hit)) error {
	n := len(objects)
	if objects == nil {
		n = int(from.Len())
	}
	if k = min(k, int(f.column.Objects)); n == 0 || k < 1 {
		return nil
	}
	if from.Dims() != f.column.Dims {
		return fmt.Errorf("vectors of %d elements are compared with those of %d", from.Dims(), f.column.Dims)
	}
	each := max(1, min(foundVectors, foundBytes/(4*from.Dims())))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(2*f.engine.Capacity.InFlight, (n+each-1)/each) { // of which half make queries
		group.Go(func() {
			b := finding{finder: f, from: from, objects: objects, k: k, found: found}
			for ctx.Err() == nil {
				first := int(next.Add(int64(each))) - each
				if first >= n {
					return
				}
				if err := b.do(ctx, first, min(each, n-first)); err != nil {
					cancel(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// Close implements metric.Finder.
func (f *finder) Close() error { return f.column.close() }

// finding is what one goroutine finds with.
type finding struct {
	*finder
	from    *metric.Vectors
	objects []uint32
	k       int
	found   func(i int, hits []metric.Hit)

	wide     []float64
	elements []float32
	queries  []distance.Query
	asks     []nearest.Ask
}

// do finds what is nearest to n vectors, from the first on.
func (b *finding) do(ctx context.Context, first, n int) error {
	if err := b.ask(first, n); err != nil {
		return err
	}
	waves := b.waves
	waves.List = min(waves.List, max(waves.FoundLeast, waves.FoundList*b.k))
	return b.engine.OnLane(ctx, func(l *device.Lane) error {
		for asks := b.asks; len(asks) > 0; {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p := b.column.Plan(asks, b.engine.Room(), &waves)
			if len(p.Asks) == 0 {
				return &gpuexec.DeviceError{Op: "finding nearest vectors", OutOfMemory: true, Err: errors.New("the memory of a batch has no room for one")}
			}
			list := launcher{b.kernels, b.column, &p, b.engine.Device()}
			out, err := l.Execute("finding nearest vectors", nil, p.InBytes(), func(in []byte) { p.Encode(in, cores(ctx, b.engine)) }, list.record, p.States, p.OutBytes())
			if err != nil {
				return err
			}
			asks = asks[len(p.Asks):]
			again, err := p.Decode(out, cores(ctx, b.engine), func(a *nearest.Ask, hits []metric.Hit, _ *distance.Answer, _ uint64) { b.found(a.Job, hits) })
			if err != nil {
				return err
			}
			asks = append(asks, again...)
		}
		return nil
	})
}

// ask makes vectors queries.
func (b *finding) ask(first, n int) error {
	dims := b.from.Dims()
	if b.wide == nil {
		b.wide, b.elements = make([]float64, dims), make([]float32, n*dims)
		b.queries, b.asks = make([]distance.Query, n), make([]nearest.Ask, n)
	}
	b.asks = b.asks[:n]
	m := b.column.Of.Metric
	for i := range n {
		object := uint32(first + i)
		if b.objects != nil {
			object = b.objects[first+i]
		}
		b.from.Coordinates(object, b.wide)
		v := b.elements[i*dims : (i+1)*dims]
		for j, e := range b.wide {
			v[j] = float32(e) // which it was widened from
		}
		if err := m.Admits(v); err != nil {
			return fmt.Errorf("object %d: %w", object, err)
		}
		b.queries[i] = distance.Query{Column: b.column.Of, Vector: v, K: b.k, Most: math.Inf(1)}
		b.asks[i] = nearest.Ask{Job: first + i, Query: &b.queries[i], Set: -1}
	}
	return nil
}

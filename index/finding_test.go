package index_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// findEngine stands for a device: it compares everything on the host, and counts.
type findEngine struct {
	none, refuses bool
	fails         int // which call fails, after it has told something; 0: none does
	cancel        func()
	calls, told   int
	open          int // finders
}

type hostFinder struct {
	engine *findEngine
	space  *metric.Vectors
}

func (e *findEngine) Finder(_ context.Context, space *metric.Vectors) (metric.Finder, error) {
	if e.calls++; e.none {
		return nil, nil
	}
	if e.refuses {
		return nil, errors.New("no room for it")
	}
	e.open++
	return hostFinder{e, space}, nil
}

func (f hostFinder) Find(_ context.Context, from *metric.Vectors, objects []uint32, k int, found func(i int, hits []metric.Hit)) error {
	n := len(objects)
	if objects == nil {
		n = int(from.Len())
	}
	wide, hits := make([]float64, from.Dims()), make([]metric.Hit, f.space.Len())
	for i := range n {
		object := uint32(i)
		if objects != nil {
			object = objects[i]
		}
		if f.engine.calls == f.engine.fails && i == n/2 {
			found(n-1, []metric.Hit{{ID: 0}}) // of another vector
			return errors.New("the device is lost")
		}
		from.Coordinates(object, wide)
		v := make([]float32, len(wide))
		for j, e := range wide {
			v[j] = float32(e)
		}
		a, err := f.space.Query(v)
		if err != nil {
			return err
		}
		for id := range hits {
			hits[id] = metric.Hit{Value: a.Value(uint32(id)), ID: uint32(id)}
		}
		slices.SortFunc(hits, func(x, y metric.Hit) int { return cmp.Or(cmp.Compare(x.Value, y.Value), cmp.Compare(x.ID, y.ID)) })
		f.engine.told++
		found(i, hits[:min(k, len(hits))])
	}
	if f.engine.cancel != nil {
		f.engine.cancel()
	}
	return nil
}

func (f hostFinder) Close() error { f.engine.open--; return nil }

// places are vectors: grids, whose distances tie and of which many are the same, or clusters; some records have none.
func places(random *rand.Rand, n, dims int) []schema.Record {
	records := make([]schema.Record, n)
	side := []int{1, 2, 5, 0}[random.IntN(4)]
	for i := range records {
		records[i] = schema.Record{Line: int64(i + 1), Cells: make([]schema.Cell, 1)}
		if random.IntN(20) == 0 {
			continue
		}
		for range dims {
			e := float32(random.IntN(100))
			if side > 0 {
				e = float32(random.IntN(side + 1))
			}
			records[i].Cells[0].Vector = append(records[i].Cells[0].Vector, e)
		}
		records[i].Cells[0].Vector[0]++ // none is zero
	}
	return records
}

// TestFoundByEngine: an index with access paths has the same bytes whether an engine finds nearest vectors or the host, also where distances tie, and where the engine finds nothing, has no room or
// is lost, which is noted once; and building ends when its context does.
func TestFoundByEngine(t *testing.T) {
	random := seeded.Rand(t)
	helped, alone := 0, 0
	for range raced.Of(8, 3) {
		dims := 1 + random.IntN(12)
		paths := []string{"cells, permutation", "tree, cells", "permutation"}[random.IntN(3)]
		s := parseSchema(t, fmt.Sprintf("name: v\ncolumns:\n- {name: a, type: vector, dims: %d, metric: %s, storage: %s, index: [%s]}", dims,
			[]string{"l2", "l1", "cosine", "linf", "angular"}[random.IntN(5)], []string{"f32", "f16", "u8"}[random.IntN(3)], paths))
		records := places(random, random.IntN(450), dims)
		build := func(ctx context.Context, e *findEngine, notes *[]string) ([]byte, error) {
			o, err := index.NewObjects(s, index.BuilderOptions{Workers: 3})
			if err != nil {
				t.Fatal(err)
			}
			if e != nil {
				o.FindBy(e, func(note string) { *notes = append(*notes, note) })
			}
			if err := o.AddAll(ctx, index.Source{Next: source(records)}); err != nil {
				t.Fatal(err)
			}
			return o.Bytes(ctx)
		}
		want, err := build(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range map[string]*findEngine{"sound": {}, "none": {none: true}, "full": {refuses: true}, "lost": {fails: 1 + random.IntN(4)}} {
			var notes []string
			got, err := build(t.Context(), e, &notes)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s, %d vectors of %d elements, %s: %v, or other bytes", name, len(records), dims, paths, err)
			}
			failed := e.refuses && e.calls > 0 || e.fails > 0 && e.calls >= e.fails
			if failed && (len(notes) != 1 || !strings.Contains(notes[0], "cores")) || !failed && len(notes) > 0 || e.open != 0 || failed && e.fails > 0 && e.calls > e.fails || e.refuses && e.calls > 1 {
				t.Errorf("%s: %d calls, %d finders are open, and the notes are %q", name, e.calls, e.open, notes)
			}
			if name == "sound" && e.told > 0 {
				helped++
			} else if name == "sound" {
				alone++
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("no longer wanted")
		e := &findEngine{cancel: func() { cancel(why) }}
		if _, err := build(ctx, e, new([]string)); e.calls > 0 && !errors.Is(err, why) || e.calls > 1 || e.open != 0 {
			t.Errorf("cancelled in call %d: %v, %d finders are open", e.calls, err, e.open)
		}
	}
	if helped == 0 {
		t.Errorf("the engine helped in %d worlds and not in %d", helped, alone)
	}
}

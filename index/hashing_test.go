package index_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// hashEngine stands for a device: it hashes on the host, and counts.
type hashEngine struct {
	refuses, none  bool
	fails          int64        // from which call on each fails; 0: none does
	calls, vectors atomic.Int64 // of all hashers
	open           atomic.Int64 // hashers
}

type hostHasher struct {
	engine *hashEngine
	by     *lsh.Functions
}

func (e *hashEngine) Hasher(f *lsh.Functions) (lsh.Hasher, error) {
	if e.refuses && e.open.Load() == 1 {
		return nil, errors.New("no room for it")
	}
	if e.none {
		return nil, nil
	}
	e.open.Add(1)
	return &hostHasher{e, f}, nil
}

func (h *hostHasher) Hash(dst []uint32, vectors []float32, asked int) error {
	if n := h.engine.calls.Add(1); h.engine.fails > 0 && n >= h.engine.fails {
		clear(dst)
		return errors.New("the device is lost")
	}
	h.engine.vectors.Add(int64(len(vectors) / h.by.Parameters().Dim))
	return h.by.Hash(dst, vectors, 1)
}

func (h *hostHasher) Close() error { h.engine.open.Add(-1); return nil }

// TestHashedByEngine: an index whose vectors an engine hashes has the bytes of one that the host hashes, also where the engine hashes nothing, refuses or
// is lost; and a vector that is at fault is told in the same words.
func TestHashedByEngine(t *testing.T) {
	random := seeded.Rand(t)
	records := make([]schema.Record, 3000)
	for i := range records {
		records[i] = schema.Record{Line: int64(i + 1), Cells: make([]schema.Cell, 3)}
		for c, dims := range []int{9, 20} {
			for range dims {
				records[i].Cells[c].Vector = append(records[i].Cells[c].Vector, float32(random.NormFloat64()))
			}
		}
		if random.IntN(5) == 0 {
			records[i].Cells[1].Vector = nil
		}
		records[i].Cells[2].Values = []string{"x"}
	}
	wrong := slices.Clone(records)
	wrong[2500].Cells = []schema.Cell{{Vector: slices.Repeat([]float32{3e38}, 9)}, {}, {}}
	s := parseSchema(t, "name: v\ncolumns:\n- {name: a, type: vector, functions: 20}\n- {name: b, type: vector, similarity: l1, functions: 7}\n- {name: c, type: category}")
	if _, err := index.Builtin().Learn(s, source(records), nil); err != nil {
		t.Fatal(err)
	}
	build := func(e *hashEngine, records []schema.Record) ([]byte, error) {
		o, err := index.NewObjects(s, index.BuilderOptions{Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		closed := func() error { return nil }
		if e != nil {
			if closed, err = o.HashBy(e); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(o.AddAll(t.Context(), index.Source{Next: source(records)}), closed()); err != nil {
			return nil, err
		}
		return o.Bytes(t.Context())
	}
	want, err := build(nil, records)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := build(nil, wrong)
	for name, e := range map[string]*hashEngine{"sound": {}, "of none": {none: true}, "lost": {fails: 2}, "lost at once": {fails: 1}} {
		got, err := build(e, records)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, or other bytes", name, err)
		}
		if n := e.vectors.Load(); (name == "sound") != (n > 5000) || (name == "of none") != (e.calls.Load() == 0) {
			t.Errorf("%s: %d vectors were hashed in %d calls", name, n, e.calls.Load())
		}
		if _, err := build(e, wrong); err == nil || refused == nil || err.Error() != refused.Error() {
			t.Errorf("%s: %v, not %v", name, err, refused)
		}
		if e.open.Load() != 0 {
			t.Errorf("%s: %d are left open", name, e.open.Load())
		}
	}
	e := &hashEngine{refuses: true}
	if _, err := build(e, records); err == nil || !strings.Contains(err.Error(), "no room") || e.open.Load() != 0 {
		t.Errorf("refused: %v, %d are left open", err, e.open.Load())
	}
}

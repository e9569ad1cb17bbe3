package bench

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/store"
)

// Ctrl-C ends the making of a workload soon, not when millions of objects are made and added.
func TestEndedContext(t *testing.T) {
	schema, err := index.Builtin().ParseSchema([]byte("name: documents\nkind: documents\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	added := 0
	_, _, err = build(ctx, schema, Options{Objects: 10 * lookEvery}, func(*index.Builder, int) error {
		cancel()
		added++
		return nil
	})
	if !errors.Is(err, context.Canceled) || added > lookEvery {
		t.Errorf("%d objects added, %v", added, err)
	}

	// Of each piece of parallel no more than is made between two looks.
	ctx, cancel = context.WithCancel(context.Background())
	pieces := 4 * runtime.GOMAXPROCS(0)
	var made atomic.Int64
	err = generate(ctx, 10*lookEvery*pieces, func(lo, hi int) {
		cancel()
		made.Add(int64(hi - lo))
	})
	if !errors.Is(err, context.Canceled) || made.Load() > int64(lookEvery*pieces) {
		t.Errorf("%d objects made, %v", made.Load(), err)
	}
	made.Store(0)
	const odd = 3*lookEvery + 7
	if err := generate(context.Background(), odd, func(lo, hi int) { made.Add(int64(hi - lo)) }); err != nil || made.Load() != odd {
		t.Errorf("%d of %d objects made, %v", made.Load(), odd, err)
	}
}

// Ctrl-C ends brute force with the query that it is at.
func TestEndedChecks(t *testing.T) {
	w, err := New(context.Background(), "w3", Options{Objects: 100, Queries: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var late atomic.Bool
	w.reference = func(i, _, _ int, _ func(id, count uint32)) {
		cancel()
		if i > 0 {
			late.Store(true)
		}
	}
	if r, err := Engine(ctx, w, engine, EngineOptions{Checks: 3}); !errors.Is(err, context.Canceled) || late.Load() {
		t.Errorf("%+v, %v; another query was checked: %v", r, err, late.Load())
	}
}

func TestTooManyObjects(t *testing.T) {
	for _, name := range Names() {
		w, err := New(context.Background(), name, Options{Objects: store.MaxObjects + 1})
		if w != nil || err == nil || !strings.Contains(err.Error(), "at most 4294967295 objects") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

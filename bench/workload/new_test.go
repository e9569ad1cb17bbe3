package workload

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
)

// Ctrl-C ends the making of a workload soon, not when millions of objects are made and added.
func TestEndedContext(t *testing.T) {
	schema, err := index.Builtin().ParseSchema([]byte("name: documents\nkind: documents\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var added atomic.Int64
	most := 4096 * runtime.GOMAXPROCS(0) // the cores each end what they are at
	_, err = build(ctx, schema, Options{Objects: 10 * most}, func(*postings.Batch, int) error {
		cancel()
		added.Add(1)
		return nil
	})
	if !errors.Is(err, context.Canceled) || added.Load() > int64(most) {
		t.Errorf("%d objects added, %v", added.Load(), err)
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

func TestTooManyObjects(t *testing.T) {
	for _, name := range Names() {
		w, err := New(context.Background(), name, Options{Objects: store.MaxObjects + 1})
		if w != nil || err == nil || !strings.Contains(err.Error(), "at most 4294967295 objects") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An index that grew or came from the cache is the one that would be built.
func TestGrownAndCached(t *testing.T) {
	ctx := context.Background()
	opts := Options{Objects: 300, Queries: 1}
	fresh, err := New(ctx, "w1", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	grows := opts
	grows.Grow()
	caches := opts
	caches.Cache = t.TempDir()
	for _, steps := range [][]Options{{withObjects(grows, 100), grows}, {caches, caches}} {
		for _, o := range steps {
			w, err := New(ctx, "w1", o)
			if err != nil {
				t.Fatal(err)
			}
			if o.Objects == opts.Objects && !bytes.Equal(w.File, fresh.File) {
				t.Error("the index is another one than when built at once")
			}
			w.Close()
		}
	}
}

func withObjects(o Options, n int) Options {
	o.Objects = n
	return o
}

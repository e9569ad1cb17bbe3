package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// lookEvery is how many objects are made between two looks at the context: a fraction of a second of any workload.
const lookEvery = 4096

// generate makes the objects [0, n) on all cores. When ctx ends it stops between two calls of some.
func generate(ctx context.Context, n int, some func(lo, hi int)) error {
	parallel(n, func(lo, hi int) {
		for ; lo < hi && ctx.Err() == nil; lo += lookEvery {
			some(lo, min(lo+lookEvery, hi))
		}
	})
	return ctx.Err()
}

// build makes the index of a workload in memory, of objects that need no encoding. add adds the values of an object, and is called by several
// goroutines at a time.
func build(ctx context.Context, spec *schema.Schema, opts Options, add func(b *postings.Batch, id int) error) (*Workload, error) {
	return buildObjects(ctx, spec, opts, func(objects *index.Objects, first, n int) error {
		return objects.AddObjects(ctx, n, func(b *postings.Batch, i int) error { return add(b, first+i) })
	})
}

// buildRecords is build for objects that are records. record fills in one whose cells have room for a value.
func buildRecords(ctx context.Context, spec *schema.Schema, opts Options, record func(rec *schema.Record, id int)) (*Workload, error) {
	return buildObjects(ctx, spec, opts, func(objects *index.Objects, first, n int) error {
		next := first
		return objects.AddAll(ctx, index.Source{Next: func(rec *schema.Record) error {
			if next == first+n {
				return io.EOF
			}
			if rec.Cells == nil {
				rec.Cells = newRecord(len(spec.Columns)).Cells
			}
			record(rec, next)
			next++
			return nil
		}})
	})
}

// buildObjects makes a workload of an index that is found in the cache, or adds the objects that the builder does not have yet, n from first on, and writes it.
func buildObjects(ctx context.Context, spec *schema.Schema, opts Options, add func(objects *index.Objects, first, n int) error) (*Workload, error) {
	start := time.Now()
	file, err := fileOf(ctx, spec, opts, add)
	if err != nil {
		return nil, err
	}
	ix, err := index.OpenBytes(file)
	return &Workload{Index: ix, File: file, Build: time.Since(start)}, err
}

func fileOf(ctx context.Context, spec *schema.Schema, opts Options, add func(objects *index.Objects, first, n int) error) ([]byte, error) {
	path := ""
	if opts.Cache != "" {
		path = filepath.Join(opts.Cache, fmt.Sprintf("%s-%d-%d.gmq", opts.name, opts.Objects, opts.Seed))
		if file, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	g := opts.grown
	if g == nil {
		g = new(grown)
	}
	if g.objects == nil || g.objects.Objects() > opts.Objects {
		objects, err := index.NewObjects(spec, index.BuilderOptions{})
		if err != nil {
			return nil, err
		}
		g.objects = objects
	}
	first := g.objects.Objects()
	if err := add(g.objects, first, opts.Objects-first); err != nil {
		return nil, err
	}
	file, err := g.objects.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	if path != "" {
		part := path + ".part" // it has its name only when it is whole
		if err = os.MkdirAll(opts.Cache, 0o700); err == nil {
			err = os.WriteFile(part, file, 0o600)
		}
		if err == nil {
			err = os.Rename(part, path)
		}
		if err != nil {
			return nil, fmt.Errorf("keeping the index: %w", err)
		}
	}
	return file, nil
}

// newRecord is an empty record whose cells have room for a value.
func newRecord(cells int) *schema.Record {
	rec := &schema.Record{Cells: make([]schema.Cell, cells)}
	for i := range rec.Cells {
		rec.Cells[i].Values = make([]string, 1)
	}
	return rec
}

// parallel runs work over [0, n) in contiguous pieces on all cores.
func parallel(n int, work func(lo, hi int)) {
	pieces := min(n, 4*runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for p := range pieces {
		group.Go(func() { work(n*p/pieces, n*(p+1)/pieces) })
	}
	group.Wait()
}

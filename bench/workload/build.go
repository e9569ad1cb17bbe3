package workload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// lookEvery is how many objects are made or added between two looks at the context: a fraction of a second of any workload.
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

// build makes the index of a workload in memory, of objects that need no encoding.
func build(ctx context.Context, spec *schema.Schema, opts Options, add func(b *index.Builder, id int) error) ([]byte, *index.Index, error) {
	return buildRecords(ctx, spec, opts, func(objects *index.Objects, id int) error {
		if err := add(objects.Builder, id); err != nil {
			return err
		}
		return objects.EndObject("", nil, "")
	})
}

// buildRecords is build for objects that are records. It finds the index in the cache, or adds the objects that the builder does
// not have yet and writes it.
func buildRecords(ctx context.Context, spec *schema.Schema, opts Options, add func(objects *index.Objects, id int) error) ([]byte, *index.Index, error) {
	path := ""
	if opts.Cache != "" {
		path = filepath.Join(opts.Cache, fmt.Sprintf("%s-%d-%d.gmq", opts.name, opts.Objects, opts.Seed))
		file, err := os.ReadFile(path)
		if err == nil {
			ix, err := index.OpenBytes(file)
			return file, ix, err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
	}
	g := opts.grown
	if g == nil {
		g = new(grown)
	}
	if g.objects == nil || g.objects.Objects() > opts.Objects {
		objects, err := index.NewObjects(spec, index.BuilderOptions{})
		if err != nil {
			return nil, nil, err
		}
		g.objects = objects
	}
	for id := g.objects.Objects(); id < opts.Objects; id++ {
		if id%lookEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
		}
		if err := add(g.objects, id); err != nil {
			return nil, nil, err
		}
	}
	file, err := g.objects.Bytes(ctx)
	if err != nil {
		return nil, nil, err
	}
	if path != "" {
		// Under its name only when it is whole.
		part := path + ".part"
		if err := os.WriteFile(part, file, 0o600); err != nil {
			return nil, nil, fmt.Errorf("keeping the index: %w", err)
		}
		if err := os.Rename(part, path); err != nil {
			return nil, nil, fmt.Errorf("keeping the index: %w", err)
		}
	}
	ix, err := index.OpenBytes(file)
	return file, ix, err
}

package postings

import (
	"sync"
	"sync/atomic"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// Batch is the values of consecutive objects, which one goroutine collects while others collect theirs.
type Batch = values.Batch

// NewBatch returns an empty batch.
func (b *Builder) NewBatch() *Batch {
	specs := make([]schema.AttributeSpec, len(b.columns))
	for i := range specs {
		specs[i] = b.columns[i].spec
	}
	return values.NewBatch(specs)
}

// Append adds the objects of a batch but those that are dropped (nil: none), attributes in parallel. An error is the whole index's, and comes again from
// every later call. No object is being built.
func (b *Builder) Append(batch *Batch, dropped []bool) error {
	b.fail(batch.Ready())
	for i := range b.columns {
		b.fail(b.columns[i].Fits(batch, i))
	}
	if b.err != nil {
		return b.err
	}
	b.needEvery()
	local := int(b.objects % store.TileObjects)
	b.eachColumn(func(c *column, i int, n *values.Numbering) error {
		if err := c.Append(batch, i, dropped, local, b.every, n); err != nil || c.override != schema.LayoutSliced {
			return err
		}
		return c.checkSliced()
	})
	b.objects += uint32(batch.Objects())
	for _, drop := range dropped {
		if drop {
			b.objects--
		}
	}
	return b.err
}

// eachColumn calls a function for each column, in parallel, and keeps the error of the first that fails.
func (b *Builder) eachColumn(do func(c *column, i int, n *values.Numbering) error) {
	errs := make([]error, len(b.columns))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(b.workers, len(b.columns)) {
		workers.Go(func() {
			var n values.Numbering
			for i := int(next.Add(1)) - 1; i < len(b.columns); i = int(next.Add(1)) - 1 {
				errs[i] = do(&b.columns[i], i, &n)
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		b.fail(err)
	}
}

package postings

import (
	"cmp"
	"context"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
	"github.com/geniemq/geniemq/internal/spread"
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
// every later call.
func (b *Builder) Append(batch *Batch, dropped []bool) error {
	if b.err == nil {
		b.err = batch.Err()
	}
	if b.err != nil {
		return b.err
	}
	errs := make([]error, len(b.columns))
	_ = spread.Run(context.Background(), b.workers, len(b.columns), func() func(int) {
		var n values.Numbering
		return func(i int) {
			c := &b.columns[i]
			if errs[i] = c.Append(batch, i, dropped, int(b.objects%store.TileObjects), b.every, &n); errs[i] == nil {
				errs[i] = c.checkSliced()
			}
		}
	})
	b.objects += uint32(batch.Objects())
	for _, drop := range dropped {
		if drop {
			b.objects--
		}
	}
	b.err = cmp.Or(errs...)
	return b.err
}

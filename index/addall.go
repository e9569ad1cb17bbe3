package index

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/filling"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/inorder"
)

// Source gives the records of an index.
type Source struct {
	// Name is what errors that are the whole index's call the source; "" nothing.
	Name string
	// Next reads the next record into rec, whose memory it may use again; the strings in it are new ones. io.EOF is the end. It is called by one
	// goroutine, ahead of what is added.
	Next func(rec *schema.Record) error
	// Skippable says of an error of Next that it concerns one record, and that Next may be called again; others end the source. It is called like
	// Next. nil: there are none.
	Skippable func(err error) bool
	// Bad is told of each record that cannot be used, in their order: why Next could not read it, or a *RecordError. Returning nil leaves the record out,
	// an error ends AddAll with it. nil: the first such error ends AddAll.
	Bad func(err error) error
}

const (
	// batchRecords and batchBytes bound what is encoded at a time by one goroutine, by the records and by their texts.
	batchRecords = 1024
	batchBytes   = 1 << 20
	// largeRecord is from how many bytes on the memory that a record took is not used again. Else each of a batch's places would grow to the
	// largest record that ever came to it.
	largeRecord = 4 * batchBytes / batchRecords
)

// recordBatch is consecutive records on their way.
type recordBatch struct {
	records []schema.Record
	faults  []error // by record: why it cannot be used
	n       int     // records
	large   []int   // those of them that are large
	end     error   // why there are none after: io.EOF or another error

	lists    *postings.Batch
	objects  []int         // by object of lists: its record
	cells    filling.Cells // by object
	payload  *objects.PayloadWriter
	payloads []byte
	ends     []int             // by object: where its payload ends
	texts    []string          // by object
	values   [][]schema.Values // by object where structures beside the lists want them; else of the record at hand
	grown    []int             // those of them that a large record made large
	fatal    error             // of an object, and the whole index's
	dropped  []bool            // by object
}

// AddAll adds all records of a source, on all workers, with the same result whatever their number. Memory: two batches for each worker and some, of
// a megabyte of text or one record.
func (o *Objects) AddAll(ctx context.Context, s Source) error {
	made := func() *recordBatch {
		return &recordBatch{lists: o.NewBatch(), payload: objects.NewPayloadWriter(o.schema)}
	}
	return inorder.Run(ctx, o.workers, 2*o.workers+2, made, func(b *recordBatch) (last bool, err error) {
		b.read(&s)
		return b.end != nil, nil
	}, func(b *recordBatch) error {
		o.encodeAll(b)
		return nil
	}, func(b *recordBatch) error { return o.apply(b, &s) })
}

// read fills the batch.
func (b *recordBatch) read(s *Source) {
	for _, i := range b.large {
		b.records[i] = schema.Record{}
	}
	b.large, b.end = b.large[:0], nil
	bytes := 0
	for b.n = 0; b.n < batchRecords && bytes < batchBytes && b.end == nil; {
		if b.n == len(b.records) {
			b.records, b.faults = append(b.records, schema.Record{}), append(b.faults, nil)
		}
		rec := &b.records[b.n]
		err := s.Next(rec)
		if err != nil && (errors.Is(err, io.EOF) || s.Skippable == nil || !s.Skippable(err)) {
			b.end = err
			return
		}
		b.faults[b.n] = err
		size := recordBytes(rec)
		if size >= largeRecord {
			b.large = append(b.large, b.n)
		}
		bytes += size
		b.n++
	}
}

// recordBytes is about what the values of a record take in memory.
func recordBytes(rec *schema.Record) (bytes int) {
	const header = 16 // of a string
	for i := range rec.Cells {
		c := &rec.Cells[i]
		bytes += len(c.JSON) + 4*len(c.Vector) + header*len(c.Values)
		for _, v := range c.Values {
			bytes += len(v)
		}
	}
	return bytes
}

// encodeAll makes objects of the records that can be used.
func (o *Objects) encodeAll(b *recordBatch) {
	b.lists.Reset()
	for _, at := range b.grown {
		b.values[at] = make([]schema.Values, len(o.columns))
	}
	b.grown = b.grown[:0]
	b.cells.Reset()
	b.objects, b.payloads, b.ends, b.texts, b.fatal = b.objects[:0], b.payloads[:0], b.ends[:0], b.texts[:0], nil
	for i := range b.n {
		if b.faults[i] != nil {
			continue
		}
		at, object := 0, len(b.objects)
		if len(o.families) > 0 || o.blocks {
			at = object
		}
		if at == len(b.values) {
			b.values = append(b.values, make([]schema.Values, len(o.columns)))
		}
		if slices.Contains(b.large, i) {
			b.grown = append(b.grown, at)
		}
		payload, text, err := o.encode(&b.records[i], b.values[at], b.payload, &b.cells)
		if refused := (*RecordError)(nil); errors.As(err, &refused) {
			b.faults[i] = err
			continue
		}
		b.objects = append(b.objects, i)
		b.payloads = append(b.payloads, payload...)
		b.ends = append(b.ends, len(b.payloads))
		b.texts = append(b.texts, text)
		if err == nil && !o.blocks {
			err = o.addObject(b.lists, b.values[at])
		}
		if err != nil {
			b.fail(object, err)
			return
		}
	}
	if o.blocks {
		o.addBlock(b)
	}
}

// addBlock ends the encoding of columns that take many objects together, and adds the objects.
func (o *Objects) addBlock(b *recordBatch) {
	all := make([]*schema.Values, len(b.objects))
	for c := range o.columns {
		block, ok := o.columns[c].encoder.(column.BlockEncoder)
		if !ok {
			continue
		}
		for object := range all {
			all[object] = &b.values[object][c]
		}
		if err := block.EncodeAll(all); err != nil {
			b.fail(0, fmt.Errorf("column %q: %w", o.schema.Columns[c].Name, err))
			return
		}
	}
	for object := range b.objects {
		if err := o.addObject(b.lists, b.values[object]); err != nil {
			b.fail(object, err)
			return
		}
	}
}

// addObject adds the values of an object to lists.
func (o *Objects) addObject(lists *postings.Batch, values []schema.Values) error {
	for c := range o.columns {
		if err := o.columns[c].addValues(lists, &values[c]); err != nil {
			return fmt.Errorf("column %q: %w", o.schema.Columns[c].Name, err)
		}
	}
	return lists.EndObject()
}

// fail ends a batch before an object, with an error that is the whole index's. What comes after is not looked at.
func (b *recordBatch) fail(object int, err error) {
	if len(b.objects) > 0 {
		b.n = b.objects[object]
		err = fmt.Errorf("line %d: %w", b.records[b.n].Line, err)
	}
	b.fatal, b.end = err, nil
	b.objects, b.ends, b.texts = b.objects[:object], b.ends[:object], b.texts[:object]
}

// apply adds the objects of a batch, and tells of the records that cannot be used.
func (o *Objects) apply(b *recordBatch, s *Source) error {
	if o.err != nil {
		return o.err
	}
	err := o.objectsOf(b, s)
	group := errgroup.Group{}
	group.Go(func() error {
		if !slices.Contains(b.dropped, true) {
			return o.Append(b.lists, nil)
		}
		return o.Append(b.lists, b.dropped)
	})
	for _, family := range o.families {
		group.Go(func() error {
			for j, dropped := range b.dropped {
				if dropped {
					continue
				}
				if err := family.Add(b.values[j]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if fault := group.Wait(); fault != nil {
		o.err = fault
		return fault
	}
	switch {
	case err != nil:
		return err
	case b.fatal != nil && s.Name != "":
		return fmt.Errorf("%s: %w", s.Name, b.fatal)
	case b.fatal != nil:
		return b.fatal
	case errors.Is(b.end, io.EOF):
		return nil
	}
	return b.end
}

// objectsOf gives the objects of a batch their ids, and stores what is stored of each. Those of records that cannot be used after all are
// dropped. After an error all objects that follow are.
func (o *Objects) objectsOf(b *recordBatch, s *Source) (err error) {
	b.dropped = b.dropped[:0]
	bad := func(fault error) error {
		if s.Bad == nil {
			return fault
		}
		return s.Bad(fault)
	}
	start, j := 0, 0
	for i := range b.n {
		if b.faults[i] != nil {
			if err == nil {
				err = bad(b.faults[i])
			}
			continue
		}
		if j == len(b.objects) {
			break
		}
		payload := b.payloads[start:b.ends[j]]
		start = b.ends[j]
		drop := err != nil
		if !drop {
			if fault := o.fits(b.records[i].Key, payload, b.texts[j]); fault != nil {
				drop = true
				if fault = o.recordError(&b.records[i], fault); errors.As(fault, new(*RecordError)) {
					fault = bad(fault)
				}
				err = fault
			}
		}
		o.fillings.Count(&b.cells, j, drop)
		if b.dropped = append(b.dropped, drop); !drop {
			o.store(payload, b.texts[j])
		}
		j++
	}
	return err
}

// AddObjects adds n objects without keys and payloads, on all workers. values adds those of object i, which is no more than its number among
// them, to a batch, and leaves it to the caller to end the object; it is called by several goroutines at a time. Structures beside the lists get
// nothing. An error is the whole index's, and comes again from every later call.
func (b *Builder) AddObjects(ctx context.Context, n int, values func(dst *postings.Batch, i int) error) error {
	if n == 0 || b.err != nil {
		return b.err
	}
	type batch struct {
		lists    *postings.Batch
		first, n int
	}
	next := 0
	b.err = inorder.Run(ctx, b.workers, 2*b.workers+2, func() *batch { return &batch{lists: b.NewBatch()} }, func(a *batch) (last bool, err error) {
		a.first, a.n = next, min(batchRecords, n-next)
		next += a.n
		return next == n, nil
	}, func(a *batch) error {
		a.lists.Reset()
		for i := range a.n {
			err := values(a.lists, a.first+i)
			if err == nil {
				err = a.lists.EndObject()
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(a *batch) error { return b.AddBatch(a.lists, nil) })
	return b.err
}

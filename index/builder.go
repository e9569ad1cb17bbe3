package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// BuilderOptions tune a Builder. The zero value is ready to use.
type BuilderOptions struct {
	// Workers is the number of goroutines that encode objects (AddAll, AddObjects), close tiles and encode postings. Default
	// runtime.GOMAXPROCS(0).
	Workers int
}

// Builder collects objects and writes them as an index. Objects go in by batches (AddBatch, AddObjects, Objects.AddAll), and
// WriteFile or Bytes write the whole; both leave the builder as it is, so they can be called again. The same
// objects give the same bytes, whatever the batches and the number of workers. A Builder is not safe for concurrent use.
//
// Memory: that of the lists (see postings.Builder), and keys (their bytes plus 10 to 20), payloads and texts (their bytes plus 4).
type Builder struct {
	*postings.Builder
	kinds    Kinds
	schema   *schema.Schema
	families []store.Builder // of structures beside the lists
	workers  int
	objects  uint32
	stored   objects.Builder
	err      error // the whole index's
}

// NewBuilder begins an index. The schema is copied and stored in the file; it says nothing about the attributes to
// the builder, which takes what it is given: of records, what Kinds.Attributes says of the schema. Structures of other families than the lists get
// their values by Objects.AddAll alone.
func (k Kinds) NewBuilder(s *schema.Schema, attrs []schema.AttributeSpec, options BuilderOptions) (*Builder, error) {
	if s == nil {
		return nil, errors.New("a builder needs a schema")
	}
	if !store.LittleEndian() {
		return nil, errors.New("building an index needs a little-endian machine")
	}
	b := &Builder{kinds: k, schema: s.Clone(), workers: options.Workers}
	if b.workers <= 0 {
		b.workers = runtime.GOMAXPROCS(0)
	}
	var err error
	b.Builder, err = postings.NewBuilder(attrs, b.workers)
	if err := errors.Join(k.check(), b.schema.Check(k.CheckColumn), err); err != nil {
		return nil, err
	}
	for _, family := range k.Families {
		buildable, ok := family.(store.Buildable)
		if !ok {
			continue
		}
		builder, err := buildable.Build(b.schema, b.workers)
		if err != nil {
			return nil, fmt.Errorf("family %s: %w", family.Name(), err)
		}
		if builder != nil {
			b.families = append(b.families, builder)
		}
	}
	kept, err := forward.NewBuilder(b.schema, k.Kept(b.schema), b.workers, b.stringsOf)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		b.families = append(b.families, kept)
	}
	measured, err := k.measurements(b.schema, b.workers)
	if err != nil {
		return nil, err
	}
	b.families = append(b.families, measured...)
	return b, nil
}

// stringsOf returns the values of a column's one attribute, where that is one of strings.
func (b *Builder) stringsOf(column int) *values.Column {
	first := 0
	for i := range b.schema.Columns {
		c := &b.schema.Columns[i]
		attributes := b.kinds.Column(b.schema.Kind, c.Type).Attributes(c)
		if i == column && len(attributes) == 1 {
			return b.Strings(first, attributes[0].Name)
		}
		first += len(attributes)
	}
	return nil
}

// AddBatch adds the objects of a batch. stored tells of the i-th of them its key (empty: the decimal id), payload (a JSON object, or nil) and text
// (sequences); nil: none has any. After an error, such as a *objects.DuplicateKeyError, the objects before the one that it concerns are stored and have
// no values, so that the builder can go on only where the batch has one object. Structures beside the lists get nothing.
func (b *Builder) AddBatch(batch *postings.Batch, stored func(i int) (key string, payload []byte, text string)) error {
	for i := range batch.Objects() {
		var key, text string
		var payload []byte
		if stored != nil {
			key, payload, text = stored(i)
		}
		if err := b.fits(key, payload, text); err != nil {
			return err
		}
		b.store(payload, text)
	}
	return b.Append(batch, nil)
}

// fits says why the next object cannot have a key, a payload and a text; if it can, it has the key.
func (b *Builder) fits(key string, payload []byte, text string) error {
	if b.objects == store.MaxObjects {
		return fmt.Errorf("an index holds at most %d objects; split the data into several indexes", uint32(store.MaxObjects))
	}
	if err := b.stored.Fits(payload, text); err != nil {
		return err
	}
	return b.stored.AddKey(b.objects, key)
}

// store stores what fits of the next object, and counts it.
func (b *Builder) store(payload []byte, text string) {
	b.stored.Add(b.objects, payload, text)
	b.objects++
}

// Objects returns the number of closed objects, which is the id of the next one.
func (b *Builder) Objects() int { return int(b.objects) }

// WriteFile writes the index to path, atomically: under a temporary name in the same directory, synced, then renamed.
// Whatever happens, path holds either what it held before or the complete new index. progress, when not nil, is
// called now and then with the number of postings written and their total. Cancelling ctx ends with its error.
func (b *Builder) WriteFile(ctx context.Context, path string, progress func(done, total int64)) error {
	drafts, err := b.finish(ctx)
	if err != nil {
		return fmt.Errorf("write index %s: %w", path, err)
	}
	return store.WriteFile(ctx, path, b.objects, drafts, progress)
}

// Bytes returns the bytes that WriteFile would write.
func (b *Builder) Bytes(ctx context.Context) ([]byte, error) {
	drafts, err := b.finish(ctx)
	if err != nil {
		return nil, fmt.Errorf("write index in memory: %w", err)
	}
	return store.Memory(ctx, b.objects, drafts)
}

// finish makes what is written, in its order: what a reader needs first, then the postings of all tiles, then other structures, then what
// belongs to single objects.
func (b *Builder) finish(ctx context.Context) ([]store.Draft, error) {
	if b.err != nil {
		return nil, b.err
	}
	lists, err := b.Builder.Finish(ctx)
	if err != nil {
		return nil, err
	}
	var text []byte // of the schema, which the families may have something to add to
	drafts := []store.Draft{{Sections: 1, Write: func(_ context.Context, w *store.Writer, _ func(int64)) error {
		w.Add(store.SectionSchema, -1, -1, text)
		return nil
	}}, lists}
	for _, family := range b.families {
		draft, err := family.Finish(ctx)
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, draft)
	}
	if text, err = b.schema.Encode(); err != nil {
		return nil, err
	}
	return append(drafts, b.stored.Finish(b.objects)), nil
}

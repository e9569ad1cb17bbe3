package index

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// BuilderOptions tune a Builder. The zero value is ready to use.
type BuilderOptions struct {
	// Workers is the number of goroutines that close tiles and encode postings. Default runtime.GOMAXPROCS(0).
	Workers int
}

// Builder collects objects and writes them as an index. Values go in with Add..., EndObject closes an object, and
// WriteFile or Bytes write the whole; both leave the builder as it is, so they can be called again. The same
// calls give the same bytes, whatever the number of workers. A Builder is not safe for concurrent use.
//
// Memory: that of the lists (see postings.Builder), and keys (their bytes plus 10 to 20), payloads and texts (their bytes plus 4).
type Builder struct {
	*postings.Builder
	schema  *schema.Schema
	objects uint32
	stored  objectsBuilder
}

// NewBuilder begins an index. The schema is copied and stored in the file; it says nothing about the attributes to
// the builder, which takes what an encoder declares.
func NewBuilder(s *schema.Schema, attrs []schema.AttributeSpec, options BuilderOptions) (*Builder, error) {
	if s == nil {
		return nil, errors.New("a builder needs a schema")
	}
	if !store.LittleEndian() {
		return nil, errors.New("building an index needs a little-endian machine")
	}
	copied := s.Clone()
	lists, err := postings.NewBuilder(attrs, options.Workers)
	if err := errors.Join(copied.Validate(), err); err != nil {
		return nil, err
	}
	return &Builder{Builder: lists, schema: copied}, nil
}

// EndObject closes the object: it gets the next id, the values added since the last call, a key (empty: the
// decimal id), a payload (a JSON object, or nil) and a text (sequences). On an error, such as a *DuplicateKeyError, the
// object is dropped as by DiscardObject and the builder can go on without it; an error that is the whole
// index's comes again from every later call.
func (b *Builder) EndObject(key string, payload []byte, text string) error {
	err := b.Ready()
	if err == nil && b.objects == store.MaxObjects {
		err = fmt.Errorf("an index holds at most %d objects; split the data into several indexes", uint32(store.MaxObjects))
	}
	if err == nil {
		err = b.stored.fits(payload, text)
	}
	if err == nil {
		err = b.stored.addKey(b.objects, key)
	}
	if err != nil {
		b.DiscardObject()
		return err
	}
	b.Builder.EndObject()
	b.stored.payload.add(b.objects, unsafe.String(unsafe.SliceData(payload), len(payload))) // add copies
	b.stored.text.add(b.objects, text)
	b.objects++
	return nil
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

// finish makes what is written, in its order: what a reader needs first, then the postings of all tiles, then what belongs
// to single objects.
func (b *Builder) finish(ctx context.Context) ([]store.Draft, error) {
	lists, err := b.Builder.Finish(ctx)
	if err != nil {
		return nil, err
	}
	text, err := b.schema.Encode()
	if err != nil {
		return nil, err
	}
	return []store.Draft{schemaDraft(text), lists, b.stored.finish(b.objects)}, nil
}

// schemaDraft is the schema as it is stored.
type schemaDraft []byte

// Sections returns 1.
func (schemaDraft) Sections() int { return 1 }

// Work returns 0.
func (schemaDraft) Work() int64 { return 0 }

// Write writes the schema.
func (d schemaDraft) Write(_ context.Context, w *store.Writer, _ func(int64)) error {
	w.Add(store.SectionSchema, -1, -1, d)
	return w.Err()
}

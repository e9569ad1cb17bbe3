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
	kinds    Kinds
	schema   *schema.Schema
	families []store.Builder // of structures beside the lists
	objects  uint32
	stored   objectsBuilder
	err      error // of a family
}

// NewBuilder begins an index of the built-in kinds; see Kinds.NewBuilder.
func NewBuilder(s *schema.Schema, attrs []schema.AttributeSpec, options BuilderOptions) (*Builder, error) {
	return Builtin().NewBuilder(s, attrs, options)
}

// NewBuilder begins an index. The schema is copied and stored in the file; it says nothing about the attributes to
// the builder, which takes what it is given: of records, what Kinds.Attributes says of the schema. Structures of other families than the lists get
// their values by Objects.Add alone.
func (k Kinds) NewBuilder(s *schema.Schema, attrs []schema.AttributeSpec, options BuilderOptions) (*Builder, error) {
	if s == nil {
		return nil, errors.New("a builder needs a schema")
	}
	if !store.LittleEndian() {
		return nil, errors.New("building an index needs a little-endian machine")
	}
	b := &Builder{kinds: k, schema: s.Clone()}
	var err error
	b.Builder, err = postings.NewBuilder(attrs, options.Workers)
	if err := errors.Join(k.check(), b.schema.Check(k.CheckColumn), err); err != nil {
		return nil, err
	}
	for _, family := range k.Families {
		buildable, ok := family.(store.Buildable)
		if !ok {
			continue
		}
		builder, err := buildable.Build(b.schema, options.Workers)
		if err != nil {
			return nil, fmt.Errorf("family %s: %w", family.Name(), err)
		}
		if builder != nil {
			b.families = append(b.families, builder)
		}
	}
	return b, nil
}

// addToFamilies adds the object that was closed last to the structures beside the lists.
func (b *Builder) addToFamilies(values []schema.Values) error {
	for _, family := range b.families {
		if err := family.Add(values); err != nil {
			b.err = err
			return err
		}
	}
	return nil
}

// EndObject closes the object: it gets the next id, the values added since the last call, a key (empty: the
// decimal id), a payload (a JSON object, or nil) and a text (sequences). On an error, such as a *DuplicateKeyError, the
// object is dropped as by DiscardObject and the builder can go on without it; an error that is the whole
// index's comes again from every later call.
func (b *Builder) EndObject(key string, payload []byte, text string) error {
	err := b.err
	if err == nil {
		err = b.Ready()
	}
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

// finish makes what is written, in its order: what a reader needs first, then the postings of all tiles, then other structures, then what
// belongs to single objects.
func (b *Builder) finish(ctx context.Context) ([]store.Draft, error) {
	if b.err != nil {
		return nil, b.err
	}
	text, err := b.schema.Encode()
	if err != nil {
		return nil, err
	}
	drafts := []store.Draft{schemaDraft(text)}
	lists, err := b.Builder.Finish(ctx)
	if err != nil {
		return nil, err
	}
	drafts = append(drafts, lists)
	for _, family := range b.families {
		draft, err := family.Finish(ctx)
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, draft)
	}
	return append(drafts, b.stored.finish(b.objects)), nil
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

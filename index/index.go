package index

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Index is one immutable index, open for reading: a file, the structures in it by which objects are searched, and what is stored of
// each object.
//
// # Guarantees
//
//   - Immutable and safe for any number of goroutines. Accessors take constant time but where they say otherwise.
//   - A file that opens is the file that was written: see File. No file can make an accessor fail or read outside the file, whoever wrote it.
//   - Two builds of the same input are the same bytes, so equal input has an equal Version.
//
// What Open leaves to Validate can only make answers of this index wrong, not unsafe.
//
// # Who owns what
//
// The opener owns the Index and closes it when nobody uses it any more; the service counts the batches that do. Strings and
// slices that accessors return point into the map and die with it, except where a comment says copy. Attributes,
// Schema and all slices are the index's and must not be changed; the map is read-only, so that trying to
// ends the process.
type Index struct {
	*store.File
	*postings.Lists
	*objects
	schema *schema.Schema
}

// Open maps an index file into memory and checks the header, the checksums of all sections and every structure that
// the accessors rely on; it reads the whole file once, which computing Version needs anyway. Errors wrap
// ErrNotIndex, *CorruptError or *UnsupportedError where these are the cause.
//
// A file that is being written to is refused with a *ChangedError. One that is changed in place while it is open makes what accessors
// return wrong and may make them panic: Unchanged tells. WriteFile never does that, because it replaces the name.
func Open(path string) (*Index, error) {
	x := new(Index)
	var err error
	if x.File, err = store.Open(path, forms(), x.read); err != nil {
		return nil, err
	}
	return x, nil
}

// OpenBytes opens an index that is in memory already, as Builder.Bytes returns it. The bytes must not be changed
// afterwards; they are copied only when they are not aligned to 8.
func OpenBytes(data []byte) (*Index, error) {
	x := new(Index)
	var err error
	if x.File, err = store.OpenBytes(data, forms(), x.read); err != nil {
		return nil, err
	}
	return x, nil
}

// forms are the kinds of sections that this version reads.
func forms() []store.SectionForm {
	all := []store.SectionForm{{Kind: store.SectionSchema, Name: "schema"}}
	all = append(all, postings.Family{}.Sections()...)
	return append(all, objectSections()...)
}

// read opens the structures of a file.
func (x *Index) read(f *store.File) error {
	text, err := f.Read(store.SectionSchema)
	if err != nil {
		return err
	}
	if x.schema, err = schema.Parse(text); err != nil {
		return store.Unsupported("a schema that this geniemq does not know: %v", err) // its checksum was right
	}
	if x.Lists, err = (postings.Family{}).Open(f); err != nil {
		return err
	}
	x.objects, err = openObjects(f)
	return err
}

// Validate checks everything that can be checked about the file, also what Open leaves: the checksums once more, the
// padding, that strings, edges and lists ascend, that every keyword is found by Lookup, that each posting is an
// object of its tile, the totals of each attribute, that keys are unique and payloads are JSON objects. It reads every
// posting, on all cores, and needs about 12 bytes per object where there are keys. It returns all faults, up to
// ten of each structure, each a *CorruptError.
func (x *Index) Validate() error {
	ctx := context.Background()
	return errors.Join(x.File.Verify(ctx), x.Lists.Verify(ctx), x.objects.verify())
}

// Schema returns the schema that the index was built by, with every default filled in. It must not be changed.
func (x *Index) Schema() *schema.Schema { return x.schema }

// KeywordName returns a keyword in words: the value of a Text attribute (for n-grams see gramName), the interval or
// value of a Number attribute, the number of an Ordinal one. It is a copy, for people.
func (x *Index) KeywordName(attr int, kw uint32) string {
	name := x.Lists.KeywordName(attr, kw)
	if a := &x.Attributes()[attr]; x.schema.Kind == schema.Sequences && a.Type == schema.Text && kw < a.Keywords {
		return ngram.Name(name, x.schema.NGram)
	}
	return name
}

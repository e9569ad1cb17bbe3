package index

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/objects"
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
	*objects.Stored
	kinds      Kinds
	schema     *schema.Schema
	structures map[string]store.Structure // by family
}

// Open opens an index of the built-in kinds; see Kinds.OpenWith.
func Open(path string) (*Index, error) { return Builtin().OpenWith(path, store.Effort{}) }

// OpenBytes opens an index of the built-in kinds; see Kinds.OpenBytes.
func OpenBytes(data []byte) (*Index, error) { return Builtin().OpenBytes(data) }

// OpenWith maps an index file into memory and checks the header, the checksums of all sections and every structure that
// the accessors rely on; it reads the whole file once, which computing Version needs anyway. Errors wrap
// ErrNotIndex, *CorruptError or *UnsupportedError where these are the cause.
//
// A file that is being written to is refused with a *ChangedError. One that is changed in place while it is open makes what accessors
// return wrong and may make them panic: Unchanged tells. WriteFile never does that, because it replaces the name.
func (k Kinds) OpenWith(path string, effort store.Effort) (*Index, error) {
	return k.open(func(forms []store.SectionForm, read func(*store.File) error) (*store.File, error) {
		return store.Open(path, effort, forms, read)
	})
}

// OpenBytes opens an index that is in memory already, as Builder.Bytes returns it. The bytes must not be changed
// afterwards; they are copied only when they are not aligned to 8.
func (k Kinds) OpenBytes(data []byte) (*Index, error) {
	return k.open(func(forms []store.SectionForm, read func(*store.File) error) (*store.File, error) {
		return store.OpenBytes(data, forms, read)
	})
}

func (k Kinds) open(file func(forms []store.SectionForm, read func(*store.File) error) (*store.File, error)) (*Index, error) {
	forms, err := k.forms()
	if err != nil {
		return nil, err
	}
	x := &Index{kinds: k}
	if x.File, err = file(forms, x.read); err != nil {
		return nil, err
	}
	return x, nil
}

// read opens the structures of a file.
func (x *Index) read(f *store.File) error {
	text, err := f.Read(store.SectionSchema)
	if err != nil {
		return err
	}
	if x.schema, err = x.kinds.ParseSchema(text); err != nil {
		return store.Unsupported("a schema that this geniemq does not know: %v", err) // its checksum was right
	}
	x.structures = make(map[string]store.Structure, len(x.kinds.Families))
	for _, family := range x.kinds.Families {
		if !holds(f, family) {
			continue
		}
		structure, err := family.Open(f, x.schema)
		if err != nil {
			return err
		}
		x.structures[family.Name()] = structure
	}
	var ok bool
	if x.Lists, ok = x.structures[postings.FamilyName].(*postings.Lists); !ok { // there always are some, be it of no attribute
		return f.Need(postings.SectionAttributes, -1, -1)
	}
	x.distinguish()
	if x.Stored, err = objects.Open(f); err != nil {
		return err
	}
	return x.measurable(f.Objects())
}

// measurable finds the columns that can be searched by distance, which are made of what else is there.
func (x *Index) measurable(objects uint32) error {
	sections, _ := x.structures[distance.FamilyName].(*distance.Sections)
	columns, err := distance.New(x.schema, objects, x.Forward(), x.Stored, sections)
	if err != nil {
		return err
	}
	delete(x.structures, distance.FamilyName)
	if columns.Len() > 0 {
		x.structures[distance.FamilyName] = columns
	}
	return nil
}

// distinguish tells the lists which attributes are of columns that give no object a keyword twice. It tells nothing of an index whose attributes are
// not those of its schema.
func (x *Index) distinguish() {
	if checkAttributes(x) != nil {
		return
	}
	for i, spec := range x.kinds.Attributes(x.schema) {
		if spec.Distinct {
			x.Lists.SetDistinct(i)
		}
	}
}

// holds says whether a file has sections of a family.
func holds(f *store.File, family store.Family) bool {
	for _, form := range family.Sections() {
		if f.Holds(form.Kind) {
			return true
		}
	}
	return false
}

// Structure returns the structure of a family: of postings.FamilyName a *postings.Lists. It is nil where the index has none.
func (x *Index) Structure(family string) any {
	if s, ok := x.structures[family]; ok {
		return s
	}
	return nil
}

// Forward returns what the objects hold by column; nil where nothing is kept.
func (x *Index) Forward() *forward.Forward {
	kept, _ := x.structures[forward.FamilyName].(*forward.Forward)
	return kept
}

// Distances returns the columns that can be searched by distance; nil where there are none.
func (x *Index) Distances() *distance.Columns {
	columns, _ := x.structures[distance.FamilyName].(*distance.Columns)
	return columns
}

// Validate checks everything that can be checked about the file, also what Open leaves: the checksums once more, the
// padding, that strings, edges and lists ascend, that every keyword is found by Lookup, that each posting is an
// object of its tile, the totals of each attribute, that keys are unique and payloads are JSON objects. It reads every
// posting, on all cores, and needs about 12 bytes per object where there are keys. It returns all faults, up to
// ten of each structure, each a *CorruptError.
func (x *Index) Validate() error {
	ctx := context.Background()
	faults := []error{x.File.Verify(ctx)}
	for _, family := range x.kinds.Families {
		if s, ok := x.structures[family.Name()]; ok {
			faults = append(faults, s.Verify(ctx))
		}
	}
	return errors.Join(append(faults, x.Stored.Verify())...)
}

// Name is the name of the schema.
func (x *Index) Name() string { return x.schema.Name }

// Schema returns the schema that the index was built by, with every default filled in. It must not be changed.
func (x *Index) Schema() *schema.Schema { return x.schema }

// ColumnType is the type of a column of the schema.
func (x *Index) ColumnType(c *schema.Column) column.Type {
	return x.kinds.Column(x.schema.Kind, c.Type)
}

// KeywordName returns a keyword in words: the value of a Text attribute, the interval or value of a Number attribute, the number of an
// Ordinal one, or, of the first attribute of a column, what its type makes of it. It is a copy, for people.
func (x *Index) KeywordName(attr int, kw uint32) string {
	name := x.Lists.KeywordName(attr, kw)
	if kw >= x.Attribute(attr).Keywords {
		return name
	}
	for i := range x.schema.Columns {
		c := &x.schema.Columns[i]
		t := x.ColumnType(c)
		namer, ok := t.(column.Namer)
		if ok && t.Attributes(c)[0].Name == x.Attribute(attr).Name {
			return namer.KeywordName(x.schema, c, name)
		}
	}
	return name
}

package index

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// AttributeSpec declares an attribute to a Builder.
type AttributeSpec struct {
	Name string // unique, not empty
	Type AttributeType
	// Buckets and Edges of Number attributes. Defaults 1,024 and equal-width; Buckets is not used by Exact.
	Buckets int
	Edges   EdgeRule
	// Keywords is the number of keywords V of an Ordinal attribute: its values are 0 to V-1.
	Keywords uint32
	// Layout overrides the choice of the layout, by its name in the schema. An attribute that cannot have it is refused as
	// soon as that is known: by NewBuilder (rare, unless Text), by EndObject (sliced, a second value of an object or a text
	// too many), or when the index is written (sliced, a number or ordinal too many). Default auto.
	Layout string
}

// BuilderOptions tune a Builder. The zero value is ready to use.
type BuilderOptions struct {
	// Workers is the number of goroutines that close tiles and encode postings. Default runtime.GOMAXPROCS(0).
	Workers int
}

// Builder collects objects and writes them as an index. Values go in with Add..., EndObject closes an object, and
// WriteFile or Bytes write the whole; both leave the builder as it is, so they can be called again. The same
// calls give the same bytes, whatever the number of workers. A Builder is not safe for concurrent use.
//
// Memory: a posting takes 4 bytes (a 32-bit provisional keyword), in Number attributes 2 and 8 for each number that is distinct
// in its tile (the raw float64, because edges are known only at the end), or 8 where three in four or more than 65,536 are
// distinct; and 2 more (its object's place in the tile) unless the tile has one value of each object. Add to that each distinct
// string (its bytes plus 10 to 20), keys (the same), payloads and texts (their bytes plus 4). Writing adds 16 to 32 bytes a
// keyword to choose the layouts, 4 bytes a posting of rare keywords, and for each worker, first 8 bytes a posting of an
// equi-depth attribute or 8 a tile's distinct numbers of an exact one, later 4 bytes a keyword of the largest attribute plus
// two tiles of it.
//
// Strings get provisional numbers as they are first seen and numbers stay numbers: both become keywords, which
// sort by value, only when everything is known. Postings are kept tile by tile, as columns of (value, object)
// in object order, because a tile and attribute is what is sorted, encoded and written at a time.
type Builder struct {
	schema  *Schema
	options BuilderOptions
	columns []column
	every   []uint16 // the ids of tiles with one value of each object, shared by them; nil before the first is closed

	objects uint32
	keys    *objectKeys // nil as long as every key is the default
	payload objectStrings
	text    objectStrings
	err     error // the first error of an Add without a result; EndObject and the writers return it
}

// NewBuilder begins an index. The schema is copied and stored in the file; it says nothing about the attributes to
// the builder, which takes what an encoder declares.
func NewBuilder(schema *Schema, attrs []AttributeSpec, options BuilderOptions) (*Builder, error) {
	if schema == nil {
		return nil, errors.New("a builder needs a schema")
	}
	if !nativeLittleEndian() {
		return nil, errors.New("building an index needs a little-endian machine")
	}
	b := &Builder{schema: schema.clone(), options: options, columns: make([]column, len(attrs))}
	if b.options.Workers <= 0 {
		b.options.Workers = runtime.GOMAXPROCS(0)
	}
	faults := []error{b.schema.Validate()}
	names := make(map[string]bool, len(attrs))
	for i, spec := range attrs {
		if spec.Type == Number {
			if spec.Edges == "" {
				spec.Edges = EqualWidth
			}
			if spec.Buckets == 0 {
				spec.Buckets = DefaultBuckets
			}
		}
		layout, err := parseLayout(spec.Layout)
		switch {
		case spec.Name == "" || len(spec.Name) > MaxNameBytes || !utf8.ValidString(spec.Name):
			err = fmt.Errorf("the name must be UTF-8 of 1 to %d bytes", MaxNameBytes)
		case names[spec.Name]:
			err = errors.New("declared twice")
		case spec.Type < Number || spec.Type > Ordinal:
			err = fmt.Errorf("unknown type %d", spec.Type)
		case spec.Type == Number && spec.Edges != EqualWidth && spec.Edges != EquiDepth && spec.Edges != Exact:
			err = fmt.Errorf("unknown edges %q", spec.Edges)
		case spec.Type == Number && (spec.Buckets < 1 || spec.Buckets > MaxBuckets):
			err = fmt.Errorf("%d buckets; must be 1 to %d", spec.Buckets, MaxBuckets)
		case layout == LayoutRare && spec.Type != Text:
			err = errNotRare
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("attribute %d %q: %w", i, spec.Name, err))
		}
		names[spec.Name] = true
		b.columns[i] = column{spec: spec, override: layout, low: math.Inf(1), high: math.Inf(-1)}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return b, nil
}

// AddString gives the object that is being built the keyword value of a Text attribute. The bytes are copied when
// the value is new. Adding a value twice makes it count twice.
func (b *Builder) AddString(attr int, value string) {
	c := &b.columns[attr]
	if c.spec.Type != Text {
		b.fail(fmt.Errorf("attribute %q is of type %v and takes no strings", c.spec.Name, c.spec.Type))
		return
	}
	id, ok := c.strings.intern(value)
	if !ok {
		b.fail(fmt.Errorf("attribute %q has more than 4 GiB of distinct values, the most that one index holds; "+
			"split the data into several indexes", c.spec.Name))
		return
	}
	c.values = append(c.values, id)
}

// AddNumber gives the object that is being built a value of a Number attribute. NaN and infinities are refused.
func (b *Builder) AddNumber(attr int, value float64) error {
	c := &b.columns[attr]
	if c.spec.Type != Number {
		return fmt.Errorf("attribute %q is of type %v and takes no numbers", c.spec.Name, c.spec.Type)
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("attribute %q: %v is not a finite number", c.spec.Name, value)
	}
	if value == 0 {
		value = 0 // -0 and 0 are one value
	}
	c.numbers = append(c.numbers, value)
	return nil
}

// AddOrdinal gives the object that is being built the keyword value of an Ordinal attribute.
func (b *Builder) AddOrdinal(attr int, value uint32) error {
	c := &b.columns[attr]
	if c.spec.Type != Ordinal {
		return fmt.Errorf("attribute %q is of type %v and takes no ordinals", c.spec.Name, c.spec.Type)
	}
	if value >= c.spec.Keywords {
		return fmt.Errorf("attribute %q: %d is not below its %d keywords", c.spec.Name, value, c.spec.Keywords)
	}
	c.values = append(c.values, value)
	return nil
}

// EndObject closes the object: it gets the next id, the values added since the last call, a key (empty: the
// decimal id), a payload (a JSON object, or nil) and a text (sequences). On an error, such as a *DuplicateKeyError, the
// object is dropped as by DiscardObject and the builder can go on without it; an error that is the whole
// index's comes again from every later call.
func (b *Builder) EndObject(key string, payload []byte, text string) error {
	err := b.err
	switch {
	case err != nil:
	case b.objects == MaxObjects:
		err = fmt.Errorf("an index holds at most %d objects; split the data into several indexes", uint32(MaxObjects))
	case !b.payload.fits(len(payload)):
		err = errors.New("payloads of 64,512 consecutive objects have more than 4 GiB together; store less")
	case !b.text.fits(len(text)):
		err = errors.New("texts of 64,512 consecutive objects have more than 4 GiB together; split the data into several indexes")
	}
	for i := range b.columns {
		switch c := &b.columns[i]; {
		case err != nil:
		case uint64(c.pending())+uint64(len(c.ids)) > math.MaxUint32:
			err = fmt.Errorf("attribute %q has more than 2^32 values in 64,512 consecutive objects", c.spec.Name)
		case c.override == LayoutSliced:
			if err = c.checkSliced(); err != nil {
				b.fail(err) // not the object is wrong but the schema
			}
		}
	}
	if err == nil {
		err = b.addKey(key)
	}
	if err != nil {
		b.DiscardObject()
		return err
	}
	local := uint16(b.objects % TileObjects)
	for i := range b.columns {
		b.columns[i].endObject(local)
	}
	b.payload.add(b.objects, unsafe.String(unsafe.SliceData(payload), len(payload))) // add copies
	b.text.add(b.objects, text)
	b.objects++
	if b.objects%TileObjects == 0 {
		b.sealTiles()
	}
	return nil
}

// DiscardObject drops the values added since the last EndObject, for a record that turns out bad half-way.
func (b *Builder) DiscardObject() {
	for i := range b.columns {
		b.columns[i].discard()
	}
}

// Objects returns the number of closed objects, which is the id of the next one.
func (b *Builder) Objects() int { return int(b.objects) }

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// addKey records the key of the next object. As long as no object has a key of its own nothing is kept; the first
// own key makes the decimal ids before it explicit, because from then on any two keys may collide.
func (b *Builder) addKey(key string) error {
	if b.keys == nil {
		if key == "" {
			return nil
		}
		keys := new(objectKeys)
		for id := range b.objects {
			if err := keys.add(id, strconv.FormatUint(uint64(id), 10)); err != nil {
				return err
			}
		}
		b.keys = keys
	}
	if key == "" {
		key = strconv.FormatUint(uint64(b.objects), 10)
	}
	return b.keys.add(b.objects, key)
}

// column holds the values of one attribute.
type column struct {
	spec     AttributeSpec
	override Layout
	strings  interner // Text

	// The open tile, in the order added; memory is reused from tile to tile. values (Text, Ordinal) or numbers
	// (Number) run ahead of ids by the values of the object that is being built.
	values  []uint32
	numbers []float64
	ids     []uint16
	tiles   []columnTile // the tiles before

	low, high    float64 // extremes of the numbers
	maxPerObject uint32
	postings     uint64
	objects      uint64
	discarded    bool // a value was dropped, so strings may hold one that nobody has
}

func (c *column) pending() int {
	return len(c.values) + len(c.numbers) - len(c.ids)
}

// checkSliced tells, of a column that the schema wants in LayoutSliced, that it cannot be, as far as the values added so far
// tell: not after all are in, when much time is lost.
func (c *column) checkSliced() error {
	if n := c.pending(); n > 1 {
		return fmt.Errorf("attribute %q has %d values in one object, layout sliced is for one; use layout auto in the schema", c.spec.Name, n)
	}
	// After a discarded value some of the strings may be no object's: layOut will know.
	if n := c.strings.strings.len(); n > MaxSlicedKeywords && !c.discarded {
		return tooManySliced(c.spec.Name, n)
	}
	return nil
}

func (c *column) endObject(local uint16) {
	n := c.pending()
	if n == 0 {
		return
	}
	for range n {
		c.ids = append(c.ids, local)
	}
	if c.spec.Type == Number {
		for _, v := range c.numbers[len(c.numbers)-n:] {
			c.low, c.high = min(c.low, v), max(c.high, v)
		}
	}
	c.maxPerObject = max(c.maxPerObject, uint32(n))
	c.postings += uint64(n)
	c.objects++
}

func (c *column) discard() {
	if c.pending() == 0 {
		return
	}
	c.discarded = true
	if c.spec.Type == Number {
		c.numbers = c.numbers[:len(c.ids)]
	} else {
		c.values = c.values[:len(c.ids)]
	}
}

// objectStrings holds one string an object, a table a tile; nothing as long as all are empty.
type objectStrings struct {
	sealed []stringTable
	open   stringTable
	used   bool // some string is not empty
}

func (o *objectStrings) fits(n int) bool { return o.open.fits(n) }

// add sets the string of object id, the objects being added in order.
func (o *objectStrings) add(id uint32, s string) {
	if !o.used {
		if s == "" {
			return
		}
		o.used = true
		for range id {
			o.push("")
		}
	}
	o.push(s)
}

func (o *objectStrings) push(s string) {
	o.open.add(s)
	if o.open.len() == TileObjects {
		o.sealed = append(o.sealed, o.open.clone())
		o.open.offsets, o.open.data = o.open.offsets[:0], o.open.data[:0]
	}
}

// tile returns the strings of tile t.
func (o *objectStrings) tile(t int) *stringTable {
	if t < len(o.sealed) {
		return &o.sealed[t]
	}
	return &o.open
}

// objectKeys holds one key an object and finds a key that comes again.
type objectKeys struct {
	strings objectStrings
	table   hashTable
}

func (k *objectKeys) add(id uint32, key string) error {
	hash := xxhash.Sum64String(key)
	for p := k.table.probe(hash); ; {
		other, ok := p.next()
		if !ok {
			break
		}
		if k.at(other) == key {
			return &DuplicateKeyError{Key: key, First: other, Second: id}
		}
	}
	if !k.strings.fits(len(key)) {
		return errors.New("keys of 64,512 consecutive objects have more than 4 GiB together; use shorter keys")
	}
	if n := int(id) + 1; n*4 > len(k.table)*3 {
		table := make(hashTable, hashSlots(n))
		for i := range id {
			table.insert(xxhash.Sum64String(k.at(i)), i)
		}
		k.table = table
	}
	k.strings.add(id, key)
	k.table.insert(hash, id)
	return nil
}

func (k *objectKeys) at(id uint32) string {
	return k.strings.tile(int(id / TileObjects)).at(id % TileObjects)
}

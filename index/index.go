package index

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// Index is one immutable inverted index, open for reading: for each tile of T = TileObjects consecutive objects and each
// attribute the postings of its keywords, and the position map that turns values into keywords.
//
// # What it is shaped by
//
// Matching counts, for one query at a time or many, how often the objects of a tile occur in the runs of postings that the
// query's items select. The counters of a tile are meant to stay on chip: in a core's cache, in a GPU's shared
// memory. Everything follows from that.
//
//   - Ids inside a tile need 16 bits, half of what a flat list takes, and need no decoding.
//   - Tiles are the unit of work, of load balancing (a long list is cut by them as the paper cuts it by length, section
//     III-B) and of the file, which is tile-major: any run of tiles is one contiguous copy to a device.
//   - Keywords of an attribute are numbered in the order of their values and lists lie in that order, so a range, however
//     wide, is one run a tile: the two ends are looked up, nothing between them.
//   - The directory that finds a run is two dependent loads for any vocabulary; see Postings. There is one way for a
//     value, a range and a set, and the host only maps values to keywords: finding runs can be the device's work.
//
// The position map is a stored hash table for equality and the sorted strings for ranges, both used where they lie in
// the file. Numbers have no table: their keyword is a binary search over at most a few thousand edges.
//
// Layouts other than plain postings join as section kinds of their own, chosen for each attribute: see Layout.
//
// # Guarantees
//
//   - Immutable and safe for any number of goroutines. Accessors take constant time, LowerBound and
//     Attribute.Bucket logarithmic, and none but KeywordName (and Key where keys are decimal ids) allocates.
//   - A file that opens is the file that was written: Open has compared the checksum of every section. It reads the whole
//     file anyway, because Version is a hash of the content, and checksums are cheap beside that.
//   - No file can make an accessor fail or read outside the file, whoever wrote it. What accessors rely on is
//     checked by Open for itself, checksums or not: the bounds of sections, that each tile and attribute has
//     exactly its sections, that offsets and starts ascend, that ranks are what the presence bits say, that every posting
//     is of an object that exists. Hash slots are checked when they are followed.
//   - Two builds of the same input are the same bytes, so equal input has an equal Version.
//
// What Open leaves to Validate can only make answers of this index wrong, not unsafe: the order of the strings, edges and
// lists, and the totals (a count bound that is too low lets a narrow counter overflow into its neighbour).
//
// # Who owns what
//
// The opener owns the Index and closes it when nobody uses it any more; the service counts the batches that do. Strings and
// slices that accessors return point into the map and die with it, except where a comment says copy. Attributes,
// Schema and all slices are the index's and must not be changed; the map is read-only, so that trying to
// ends the process.
type Index struct {
	data  []byte       // the whole file
	unmap func() error // nil for OpenBytes
	file  *mappedFile  // nil for OpenBytes

	sum          [sha256.Size]byte
	version      string
	headBytes    int64 // of header and section table,
	headCRC      uint32
	schema       *Schema
	sections     []Section
	objects      uint32
	attributes   []Attribute
	byName       map[string]int
	vocabularies []vocabulary // by attribute; empty unless Text
	postings     []Postings   // by tile x attributes + attribute; zero in LayoutSliced
	planes       []Planes     // the same; zero in other layouts
	codes        []Codes      // by attribute, of LayoutSliced
	rare         []Rare       // by attribute, of LayoutRare

	// By tile; nil when no object has one.
	keys, payloads, texts []stringTable
}

// vocabulary is the position map of a Text attribute: its keywords ascending and the table that finds them.
type vocabulary struct {
	keywords stringTable
	lookup   hashTable
}

// Schema returns the schema that the index was built by, with every default filled in. It must not be changed.
func (x *Index) Schema() *Schema { return x.schema }

// Version returns the first 16 hex digits of the file's SHA-256: it names the content.
func (x *Index) Version() string { return x.version }

// Size returns the bytes of the file.
func (x *Index) Size() int64 { return int64(len(x.data)) }

// Objects returns the number of objects; their ids are 0 to Objects-1.
func (x *Index) Objects() uint32 { return x.objects }

// Tiles returns the number of tiles; an index without objects has none.
func (x *Index) Tiles() int { return tilesOf(x.objects) }

func tilesOf(objects uint32) int {
	return int((uint64(objects) + TileObjects - 1) / TileObjects)
}

// TileLen returns the number of objects in a tile: TileObjects but for the last.
func (x *Index) TileLen(tile int) int {
	return min(TileObjects, int(x.objects)-tile*TileObjects)
}

// Attributes returns the attributes in schema order. The slice must not be changed.
func (x *Index) Attributes() []Attribute { return x.attributes }

// AttributeByName returns the position of an attribute in Attributes.
func (x *Index) AttributeByName(name string) (int, bool) {
	i, ok := x.byName[name]
	return i, ok
}

// Lookup returns the keyword of a value in a Text attribute; in attributes of other types it finds nothing. It
// takes constant time and allocates nothing.
func (x *Index) Lookup(attr int, value string) (kw uint32, ok bool) {
	w := &x.vocabularies[attr]
	return w.lookup.find(&w.keywords, value)
}

// LowerBound returns the first keyword of a Text attribute that is >= value in the order of the bytes, which in
// UTF-8 is the order of the code points; it is Attribute.Keywords when all are less.
func (x *Index) LowerBound(attr int, value string) uint32 {
	keywords := &x.vocabularies[attr].keywords
	lo, hi := uint32(0), uint32(keywords.len())
	for lo < hi {
		mid := lo + (hi-lo)/2
		if keywords.at(mid) < value {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// KeywordName returns a keyword in words: the value of a Text attribute (for n-grams see gramName), the interval or
// value of a Number attribute, the number of an Ordinal one. It is a copy, for people.
func (x *Index) KeywordName(attr int, kw uint32) string {
	a := &x.attributes[attr]
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	switch {
	case kw >= a.Keywords:
		return "none"
	case a.Type == Text && x.schema.Kind == Sequences:
		return gramName(x.vocabularies[attr].keywords.at(kw), x.schema.NGram)
	case a.Type == Text:
		return strings.Clone(x.vocabularies[attr].keywords.at(kw))
	case a.Type == Ordinal:
		return strconv.FormatUint(uint64(kw), 10)
	case a.Exact:
		return number(a.Values[kw])
	}
	low, high, end := a.Min, a.Max, "]"
	if kw > 0 {
		low = a.Edges[kw-1]
	}
	if int(kw) < len(a.Edges) {
		high, end = a.Edges[kw], ")"
	}
	return "[" + number(low) + ", " + number(high) + end
}

// Key returns the key of an object: the user's, or else the decimal id. It points into the map, like Text.
func (x *Index) Key(id uint32) string {
	if x.keys == nil || id >= x.objects {
		return strconv.FormatUint(uint64(id), 10)
	}
	return x.keys[id/TileObjects].at(id % TileObjects)
}

// Payload returns the payload of an object, a JSON object, or nil when it has none. It points into the map and must
// be neither changed nor kept after Close.
func (x *Index) Payload(id uint32) []byte {
	if x.payloads == nil || id >= x.objects {
		return nil
	}
	payload := x.payloads[id/TileObjects].bytes(id % TileObjects)
	if len(payload) == 0 {
		return nil
	}
	return payload
}

// Text returns the text of an object of a sequence index, "" in other indexes. It points into the map and must not be
// kept after Close.
func (x *Index) Text(id uint32) string {
	if x.texts == nil || id >= x.objects {
		return ""
	}
	return x.texts[id/TileObjects].at(id % TileObjects)
}

// Longest returns how many bytes the longest key, payload and text of an object have.
func (x *Index) Longest() (key, payload, text int) {
	longest := func(tables []stringTable) (n uint32) {
		for i := range tables {
			n = max(n, tables[i].longest)
		}
		return n
	}
	return int(longest(x.keys)), int(longest(x.payloads)), int(longest(x.texts))
}

// TextBytes is the size of all texts of a sequence index, 0 of other indexes.
func (x *Index) TextBytes() int64 {
	var bytes int64
	for i := range x.texts {
		bytes += int64(len(x.texts[i].data))
	}
	return bytes
}

// Postings returns the postings of an attribute in a tile as they are stored: in LayoutPostings of all keywords, in
// LayoutRare of the frequent ones by their numbers (Rare.Frequent), in LayoutSliced there are none and the value is zero.
// Decoder.Postings returns those of all keywords in any layout.
func (x *Index) Postings(tile, attr int) Postings {
	return x.postings[tile*len(x.attributes)+attr]
}

// Planes returns the planes of an attribute in LayoutSliced in a tile; zero in other layouts.
func (x *Index) Planes(tile, attr int) Planes {
	return x.planes[tile*len(x.attributes)+attr]
}

// Codes returns the codes of the keywords of an attribute in LayoutSliced; zero in other layouts.
func (x *Index) Codes(attr int) Codes { return x.codes[attr] }

// Rare returns the rare keywords of an attribute in LayoutRare; zero in other layouts.
func (x *Index) Rare(attr int) Rare { return x.rare[attr] }

// Sections returns a copy of the section table, in file order.
func (x *Index) Sections() []Section { return slices.Clone(x.sections) }

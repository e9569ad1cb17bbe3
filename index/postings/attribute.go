package postings

import (
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// Attribute describes one indexed attribute of an open index. Its keywords are numbered from 0 to
// Keywords-1 in the order of their values. All attributes together have at most 2^32-1 keywords.
type Attribute struct {
	Name     string
	Type     schema.AttributeType
	Layout   schema.Layout // how its postings are stored
	Keywords uint32        // number of keywords V
	// MaxPerObject is the most keywords, with repeats, that one object has in this attribute.
	MaxPerObject uint32
	// Distinct says that no object has a keyword twice. The file does not say so: who knows what the attribute is does; see Lists.SetDistinct.
	Distinct bool
	Postings uint64 // total postings
	Objects  uint64 // objects with at least one keyword here

	// Of Number attributes. Edges are the V-1 interior bucket edges, ascending: bucket(v) = number of edges <= v.
	// Exact attributes have one bucket a distinct value instead: Values lists the V values, ascending, and a
	// number that is not among them is unknown. Min and Max are the smallest and largest value in the data.
	// Without any value in the data V is 0 and there are no edges. Edges and Values point into the index.
	Edges    []float64
	Exact    bool
	Values   []float64
	Min, Max float64
}

// Bucket returns the keyword of the number v in a Number attribute: the number of edges <= v, or, in an exact
// attribute, the position of v among Values. It is false for a value that no keyword stands for: any value
// where the data have none, NaN, and in an exact attribute a value that is not in the data. A value outside
// the data falls into the first or last bucket.
func (a *Attribute) Bucket(v float64) (uint32, bool) {
	if a.Keywords == 0 || v != v {
		return 0, false
	}
	if a.Exact {
		i, found := slices.BinarySearch(a.Values, v)
		return uint32(i), found
	}
	return values.CountLE(a.Edges, v), true
}

// The attribute table: a head of the number of attributes and the bytes of an entry, the entries, the names.
const (
	attributeHead  = 8
	attributeBytes = 64
	attributeExact = 1 // flag
)

// attributeEntry is an entry as it lies in the file.
type attributeEntry struct {
	NameOffset, NameBytes  uint32
	Type                   schema.AttributeType
	Flags                  uint8
	Layout                 schema.Layout
	Codec, _               uint16 // 0: there are no others yet
	Keywords, MaxPerObject uint32
	Postings, Objects      uint64
	Min, Max               float64
	_                      uint64
}

func encodeAttributes(columns []finalColumn) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint32(nil, uint32(len(columns))), attributeBytes)
	var names []byte
	for i := range columns {
		a := &columns[i].attribute
		e := attributeEntry{
			NameOffset: uint32(len(names)), NameBytes: uint32(len(a.Name)), Type: a.Type, Layout: a.Layout,
			Keywords: a.Keywords, MaxPerObject: a.MaxPerObject, Postings: a.Postings, Objects: a.Objects, Min: a.Min, Max: a.Max,
		}
		if a.Exact {
			e.Flags = attributeExact
		}
		b, _ = binary.Append(b, le, &e) // fails for types without a size alone
		names = append(names, a.Name...)
	}
	return append(b, names...)
}

// decodeAttributes reads the table. Edges and Values come from their own sections.
func decodeAttributes(b []byte, count uint32) ([]Attribute, error) {
	le := binary.LittleEndian
	if len(b) < attributeHead || le.Uint32(b) != count || le.Uint32(b[4:]) != attributeBytes ||
		uint64(len(b)) < attributeHead+uint64(count)*attributeBytes {
		return nil, store.Corrupt("it does not hold %d attributes of %d bytes", count, attributeBytes)
	}
	names := b[attributeHead+int(count)*attributeBytes:]
	attributes := make([]Attribute, count)
	seen := make(map[string]bool, count)
	first := uint64(0)
	for i := range attributes {
		var e attributeEntry
		if _, err := binary.Decode(b[attributeHead+i*attributeBytes:], le, &e); err != nil {
			return nil, err
		}
		end := uint64(e.NameOffset) + uint64(e.NameBytes)
		if e.NameBytes == 0 || e.NameBytes > schema.MaxNameBytes || end > uint64(len(names)) {
			return nil, store.Corrupt("the name of attribute %d lies outside the table", i)
		}
		a := Attribute{
			Name: string(names[e.NameOffset:end]), Type: e.Type, Exact: e.Flags&attributeExact != 0, Layout: e.Layout,
			Keywords: e.Keywords, MaxPerObject: e.MaxPerObject, Postings: e.Postings, Objects: e.Objects, Min: e.Min, Max: e.Max,
		}
		switch {
		case !utf8.ValidString(a.Name) || seen[a.Name]:
			return nil, store.Corrupt("attribute %d: the name %q is not unique UTF-8", i, a.Name)
		case a.Type < schema.Number || a.Type > schema.Ordinal:
			return nil, store.Unsupported("attribute %q of type %d", a.Name, a.Type)
		case codecOf(a.Layout) == nil:
			return nil, store.Unsupported("attribute %q in %v", a.Name, a.Layout)
		case e.Codec != 0:
			return nil, store.Unsupported("attribute %q in codec %d", a.Name, e.Codec)
		case a.Exact && a.Type != schema.Number:
			return nil, store.Corrupt("attribute %q is exact but of type %v", a.Name, a.Type)
		}
		if err := codecOf(a.Layout).accepts(&a); err != nil {
			return nil, err
		}
		seen[a.Name] = true
		if first += uint64(a.Keywords); first > math.MaxUint32 {
			return nil, store.Corrupt("attributes up to %q have %d keywords", a.Name, first)
		}
		attributes[i] = a
	}
	return attributes, nil
}

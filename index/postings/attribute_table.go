package postings

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// The attribute table: a head of the number of attributes and the bytes of an entry, the entries, the names.
const (
	attributeHead  = 8
	attributeBytes = 64
	attributeExact = 1 // flag
)

func encodeAttributes(columns []finalColumn) []byte {
	le := binary.LittleEndian
	b := make([]byte, attributeHead+len(columns)*attributeBytes)
	le.PutUint32(b[0:], uint32(len(columns)))
	le.PutUint32(b[4:], attributeBytes)
	names := 0
	for i := range columns {
		a := &columns[i].attribute
		e := b[attributeHead+i*attributeBytes:]
		le.PutUint32(e[0:], uint32(names))
		le.PutUint32(e[4:], uint32(len(a.Name)))
		e[8] = byte(a.Type)
		if a.Exact {
			e[9] = attributeExact
		}
		le.PutUint16(e[10:], uint16(a.Layout))
		le.PutUint32(e[16:], a.Keywords)
		le.PutUint32(e[20:], a.MaxPerObject)
		le.PutUint64(e[24:], a.Postings)
		le.PutUint64(e[32:], a.Objects)
		le.PutUint64(e[40:], math.Float64bits(a.Min))
		le.PutUint64(e[48:], math.Float64bits(a.Max))
		names += len(a.Name)
	}
	for i := range columns {
		b = append(b, columns[i].attribute.Name...)
	}
	return b
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
		e := b[attributeHead+i*attributeBytes:]
		offset, length := uint64(le.Uint32(e[0:])), uint64(le.Uint32(e[4:]))
		if length == 0 || length > schema.MaxNameBytes || offset+length > uint64(len(names)) {
			return nil, store.Corrupt("the name of attribute %d lies outside the table", i)
		}
		a := Attribute{
			Name:         string(names[offset : offset+length]),
			Type:         schema.AttributeType(e[8]),
			Exact:        e[9]&attributeExact != 0,
			Layout:       schema.Layout(le.Uint16(e[10:])),
			First:        uint32(first),
			Keywords:     le.Uint32(e[16:]),
			MaxPerObject: le.Uint32(e[20:]),
			Postings:     le.Uint64(e[24:]),
			Objects:      le.Uint64(e[32:]),
			Min:          math.Float64frombits(le.Uint64(e[40:])),
			Max:          math.Float64frombits(le.Uint64(e[48:])),
		}
		codec := le.Uint16(e[12:])
		switch {
		case !utf8.ValidString(a.Name) || seen[a.Name]:
			return nil, store.Corrupt("attribute %d: the name %q is not unique UTF-8", i, a.Name)
		case a.Type < schema.Number || a.Type > schema.Ordinal:
			return nil, store.Unsupported("attribute %q of type %d", a.Name, a.Type)
		case codecOf(a.Layout) == nil:
			return nil, store.Unsupported("attribute %q in %v", a.Name, a.Layout)
		case codec != 0:
			return nil, store.Unsupported("attribute %q in codec %d", a.Name, codec)
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

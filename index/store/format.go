package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// The file is drawn byte by byte in docs/format.md; this file is its Go form. All numbers are little-endian, all
// sections start at multiples of 64, so that a mapped file is used in place.
const (
	magic         = "\x89GMQ\r\n\x1a\n" // not text, and damaged by any text-mode transfer
	formatVersion = 1
	headerBytes   = 128
	entryBytes    = 40
	alignment     = 64

	// noAttribute marks sections that do not belong to one attribute.
	noAttribute = ^uint32(0)
	// sectionRequired is the section flag that makes a reader refuse a file whose section kind it does not know.
	sectionRequired = 1

	// Feature bits that this version understands: none yet. A file with another required bit is refused.
	knownRequired uint64 = 0
)

// TileObjects is T, the number of consecutive object ids that form a tile: 63 x 1,024, so that a tile's ids fit
// 16 bits and its 8-bit counters fit 64 KiB with room for dummy counters.
const TileObjects = 64512

// MaxObjects is the largest number of objects of one index; ids are 32 bits.
const MaxObjects = 1<<32 - 1

// SectionKind says what a section of the file holds.
type SectionKind uint16

// SectionSchema is the schema, YAML. What the other kinds are, the families of structures say.
const SectionSchema SectionKind = 1

// SectionForm describes a kind of section.
type SectionForm struct {
	Kind SectionKind
	Name string // a word, for errors and inspect
	// PerAttribute and PerTile say what there is one section of the kind for, each: else it is one for the whole file.
	PerAttribute, PerTile bool
}

// header is the first headerBytes of the file.
type header struct {
	required, optional uint64 // feature bits
	objects            uint32
	attributes         uint32
	sections           uint32
	tableOffset        uint64
	fileBytes          uint64
	idBase             uint64 // id of the first object, for segments; 0 today
	tableCRC           uint32
}

// Section is an entry of the section table.
type Section struct {
	Kind      SectionKind
	Name      string // of the kind, in an open file
	Required  bool
	Attribute int // -1 when the section does not belong to one attribute
	Tile      int // first tile
	Tiles     int // number of tiles, 0 when the section does not belong to tiles
	Offset    int64
	Length    int64
	CRC       uint32 // CRC32C of its bytes
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// extend returns the checksum of what crc is the checksum of, followed by data.
func extend(crc uint32, data []byte) uint32 { return crc32.Update(crc, castagnoli, data) }

func Align(offset int64) int64 { return (offset + alignment - 1) &^ (alignment - 1) }

func (h *header) encode() []byte {
	b := make([]byte, headerBytes)
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], formatVersion)
	le.PutUint32(b[12:], headerBytes)
	le.PutUint64(b[16:], h.required)
	le.PutUint64(b[24:], h.optional)
	le.PutUint32(b[32:], TileObjects)
	le.PutUint32(b[36:], h.objects)
	le.PutUint32(b[40:], h.attributes)
	le.PutUint32(b[44:], h.sections)
	le.PutUint64(b[48:], h.tableOffset)
	le.PutUint64(b[56:], h.fileBytes)
	le.PutUint64(b[64:], h.idBase)
	le.PutUint32(b[120:], h.tableCRC)
	le.PutUint32(b[124:], checksum(b[:124]))
	return b
}

// decodeHeader checks everything that the header alone can tell about data, the whole file.
func decodeHeader(data []byte) (*header, error) {
	le := binary.LittleEndian
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with the magic bytes", ErrNotIndex)
	}
	if len(data) < headerBytes {
		return nil, Corrupt("the file has %d bytes, the header alone has %d: it was cut off", len(data), headerBytes)
	}
	if v := le.Uint32(data[8:]); v != formatVersion {
		return nil, &UnsupportedError{fmt.Sprintf("format version %d; this geniemq reads version %d", v, formatVersion)}
	}
	if want, got := le.Uint32(data[124:]), checksum(data[:124]); want != got {
		return nil, Corrupt("header checksum is %08x, should be %08x", got, want)
	}
	h := &header{
		required:    le.Uint64(data[16:]),
		optional:    le.Uint64(data[24:]),
		objects:     le.Uint32(data[36:]),
		attributes:  le.Uint32(data[40:]),
		sections:    le.Uint32(data[44:]),
		tableOffset: le.Uint64(data[48:]),
		fileBytes:   le.Uint64(data[56:]),
		idBase:      le.Uint64(data[64:]),
		tableCRC:    le.Uint32(data[120:]),
	}
	if n := le.Uint32(data[12:]); n != headerBytes {
		return nil, Corrupt("header length is %d, should be %d", n, headerBytes)
	}
	if unknown := h.required &^ knownRequired; unknown != 0 {
		return nil, &UnsupportedError{fmt.Sprintf("required feature bits %#x", unknown)}
	}
	if t := le.Uint32(data[32:]); t != TileObjects {
		return nil, &UnsupportedError{fmt.Sprintf("tiles of %d objects; this geniemq has tiles of %d", t, TileObjects)}
	}
	if h.idBase != 0 {
		return nil, &UnsupportedError{fmt.Sprintf("a segment with id base %d", h.idBase)}
	}
	if h.fileBytes != uint64(len(data)) {
		return nil, Corrupt("the file has %d bytes, its header says %d: it was cut off or changed", len(data), h.fileBytes)
	}
	return h, nil
}

func encodeSections(sections []Section) []byte {
	le := binary.LittleEndian
	b := make([]byte, len(sections)*entryBytes)
	for i, s := range sections {
		e := b[i*entryBytes:]
		le.PutUint16(e[0:], uint16(s.Kind))
		if s.Required {
			le.PutUint16(e[2:], sectionRequired)
		}
		le.PutUint32(e[4:], uint32(int32(s.Attribute)))
		le.PutUint32(e[8:], uint32(s.Tile))
		le.PutUint32(e[12:], uint32(s.Tiles))
		le.PutUint64(e[16:], uint64(s.Offset))
		le.PutUint64(e[24:], uint64(s.Length))
		le.PutUint32(e[32:], s.CRC)
	}
	return b
}

// decodeSections reads the section table and checks that the sections lie one after the other inside the file.
func decodeSections(h *header, data []byte, nameOf func(SectionKind) string) ([]Section, error) {
	size := uint64(len(data))
	table := uint64(h.sections) * entryBytes
	if h.tableOffset < headerBytes || h.tableOffset > size || table > size-h.tableOffset {
		return nil, Corrupt("the table of %d sections at offset %d lies outside the file", h.sections, h.tableOffset)
	}
	bytes := data[h.tableOffset : h.tableOffset+table]
	if got := checksum(bytes); got != h.tableCRC {
		return nil, Corrupt("section table checksum is %08x, should be %08x", got, h.tableCRC)
	}
	le := binary.LittleEndian
	sections := make([]Section, h.sections)
	end := h.tableOffset + table
	for i := range sections {
		e := bytes[i*entryBytes:]
		kind, attribute := SectionKind(le.Uint16(e)), le.Uint32(e[4:])
		offset, length := le.Uint64(e[16:]), le.Uint64(e[24:])
		if offset%alignment != 0 || offset < end || offset > size || length > size-offset {
			return nil, Corrupt("section %d (%v) at offset %d with %d bytes overlaps another or lies outside the file",
				i, nameOf(kind), offset, length)
		}
		end = offset + length
		s := Section{
			Kind:      kind,
			Name:      nameOf(kind),
			Required:  le.Uint16(e[2:])&sectionRequired != 0,
			Attribute: -1,
			Tile:      int(le.Uint32(e[8:])),
			Tiles:     int(le.Uint32(e[12:])),
			Offset:    int64(offset),
			Length:    int64(length),
			CRC:       le.Uint32(e[32:]),
		}
		if attribute != noAttribute {
			s.Attribute = int(attribute)
		}
		sections[i] = s
	}
	return sections, nil
}

// nativeLittleEndian is true where the file's numbers can be used in place.
func LittleEndian() bool {
	probe := uint16(1)
	return *(*byte)(unsafe.Pointer(&probe)) == 1
}

// number is what sections hold arrays of.
type number interface {
	uint16 | uint32 | uint64 | float64
}

// view returns data as an array of T in place. The data must be aligned and a multiple of T long, which
// the callers have checked: sections are 64-byte aligned and lengths are compared before.
func View[T number](data []byte) []T {
	var t T
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(t)))
}

// raw returns the bytes of an array in place.
func Raw[T number](array []T) []byte {
	var t T
	if len(array) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(t)))
}

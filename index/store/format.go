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
	// PerColumn: the same of columns, which the family that has the kind numbers; Section.Attribute is that number.
	PerColumn bool
}

// header is the first headerBytes of the file, as they lie there.
type header struct {
	Magic                                      [len(magic)]byte
	Version, HeaderBytes                       uint32
	Required, Optional                         uint64 // feature bits
	TileObjects, Objects, Attributes, Sections uint32
	TableOffset, FileBytes                     uint64
	IDBase                                     uint64 // id of the first object, for segments; 0 today
	_                                          [48]byte
	TableCRC, CRC                              uint32 // CRC is that of what comes before it
}

// entry is an entry of the section table, as it lies in the file.
type entry struct {
	Kind           SectionKind
	Flags          uint16
	Attribute      int32 // -1 when the section does not belong to one attribute
	Tile, Tiles    uint32
	Offset, Length uint64
	CRC, _         uint32
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

// encode fills in what is the same in every file, and the checksum.
func (h *header) encode() []byte {
	copy(h.Magic[:], magic)
	h.Version, h.HeaderBytes, h.TileObjects = formatVersion, headerBytes, TileObjects
	b, _ := binary.Append(nil, binary.LittleEndian, h) // fails for types without a size alone
	binary.LittleEndian.PutUint32(b[headerBytes-4:], checksum(b[:headerBytes-4]))
	return b
}

// decodeHeader checks everything that the header alone can tell about data, the whole file.
func decodeHeader(data []byte) (*header, error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with the magic bytes", ErrNotIndex)
	}
	h := new(header)
	if _, err := binary.Decode(data, binary.LittleEndian, h); err != nil {
		return nil, Corrupt("the file has %d bytes, the header alone has %d: it was cut off", len(data), headerBytes)
	}
	if h.Version == 0 {
		return nil, Corrupt("format version 0, which there never was")
	}
	if h.Version != formatVersion {
		return nil, Unsupported("format version %d; this geniemq reads version %d", h.Version, formatVersion)
	}
	if got := checksum(data[:headerBytes-4]); got != h.CRC {
		return nil, Corrupt("header checksum is %08x, should be %08x", got, h.CRC)
	}
	if h.HeaderBytes != headerBytes {
		return nil, Corrupt("header length is %d, should be %d", h.HeaderBytes, headerBytes)
	}
	if unknown := h.Required &^ knownRequired; unknown != 0 {
		return nil, Unsupported("required feature bits %#x", unknown)
	}
	if h.TileObjects != TileObjects {
		return nil, Unsupported("tiles of %d objects; this geniemq has tiles of %d", h.TileObjects, TileObjects)
	}
	if h.IDBase != 0 {
		return nil, Unsupported("a segment with id base %d", h.IDBase)
	}
	if h.FileBytes != uint64(len(data)) {
		return nil, Corrupt("the file has %d bytes, its header says %d: it was cut off or changed", len(data), h.FileBytes)
	}
	return h, nil
}

func encodeSections(sections []Section) []byte {
	var b []byte
	for _, s := range sections {
		e := entry{
			Kind: s.Kind, Attribute: int32(s.Attribute), Tile: uint32(s.Tile), Tiles: uint32(s.Tiles),
			Offset: uint64(s.Offset), Length: uint64(s.Length), CRC: s.CRC,
		}
		if s.Required {
			e.Flags = sectionRequired
		}
		b, _ = binary.Append(b, binary.LittleEndian, &e)
	}
	return b
}

// decodeSections reads the section table and checks that the sections lie one after the other inside the file.
func decodeSections(h *header, data []byte, nameOf func(SectionKind) string) ([]Section, error) {
	size := uint64(len(data))
	bytes := uint64(h.Sections) * entryBytes
	if h.TableOffset < headerBytes || h.TableOffset > size || bytes > size-h.TableOffset {
		return nil, Corrupt("the table of %d sections at offset %d lies outside the file", h.Sections, h.TableOffset)
	}
	table := data[h.TableOffset : h.TableOffset+bytes]
	if got := checksum(table); got != h.TableCRC {
		return nil, Corrupt("section table checksum is %08x, should be %08x", got, h.TableCRC)
	}
	sections := make([]Section, h.Sections)
	end := h.TableOffset + bytes
	for i := range sections {
		var e entry
		if _, err := binary.Decode(table[i*entryBytes:], binary.LittleEndian, &e); err != nil {
			return nil, err
		}
		if e.Offset%alignment != 0 || e.Offset < end || e.Offset > size || e.Length > size-e.Offset {
			return nil, Corrupt("section %d (%v) at offset %d with %d bytes overlaps another or lies outside the file",
				i, nameOf(e.Kind), e.Offset, e.Length)
		}
		end = e.Offset + e.Length
		sections[i] = Section{
			Kind: e.Kind, Name: nameOf(e.Kind), Required: e.Flags&sectionRequired != 0, Attribute: int(e.Attribute),
			Tile: int(e.Tile), Tiles: int(e.Tiles), Offset: int64(e.Offset), Length: int64(e.Length), CRC: e.CRC,
		}
	}
	return sections, nil
}

// LittleEndian is true where the file's numbers can be used in place.
func LittleEndian() bool {
	probe := uint16(1)
	return *(*byte)(unsafe.Pointer(&probe)) == 1
}

// number is what sections hold arrays of.
type number interface {
	~uint16 | uint32 | uint64 | float32 | float64
}

// View returns data as an array of T in place. The data must be aligned and a multiple of T long, which
// the callers have checked: sections are 64-byte aligned and lengths are compared before.
func View[T number](data []byte) []T {
	var t T
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(t)))
}

// Raw returns the bytes of an array in place.
func Raw[T number](array []T) []byte {
	var t T
	if len(array) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(t)))
}

package index

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sync/errgroup"
)

// Open maps an index file into memory and checks the header, the checksums of all sections and every structure that
// the accessors rely on; it reads the whole file once, which computing Version needs anyway. Errors wrap
// ErrNotIndex, *CorruptError or *UnsupportedError where these are the cause.
//
// A file that is being written to is refused with a *ChangedError. One that is changed in place while it is open makes what accessors
// return wrong and may make them panic: Unchanged tells. WriteFile never does that, because it replaces the name.
func Open(path string) (*Index, error) {
	x, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return x, nil
}

func openFile(path string) (*Index, error) {
	f, err := os.Open(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err // the path is in the message already
		}
		return nil, err
	}
	x, err := openMapped(path, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// openMapped opens a file, which is the index's then. It stays open, so that it can be asked whether it has changed.
func openMapped(path string, f *os.File) (*Index, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file", ErrNotIndex)
	case info.Size() == 0:
		return nil, fmt.Errorf("%w: it is empty", ErrNotIndex)
	}
	before, err := settled(f)
	if err != nil {
		return nil, err
	}
	data, err := mmap.Map(f, mmap.RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("map into memory: %w", err)
	}
	x, err := newIndex(data)
	after, lost := stateOf(f)
	if lost == nil && after.sameBytes(&before) && int64(len(data)) == before.size {
		if p := (*panicked)(nil); errors.As(err, &p) && inside(data, p.value) {
			err = errUnreadable
		}
	} else {
		err = errors.Join(lost, &ChangedError{path, "it was written to while it was being opened; open it when it is complete"})
	}
	if err = rethrown(err); err != nil {
		return nil, errors.Join(err, data.Unmap())
	}
	x.unmap = data.Unmap
	x.file = &mappedFile{path: path, file: f, data: data, sum: x.sum, last: 1, unverified: after != before}
	x.file.trust.Store(&trust{1, after})
	return x, nil
}

// OpenBytes opens an index that is in memory already, as Builder.Bytes returns it. The bytes must not be changed
// afterwards; they are copied only when they are not aligned to 8.
func OpenBytes(data []byte) (*Index, error) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
		aligned := raw(make([]uint64, len(data)/8+1))[:len(data)]
		copy(aligned, data)
		data = aligned
	}
	x, err := newIndex(data)
	if err = rethrown(err); err != nil {
		return nil, fmt.Errorf("open index in memory: %w", err)
	}
	return x, nil
}

// Close unmaps the file. Nothing that points into the map may be used afterwards, and no call may be running:
// the owner of the index sees to that. A second Close does nothing.
func (x *Index) Close() error {
	if x.unmap == nil {
		return nil
	}
	unmap := x.unmap
	x.unmap = nil
	return errors.Join(unmap(), x.file.file.Close())
}

// newIndex checks data and builds the accessors' tables over it. Sections are checked in parallel, and beside them
// the version is computed, which is what takes longest. A panic, which only data that change meanwhile can cause, is an
// error of type *panicked.
func newIndex(data []byte) (x *Index, err error) {
	err = catch(func() error {
		x, err = parse(data)
		return err
	})
	return x, err
}

// rethrown is err, unless that is a panic.
func rethrown(err error) error {
	if p := (*panicked)(nil); errors.As(err, &p) {
		p.again()
	}
	return err
}

func parse(data []byte) (*Index, error) {
	if !nativeLittleEndian() {
		return nil, errors.New("reading an index needs a little-endian machine")
	}
	h, err := decodeHeader(data)
	if err != nil {
		return nil, err
	}
	x := &Index{data: data, objects: h.objects}
	x.headBytes = int64(h.tableOffset) + int64(h.sections)*entryBytes
	if x.sections, err = decodeSections(h, data); err != nil {
		return nil, err
	}
	x.headCRC = checksum(data[:x.headBytes])
	if err := x.openDescription(h); err != nil {
		return nil, err
	}
	if err := x.allocate(); err != nil {
		return nil, err
	}

	var group errgroup.Group
	group.Go(func() error {
		return catch(func() error {
			x.sum = sha256.Sum256(data)
			return nil
		})
	})
	err = x.openSections(func(s *Section) bool { return s.Kind.opensFirst() })
	if err == nil {
		err = x.openSections(func(s *Section) bool { return !s.Kind.opensFirst() })
	}
	if err = errors.Join(err, group.Wait()); err != nil {
		return nil, err
	}
	x.version = hex.EncodeToString(x.sum[:8])
	return x, nil
}

// opensFirst is true of the sections that those of the tiles are checked against.
func (k SectionKind) opensFirst() bool { return k == SectionCodes || k == SectionRare }

// openSections opens the sections that are chosen, on all cores.
func (x *Index) openSections(chosen func(*Section) bool) error {
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for chunk := range slices.Chunk(x.sections, len(x.sections)/(4*workers)+1) {
		group.Go(func() error {
			return catch(func() error {
				for i := range chunk {
					if s := &chunk[i]; chosen(s) {
						if err := x.openSection(s); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// bytes returns the content of a section.
func (x *Index) bytes(s *Section) []byte {
	return x.data[s.Offset : s.Offset+s.Length : s.Offset+s.Length]
}

// openDescription reads the schema and the attribute table, which the other sections are checked against.
func (x *Index) openDescription(h *header) error {
	var schema, attributes *Section
	for i := range x.sections {
		switch s := &x.sections[i]; s.Kind {
		case SectionSchema:
			if schema != nil {
				return corrupt("there are two schema sections")
			}
			schema = s
		case SectionAttributes:
			if attributes != nil {
				return corrupt("there are two attributes sections")
			}
			attributes = s
		}
	}
	if schema == nil || attributes == nil {
		return corrupt("the schema or attributes section is missing")
	}
	for _, s := range []*Section{schema, attributes} {
		if err := x.checkCRC(s); err != nil {
			return err
		}
	}
	var err error
	if x.schema, err = ParseSchema(x.bytes(schema)); err != nil {
		return unsupported("a schema that this geniemq does not know: %v", err) // its checksum was right
	}
	if x.attributes, err = decodeAttributes(x.bytes(attributes), h.attributes); err != nil {
		return err
	}
	x.byName = make(map[string]int, len(x.attributes))
	for i := range x.attributes {
		x.byName[x.attributes[i].Name] = i
	}
	return nil
}

// slot identifies what a section is of; no two sections may share it.
type slot struct {
	kind      SectionKind
	attribute int
	tile      int
}

// allocate checks that the sections are exactly those that the attributes and objects call for, before anything is
// allocated by numbers that the file claims.
func (x *Index) allocate() error {
	tiles, found := x.Tiles(), make(map[slot]bool, len(x.sections))
	for i := range x.sections {
		s := &x.sections[i]
		perAttribute, perTile, known := s.Kind.shape()
		if !known {
			if s.Required {
				return unsupported("sections of %v", s.Kind)
			}
			continue
		}
		id := slot{s.Kind, s.Attribute, -1}
		if perTile {
			id.tile = s.Tile
			if s.Tiles != 1 || s.Tile >= tiles {
				return corrupt("section %d (%v) is of tiles %d to %d of %d", i, s.Kind, s.Tile, s.Tile+s.Tiles, tiles)
			}
		} else if s.Tiles != 0 {
			return corrupt("section %d (%v) belongs to a tile", i, s.Kind)
		}
		if perAttribute != (s.Attribute >= 0) || s.Attribute >= len(x.attributes) {
			return corrupt("section %d (%v) is of attribute %d of %d", i, s.Kind, s.Attribute, len(x.attributes))
		}
		if found[id] {
			return corrupt("section %d (%v) is there twice", i, s.Kind)
		}
		found[id] = true
	}

	need := func(kind SectionKind, attribute, tile int) error {
		id := slot{kind, attribute, tile}
		if !found[id] {
			return corrupt("the %v section of attribute %d, tile %d is missing", kind, attribute, tile)
		}
		delete(found, id)
		return nil
	}
	delete(found, slot{SectionSchema, -1, -1})
	delete(found, slot{SectionAttributes, -1, -1})
	for i := range x.attributes {
		a := &x.attributes[i]
		var missing error
		switch a.Type {
		case Text:
			missing = errors.Join(need(SectionStrings, i, -1), need(SectionLookup, i, -1))
		case Number:
			missing = need(SectionNumbers, i, -1)
		}
		if missing != nil {
			return missing
		}
		kind, whole := a.Layout.sections()
		if whole != 0 {
			if err := need(whole, i, -1); err != nil {
				return err
			}
		}
		for tile := range tiles {
			if err := need(kind, i, tile); err != nil {
				return err
			}
		}
	}
	for kind, strings := range map[SectionKind]*[]stringTable{
		SectionKeys: &x.keys, SectionPayloads: &x.payloads, SectionTexts: &x.texts,
	} {
		if !found[slot{kind, -1, 0}] {
			continue // when tiles have them all have them; others are left over below
		}
		for tile := range tiles {
			if err := need(kind, -1, tile); err != nil {
				return err
			}
		}
		*strings = make([]stringTable, tiles)
	}
	for id := range found {
		return corrupt("the %v section of attribute %d, tile %d belongs to nothing", id.kind, id.attribute, id.tile)
	}
	x.vocabularies = make([]vocabulary, len(x.attributes))
	x.postings = make([]Postings, tiles*len(x.attributes))
	x.planes = make([]Planes, tiles*len(x.attributes))
	x.codes = make([]Codes, len(x.attributes))
	x.rare = make([]Rare, len(x.attributes))
	return nil
}

// shape tells whether sections of a kind belong to an attribute and to a tile.
func (k SectionKind) shape() (perAttribute, perTile, known bool) {
	switch k {
	case SectionSchema, SectionAttributes:
		return false, false, true
	case SectionNumbers, SectionStrings, SectionLookup, SectionCodes, SectionRare:
		return true, false, true
	case SectionPostings, SectionPlanes:
		return true, true, true
	case SectionKeys, SectionPayloads, SectionTexts:
		return false, true, true
	}
	return false, false, false
}

func (x *Index) checkCRC(s *Section) error {
	if got := checksum(x.bytes(s)); got != s.CRC {
		return corrupt("the %v section at offset %d has checksum %08x, should be %08x", s.Kind, s.Offset, got, s.CRC)
	}
	return nil
}

// openSection checks a section and sets what the accessors read of it. Sections write to different places, so it may
// run for several at once.
func (x *Index) openSection(s *Section) error {
	if err := x.checkCRC(s); err != nil {
		return err
	}
	data := x.bytes(s)
	var err error
	switch s.Kind {
	case SectionNumbers:
		err = openNumbers(&x.attributes[s.Attribute], data)
	case SectionStrings:
		x.vocabularies[s.Attribute].keywords, err = decodeStrings(data, x.attributes[s.Attribute].Keywords)
	case SectionLookup:
		x.vocabularies[s.Attribute].lookup, err = openLookup(data)
	case SectionPostings:
		keywords := x.attributes[s.Attribute].Keywords
		if x.attributes[s.Attribute].Layout == LayoutRare {
			keywords = x.rare[s.Attribute].Frequent(keywords)
		}
		p := &x.postings[s.Tile*len(x.attributes)+s.Attribute]
		if *p, err = decodePostings(data, keywords); err == nil {
			err = p.checkObjects(x.TileLen(s.Tile))
		}
	case SectionPlanes:
		p := &x.planes[s.Tile*len(x.attributes)+s.Attribute]
		if *p, err = decodePlanes(data, x.codes[s.Attribute], x.TileLen(s.Tile)); err == nil {
			err = p.checkCodes(x.codes[s.Attribute].Len(), x.TileLen(s.Tile))
		}
	case SectionCodes:
		x.codes[s.Attribute], err = decodeCodes(data, x.attributes[s.Attribute].Keywords)
	case SectionRare:
		x.rare[s.Attribute], err = decodeRare(data, x.attributes[s.Attribute].Keywords, x.objects)
	case SectionKeys:
		x.keys[s.Tile], err = decodeStrings(data, uint32(x.TileLen(s.Tile)))
	case SectionPayloads:
		x.payloads[s.Tile], err = decodeStrings(data, uint32(x.TileLen(s.Tile)))
	case SectionTexts:
		x.texts[s.Tile], err = decodeStrings(data, uint32(x.TileLen(s.Tile)))
	}
	if err != nil {
		return fmt.Errorf("%v section at offset %d: %w", s.Kind, s.Offset, err)
	}
	return nil
}

// checkObjects checks that a tile's postings are of its objects. Engines have counters for these and no others, and no time to
// look: in a block of a GPU what lies behind the counters is read as addresses, and on the CPU counters that are not
// cleared with the tile's count for the next query, of any index.
func (p Postings) checkObjects(objects int) error {
	var a, b, c, d uint16 // four, so that they do not wait for each other
	ids := p.ids
	for ; len(ids) >= 4; ids = ids[4:] {
		a, b, c, d = max(a, ids[0]), max(b, ids[1]), max(c, ids[2]), max(d, ids[3])
	}
	for _, id := range ids {
		a = max(a, id)
	}
	if last := max(a, b, c, d); int(last) >= objects && len(p.ids) > 0 {
		return corrupt("a posting is of object %d of a tile of %d", last, objects)
	}
	return nil
}

// checkCodes checks a tile's planes: no code is above V, and the places of the last group without an object hold V. With the
// planes from the lowest up, "above V so far" stays where the bits are equal, and what differs decides.
func (p Planes) checkCodes(v, objects int) error {
	for group := 0; len(p.words) > group*p.planes*32; group++ {
		planes := p.words[group*p.planes*32:][:p.planes*32]
		for w := range 32 {
			above, other := uint32(0), uint32(0) // than V
			for plane := range p.planes {
				x := planes[32*plane+w]
				if v>>plane&1 != 0 {
					above &= x
					other |= ^x
				} else {
					above |= x
					other |= x
				}
			}
			if above != 0 {
				return corrupt("object %d has a code above %d", group*GroupObjects+32*w+bits.TrailingZeros32(above), v)
			}
			first := group*GroupObjects + 32*w
			if beyond := ^uint32(0) << max(0, min(32, objects-first)); other&beyond != 0 {
				return corrupt("object %d of a tile of %d has a code", first+bits.TrailingZeros32(other&beyond), objects)
			}
		}
	}
	return nil
}

// openNumbers sets the edges or values of a Number attribute; an attribute without values in the data has none.
func openNumbers(a *Attribute, data []byte) error {
	want := uint64(a.Keywords)
	if !a.Exact && want > 0 {
		want--
	}
	if uint64(len(data)) != 8*want {
		return corrupt("%d bytes; %d keywords need %d numbers", len(data), a.Keywords, want)
	}
	if a.Exact {
		a.Values = view[float64](data)
	} else {
		a.Edges = view[float64](data)
	}
	return nil
}

// openLookup checks what probing relies on: a power of two of slots, or none.
func openLookup(data []byte) (hashTable, error) {
	if slots := len(data) / 8; len(data)%8 != 0 || slots&(slots-1) != 0 {
		return nil, corrupt("%d bytes are no hash table", len(data))
	}
	return view[uint64](data), nil
}

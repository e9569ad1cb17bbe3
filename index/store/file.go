// Package store is the index file, whatever is in it: header, section table and checksums, string and hash tables, writing that leaves the old file
// or the new one, and telling whether a file that is mapped has changed. What the sections hold, the families of structures say. docs/format.md
// draws the file byte by byte.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sync/errgroup"
)

// File is an index file that is open for reading: a header and sections, each of a kind, of an attribute or a tile or of neither, with a
// checksum. What sections hold is their families' matter.
//
// # Guarantees
//
//   - Immutable and safe for any number of goroutines. Version is a hash of the content.
//   - A file that opens is the file that was written: the checksum of every section has been compared, also of those that nobody
//     reads. Opening reads the whole file anyway, because of the version, and checksums are cheap beside that.
//   - Sections lie within the file and do not overlap, each has the shape that its kind says, there are no two of the same
//     attribute and tile, and none is left over. Who opens a structure says which sections it needs before it allocates anything
//     by numbers that the file claims.
//
// # Who owns what
//
// The opener owns the File and closes it when nobody uses it any more. What Each and Bytes hand out points into the map and dies with it.
// The map is read-only, so that writing to it ends the process. Whether the file underneath is still what was opened, an Epoch
// tells; see mappedFile.
type File struct {
	data   []byte       // the whole file
	unmap  func() error // nil for OpenBytes
	mapped *mappedFile  // nil for OpenBytes

	sum       [sha256.Size]byte
	version   string
	header    *header
	headBytes int64 // of header and section table,
	headCRC   uint32
	sections  []Section
	forms     map[SectionKind]SectionForm
	found     map[slot]int  // sections of known kinds that nobody has needed yet; nil once the file is open
	checked   []atomic.Bool // sections whose checksum was compared while opening
	effort    Effort        // of opening
}

// slot identifies what a section is of; no two sections of a kind may share it.
type slot struct {
	kind      SectionKind
	attribute int
	tile      int
}

// Effort bounds what opening a file takes. The zero value takes what there is.
type Effort struct {
	// Workers is the number of goroutines that look at sections, beside one that computes the version. Default
	// runtime.GOMAXPROCS(0).
	Workers int
	// Given is asked now and then whether to go on. What it returns ends the opening, and is the error. Default: nothing does.
	Given func() error
}

func (e *Effort) given() error {
	if e.Given == nil {
		return nil
	}
	return e.Given()
}

// Open maps an index file into memory, checks the header and the section table and calls read, which opens the structures in it.
// Then it checks what read has not looked at. Errors wrap ErrNotIndex, *CorruptError or *UnsupportedError where these are the
// cause.
//
// A file that is being written to is refused with a *ChangedError. One that is changed in place while it is open makes what was
// read of it wrong and may make reading panic: Unchanged tells. WriteFile never does that, because it replaces the name.
func Open(path string, effort Effort, forms []SectionForm, read func(*File) error) (*File, error) {
	f, err := openFile(path, effort, forms, read)
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", path, err)
	}
	return f, nil
}

func openFile(path string, effort Effort, forms []SectionForm, read func(*File) error) (*File, error) {
	f, err := openRegular(path)
	if err != nil {
		if pathError, ok := errors.AsType[*os.PathError](err); ok {
			err = pathError.Err // the path is in the message already
		}
		return nil, err
	}
	x, err := openMapped(path, f, effort, forms, read)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// openRegular opens a regular file, or what a symbolic link to one stands for. All else is refused before it is opened: to open a named pipe waits for who
// writes to it, which no context ends, and to open a device may do something to it. What takes the file's place in between is not waited for either, and is
// refused once it is open.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := regular(info); err != nil {
		return nil, err
	}
	return openUnwaiting(path)
}

func regular(info os.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is not a regular file", ErrNotIndex)
	}
	return nil
}

// openMapped opens a file, which is the index's then. It stays open, so that it can be asked whether it has changed.
func openMapped(path string, f *os.File, effort Effort, forms []SectionForm, read func(*File) error) (*File, error) {
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
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
	x, err := newFile(data, effort, forms, read)
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
	x.mapped = &mappedFile{path: path, file: f, data: data, sum: x.sum, last: 1, unverified: after != before}
	x.mapped.trust.Store(&trust{1, after})
	return x, nil
}

// OpenBytes opens an index that is in memory already, as Memory returns it. The bytes must not be changed
// afterwards; they are copied only when they are not aligned to 8.
func OpenBytes(data []byte, forms []SectionForm, read func(*File) error) (*File, error) {
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
		aligned := Raw(make([]uint64, len(data)/8+1))[:len(data)]
		copy(aligned, data)
		data = aligned
	}
	x, err := newFile(data, Effort{}, forms, read)
	if err = rethrown(err); err != nil {
		return nil, fmt.Errorf("open index in memory: %w", err)
	}
	return x, nil
}

// Close unmaps the file. Nothing that points into the map may be used afterwards, and no call may be running:
// the owner sees to that. A second Close does nothing.
func (f *File) Close() error {
	if f.unmap == nil {
		return nil
	}
	unmap := f.unmap
	f.unmap = nil
	return errors.Join(unmap(), f.mapped.file.Close())
}

// newFile checks data and reads it. A panic, which only data that change meanwhile can cause, is an error of type *panicked.
func newFile(data []byte, effort Effort, forms []SectionForm, read func(*File) error) (f *File, err error) {
	err = catch(func() error {
		f, err = parse(data, effort, forms, read)
		return err
	})
	return f, err
}

// rethrown is err, unless that is a panic.
func rethrown(err error) error {
	if p := (*panicked)(nil); errors.As(err, &p) {
		p.again()
	}
	return err
}

// parse reads the file. The version, which is what takes longest, is computed beside the rest.
func parse(data []byte, effort Effort, forms []SectionForm, read func(*File) error) (*File, error) {
	if !LittleEndian() {
		return nil, errors.New("reading an index needs a little-endian machine")
	}
	h, err := decodeHeader(data)
	if err != nil {
		return nil, err
	}
	f := &File{data: data, header: h, effort: effort, forms: make(map[SectionKind]SectionForm, len(forms))}
	for _, form := range forms {
		f.forms[form.Kind] = form
	}
	f.headBytes = int64(h.TableOffset) + int64(h.Sections)*entryBytes
	if f.sections, err = decodeSections(h, data, f.nameOf); err != nil {
		return nil, err
	}
	f.checked = make([]atomic.Bool, len(f.sections))
	f.headCRC = checksum(data[:f.headBytes])
	if err := f.findSections(); err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.Go(func() error {
		return catch(f.hash)
	})
	if err = read(f); err == nil {
		err = f.checkRest()
	}
	if err = errors.Join(err, group.Wait()); err != nil {
		return nil, err
	}
	f.version = hex.EncodeToString(f.sum[:8])
	f.found, f.checked, f.effort = nil, nil, Effort{}
	return f, nil
}

// hash computes the checksum that the version is made of.
func (f *File) hash() error {
	const step = 16 << 20
	sum := sha256.New()
	for first := 0; first < len(f.data); first += step {
		if err := f.effort.given(); err != nil {
			return err
		}
		sum.Write(f.data[first:min(first+step, len(f.data))])
	}
	sum.Sum(f.sum[:0])
	return nil
}

// nameOf returns the name of a kind in words.
func (f *File) nameOf(kind SectionKind) string {
	if form, ok := f.forms[kind]; ok {
		return form.Name
	}
	return fmt.Sprintf("kind %d", uint16(kind))
}

// findSections checks that each section has the shape that its kind says, and that none is there twice. Sections of unknown kinds
// are passed over unless they are required.
func (f *File) findSections() error {
	tiles, attributes := f.Tiles(), f.AttributeCount()
	f.found = make(map[slot]int, len(f.sections))
	for i := range f.sections {
		s := &f.sections[i]
		form, known := f.forms[s.Kind]
		if !known {
			if s.Required {
				return Unsupported("sections of %v", s.Name)
			}
			continue
		}
		id := slot{s.Kind, s.Attribute, -1}
		if form.PerTile {
			id.tile = s.Tile
			if s.Tiles != 1 || s.Tile >= tiles {
				return Corrupt("section %d (%v) is of tiles %d to %d of %d", i, s.Name, s.Tile, s.Tile+s.Tiles, tiles)
			}
		} else if s.Tiles != 0 {
			return Corrupt("section %d (%v) belongs to a tile", i, s.Name)
		}
		if (form.PerAttribute || form.PerColumn) != (s.Attribute >= 0) || s.Attribute < -1 || form.PerAttribute && s.Attribute >= attributes {
			return Corrupt("section %d (%v) is of attribute %d of %d", i, s.Name, s.Attribute, attributes)
		}
		if _, twice := f.found[id]; twice {
			return Corrupt("section %d (%v) is there twice", i, s.Name)
		}
		f.found[id] = i
	}
	return nil
}

// Has says whether there is a section of a kind, an attribute and a tile, each -1 where the kind has none. Like the calls that follow
// it is for who opens a structure, while the file is being opened.
func (f *File) Has(kind SectionKind, attribute, tile int) bool {
	_, ok := f.found[slot{kind, attribute, tile}]
	return ok
}

// Holds says whether there are sections of a kind.
func (f *File) Holds(kind SectionKind) bool {
	return slices.ContainsFunc(f.sections, func(s Section) bool { return s.Kind == kind })
}

// Need says that a structure has a section, which is an error where the file does not. Sections that nobody needs make a file corrupt.
func (f *File) Need(kind SectionKind, attribute, tile int) error {
	id := slot{kind, attribute, tile}
	if _, ok := f.found[id]; !ok {
		return Corrupt("the %v section of attribute %d, tile %d is missing", f.nameOf(kind), attribute, tile)
	}
	delete(f.found, id)
	return nil
}

// Read returns the only section of a kind that belongs to no attribute and no tile, once its checksum is compared.
func (f *File) Read(kind SectionKind) ([]byte, error) {
	i, ok := f.found[slot{kind, -1, -1}]
	if !ok {
		return nil, f.Need(kind, -1, -1)
	}
	delete(f.found, slot{kind, -1, -1})
	return f.Bytes(&f.sections[i]), f.check(i)
}

// Each calls visit for the sections that are chosen, on as many cores as opening may have, once their checksum is compared. Errors of visit are
// wrapped with the section's place.
func (f *File) Each(chosen func(*Section) bool, visit func(s *Section, data []byte) error) error {
	var group errgroup.Group
	workers := f.effort.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	group.SetLimit(workers)
	stride := len(f.sections)/(4*workers) + 1
	for first := 0; first < len(f.sections); first += stride {
		group.Go(func() error {
			return catch(func() error {
				for i := first; i < min(first+stride, len(f.sections)); i++ {
					s := &f.sections[i]
					if !chosen(s) {
						continue
					}
					if err := f.effort.given(); err != nil {
						return err
					}
					if err := f.check(i); err != nil {
						return err
					}
					if err := visit(s, f.Bytes(s)); err != nil {
						return fmt.Errorf("%v section at offset %d: %w", s.Name, s.Offset, err)
					}
				}
				return nil
			})
		})
	}
	return group.Wait()
}

// checkRest checks what opening structures has left: sections that no structure has needed, and checksums that nobody has compared.
func (f *File) checkRest() error {
	for id := range f.found {
		return Corrupt("the %v section of attribute %d, tile %d belongs to nothing", f.nameOf(id.kind), id.attribute, id.tile)
	}
	for i := range f.sections {
		if !f.checked[i].Load() {
			if err := f.check(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// check compares the checksum of a section.
func (f *File) check(i int) error {
	s := &f.sections[i]
	if got := checksum(f.Bytes(s)); got != s.CRC {
		return Corrupt("the %v section at offset %d has checksum %08x, should be %08x", s.Name, s.Offset, got, s.CRC)
	}
	if f.checked != nil {
		f.checked[i].Store(true)
	}
	return nil
}

// Bytes returns the content of a section.
func (f *File) Bytes(s *Section) []byte {
	return f.data[s.Offset : s.Offset+s.Length : s.Offset+s.Length]
}

// Version returns the first 16 hex digits of the file's SHA-256: it names the content. It is empty while the file is being opened.
func (f *File) Version() string { return f.version }

// Size returns the bytes of the file.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Objects returns the number of objects; their ids are 0 to Objects-1.
func (f *File) Objects() uint32 { return f.header.Objects }

// Tiles returns the number of tiles; an index without objects has none.
func (f *File) Tiles() int { return TilesOf(f.header.Objects) }

// TilesOf returns the number of tiles of so many objects.
func TilesOf(objects uint32) int {
	return int((uint64(objects) + TileObjects - 1) / TileObjects)
}

// TileLen returns the number of objects in a tile: TileObjects but for the last.
func (f *File) TileLen(tile int) int {
	return min(TileObjects, int(f.header.Objects)-tile*TileObjects)
}

// AttributeCount returns the number of attributes that sections may belong to.
func (f *File) AttributeCount() int { return int(f.header.Attributes) }

// Sections returns a copy of the section table, in file order.
func (f *File) Sections() []Section { return slices.Clone(f.sections) }

package postings

import (
	"fmt"
	mathbits "math/bits"
	"slices"

	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/bits"
)

// LayoutSliced stores what object has which keyword as a number per object instead of a list per keyword, bit by bit in
// planes. It is for attributes with at most one keyword per object: an object then takes P = bits.Len(V) bits for V
// keywords, whatever their frequencies, where a posting takes 16. An engine that asks the same objects for many keywords
// decodes 32 of them at a time, and needs no list at all.
//
// Only keywords that occur are numbered, densely and in order: the codes 0 to V-1. Code V says that an object has no
// keyword, as do the objects that fill up the last group. Codes finds the code of a keyword as Postings finds a list,
// so that a span of keywords is a range of codes.

const (
	// GroupObjects is the number of consecutive objects whose planes lie together: 32 words of 32 bits per plane.
	GroupObjects = bits.Group
	// MaxSlicedKeywords bounds the keywords of a sliced attribute that occur, V.
	MaxSlicedKeywords = 1 << 14

	planeBytes = GroupObjects / 8
)

// Planes are the codes of the objects of one tile in one attribute, in LayoutSliced. For each group of 1,024
// consecutive objects they hold P planes of 32 words: bit b of word w of plane p is bit p of the code of object
// 1024 group + 32 w + b. The zero value has no planes: every code is 0, which is V. Open has checked that no code is above V.
type Planes struct {
	words  []uint32
	planes int
}

// Words returns the words of all planes, [group][plane][32], as they lie in the file. They must not be changed.
func (p Planes) Words() []uint32 { return p.words }

// Planes returns P, the number of planes; 0 where no object has a keyword.
func (p Planes) Planes() int { return p.planes }

// Codes turn the keywords of one attribute in LayoutSliced into codes, and tell how many objects have them. They are
// the directory of Postings over the whole index, without ids.
type Codes struct {
	directory
}

// Len returns V, the number of keywords that occur, which is the code of objects without a keyword.
func (c Codes) Len() int { return c.Lists() }

// Of returns how many keywords that occur come before keyword, at most Attribute.Keywords: its code if it occurs.
// The keywords [lo, hi) are the codes [Of(lo), Of(hi)).
func (c Codes) Of(keyword uint32) uint32 { return rank(c.words, keyword) }

// Before returns how many objects have a code below code, at most V: Before(hi) - Before(lo) have one of [lo, hi).
func (c Codes) Before(code uint32) uint64 { return uint64(c.starts[code]) }

// Arrays returns the directory words and the starts as they lie in the file, for a device to copy. They must not be
// changed.
func (c Codes) Arrays() (words []uint64, starts []uint32) { return c.words, c.starts }

func groupsOf(objects int) int { return (objects + GroupObjects - 1) / GroupObjects }

// codeTable is what encoding an attribute in LayoutSliced needs.
type codeTable struct {
	of     []uint16 // by keyword; of the keywords that occur
	absent uint16   // V
}

// prepareSliced numbers the keywords of a column that occur.
func prepareSliced(f *finalColumn, _ int) error {
	used, of := 0, make([]uint16, len(f.frequencies))
	for keyword, frequency := range f.frequencies {
		if frequency.postings > 0 {
			of[keyword] = uint16(used)
			used++
		}
	}
	if used > MaxSlicedKeywords {
		return tooManySliced(f.attribute.Name, used)
	}
	f.codes = codeTable{of, uint16(used)}
	return nil
}

func tooManySliced(name string, values int) error {
	return fmt.Errorf("attribute %q has %d values, layout sliced is for at most %d; use layout auto in the schema", name, values, MaxSlicedKeywords)
}

// encodeCodes returns the section of the keywords that occur: a directory, over the whole index.
func encodeCodes(f *finalColumn, _ int) []byte {
	lengths := make([]uint32, len(f.frequencies))
	for keyword, frequency := range f.frequencies {
		lengths[keyword] = uint32(frequency.postings) // at most one per object
	}
	keywords, lists := f.attribute.Keywords, int(f.codes.absent)
	size := directoryBytes(keywords, lists)
	section := store.Raw(make([]uint64, (size+7)/8))[:size]
	d, _ := newDirectory(section, keywords, lists, int(f.attribute.Postings))
	d.lay(lengths)
	return section
}

// encodePlanes is LayoutSliced of a tile of so many objects.
func encodePlanes(e *tileEncoder, f *finalColumn, objects int) int {
	codes := f.codes
	planes := mathbits.Len16(codes.absent)
	size := groupsOf(objects) * planes * planeBytes
	out := e.grow(size)
	var low, high [GroupObjects]byte // of the codes of a group
	next := 0
	for group := 0; len(out) > 0; group++ {
		for i := range low {
			low[i], high[i] = byte(codes.absent), byte(codes.absent>>8)
		}
		first := group * GroupObjects
		for ; next < len(e.ids) && int(e.ids[next]) < first+GroupObjects; next++ {
			code := codes.of[e.keywords[next]]
			at := int(e.ids[next]) - first
			low[at], high[at] = byte(code), byte(code>>8)
		}
		bits.Slice(out[:min(planes, 8)*planeBytes], &low)
		if planes > 8 {
			bits.Slice(out[8*planeBytes:planes*planeBytes], &high)
		}
		out = out[planes*planeBytes:]
	}
	return size
}

// decodePlanes reads a section of planes of a tile with so many objects. Any bits are codes: those are left to checkCodes.
func decodePlanes(section []byte, codes Codes, objects int) (Planes, error) {
	planes := mathbits.Len(uint(codes.Len()))
	if want := groupsOf(objects) * planes * planeBytes; len(section) != want {
		return Planes{}, store.Corrupt("%d bytes; %d planes of %d objects need %d", len(section), planes, objects, want)
	}
	return Planes{words: store.View[uint32](section), planes: planes}, nil
}

// decodeCodes reads a codes section and checks everything that Codes and Planes rely on.
func decodeCodes(section []byte, keywords uint32) (Codes, error) {
	d, rest, err := decodeDirectory(section, keywords)
	switch {
	case err != nil:
		return Codes{}, err
	case len(rest) != 0:
		return Codes{}, store.Corrupt("%d bytes follow the directory", len(rest))
	case d.Lists() > MaxSlicedKeywords:
		return Codes{}, store.Corrupt("%d keywords occur, in this layout at most %d", d.Lists(), MaxSlicedKeywords)
	}
	return Codes{d}, nil
}

// acceptsSliced checks an entry of the attribute table.
func acceptsSliced(a *Attribute) error {
	if a.MaxPerObject > 1 {
		return store.Corrupt("attribute %q is sliced and has up to %d keywords per object", a.Name, a.MaxPerObject)
	}
	return nil
}

func openCodes(x *Lists, attr int, section []byte) (err error) {
	x.codes[attr], err = decodeCodes(section, x.attributes[attr].Keywords)
	return err
}

func openPlanes(x *Lists, tile, attr int, section []byte) (err error) {
	p := &x.planes[tile*len(x.attributes)+attr]
	if *p, err = decodePlanes(section, x.codes[attr], x.TileLen(tile)); err != nil {
		return err
	}
	return p.checkCodes(x.codes[attr].Len(), x.TileLen(tile))
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
				return store.Corrupt("object %d has a code above %d", group*GroupObjects+32*w+mathbits.TrailingZeros32(above), v)
			}
			first := group*GroupObjects + 32*w
			if beyond := ^uint32(0) << max(0, min(32, objects-first)); other&beyond != 0 {
				return store.Corrupt("object %d of a tile of %d has a code", first+mathbits.TrailingZeros32(other&beyond), objects)
			}
		}
	}
	return nil
}

// decodeSliced turns planes into postings.
func decodeSliced(d *Decoder, x *Lists, tile, attr int) Postings {
	return d.sliced(x.Planes(tile, attr), x.codes[attr], x.TileLen(tile))
}

// sliced sorts the objects of a tile by their codes. Code V means no keyword: it sorts last and is cut off.
func (d *Decoder) sliced(p Planes, c Codes, objects int) Postings {
	d.low = slices.Grow(d.low[:0], store.TileObjects)[:store.TileObjects]
	d.ids = slices.Grow(d.ids[:0], store.TileObjects)[:store.TileObjects]
	d.next = slices.Grow(d.next[:0], 1<<p.planes)[:1<<p.planes]
	clear(d.next)
	wide, bytes := p.planes > 8, store.Raw(p.words)
	if wide {
		d.codes = slices.Grow(d.codes[:0], store.TileObjects)[:store.TileObjects]
	}
	var high [GroupObjects]byte
	for group := range groupsOf(objects) {
		planes := bytes[group*p.planes*planeBytes:][:p.planes*planeBytes]
		low := (*[GroupObjects]byte)(d.low[group*GroupObjects:])
		bits.Join(low, planes[:min(p.planes, 8)*planeBytes])
		if wide {
			bits.Join(&high, planes[8*planeBytes:])
			for i, code := range high {
				d.codes[group*GroupObjects+i] = uint16(low[i]) | uint16(code)<<8
			}
		}
	}
	if wide {
		return sortCodes(d, c, d.codes[:objects])
	}
	return sortCodes(d, c, d.low[:objects])
}

func sortCodes[T uint8 | uint16](d *Decoder, c Codes, codes []T) Postings {
	for _, code := range codes {
		d.next[code]++
	}
	v := c.Len()
	d.words = slices.Grow(d.words[:0], len(c.words))[:len(c.words)]
	d.starts = slices.Grow(d.starts[:0], v+1)[:v+1]
	code, list, start := uint32(0), uint32(0), uint32(0)
	for w, word := range c.words {
		out := uint64(list) << 32
		for present := uint32(word); present != 0; present &= present - 1 {
			if n := d.next[code]; n > 0 {
				out |= uint64(present & -present)
				d.starts[list] = start
				list++
				d.next[code] = start
				start += n
			}
			code++
		}
		d.words[w] = out
	}
	d.starts[list] = start
	end := start
	for code := v; code < len(d.next); code++ {
		n := d.next[code]
		d.next[code] = end
		end += n
	}
	next, ids := d.next, d.ids
	for object, code := range codes {
		at := next[code]
		ids[at] = uint16(object)
		next[code] = at + 1
	}
	return Postings{directory{d.words, d.starts[:list+1]}, d.ids[:start]}
}

func workOfPlanes(x *Lists, tile, _ int) uint64 { return uint64(x.TileLen(tile)) }

// describeSliced adds an attribute in LayoutSliced to its statistics.
func describeSliced(x *Lists, attr int, s *ListStatistics, lengths []uint64) {
	for tile := range x.Tiles() {
		s.PostingsBytes += 4 * int64(len(x.Planes(tile, attr).words))
	}
	starts, code := x.codes[attr].starts, 0
	eachBit(x.codes[attr].words, func(keyword uint32) {
		lengths[keyword] = uint64(starts[code+1] - starts[code])
		code++
	})
}

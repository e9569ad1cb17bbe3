package forward

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"github.com/geniemq/geniemq/index/store"
)

// storedTile is the rows of a tile's objects: their values of the columns that are returned and not kept otherwise. Rows lie in blocks
// that are compressed one by one. marks tell of each object in which: bit i of a mark is set where its i-th object begins a block, and
// the mark knows how many blocks began before.
type storedTile struct {
	marks  []uint64 // of each 64 objects two: the bits, and the blocks before
	blocks []blockPlace
	data   []byte
}

// blockPlace is where a block lies, compressed, and what it holds.
type blockPlace struct {
	offset, length uint64
	raw            uint32 // its bytes when decoded
	first          uint32 // its first object in the tile
}

const (
	// blockBytes is what a block holds at least, decoded, if another one follows.
	blockBytes = 4 << 10
	// maxBlock bounds a block, decoded: who wrote the file could otherwise make a reader allocate what there is not.
	maxBlock = 64 << 20
	// maxRow bounds the row of one object.
	maxRow = maxBlock - 2*blockBytes

	storedHead = 8
	storedMark = 16
	blockEntry = 16
)

func decodeStored(section []byte, n int) (t storedTile, err error) {
	marks := storedMark * ((n + 63) / 64)
	if len(section) < storedHead+marks {
		return t, store.Corrupt("%d bytes cannot hold the rows of %d objects", len(section), n)
	}
	le := binary.LittleEndian
	blocks := le.Uint64(section)
	t.marks = store.View[uint64](section[storedHead : storedHead+marks])
	rest := section[storedHead+marks:]
	if blocks == 0 || blocks > uint64(n) || blocks*blockEntry > uint64(len(rest)) {
		return t, store.Corrupt("%d blocks of rows of %d objects in %d bytes", blocks, n, len(section))
	}
	t.data = rest[blocks*blockEntry:]
	t.blocks = make([]blockPlace, blocks)
	offset := uint64(0)
	for i := range t.blocks {
		e := rest[blockEntry*i:]
		b := &t.blocks[i]
		*b = blockPlace{offset: offset, length: uint64(le.Uint32(e)), raw: le.Uint32(e[4:]), first: le.Uint32(e[8:])}
		if offset += b.length; offset > uint64(len(t.data)) || b.raw > maxBlock {
			return t, store.Corrupt("block %d of rows ends at %d of %d bytes and has %d decoded", i, offset, len(t.data), b.raw)
		}
	}
	if offset != uint64(len(t.data)) {
		return t, store.Corrupt("blocks of rows end at %d of %d bytes", offset, len(t.data))
	}
	return t, t.checkMarks(n)
}

// checkMarks checks that each object is in the block that begins last before it.
func (t *storedTile) checkMarks(n int) error {
	if t.marks[0]&1 == 0 {
		return store.Corrupt("the first object of a tile begins no block of rows")
	}
	block := uint64(0)
	for i := 0; i < len(t.marks); i += 2 {
		if t.marks[i+1] != block {
			return store.Corrupt("%d blocks of rows begin before object %d of the tile, not %d", block, 32*i, t.marks[i+1])
		}
		for mask := t.marks[i]; mask != 0; mask &= mask - 1 {
			object := 32*i + bits.TrailingZeros64(mask)
			if block >= uint64(len(t.blocks)) || uint64(t.blocks[block].first) != uint64(object) || object >= n {
				return store.Corrupt("object %d of the tile begins no block of rows", object)
			}
			block++
		}
	}
	if block != uint64(len(t.blocks)) {
		return store.Corrupt("%d of %d blocks of rows begin", block, len(t.blocks))
	}
	return nil
}

// block returns the number of the block that has the i-th object of the tile.
func (t *storedTile) block(i uint32) uint32 {
	mark := t.marks[2*(i/64):]
	return uint32(mark[1]) + uint32(bits.OnesCount64(mark[0]<<(63-i%64))) - 1
}

// Reader reads what is returned with hits. It keeps the blocks that it has decoded last, and its memory; it is for one goroutine at a
// time, and for a Forward as long as that is open.
type Reader struct {
	forward *Forward
	decoder *zstd.Decoder
	blocks  [readerBlocks]decodedBlock
}

// readerBlocks is how many blocks a Reader keeps.
const readerBlocks = 8

// keptBlock bounds the blocks that a Reader keeps: larger ones are of one large row.
const keptBlock = 64 << 10

type decodedBlock struct {
	id     uint64 // 1 + its number, among those of all tiles; 0: none
	data   []byte
	memory []byte // that data is in
}

// NewReader returns a Reader.
func (x *Forward) NewReader() *Reader { return &Reader{forward: x} }

// StoredRow is the stored values of one object.
type StoredRow struct {
	forward *Forward
	data    []byte
}

// errBlock is why a block cannot be read.
var errBlock = errors.New("a block of rows cannot be decoded")

// Row returns the stored row of an object, good until the next call. A row that cannot be read, as in a file that was made on purpose,
// has no values.
func (r *Reader) Row(id uint32) StoredRow {
	x := r.forward
	tile, local := int(id/store.TileObjects), id%store.TileObjects
	if x.stored == nil || id >= x.file.Objects() {
		return StoredRow{}
	}
	t := &x.stored[tile]
	block := t.block(local)
	data, err := r.block(tile, t, block)
	if err != nil {
		return StoredRow{}
	}
	for i := t.blocks[block].first; ; i++ {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width) {
			return StoredRow{}
		}
		if i == local {
			return StoredRow{x, data[width : width+int(n)]}
		}
		data = data[width+int(n):]
	}
}

// block returns a decoded block.
func (r *Reader) block(tile int, t *storedTile, block uint32) ([]byte, error) {
	id := uint64(tile)*store.TileObjects + uint64(block) + 1
	kept := &r.blocks[id%readerBlocks]
	if kept.id == id {
		return kept.data, nil
	}
	if r.decoder == nil {
		var err error
		if r.decoder, err = newDecoder(); err != nil {
			return nil, err
		}
	}
	if t.blocks[block].raw > keptBlock {
		return t.decode(r.decoder, block, nil)
	}
	kept.id = 0
	if raw := int(t.blocks[block].raw); cap(kept.memory) < raw {
		kept.memory = make([]byte, 0, max(raw, 2*blockBytes))
	}
	data, err := t.decode(r.decoder, block, kept.memory)
	if err != nil {
		return nil, err
	}
	kept.id, kept.data = id, data
	return data, nil
}

func newDecoder() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlock),
		zstd.WithDecodeAllCapLimit(true))
}

// decode decodes a block into the memory of dst.
func (t *storedTile) decode(decoder *zstd.Decoder, block uint32, dst []byte) ([]byte, error) {
	b := &t.blocks[block]
	if cap(dst) < int(b.raw) {
		dst = make([]byte, 0, b.raw)
	}
	dst, err := decoder.DecodeAll(t.data[b.offset:b.offset+b.length], dst[:0:b.raw])
	if err == nil && len(dst) != int(b.raw) {
		err = errBlock
	}
	return dst, err
}

// Value returns the JSON of a stored column in the row, nil where it has none. Columns that are kept otherwise have none: see
// Reader.AppendJSON.
func (w StoredRow) Value(column *Column) []byte {
	if w.forward == nil {
		return nil
	}
	data := w.data
	for _, i := range w.forward.rows {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width)+1 {
			return nil
		}
		data = data[width:]
		if &w.forward.columns[i] == column {
			if n == 0 {
				return nil
			}
			return data[: n-1 : n-1]
		}
		if n > 0 {
			data = data[n-1:]
		}
	}
	return nil
}

// verify decodes all blocks and compares what they hold.
func (t *storedTile) verify(n, columns int) error {
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	defer decoder.Close()
	var data []byte
	for i := range t.blocks {
		end := n
		if i+1 < len(t.blocks) {
			end = int(t.blocks[i+1].first)
		}
		if data, err = t.decode(decoder, uint32(i), data); err != nil {
			return store.Corrupt("block %d of rows: %v", i, err)
		}
		if !soundRows(data, end-int(t.blocks[i].first), columns) {
			return store.Corrupt("block %d of rows does not hold rows of %d objects", i, end-int(t.blocks[i].first))
		}
	}
	return nil
}

// soundRows says whether data is so many rows of so many columns.
func soundRows(data []byte, rows, columns int) bool {
	for range rows {
		n, width := binary.Uvarint(data)
		if width <= 0 || n > uint64(len(data)-width) {
			return false
		}
		row := data[width : width+int(n)]
		data = data[width+int(n):]
		for range columns {
			n, width := binary.Uvarint(row)
			if width <= 0 || n > uint64(len(row)-width)+1 {
				return false
			}
			row = row[width+max(0, int(n)-1):]
		}
		if len(row) > 0 {
			return false
		}
	}
	return len(data) == 0
}

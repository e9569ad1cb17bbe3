package forward

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/geniemq/geniemq/index/schema"
)

// storedBuilder collects rows. Blocks are compressed beside, by as many goroutines as there are workers, each of which ends with its block; a
// tile waits for its blocks.
type storedBuilder struct {
	columns []int // of the schema, whose values are stored in rows
	encoder *zstd.Encoder
	seats   chan struct{} // of goroutines that compress

	row, raw []byte
	objects  uint32      // of the tile
	first    uint32      // of the open block
	marks    []uint64    // bits only
	blocks   []*rawBlock // of the tile
	running  sync.WaitGroup
	held     int     // bytes of rows whose blocks are in memory
	early    []piece // blocks that no longer are
}

// rawBlock is a block on its way: its rows, then what they are compressed, then only how long that is.
type rawBlock struct {
	data               []byte
	packed, raw, first uint32
}

func newStoredBuilder(columns []int, workers int) (*storedBuilder, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true))
	return &storedBuilder{columns: columns, encoder: encoder, seats: make(chan struct{}, workers)}, err
}

func (b *storedBuilder) add(all []schema.Values) error {
	row := b.row[:0]
	for _, i := range b.columns {
		value := all[i].JSON
		if len(value) == 0 {
			row = append(row, 0)
			continue
		}
		row = binary.AppendUvarint(row, uint64(len(value))+1)
		row = append(row, value...)
	}
	b.row = row
	if len(row) > maxRow {
		return errors.New("what is stored of one object has more than 63 MiB; store less")
	}
	if b.objects%64 == 0 {
		b.marks = append(b.marks, 0)
	}
	if len(b.raw) == 0 {
		b.first = b.objects
		b.marks[b.objects/64] |= 1 << (b.objects % 64)
	}
	b.raw = binary.AppendUvarint(b.raw, uint64(len(row)))
	b.raw = append(b.raw, row...)
	b.objects++
	if len(b.raw) >= blockBytes {
		b.closeBlock()
	}
	if cap(b.row) > maxBlock/16 {
		b.row = nil
	}
	return nil
}

// closeBlock hands the open block on.
func (b *storedBuilder) closeBlock() {
	if len(b.raw) == 0 {
		return
	}
	block := b.open()
	b.blocks = append(b.blocks, block)
	b.held += len(b.raw)
	b.raw = make([]byte, 0, 2*blockBytes)
	b.seats <- struct{}{}
	b.running.Go(func() {
		defer func() { <-b.seats }()
		block.compress(b.encoder)
	})
}

// open is the open block.
func (b *storedBuilder) open() *rawBlock {
	return &rawBlock{data: b.raw, raw: uint32(len(b.raw)), first: b.first}
}

// compress puts the compressed block in the place of its rows.
func (r *rawBlock) compress(encoder *zstd.Encoder) {
	r.data = encoder.EncodeAll(r.data, make([]byte, 0, len(r.data)/2))
	r.packed = uint32(len(r.data))
}

// leave puts blocks into the spool, once there are many.
func (b *storedBuilder) leave(s *spool) error {
	if b.held < 4*pieceBytes {
		return nil
	}
	b.running.Wait()
	var parts [][]byte
	for _, block := range b.blocks {
		parts = append(parts, block.data)
		block.data = nil
	}
	p, err := s.put(parts...)
	b.early, b.held = append(b.early, p), 0
	return err
}

// pieces are the section of the tile. The builder goes on as if they had not been asked for.
func (b *storedBuilder) pieces() []piece {
	b.running.Wait()
	blocks := b.blocks
	if len(b.raw) > 0 {
		last := b.open()
		last.compress(b.encoder)
		blocks = append(blocks[:len(blocks):len(blocks)], last)
	}
	le := binary.LittleEndian
	head := le.AppendUint64(nil, uint64(len(blocks)))
	before := uint64(0)
	for _, mark := range b.marks {
		head = le.AppendUint64(le.AppendUint64(head, mark), before)
		before += uint64(bits.OnesCount64(mark))
	}
	var rest []piece
	for _, block := range blocks {
		head = le.AppendUint32(head, block.packed)
		head = le.AppendUint32(head, block.raw)
		head = le.AppendUint64(head, uint64(block.first))
		rest = append(rest, pieceOf(block.data))
	}
	return append(append([]piece{pieceOf(head)}, b.early...), rest...)
}

func (b *storedBuilder) reset() {
	clear(b.blocks)
	b.raw, b.objects, b.marks, b.blocks = b.raw[:0], 0, b.marks[:0], b.blocks[:0]
	b.held, b.early = 0, nil
}

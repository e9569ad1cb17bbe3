package index

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// WriteFile writes the index to path, atomically: under a temporary name in the same directory, synced, then renamed.
// Whatever happens, path holds either what it held before or the complete new index. progress, when not nil, is
// called now and then with the number of postings written and their total. Cancelling ctx ends with its error.
func (b *Builder) WriteFile(ctx context.Context, path string, progress func(done, total int64)) error {
	err := writeAtomically(path, func(f output) error {
		return b.write(ctx, f, progress)
	})
	if err != nil {
		return fmt.Errorf("write index %s: %w", path, err)
	}
	return nil
}

// Bytes returns the bytes that WriteFile would write.
func (b *Builder) Bytes(ctx context.Context) ([]byte, error) {
	var m memory
	if err := b.write(ctx, &m, nil); err != nil {
		return nil, fmt.Errorf("write index in memory: %w", err)
	}
	return m.data, nil
}

// write writes the sections in their order: what a reader needs first, then the postings of all tiles, which are
// one contiguous piece for a device, then what belongs to single objects.
func (b *Builder) write(ctx context.Context, out output, progress func(done, total int64)) error {
	if b.err != nil {
		return b.err
	}
	columns, err := b.finish(ctx)
	if err != nil {
		return err
	}
	schema, err := b.schema.encode()
	if err != nil {
		return err
	}

	tiles := tilesOf(b.objects)
	type perObject struct {
		kind    SectionKind
		strings *objectStrings
	}
	var stored []perObject
	if b.keys != nil {
		stored = append(stored, perObject{SectionKeys, &b.keys.strings})
	}
	if b.payload.used {
		stored = append(stored, perObject{SectionPayloads, &b.payload})
	}
	if b.text.used {
		stored = append(stored, perObject{SectionTexts, &b.text})
	}
	sections, total := 2+tiles*(len(columns)+len(stored)), int64(0)
	for i := range columns {
		switch columns[i].attribute.Type {
		case Text:
			sections += 2
		case Number:
			sections++
		}
		if _, whole := columns[i].attribute.Layout.sections(); whole != 0 {
			sections++
		}
		total += int64(columns[i].attribute.Postings)
	}

	w := newSectionWriter(out, sections)
	w.add(SectionSchema, -1, -1, schema)
	w.add(SectionAttributes, -1, -1, encodeAttributes(columns))
	for i := range columns {
		f := &columns[i]
		switch f.attribute.Type {
		case Text:
			w.add(SectionStrings, i, -1, raw(f.keywords.offsets), f.keywords.data)
			w.add(SectionLookup, i, -1, raw(buildTable(&f.keywords, hashSlots(f.keywords.len()))))
		case Number:
			numbers := f.attribute.Edges
			if f.attribute.Exact {
				numbers = f.attribute.Values
			}
			w.add(SectionNumbers, i, -1, raw(numbers))
		}
		switch f.attribute.Layout {
		case LayoutSliced:
			w.add(SectionCodes, i, -1, encodeDirectory(f.frequencies))
		case LayoutRare:
			w.add(SectionRare, i, -1, f.encodeRare(tiles))
		}
	}
	done := int64(0)
	err = b.encodePostings(ctx, columns, func(tile, attr int, data []byte) error {
		kind, _ := columns[attr].attribute.Layout.sections()
		w.add(kind, attr, tile, data)
		done += int64(len(columns[attr].source.tile(tile).ids))
		if progress != nil {
			progress(done, total)
		}
		return w.err
	})
	if err != nil {
		return err
	}
	for _, s := range stored {
		for tile := range tiles {
			if err := ctx.Err(); err != nil {
				return err
			}
			table := s.strings.tile(tile)
			w.add(s.kind, -1, tile, raw(table.offsets), table.data)
		}
	}
	return w.finish(&header{objects: b.objects, attributes: uint32(len(columns))})
}

// output is where an index is written: from front to back, but for the header and section table, which come last.
type output interface {
	io.Writer
	io.WriterAt
}

// sectionWriter lays sections out one after the other behind the space of the header and section table. Its first error
// stays.
type sectionWriter struct {
	out      output
	buffer   *bufio.Writer
	offset   int64
	sections []Section
	err      error
}

func newSectionWriter(out output, sections int) *sectionWriter {
	w := &sectionWriter{out: out, buffer: bufio.NewWriterSize(out, 1<<20), sections: make([]Section, 0, sections)}
	w.pad(align(headerBytes + int64(sections)*entryBytes))
	return w
}

// add writes a section of the concatenated parts; attribute and tile are -1 where it belongs to none.
func (w *sectionWriter) add(kind SectionKind, attribute, tile int, parts ...[]byte) {
	s := Section{Kind: kind, Required: true, Attribute: attribute, Offset: w.offset}
	if tile >= 0 {
		s.Tile, s.Tiles = tile, 1
	}
	for _, part := range parts {
		s.CRC = extend(s.CRC, part)
		s.Length += int64(len(part))
		w.write(part)
	}
	w.sections = append(w.sections, s)
	w.pad(align(w.offset))
}

func (w *sectionWriter) write(data []byte) {
	if w.err == nil {
		_, w.err = w.buffer.Write(data)
		w.offset += int64(len(data))
	}
}

// pad writes zeros up to an offset.
func (w *sectionWriter) pad(to int64) {
	var zeros [4096]byte
	for w.err == nil && w.offset < to {
		w.write(zeros[:min(int64(len(zeros)), to-w.offset)])
	}
}

// finish writes the section table and the header.
func (w *sectionWriter) finish(h *header) error {
	if w.err != nil {
		return w.err
	}
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	table := encodeSections(w.sections)
	h.sections = uint32(len(w.sections))
	h.tableOffset = headerBytes
	h.fileBytes = uint64(w.offset)
	h.tableCRC = checksum(table)
	if _, err := w.out.WriteAt(table, int64(h.tableOffset)); err != nil {
		return err
	}
	_, err := w.out.WriteAt(h.encode(), 0)
	return err
}

// memory is an output in memory.
type memory struct {
	data []byte
}

func (m *memory) Write(data []byte) (int, error) {
	m.data = append(m.data, data...)
	return len(data), nil
}

func (m *memory) WriteAt(data []byte, offset int64) (int, error) {
	return copy(m.data[offset:], data), nil
}

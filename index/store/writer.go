package store

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// A Draft is a structure of an index that is ready to be written.
type Draft struct {
	Sections int   // that are added
	Work     int64 // how much there is to do, in a unit of its own that progress is told in
	// Write adds the sections. It calls progress now and then with the work done so far. Errors of the writer come to light without it.
	Write func(ctx context.Context, w *Writer, progress func(done int64)) error
}

// WriteFile makes an index file of drafts, one after the other: atomically, under a temporary name in the same directory, synced, then renamed.
// Whatever happens, path holds either what it held before or the complete new index. progress, when not nil, is
// called now and then with the work done and all that there is. Cancelling ctx ends with its error.
func WriteFile(ctx context.Context, path string, objects uint32, drafts []Draft, progress func(done, total int64)) error {
	err := writeAtomically(path, func(f output) error {
		return write(ctx, f, objects, drafts, progress)
	})
	if err != nil {
		return fmt.Errorf("write index %s: %w", path, err)
	}
	return nil
}

// Memory returns the bytes that WriteFile would write.
func Memory(ctx context.Context, objects uint32, drafts []Draft) ([]byte, error) {
	var m memory
	if err := write(ctx, &m, objects, drafts, nil); err != nil {
		return nil, fmt.Errorf("write index in memory: %w", err)
	}
	return m.data, nil
}

// write writes an index file of drafts to out.
func write(ctx context.Context, out output, objects uint32, drafts []Draft, progress func(done, total int64)) error {
	sections, total, before := 0, int64(0), int64(0)
	for _, d := range drafts {
		sections += d.Sections
		total += d.Work
	}
	w := newWriter(out, sections)
	for _, d := range drafts {
		err := d.Write(ctx, w, func(done int64) {
			if progress != nil {
				progress(before+done, total)
			}
		})
		if err != nil {
			return err
		}
		before += d.Work
	}
	if err := w.finish(objects); err != nil {
		return err
	}
	if ctx.Err() != nil { // a draft whose last parts were ready does not see it
		return context.Cause(ctx)
	}
	return nil
}

// output is where an index is written: from front to back, but for the header and section table, which come last.
type output interface {
	io.Writer
	io.WriterAt
}

// Writer lays sections out one after the other behind the space of the header and section table. Its first error
// stays.
type Writer struct {
	out      output
	buffer   *bufio.Writer
	offset   int64
	sections []Section
	header   header
	err      error
}

func newWriter(out output, sections int) *Writer {
	w := &Writer{out: out, buffer: bufio.NewWriterSize(out, 1<<20), sections: make([]Section, 0, sections)}
	w.pad(Align(headerBytes + int64(sections)*entryBytes))
	return w
}

// Add writes a section of the concatenated parts; attribute and tile are -1 where it belongs to none. Who does not know its kind cannot
// read the file.
func (w *Writer) Add(kind SectionKind, attribute, tile int, parts ...[]byte) {
	w.Begin(kind, attribute, tile)
	for _, part := range parts {
		w.Append(part)
	}
	w.End()
}

// Begin begins a section that Add would write, for parts that are not in memory all at a time: Append adds them, End ends it.
func (w *Writer) Begin(kind SectionKind, attribute, tile int) {
	w.begin(Section{Kind: kind, Required: true, Attribute: attribute}, tile)
}

// BeginOptional is Begin of a section without which the file is sound: who does not know its kind passes over it.
func (w *Writer) BeginOptional(kind SectionKind, attribute, tile int) {
	w.begin(Section{Kind: kind, Attribute: attribute}, tile)
}

func (w *Writer) begin(s Section, tile int) {
	s.Offset = w.offset
	if tile >= 0 {
		s.Tile, s.Tiles = tile, 1
	}
	w.sections = append(w.sections, s)
}

// Append adds bytes to the section that was begun.
func (w *Writer) Append(data []byte) {
	s := &w.sections[len(w.sections)-1]
	s.CRC = extend(s.CRC, data)
	s.Length += int64(len(data))
	w.write(data)
}

// End ends the section that was begun.
func (w *Writer) End() { w.pad(Align(w.offset)) }

func (w *Writer) write(data []byte) {
	if w.err == nil {
		_, w.err = w.buffer.Write(data)
		w.offset += int64(len(data))
	}
}

// pad writes zeros up to an offset.
func (w *Writer) pad(to int64) {
	var zeros [4096]byte
	for w.err == nil && w.offset < to {
		w.write(zeros[:min(int64(len(zeros)), to-w.offset)])
	}
}

// SetAttributes sets the number of attributes that sections may belong to.
func (w *Writer) SetAttributes(n int) { w.header.Attributes = uint32(n) }

// Err returns the first error of writing.
func (w *Writer) Err() error { return w.err }

// finish writes the section table and the header.
func (w *Writer) finish(objects uint32) error {
	if w.err != nil {
		return w.err
	}
	if err := w.buffer.Flush(); err != nil {
		return err
	}
	table := encodeSections(w.sections)
	h := &w.header
	h.Objects = objects
	h.Sections = uint32(len(w.sections))
	h.TableOffset = headerBytes
	h.FileBytes = uint64(w.offset)
	h.TableCRC = checksum(table)
	if _, err := w.out.WriteAt(table, int64(h.TableOffset)); err != nil {
		return err
	}
	_, err := w.out.WriteAt(h.encode(), 0)
	return err
}

// memory is an Output in memory.
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

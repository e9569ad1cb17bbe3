package store

import (
	"errors"
	"fmt"
)

// A Patrol reads an open index's file from front to back, again and again, a little at a time, and compares the checksums in the file. It
// finds what the file's times do not tell of. It is not safe for concurrent use.
type Patrol struct {
	file    *File
	section int
	done    int64 // bytes of it
	crc     uint32
}

// NewPatrol returns a patrol that begins with the first section.
func (f *File) NewPatrol() *Patrol { return &Patrol{file: f} }

// Step reads the header and the section table, which any other index has others of, and about so many bytes of the sections. When
// a checksum is wrong the epoch ends, and the error is a *ChangedError.
func (p *Patrol) Step(bytes int64) error {
	f := p.file
	if f.mapped == nil || f.Epoch() == 0 {
		return nil
	}
	reason := ""
	err := catch(func() error {
		reason = p.read(bytes)
		return nil
	})
	if caught := (*panicked)(nil); errors.As(err, &caught) {
		if !f.Faulted(caught.value) {
			caught.again()
		}
		return f.Unchanged(0)
	}
	if reason != "" {
		p.section, p.done, p.crc = 0, 0, 0
		return f.distrust(reason)
	}
	return nil
}

// read returns what is wrong, or "".
func (p *Patrol) read(bytes int64) string {
	f := p.file
	if checksum(f.data[:f.headBytes]) != f.headCRC {
		return "its header or section table is another"
	}
	for bytes > 0 && len(f.sections) > 0 {
		s := &f.sections[p.section]
		n := min(bytes, s.Length-p.done)
		p.crc = extend(p.crc, f.Bytes(s)[p.done:p.done+n])
		p.done += n
		bytes -= n + 1 // empty sections count too, so that this ends
		if p.done < s.Length {
			return ""
		}
		crc := p.crc
		p.section, p.done, p.crc = (p.section+1)%len(f.sections), 0, 0
		if crc != s.CRC {
			return fmt.Sprintf("the %v section at offset %d has another checksum", s.Name, s.Offset)
		}
	}
	return ""
}

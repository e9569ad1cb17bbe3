package index

import (
	"errors"
	"fmt"
)

// A Patrol reads an open index's file from front to back, again and again, a little at a time, and compares the checksums in the file. It
// finds what the file's times do not tell of. It is not safe for concurrent use.
type Patrol struct {
	index   *Index
	section int
	done    int64 // bytes of it
	crc     uint32
}

// NewPatrol returns a patrol that begins with the first section.
func (x *Index) NewPatrol() *Patrol { return &Patrol{index: x} }

// Step reads the header and the section table, which any other index has others of, and about so many bytes of the sections. When
// a checksum is wrong the epoch ends, and the error is a *ChangedError.
func (p *Patrol) Step(bytes int64) error {
	x := p.index
	if x.file == nil || x.Epoch() == 0 {
		return nil
	}
	reason := ""
	err := catch(func() error {
		reason = p.read(bytes)
		return nil
	})
	if caught := (*panicked)(nil); errors.As(err, &caught) {
		if !x.Faulted(caught.value) {
			caught.again()
		}
		return x.Unchanged(0)
	}
	if reason != "" {
		p.section, p.done, p.crc = 0, 0, 0
		return x.distrust(reason)
	}
	return nil
}

// read returns what is wrong, or "".
func (p *Patrol) read(bytes int64) string {
	x := p.index
	if checksum(x.data[:x.headBytes]) != x.headCRC {
		return "its header or section table is another"
	}
	for bytes > 0 && len(x.sections) > 0 {
		s := &x.sections[p.section]
		n := min(bytes, s.Length-p.done)
		p.crc = extend(p.crc, x.bytes(s)[p.done:p.done+n])
		p.done += n
		bytes -= n + 1 // empty sections count too, so that this ends
		if p.done < s.Length {
			return ""
		}
		crc := p.crc
		p.section, p.done, p.crc = (p.section+1)%len(x.sections), 0, 0
		if crc != s.CRC {
			return fmt.Sprintf("the %v section at offset %d has another checksum", s.Kind, s.Offset)
		}
	}
	return ""
}

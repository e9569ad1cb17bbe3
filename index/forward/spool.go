package forward

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/geniemq/geniemq/index/store"
)

// spool holds what is sealed while the rest of an index is being built: in memory as long as it is little, in a temporary file beyond, so
// that memory is bounded. The file has no name from the beginning on, so it goes with the process, or once the builder is no longer
// used. It lies in the folder for temporary files (TMPDIR). Where files cannot lose their names all stays in memory.
type spool struct {
	limit, held int64
	file        *os.File
	size        int64 // of the file
}

// piece is what a spool holds: in memory, or in the file.
type piece struct {
	data           []byte
	offset, length int64
	kept           bool // by a spool
}

// pieceOf is data that stay where they are.
func pieceOf(data []byte) piece { return piece{data: data, length: int64(len(data))} }

// spoolMemory is what a spool holds in memory.
const spoolMemory = 256 << 20

// put keeps a copy of parts, which follow each other.
func (s *spool) put(parts ...[]byte) (piece, error) {
	p := piece{kept: true}
	for _, part := range parts {
		p.length += int64(len(part))
	}
	if s.held+p.length <= s.limit || runtime.GOOS == "windows" {
		s.held += p.length
		p.data = slices.Concat(parts...)
		return p, nil
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "geniemq-build-")
		if err == nil {
			err = os.Remove(f.Name())
		}
		if err != nil {
			return p, fmt.Errorf("a temporary file for what the index keeps of objects (TMPDIR says where): %w", err)
		}
		s.file = f
	}
	p.offset = s.size
	for _, part := range parts {
		n, err := s.file.WriteAt(part, s.size)
		s.size += int64(n)
		if err != nil {
			return p, fmt.Errorf("the temporary file for what the index keeps of objects (TMPDIR says where): %w", err)
		}
	}
	return p, nil
}

// get returns the bytes of a piece: in place, or in the memory of buffer.
func (s *spool) get(p piece, buffer []byte) ([]byte, error) {
	if p.data != nil || p.length == 0 {
		return p.data, nil
	}
	if int64(cap(buffer)) < p.length {
		buffer = aligned(int(p.length))
	}
	buffer = buffer[:p.length]
	if n, err := s.file.ReadAt(buffer, p.offset); err != nil || n != len(buffer) {
		return nil, fmt.Errorf("reading the temporary file again: %w", errors.Join(err, s.lost()))
	}
	return buffer, nil
}

func (s *spool) lost() error {
	if info, err := s.file.Stat(); err != nil || info.Size() < s.size {
		return errors.Join(err, errors.New("it is shorter than it was"))
	}
	return nil
}

// aligned returns n bytes at a multiple of eight.
func aligned(n int) []byte { return store.Raw(make([]uint64, n/8+1))[:n] }

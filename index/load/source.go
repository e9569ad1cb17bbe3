package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/text/encoding/charmap"
)

// source is the chain from stored bytes to UTF-8 text: count, gunzip, byte-order mark, character set.
type source struct {
	stored counter
	gzip   *gzip.Reader // nil for plain sources
	text   io.Reader    // decompressed and decoded
	file   *os.File     // owned when Open opened it
	size   int64        // stored bytes, -1 when unknown
}

// counter counts what passes. Progress bars read it from another goroutine.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

const sourceBuffer = 256 << 10

// Encodings lists the values of Options.Encoding.
func Encodings() []string { return []string{"utf-8", "latin1", "windows-1252"} }

// charset returns the table of a single-byte encoding, nil for UTF-8.
func charset(name string) (*charmap.Charmap, error) {
	switch strings.ToLower(name) {
	case "", "utf-8", "utf8":
		return nil, nil
	case "latin1", "latin-1", "iso-8859-1":
		return charmap.ISO8859_1, nil
	case "windows-1252", "cp1252":
		return charmap.Windows1252, nil
	}
	return nil, fmt.Errorf("unknown encoding %q: use one of %s", name, strings.Join(Encodings(), ", "))
}

func newSource(r io.Reader, name, encoding string) (*source, error) {
	table, err := charset(encoding)
	if err != nil {
		return nil, err
	}
	s := &source{size: -1}
	s.stored.r = r
	buffered := bufio.NewReaderSize(&s.stored, sourceBuffer)
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if s.gzip, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%s: read gzip header: %w", name, err)
		}
		buffered = bufio.NewReaderSize(s.gzip, sourceBuffer)
	}
	if err := skipMark(buffered, name, table); err != nil {
		return nil, err
	}
	s.text = buffered
	if table != nil {
		s.text = table.NewDecoder().Reader(buffered)
	}
	return s, nil
}

// skipMark skips the byte-order mark of UTF-8 and refuses those of other encodings.
func skipMark(r *bufio.Reader, name string, table *charmap.Charmap) error {
	mark, _ := r.Peek(3) // an error here comes again with the first read
	switch {
	case bytes.HasPrefix(mark, []byte{0xef, 0xbb, 0xbf}):
		if table != nil {
			return fmt.Errorf("%s: line 1: begins with the byte-order mark of UTF-8: leave --encoding out", name)
		}
		_, err := r.Discard(3)
		return err
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return fmt.Errorf("%s: line 1: is UTF-16: convert it first, for instance with iconv -f UTF-16 -t UTF-8", name)
	}
	return nil
}

func (s *source) read() int64 { return s.stored.n.Load() }

func (s *source) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

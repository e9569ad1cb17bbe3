// Package source turns the stored bytes of a file into text: it decompresses, skips byte-order marks, decodes to UTF-8 and leaves out lines.
package source

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// Options say how a source is stored.
type Options struct {
	// Encoding of the characters: a name of the WHATWG list, or latin1. Default utf-8; a source that begins with a byte-order mark of UTF-16 is that.
	Encoding string
	// SkipLines is how many lines are left out at the beginning.
	SkipLines int
	// Binary sources are no text: they are decompressed and nothing else.
	Binary bool
}

// Source is the chain from stored bytes to text: count, decompress, byte-order mark, encoding, lines to skip. It owns no file; Close gives back what
// decompressing takes.
type Source struct {
	Text   io.Reader // decompressed and decoded, without lines that are skipped; of a binary source its bytes
	Packed bool      // it was compressed
	stored counter
	zstd   *zstd.Decoder // of sources that are such; else nil
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

const (
	bufferBytes = 256 << 10
	maxWindow   = 128 << 20 // of zstd; what zstd --long=27 writes
)

// characters returns an encoding by its name, nil for UTF-8. Names are those of the WHATWG list, but latin1, which is ISO 8859-1 here and not
// windows-1252: who says so has bytes that windows-1252 has other letters for, or none.
func characters(name string) (encoding.Encoding, error) {
	switch strings.ToLower(name) {
	case "", "utf-8", "utf8":
		return nil, nil
	case "latin1", "latin-1", "iso-8859-1":
		return charmap.ISO8859_1, nil
	}
	e, err := htmlindex.Get(name)
	if err != nil || e == encoding.Replacement || e == charmap.XUserDefined {
		return nil, fmt.Errorf("unknown encoding %q: use utf-8, latin1, windows-1252, utf-16le, shift_jis or another name of https://encoding.spec.whatwg.org", name)
	}
	return e, nil
}

// File opens a file of stored bytes, which the caller closes. Its error names the file once.
func File(path string) (file *os.File, info fs.FileInfo, err error) {
	if file, err = os.Open(path); err == nil {
		if info, err = file.Stat(); err == nil && info.IsDir() {
			err = errors.New("is a directory, not a file")
		}
		if err == nil {
			return file, info, nil
		}
		file.Close()
	}
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		err = about.Err
	}
	return nil, nil, fmt.Errorf("open input %s: %w", path, err)
}

// Open begins to read a source; name stands for it in errors.
func Open(r io.Reader, name string, opts Options) (*Source, error) {
	if _, err := characters(opts.Encoding); err != nil {
		return nil, err
	}
	s := new(Source)
	s.stored.r = r
	unpacked, err := s.decompress(bufio.NewReaderSize(&s.stored, bufferBytes), name)
	if err != nil {
		return nil, err
	}
	if s.Text = unpacked; opts.Binary {
		return s, nil
	}
	s.Text, err = Decoded(unpacked, name, opts)
	return s, err
}

// Decoded returns the UTF-8 text of bytes that are not compressed, without a byte-order mark and the lines that are left out.
func Decoded(r io.Reader, name string, opts Options) (io.Reader, error) {
	e, err := characters(opts.Encoding)
	if err != nil {
		return nil, err
	}
	buffered, ok := r.(*bufio.Reader)
	if !ok {
		buffered = bufio.NewReaderSize(r, bufferBytes)
	}
	text, err := decoded(buffered, name, e)
	if err != nil || opts.SkipLines == 0 {
		return text, err
	}
	return skipLines(text, name, opts.SkipLines)
}

// UTF8 says that an encoding's name is that of UTF-8, or none.
func UTF8(name string) bool {
	e, err := characters(name)
	return e == nil && err == nil
}

// KnowsEncoding says why an encoding cannot be read; nil if it can.
func KnowsEncoding(name string) error {
	_, err := characters(name)
	return err
}

// decompress unpacks gzip and zstd, which both begin with bytes that no text has.
func (s *Source) decompress(stored *bufio.Reader, name string) (*bufio.Reader, error) {
	magic, _ := stored.Peek(4) // an error here comes again with the first read
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		unzipped, err := gzip.NewReader(stored)
		if err != nil {
			return nil, fmt.Errorf("%s: read gzip header: %w", name, err)
		}
		s.Packed = true
		return bufio.NewReaderSize(unzipped, bufferBytes), nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		// The window is what a file may make its reader allocate.
		unpacked, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("%s: read zstd header: %w", name, err)
		}
		s.Packed, s.zstd = true, unpacked
		return bufio.NewReaderSize(unpacked, bufferBytes), nil
	}
	return stored, nil
}

// decoded makes UTF-8 of text. A byte-order mark is skipped; one of UTF-16 says what the text is.
func decoded(text *bufio.Reader, name string, e encoding.Encoding) (io.Reader, error) {
	mark, _ := text.Peek(3)
	switch {
	case bytes.HasPrefix(mark, []byte{0xef, 0xbb, 0xbf}):
		if e != nil {
			return nil, fmt.Errorf("%s: line 1: begins with the byte-order mark of UTF-8: leave --encoding out", name)
		}
		_, err := text.Discard(3)
		return text, err
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		e = unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
	}
	if e == nil {
		return text, nil
	}
	return e.NewDecoder().Reader(text), nil
}

// skipLines leaves out the first lines of a text, whatever they hold.
func skipLines(text io.Reader, name string, n int) (io.Reader, error) {
	buffer := bufio.NewReaderSize(text, bufferBytes)
	for line := range n {
		_, err := buffer.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = buffer.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: line %d: is the last one, but %d lines are to be skipped before the first record", name, line+1, n)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: read: %w", name, line+1, err)
		}
	}
	return buffer, nil
}

// Read is how many stored bytes have been read. It may be asked by another goroutine.
func (s *Source) Read() int64 { return s.stored.n.Load() }

// Close ends decompressing.
func (s *Source) Close() {
	if s.zstd != nil {
		s.zstd.Close()
	}
}

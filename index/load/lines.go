package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// lines cuts the source of a reader into lines. It differs from bufio.Scanner in that a line beyond the limit is reported
// and passed over, after which reading goes on.
type lines struct {
	r      *Reader
	buffer *bufio.Reader
	long   []byte // a line that does not fit the buffer, put together
	n      int64  // lines begun so far
}

func newLines(r *Reader) *lines {
	return &lines{r: r, buffer: r.buffered(r.source.Text), n: r.before}
}

func (s *lines) line() int64 { return s.n }

// nextLine returns the next line without its end (\n or \r\n), valid until the next call. Text after the last line end is a
// line; nothing after it is not. A line that exceeds the limit of one record is a *BadRecord.
func (s *lines) nextLine() ([]byte, error) {
	line, err := s.buffer.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return nil, io.EOF
	}
	s.n++
	limit := s.r.opts.MaxRecord
	for s.long = s.long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = s.buffer.ReadSlice('\n') {
		if len(s.long) <= limit { // one part more than fits tells that it is too long
			s.long = append(s.long, line...)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(s.long) > 0 {
		s.long = append(s.long, line...)
		line = s.long
	}
	line = bytes.TrimSuffix(line, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) > limit {
		return nil, s.r.bad(s.n, "is longer than %d bytes, the limit of one record", limit)
	}
	return line, nil
}

// readable says that text is UTF-8 without NUL bytes, as all text is that anybody meant to write.
func readable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

func readableBytes(text []byte) bool { return utf8.Valid(text) && bytes.IndexByte(text, 0) < 0 }

// unreadable is the reason given for text that is not readable. The first byte at fault is shown: it tells a Latin-1 letter from a broken file.
func unreadable[T string | []byte](text T) string {
	for rest := string(text); rest != ""; {
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case c == 0:
			return "has a NUL byte: is the file binary, or UTF-16? then add --encoding utf-16le"
		case c == utf8.RuneError && size == 1:
			return fmt.Sprintf("is not valid UTF-8 (byte 0x%x): if the file is Latin-1, add --encoding latin1", rest[0])
		}
		rest = rest[size:]
	}
	return "is not valid UTF-8"
}

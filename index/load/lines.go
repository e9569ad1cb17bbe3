package load

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"
)

// lineScanner cuts a source into lines. It differs from bufio.Scanner in that a line beyond the limit is reported
// and passed over, after which scanning goes on.
type lineScanner struct {
	r     *bufio.Reader
	limit int
	long  []byte // a line that does not fit r's buffer, put together
	n     int64  // lines begun so far
}

func newLineScanner(r io.Reader, limit int) *lineScanner {
	return &lineScanner{r: bufio.NewReaderSize(r, sourceBuffer), limit: limit}
}

// next returns the next line without its end (\n or \r\n), valid until the next call. tooLong says that it was
// passed over because it exceeds the limit. Text after the last line end is a line; nothing after it is not.
func (s *lineScanner) next() (line []byte, tooLong bool, err error) {
	line, err = s.r.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return nil, false, io.EOF
	}
	s.n++
	if errors.Is(err, bufio.ErrBufferFull) {
		s.long = s.long[:0]
		size := 0
		for errors.Is(err, bufio.ErrBufferFull) {
			if size += len(line); size <= s.limit {
				s.long = append(s.long, line...)
			}
			line, err = s.r.ReadSlice('\n')
		}
		if size += len(line); size <= s.limit {
			s.long = append(s.long, line...)
			line = s.long
		} else {
			line = nil
			tooLong = true
		}
	}
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	line = bytes.TrimSuffix(line, []byte{'\n'})
	line = bytes.TrimSuffix(line, []byte{'\r'})
	return line, tooLong || len(line) > s.limit, nil
}

func (s *lineScanner) line() int64 { return s.n }

// nextLine takes the next line of a line format and checks its length.
func (r *Reader) nextLine(s *lineScanner) ([]byte, error) {
	line, tooLong, err := s.next()
	if err != nil {
		return nil, err
	}
	if tooLong {
		return nil, r.bad(s.n, "is longer than %d bytes, the limit of one record", r.opts.MaxRecord)
	}
	return line, nil
}

// notUTF8 is the reason given for bytes that are not UTF-8. The first of them is shown: it tells a Latin-1
// letter from a broken file.
func notUTF8(text []byte) string {
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if c == utf8.RuneError && size == 1 {
			break
		}
		text = text[size:]
	}
	const hex = "0123456789abcdef"
	shown := "0x"
	if len(text) > 0 {
		shown += string([]byte{hex[text[0]>>4], hex[text[0]&15]})
	}
	return "is not valid UTF-8 (byte " + shown + "): if the file is Latin-1, add --encoding latin1"
}

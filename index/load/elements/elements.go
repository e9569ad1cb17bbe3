// Package elements reads a JSON array as JSON Lines, whatever lines it has.
package elements

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Errors of arrays, as what ends the text.
var (
	ErrOpen  = errors.New("the JSON array does not end: its last ] is missing")
	ErrEmpty = errors.New("the JSON array has a comma with no value before or after it")
	ErrAfter = errors.New("there is text after the JSON array")
)

// Lines returns text as it is, or, of an array, its elements, one per line: an element's own line ends become blanks. What is wrong with elements is left for
// whoever decodes them to find; what is wrong between them is an error of reading.
func Lines(text io.Reader) io.Reader {
	in := bufio.NewReaderSize(text, 64<<10)
	for n := 1; ; n++ {
		ahead, err := in.Peek(n)
		if len(ahead) < n || err != nil {
			return in
		}
		switch ahead[n-1] {
		case ' ', '\t', '\r', '\n':
			if n == in.Size() {
				return in
			}
		case '[':
			_, _ = in.Discard(n) // was peeked
			return &array{in: in}
		default:
			return in
		}
	}
}

// array reads what follows the bracket that opens an array.
type array struct {
	in     *bufio.Reader
	depth  int // within an element
	quoted bool
	escape bool // the last byte was a backslash within quotes
	some   bool // the element has begun
	comma  bool // one was read, and no element after it
	closed bool
	err    error
}

// Read gives lines.
func (a *array) Read(to []byte) (n int, err error) {
	for n == 0 && a.err == nil && len(to) > 0 {
		if _, err := a.in.Peek(1); err != nil {
			a.end(err)
			break
		}
		ahead, _ := a.in.Peek(min(a.in.Buffered(), len(to)))
		used := 0
		for used < len(ahead) && a.err == nil {
			if a.quoted && !a.escape { // nearly all bytes of most texts
				plain := bytes.IndexAny(ahead[used:], "\"\\")
				if plain < 0 {
					plain = len(ahead) - used
				}
				n += copy(to[n:], ahead[used:used+plain])
				if used += plain; used == len(ahead) {
					break
				}
			}
			if b, ok := a.byte(ahead[used]); ok {
				to[n] = b
				n++
			}
			used++
		}
		_, _ = a.in.Discard(used)
	}
	if n > 0 {
		return n, nil
	}
	return 0, a.err
}

// end is the end of the text.
func (a *array) end(err error) {
	a.err = err
	if errors.Is(err, io.EOF) && !a.closed {
		a.err = ErrOpen
	}
}

// byte takes a byte of the array, and gives one of lines.
func (a *array) byte(b byte) (out byte, ok bool) {
	switch {
	case a.quoted:
		a.quoted, a.escape = a.escape || b != '"', !a.escape && b == '\\'
		return b, true
	case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		return ' ', a.some && !a.closed
	case a.closed:
		a.err = ErrAfter
		return 0, false
	case a.depth == 0 && (b == ',' || b == ']'):
		if !a.some && (b == ',' || a.comma) {
			a.err = ErrEmpty
			return 0, false
		}
		ended := a.some
		a.some, a.comma, a.closed = false, b == ',', b == ']'
		return '\n', ended
	}
	a.some = true
	switch b {
	case '"':
		a.quoted = true
	case '{', '[':
		a.depth++
	case '}', ']':
		a.depth = max(0, a.depth-1) // an element that closes what it did not open is not valid
	}
	return b, true
}

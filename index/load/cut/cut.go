// Package cut cuts text into parts of whole records without decoding them.
package cut

import (
	"bytes"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"
)

const (
	// partBytes and partLines bound a part, by its text and its lines, unless one record is larger.
	partBytes = 256 << 10
	partLines = 1024
)

// ErrTooLong ends a part whose one record is longer than the limit, in place of its rest.
var ErrTooLong = errors.New("record too long")

// Options say what a record is.
type Options struct {
	// Limit of a record, in bytes.
	Limit int
	// Quoted: as in CSV a record goes on while a quote is open. Comma separates its fields. Otherwise a record is a line.
	Quoted bool
	Comma  rune
	// Bytes is how long a part is at least, if there is more. Default 256 KiB, or 1,024 lines.
	Bytes int
	// Before is how many lines of the source stand in front of the text. Default 0.
	Before int64
}

// Part is some text of a source.
type Part struct {
	Text   []byte
	End    error // comes after the text: io.EOF unless it is the source's
	Last   bool  // no part comes after it
	Before int64 // lines in front of it
}

// Cutter cuts the text of a source into parts of whole records, so that each part can be decoded by itself, with the results of decoding all at
// once: a part ends where a record does, and lines without a record belong to the record that comes after them. It looks at line ends, and in CSV
// at quotes, and takes a tenth of the time of decoding.
//
// Memory: a part and what was read beyond it. A line that is longer than the limit is cut off where that is plain; so is a quoted record, and it ends the
// source, since its quote may have swallowed others.
type Cutter struct {
	text         io.Reader
	limit        int     // of a record
	quotes       *quotes // nil: a record is a line
	bytes, lines int     // of a part

	pending []byte // was read and is in no part yet
	before  int64  // lines in parts so far
	err     error  // of reading what would come after pending
	// Of pending: where the line begins that is looked at, from where on its end is looked for, and where the last whole record ends, with the
	// lines up to there.
	line, looked, whole   int
	lineCount, wholeCount int
}

// New returns a cutter of a text.
func New(text io.Reader, o Options) *Cutter {
	c := &Cutter{text: text, limit: o.Limit, bytes: o.Bytes, lines: partLines, before: o.Before}
	if c.bytes <= 0 {
		c.bytes = partBytes
	}
	if o.Quoted {
		c.quotes = &quotes{comma: utf8.AppendRune(nil, o.Comma), trims: TrimsBlanks(o.Comma)}
	}
	return c
}

// Cut fills a part, whose text's memory it uses again, with what comes next. It must not be called after the last part.
func (c *Cutter) Cut(p *Part) {
	c.look()
	p.Before, p.End, p.Last = c.before, io.EOF, false
	n := c.whole
	switch {
	case n > 0:
	case c.err != nil:
		n, p.End, p.Last = len(c.pending), c.err, true
	default: // a record that is too long, as decoding will find
		n, p.End, p.Last = len(c.pending), ErrTooLong, true
	}
	p.Text = append(p.Text[:0], c.pending[:n]...)
	if p.Last {
		c.pending = nil
		return
	}
	c.before += int64(c.wholeCount)
	c.pending = append(c.pending[:0], c.pending[n:]...)
	c.line, c.looked, c.whole = c.line-n, c.looked-n, 0
	c.lineCount, c.wholeCount = c.lineCount-c.wholeCount, 0
}

// look reads and looks until there are enough whole records for a part, or what is wrong or ends the source is known.
func (c *Cutter) look() {
	for c.whole < c.bytes && c.wholeCount < c.lines {
		end := bytes.IndexByte(c.pending[c.looked:], '\n') + 1
		if end == 0 {
			// Of a line that is too long decoding needs to see no more than that it is.
			if most := c.line + c.limit + len("\r\n"); c.quotes == nil && len(c.pending) > most {
				c.pending = c.pending[:most]
			}
			c.looked = len(c.pending)
			if c.quotes != nil && c.looked-c.whole > c.limit || !c.read() {
				return
			}
			continue
		}
		end += c.looked
		line := c.pending[c.line:end]
		c.line, c.looked = end, end
		c.lineCount++
		if c.quotes == nil || c.quotes.ends(line) {
			c.whole, c.wholeCount = end, c.lineCount
		} else if end-c.whole > c.limit {
			return
		}
	}
}

// read reads more text, and says whether there is.
func (c *Cutter) read() bool {
	const few = 4 << 10
	if cap(c.pending)-len(c.pending) < few {
		c.pending = append(c.pending, make([]byte, max(few, c.bytes, len(c.pending)/2))...)[:len(c.pending)]
	}
	for empty := 0; c.err == nil; empty++ {
		n, err := c.text.Read(c.pending[len(c.pending):min(cap(c.pending), len(c.pending)+max(few, c.bytes))])
		c.pending, c.err = c.pending[:len(c.pending)+n], err
		if n > 0 {
			return true
		}
		if empty == 100 && err == nil {
			c.err = io.ErrNoProgress
		}
	}
	return false
}

// quotes tells where records of CSV end, by the rules of encoding/csv. What these refuse ends with its line, after which encoding/csv goes on
// too.
type quotes struct {
	comma []byte
	trims bool // blanks before a field are no part of it
	open  bool // a quote, by the lines so far
}

// ends says that a record ends with a line, which has its line end.
func (q *quotes) ends(line []byte) bool {
	line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
	if !q.open {
		if len(line) == 0 {
			return false
		}
		if bytes.IndexByte(line, '"') < 0 {
			return true
		}
	}
	q.open = q.leavesOpen(line)
	return !q.open
}

// leavesOpen says that a quote is open after a line.
func (q *quotes) leavesOpen(line []byte) bool {
	for within := q.open; ; {
		if !within {
			if q.trims {
				line = bytes.TrimLeftFunc(line, unicode.IsSpace)
			}
			if len(line) == 0 || line[0] != '"' {
				field, rest, more := bytes.Cut(line, q.comma)
				if !more || bytes.IndexByte(field, '"') >= 0 {
					return false
				}
				line = rest
				continue
			}
			line = line[1:]
		}
		end := bytes.IndexByte(line, '"')
		if end < 0 {
			return true
		}
		line, within = line[end+1:], true
		switch {
		case len(line) > 0 && line[0] == '"':
			line = line[1:]
		case bytes.HasPrefix(line, q.comma):
			line, within = line[len(q.comma):], false
		default:
			return false
		}
	}
}

// TrimsBlanks says whether blanks before a field of CSV are no part of it. One before a quote would make the quote part of the field. Where the separator
// is itself a blank, trimming would eat empty fields.
func TrimsBlanks(comma rune) bool { return !unicode.IsSpace(comma) }

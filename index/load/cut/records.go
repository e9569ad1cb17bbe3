package cut

import "io"

// Records cuts a source of records that all have the same size. Before counts records. Memory: none but the parts'.
type Records struct {
	text   io.Reader
	size   int
	count  int // of a part
	before int64
}

// NewRecords returns a cutter of records of so many bytes into parts of so many bytes, about. Default 256 KiB.
func NewRecords(text io.Reader, size, bytes int) *Records {
	if bytes <= 0 {
		bytes = partBytes
	}
	return &Records{text: text, size: size, count: max(1, bytes/size)}
}

// Cut fills a part, whose text's memory it uses again, with what comes next. What is left of a record at the end is in the last part, after which it must
// not be called.
func (c *Records) Cut(p *Part) {
	if most := c.count * c.size; cap(p.Text) < most {
		p.Text = make([]byte, most)
	}
	p.Text = p.Text[:c.count*c.size]
	n, err := 0, error(nil)
	for empty := 0; n < len(p.Text) && err == nil; empty++ {
		var more int
		if more, err = c.text.Read(p.Text[n:]); more > 0 {
			n, empty = n+more, 0
		} else if empty == 100 && err == nil {
			err = io.ErrNoProgress
		}
	}
	p.Text, p.Before, p.End, p.Last = p.Text[:n], c.before, io.EOF, err != nil
	if err != nil {
		p.End = err
	}
	c.before += int64(n / c.size)
}

package cut

import (
	"errors"
	"io"
	"testing"
)

// TestLongRecords: however long a record is, little more of it is kept than the limit.
func TestLongRecords(t *testing.T) {
	for _, quoted := range []bool{false, true} {
		c, parts := New(io.LimitReader(endless{}, 64<<20), Options{Limit: 100, Quoted: quoted, Comma: ','}), 0
		var p Part
		for ; !p.Last; parts++ {
			c.Cut(&p)
			if kept := cap(c.pending) + cap(p.Text); kept > 4*partBytes {
				t.Fatalf("%d bytes are kept", kept)
			}
			if len(p.Text) <= 100 {
				t.Errorf("a part of %d bytes does not show that the record is too long", len(p.Text))
			}
		}
		if parts != 1 || quoted != errors.Is(p.End, ErrTooLong) {
			t.Errorf("quoted %v: %d parts, the last with %v", quoted, parts, p.End)
		}
	}
}

// endless is the letter x again and again.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

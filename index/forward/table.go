package forward

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// The table of columns, as docs/format.md draws it.
const (
	tableHead  = 8
	tableEntry = 64

	flagReturned   = 1
	flagBytes      = 2
	flagVocabulary = 4
	flagHalves     = 8

	// MaxDimensions bounds the dimensions of vectors.
	MaxDimensions = 1 << 16
	// maxIDFScale bounds the scale of weights, so that they fit a byte.
	maxIDFScale = 64
)

func encodeTable(columns []Column) []byte {
	le := binary.LittleEndian
	out := make([]byte, tableHead+tableEntry*len(columns))
	le.PutUint32(out, uint32(len(columns)))
	le.PutUint32(out[4:], tableEntry)
	var names []byte
	for i := range columns {
		c := &columns[i]
		e := out[tableHead+tableEntry*i:]
		le.PutUint32(e, uint32(len(names)))
		le.PutUint32(e[4:], uint32(len(c.Name)))
		names = append(names, c.Name...)
		e[8] = byte(c.Form)
		e[9] = flag(c.Returned, flagReturned) | flag(c.Bytes, flagBytes) | flag(c.Vocabulary, flagVocabulary) | flag(c.Halves, flagHalves)
		le.PutUint16(e[10:], uint16(c.IDFScale))
		le.PutUint32(e[12:], uint32(c.Dimensions))
		le.PutUint32(e[16:], c.Keywords)
		le.PutUint32(e[20:], c.Objects)
		le.PutUint32(e[24:], c.Most)
		le.PutUint64(e[32:], c.Total)
	}
	return append(out, names...)
}

func flag(set bool, bit byte) byte {
	if set {
		return bit
	}
	return 0
}

// decodeTable reads the table and checks all that the columns' sections are opened by.
func decodeTable(data []byte, objects uint32) ([]Column, error) {
	le := binary.LittleEndian
	if len(data) < tableHead {
		return nil, store.Corrupt("%d bytes are no table of kept columns", len(data))
	}
	count := uint64(le.Uint32(data))
	if n := le.Uint32(data[4:]); n != tableEntry {
		return nil, store.Corrupt("entries of kept columns have %d bytes, should have %d", n, tableEntry)
	}
	if count > uint64(len(data)-tableHead)/tableEntry {
		return nil, store.Corrupt("%d bytes are no table of %d kept columns", len(data), count)
	}
	names := data[tableHead+count*tableEntry:]
	columns := make([]Column, count)
	for i := range columns {
		e := data[tableHead+i*tableEntry:][:tableEntry]
		c := &columns[i]
		offset, length := uint64(le.Uint32(e)), uint64(le.Uint32(e[4:]))
		if offset+length > uint64(len(names)) || length == 0 || !utf8.Valid(names[offset:offset+length]) {
			return nil, store.Corrupt("kept column %d has no name", i)
		}
		c.Name = string(names[offset : offset+length])
		c.Form = schema.KeptForm(e[8])
		c.Returned, c.Bytes, c.Vocabulary = e[9]&flagReturned != 0, e[9]&flagBytes != 0, e[9]&flagVocabulary != 0
		c.Halves = e[9]&flagHalves != 0
		c.IDFScale, c.Dimensions = int(le.Uint16(e[10:])), int(le.Uint32(e[12:]))
		c.Keywords, c.Objects, c.Most, c.Total = le.Uint32(e[16:]), le.Uint32(e[20:]), le.Uint32(e[24:]), le.Uint64(e[32:])
		if c.Form > schema.KeptGraphs || e[9] > flagReturned|flagBytes|flagVocabulary|flagHalves {
			return nil, store.Unsupported("%v of column %q, or flags %#x", c.Form, c.Name, e[9])
		}
		if err := c.check(); err != nil {
			return nil, store.Corrupt("kept column %q: %v", c.Name, err)
		}
		if c.Objects > objects || c.Total > math.MaxInt64 {
			return nil, store.Corrupt("kept column %q has %d values of %d objects, and there are %d", c.Name, c.Total, c.Objects, objects)
		}
	}
	return columns, nil
}

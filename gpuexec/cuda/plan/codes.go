package plan

import (
	"math"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Codes say which attributes of an index have their codes on the device as bytes too, for the bound
// (kernels/bound.cuh), which calls them columns: those that are bit-sliced and narrow, with so few codes that these and
// "missing" fit a byte. An object's row has a byte for each.
//
// Codes are a third form of what planes and postings hold, derived from the planes on the device, and the first to be left
// out: they take only memory that both leave, and an index that is streamed has none. They pay where a query counts many
// attributes, so an index needs some of them (profile.BoundCosts.Columns).
type Codes struct {
	Columns  []uint32 // attributes
	ColumnOf []uint32 // by attribute: its column, else noColumn, or nothingThere where no object has a keyword
	Objects  int      // rows; the last group is filled up
	// Where things lie in the memory: plane << 8 | planes of each column come first, then come CodeOf of each attribute, ColumnOf,
	// the rows.
	CodeOf, ColumnOfAt, Rows, End int64

	wide []bool // by column: it has more codes than a mask has bits
}

const (
	noColumn     = math.MaxUint32
	nothingThere = noColumn - 1
	// MaxColumns is about what shared memory has room for.
	MaxColumns = 448
)

// newCodes returns nil where there are no codes, as where there are fewer columns than least. It takes
// no more than most.
func newCodes(r *Resident, most, least int) *Codes {
	p := r.Planes
	if p == nil || r.Streamed || most == 0 {
		return nil
	}
	c := &Codes{Objects: p.groups * abi.GroupObjects, ColumnOf: make([]uint32, r.Attributes)}
	for a, attribute := range r.Lists.Attributes() {
		own := &p.Attributes[a]
		switch {
		case attribute.Layout == schema.LayoutSliced && own.Planes == 0:
			c.ColumnOf[a] = nothingThere
		case own.Planes == 0 || own.Codes > abi.MaxCodes || len(c.Columns) == most:
			c.ColumnOf[a] = noColumn
		default:
			c.ColumnOf[a] = uint32(len(c.Columns))
			c.Columns = append(c.Columns, uint32(a))
			c.wide = append(c.wide, own.Codes > abi.MaskCodes)
		}
	}
	if len(c.Columns) < least {
		return nil
	}
	c.CodeOf = abi.Align(4 * int64(len(c.Columns)))
	c.ColumnOfAt = abi.Align(c.CodeOf + 8*int64(r.Attributes))
	c.Rows = abi.Align(c.ColumnOfAt + 4*int64(r.Attributes))
	c.End = c.Rows + int64(c.Objects)*int64(c.RowBytes())
	return c
}

// RowBytes is the size of an object's row.
func (c *Codes) RowBytes() int {
	return (len(c.Columns) + abi.ChunkColumns - 1) &^ (abi.ChunkColumns - 1)
}

// Steps of the matrix product are of eight columns; there is an even number of them.
func (c *Codes) Steps() int {
	return (len(c.Columns) + 2*abi.StepColumns - 1) / (2 * abi.StepColumns) * 2
}

// Row is where the row of an object lies.
func (c *Codes) Row(object int) int64 { return c.Rows + int64(object)*int64(c.RowBytes()) }

// DeviceBytes is the memory of the codes, also of none.
func (c *Codes) DeviceBytes() int64 {
	if c == nil {
		return 0
	}
	return c.End
}

// boundable says whether the bound can count a query: its items ask for different columns, each by one span of weight 1.
// dense is how many bits the masks have of items whose attributes have more codes than a mask has bits.
func (c *Codes) boundable(q *postings.MatchQuery) (ok bool, dense int) {
	var seen [MaxColumns / 64]uint64
	for i := range q.Items {
		item := &q.Items[i]
		column := c.ColumnOf[item.Attr]
		if item.Count == 0 || column == nothingThere {
			continue
		}
		if column == noColumn || item.Weight != 1 || item.Count != 1 || seen[column/64]>>(column%64)&1 != 0 {
			return false, 0
		}
		seen[column/64] |= 1 << (column % 64)
		if c.wide[column] {
			span := q.Spans[item.First]
			dense += int(min(span.Hi-span.Lo, abi.MaskCodes))
		}
	}
	return true, dense
}

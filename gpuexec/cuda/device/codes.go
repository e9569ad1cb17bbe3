//go:build cuda

package device

import (
	"math"
	"sync/atomic"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index"
)

// A codesLayout says which attributes of an index have their codes on the device as bytes too, for the filter
// (kernels/bound.cuh), which calls them columns: those that are bit-sliced and narrow, with so few codes that these and
// "missing" fit a byte. An object's row has a byte for each.
//
// Codes are a third form of what planes and postings hold, derived from the planes on the device, and the first to be left
// out: they take only memory that both leave, and an index that is streamed has none. They pay where a query counts many
// attributes, so an index needs minColumns of them.
type codesLayout struct {
	columns  []uint32 // attributes
	columnOf []uint32 // by attribute: its column, else noColumn, or nothingThere where no object has a keyword
	wide     []bool   // by column: it has more codes than a mask has bits
	objects  int      // rows; the last group is filled up
	// Places in the memory: plane << 8 | planes of each column come first, then come codeOf of each attribute, columnOf, the rows.
	codeOf, columnOfAt, rows, end int64
}

const (
	minColumns   = 32
	noColumn     = math.MaxUint32
	nothingThere = noColumn - 1
)

// newCodesLayout returns nil where there are no codes, as where there are fewer columns than least (0: minColumns). It takes
// no more than most.
func newCodesLayout(x *index.Index, layout *residentLayout, most, least int) *codesLayout {
	s := layout.sliced
	if s == nil || layout.streamed || most == 0 {
		return nil
	}
	if least == 0 {
		least = minColumns
	}
	c := &codesLayout{objects: s.groups * index.GroupObjects, columnOf: make([]uint32, layout.attributes)}
	for a, attribute := range x.Attributes() {
		own := &s.attributes[a]
		switch {
		case attribute.Layout == index.LayoutSliced && own.Planes == 0:
			c.columnOf[a] = nothingThere
		case own.Planes == 0 || own.Codes > abi.MaxCodes || len(c.columns) == most:
			c.columnOf[a] = noColumn
		default:
			c.columnOf[a] = uint32(len(c.columns))
			c.columns = append(c.columns, uint32(a))
			c.wide = append(c.wide, own.Codes > abi.MaskCodes)
		}
	}
	if len(c.columns) < least {
		return nil
	}
	c.codeOf = alignUp(4 * int64(len(c.columns)))
	c.columnOfAt = alignUp(c.codeOf + 8*int64(layout.attributes))
	c.rows = alignUp(c.columnOfAt + 4*int64(layout.attributes))
	c.end = c.rows + int64(c.objects)*int64(c.rowBytes())
	return c
}

func (c *codesLayout) rowBytes() int {
	return (len(c.columns) + abi.ChunkColumns - 1) &^ (abi.ChunkColumns - 1)
}

// steps of the matrix product are of eight columns; there is an even number of them.
func (c *codesLayout) steps() int {
	return (len(c.columns) + 2*abi.StepColumns - 1) / (2 * abi.StepColumns) * 2
}

// deviceBytes is the memory of the codes.
func (c *codesLayout) deviceBytes() int64 {
	if c == nil {
		return 0
	}
	return c.end
}

// residentCodes are the codes of an index on the device.
type residentCodes struct {
	*codesLayout
	memory abi.Pointer
	// rest is for how many batches more the filter is left alone, because it did not pay on this index (filterPolicy).
	rest atomic.Int32
}

// loadCodes derives the codes from planes that have been loaded.
func (r *resident) loadCodes(u *uploader, layout *codesLayout) (err error) {
	c := &residentCodes{codesLayout: layout}
	r.codes = c // freed with the resident
	if c.memory, err = allocDevice(c.end); err != nil {
		return deviceError("allocating the codes", err)
	}
	columns, codeOf := make([]uint32, len(c.columns)), make([]abi.Pointer, r.attributes)
	for i, a := range c.columns {
		columns[i] = r.sliced.attributes[a].Plane<<8 | r.sliced.attributes[a].Planes
	}
	for a := range codeOf {
		codeOf[a] = r.sliced.attributes[a].CodeOf
	}
	for _, table := range []struct {
		at    int64
		bytes []byte
	}{{0, arrayBytes(columns)}, {c.codeOf, arrayBytes(codeOf)}, {c.columnOfAt, arrayBytes(c.columnOf)}} {
		if err := u.whole(c.placed(table.at), table.bytes); err != nil {
			return err
		}
	}
	var list steps
	for i := range r.parts {
		part := &r.parts[i]
		if part.groups == 0 {
			continue
		}
		objects := part.groups * index.GroupObjects
		argument := abi.BoundCodes{
			Planes: r.dataOf(i), Columns: c.memory, Codes: c.row(part.firstTile * index.TileObjects),
			PlanesOfGroup: uint32(r.sliced.planesOfGroup), Objects: uint32(objects), ColumnCount: uint32(len(c.columns)),
			RowBytes: uint32(c.rowBytes()),
		}
		f := r.kernels.filter.codes
		launch(&list, f, objects/f.threads, c.rowBytes()/abi.ChunkColumns, &argument)
	}
	return deviceError("deriving the codes", list.run(u.stream, u.copied[0]))
}

func (c *residentCodes) placed(at int64) abi.Pointer { return c.memory + abi.Pointer(at) }

// row is where the row of an object lies.
func (c *residentCodes) row(object int) abi.Pointer {
	return c.placed(c.rows + int64(object)*int64(c.rowBytes()))
}

func (c *residentCodes) free() error {
	if c == nil || c.memory == 0 {
		return nil
	}
	p := c.memory
	c.memory = 0
	return deviceError("freeing the codes", freeDevice(p))
}

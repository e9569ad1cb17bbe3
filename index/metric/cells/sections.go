package cells

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
)

// Sections are the index as a file has it. Head is small; what lies beside it is read in place.
type Sections struct {
	// Head is, little-endian: version (u32, 1), objects (u32), cells (u32), dims (u32), seed (u64), and the recall table to the end.
	Head      []byte
	Starts    []uint32  // one more than cells: the first position of each, and the number of objects
	Order     []uint32  // position to object
	Centroids []float32 // [cell][dims]
	Radii     []float32 // by cell
}

const (
	version   = 1
	headBytes = 24
)

// Sections returns what a file has to keep, shared with the index.
func (x *Index) Sections() Sections {
	var head []byte
	for _, v := range []int{version, len(x.order), len(x.radii), x.centroids.Dims()} {
		head = binary.LittleEndian.AppendUint32(head, uint32(v))
	}
	head = binary.LittleEndian.AppendUint64(head, x.parameters.Seed)
	return Sections{x.recall.Append(head), x.starts, x.order, x.elements, x.radii}
}

// Open reads an index of so many objects of so many dimensions. It borrows what it is given, which must not change. It checks all that searching
// relies on; that the cells are right is looked at by Verify.
func Open(s Sections, m metric.Metric, dims int, objects uint32) (*Index, error) {
	x := &Index{elements: s.Centroids, starts: s.Starts, order: s.Order, radii: s.Radii}
	if err := x.read(s.Head, dims, objects); err != nil {
		return nil, fmt.Errorf("damaged cells: %w", err)
	}
	if err := x.open(m, dims); err != nil {
		return nil, fmt.Errorf("opening cells: %w", err)
	}
	return x, nil
}

func (x *Index) read(head []byte, dims int, objects uint32) error {
	u32 := binary.LittleEndian.Uint32
	if len(head) < headBytes {
		return fmt.Errorf("a head of %d bytes, which has %d at least", len(head), headBytes)
	}
	if v := u32(head); v != version {
		return fmt.Errorf("version %d, where this program reads version %d: build the index again, or use the program that built it", v, version)
	}
	n, cells, wide := u32(head[4:]), u32(head[8:]), u32(head[12:])
	x.parameters = Parameters{Cells: int(cells), Seed: binary.LittleEndian.Uint64(head[16:])}
	switch {
	case n != objects || int64(wide) != int64(dims) || wide == 0:
		return fmt.Errorf("they have %d objects of %d dimensions, where there are %d of %d", n, wide, objects, dims)
	case cells > MaxCells || cells > n || cells == 0 && n > 0:
		return fmt.Errorf("%d cells of %d objects: there are 1 to %d, and no more than objects", cells, n, MaxCells)
	case uint64(len(x.starts)) != uint64(cells)+1 || uint64(len(x.radii)) != uint64(cells) || uint64(len(x.order)) != uint64(n) ||
		uint64(len(x.elements)) != uint64(cells)*uint64(dims):
		return fmt.Errorf("%d starts, %d radii, %d coordinates of centroids and %d positions, where there are %d cells, %d dimensions and %d objects",
			len(x.starts), len(x.radii), len(x.elements), len(x.order), cells, dims, n)
	}
	var err error
	if x.recall, err = recall.Read(head[headBytes:], float64(cells)); err != nil {
		return err
	}
	if x.recall.Queries > 0 && x.recall.Objects != n-1 {
		return fmt.Errorf("their recall was measured with %d objects, where there are %d", x.recall.Objects, n)
	}
	return x.places()
}

// places checks where objects lie.
func (x *Index) places() error {
	n := uint32(len(x.order))
	if x.starts[0] != 0 || x.starts[len(x.radii)] != n {
		return fmt.Errorf("the cells begin at %d and end at %d, of %d objects", x.starts[0], x.starts[len(x.radii)], n)
	}
	seen := make([]uint64, (uint64(n)+63)/64)
	for c := range x.radii {
		lo, hi := x.starts[c], x.starts[c+1]
		if lo >= hi || hi > n {
			return fmt.Errorf("cell %d has the positions %d to %d, of %d", c, lo, hi, n)
		}
		if !(x.radii[c] >= 0) {
			return fmt.Errorf("cell %d has the radius %v", c, x.radii[c])
		}
		for at, id := range x.order[lo:hi] {
			if id >= n || seen[id/64]>>(id%64)&1 > 0 || at > 0 && id <= x.order[lo+uint32(at)-1] {
				return fmt.Errorf("position %d has object %d of %d: each is at one position, and those of a cell ascend", lo+uint32(at), id, n)
			}
			seen[id/64] |= 1 << (id % 64)
		}
	}
	for _, e := range x.elements {
		if e-e != 0 {
			return errors.New("a centroid has a coordinate that is no number")
		}
	}
	return nil
}

// Verify compares every object with every centroid: each has to be in the cell of the nearest, within its radius. The space has the objects by id.
func (x *Index) Verify(space *metric.Vectors) error {
	if space.Len() != x.Len() || space.Dims() != x.centroids.Dims() {
		return fmt.Errorf("damaged cells: of %d objects, where there are %d", x.Len(), space.Len())
	}
	v, values := vector{space: space}, make([]float64, x.Cells())
	for c := range x.radii {
		for _, id := range x.order[x.starts[c]:x.starts[c+1]] {
			v.query(id, x.centroids).Values(0, uint32(len(values)), values)
			for other, value := range values {
				if value < values[c] || value == values[c] && other < c {
					return fmt.Errorf("damaged cells: object %d is in cell %d, and cell %d is nearer", id, c, other)
				}
			}
			if d := space.Metric().Distance(values[c]); d > float64(x.radii[c]) {
				return fmt.Errorf("damaged cells: object %d is %v from the centroid of cell %d, whose radius is %v", id, d, c, x.radii[c])
			}
		}
	}
	return nil
}

package graph

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/internal/varint"
)

// ErrDamaged is wrapped by errors about bytes that are no encoding of a graph.
var ErrDamaged = errors.New("not the encoding of a graph")

// Append appends the encoding of the graph to dst. Numbers are unsigned varints of the least length:
//
//	vertices, and for each:
//	  its label's number; and if it is new, which is the next number: length and bytes of the label
//	  its neighbours with smaller numbers: how many; the first, and the gaps to the others, less 1
//
// A graph has one encoding, and an encoding is one graph.
func (g *Graph) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.Len()))
	known := uint32(0)
	for v, label := range g.label {
		dst = binary.AppendUvarint(dst, uint64(label))
		if label == known {
			known++
			name := g.labels.Names[label]
			dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		}
		near := g.Neighbours(v)
		for len(near) > 0 && int(near[len(near)-1]) > v {
			near = near[:len(near)-1]
		}
		dst = binary.AppendUvarint(dst, uint64(len(near)))
		next := int32(0)
		for _, u := range near {
			dst = binary.AppendUvarint(dst, uint64(u-next))
			next = u + 1
		}
	}
	return dst
}

// Decode makes the graph that data is the encoding of, and nothing but. Labels are pieces of data. The error is ErrDamaged.
func (g *Graph) Decode(data string) error {
	var d decoder
	if err := d.read(g, data); err != nil {
		return g.fail(err)
	}
	if err := g.labels.Index(); err != nil {
		return g.fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	return nil
}

// decoder is scratch memory for reading graphs.
type decoder struct {
	smaller []int32 // neighbours with smaller numbers, vertex by vertex
	counts  []int32 // how many each has
	fill    []int32
}

// read is Decode without what concerns the spelling of labels alone. It allocates nothing once it has read as large a graph.
func (d *decoder) read(g *Graph, data string) error {
	g.reset()
	r := varint.Reader{Data: data}
	n := r.Number(MaxVertices)
	if r.Failed || n == 0 || n > len(data)/2 {
		return fmt.Errorf("%w: %d bytes are no graph of %d vertices", ErrDamaged, len(data), n)
	}
	d.smaller, d.counts = d.smaller[:0], d.counts[:0]
	g.start = grown(g.start, n+1)
	clear(g.start)
	for v := range n {
		label := r.Number(len(g.labels.Names))
		if label == len(g.labels.Names) {
			g.labels.Names = append(g.labels.Names, r.Text(MaxLabelBytes))
		}
		g.label = append(g.label, uint32(label))
		count := r.Number(min(v, MaxEdges-len(d.smaller)))
		d.counts = append(d.counts, int32(count))
		next := 0
		for range count {
			u := next + r.Number(v-1-next)
			if r.Failed {
				break
			}
			d.smaller = append(d.smaller, int32(u))
			g.start[u]++
			next = u + 1
		}
		if r.Failed {
			return fmt.Errorf("%w: wrong at vertex %d", ErrDamaged, v)
		}
		g.start[v] += int32(count)
	}
	if r.At < len(data) {
		return fmt.Errorf("%w: it goes on behind its vertices", ErrDamaged)
	}
	d.join(g)
	return nil
}

// join fills in the neighbours, where start counts how many a vertex has. They ascend: smaller ones come first, and larger ones one after
// the other.
func (d *decoder) join(g *Graph) {
	sum := int32(0)
	d.fill = d.fill[:0]
	for v, n := range g.start {
		g.start[v] = sum
		d.fill = append(d.fill, sum)
		sum += n
	}
	g.near = grown(g.near, int(sum))
	smaller := d.smaller
	for v, count := range d.counts {
		for _, u := range smaller[:count] {
			g.near[d.fill[v]], g.near[d.fill[u]] = u, int32(v)
			d.fill[v]++
			d.fill[u]++
		}
		smaller = smaller[count:]
	}
}

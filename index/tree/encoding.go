package tree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/internal/varint"
)

// ErrDamaged is wrapped by errors about bytes that are no encoding of a tree.
var ErrDamaged = errors.New("not the encoding of a tree")

// Append appends the encoding of the tree to dst. Numbers are unsigned varints of the least length:
//
//	nodes, and for each in preorder:
//	  its children
//	  its label's number; and if it is new, which is the next number: length and bytes of the label
//
// A node takes 2 bytes as a rule, and a label its bytes once. A tree has one encoding, and an encoding is one tree.
func (t *Tree) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(t.Len()))
	known := uint32(0)
	for i, label := range t.label {
		dst = binary.AppendUvarint(dst, uint64(t.children(i)))
		dst = binary.AppendUvarint(dst, uint64(label))
		if label == known {
			known++
			name := t.labels.Names[label]
			dst = append(binary.AppendUvarint(dst, uint64(len(name))), name...)
		}
	}
	return dst
}

// children is how many a node has.
func (t *Tree) children(node int) int {
	n := 0
	for at, end := int32(node)+1, int32(node)+t.size[node]; at < end; at += t.size[at] {
		n++
	}
	return n
}

// Decode makes the tree that data is the encoding of, and nothing but. Labels are pieces of data. The error is ErrDamaged.
func (t *Tree) Decode(data string) error {
	if err := t.read(data); err != nil {
		return t.fail(err)
	}
	if err := t.labels.Index(); err != nil {
		return t.fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	return nil
}

// read is Decode without what concerns the spelling of labels alone. It allocates nothing once it has read as large a tree.
func (t *Tree) read(data string) error {
	t.reset()
	r := varint.Reader{Data: data}
	n := r.Number(MaxNodes)
	if r.Failed || n == 0 || n > len(data)/2 {
		return fmt.Errorf("%w: %d bytes are no tree of %d nodes", ErrDamaged, len(data), n)
	}
	open := int32(-1) // the node whose children come; size counts those that are still to come
	for i := range n {
		children := r.Number(n - 1 - i)
		label := r.Number(len(t.labels.Names))
		if label == len(t.labels.Names) {
			t.labels.Names = append(t.labels.Names, r.Text(MaxLabelBytes))
		}
		if r.Failed || i > 0 && open < 0 {
			return fmt.Errorf("%w: wrong at node %d", ErrDamaged, i)
		}
		t.label = append(t.label, uint32(label))
		t.parent = append(t.parent, open)
		t.size = append(t.size, int32(children))
		if open >= 0 {
			t.size[open]--
		}
		for open = int32(i); open >= 0 && t.size[open] == 0; open = t.parent[open] {
			t.size[open] = int32(i) + 1 - open
		}
	}
	if open >= 0 || r.At < len(data) {
		return fmt.Errorf("%w: it ends elsewhere than its nodes do", ErrDamaged)
	}
	return nil
}

package tree

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/internal/varint"
)

// branch is a binary branch: the labels of a node, of its first child and of its next sibling, by their numbers.
type branch [3]uint32

// none stands for a child or sibling that is not there, which is not the same as one with an empty label.
const none = ^uint32(0)

// branch returns the branch of a node.
func (t *Tree) branch(node int) branch {
	b := branch{t.label[node], none, none}
	size := int(t.size[node])
	if size > 1 {
		b[1] = t.label[node+1]
	}
	if p := t.parent[node]; p >= 0 && node+size < int(p+t.size[p]) {
		b[2] = t.label[node+size]
	}
	return b
}

// Scanner enumerates the keywords of a tree, one for each node: pairs (branch, i) where i counts the earlier nodes with the
// same branch, so that the match count of two trees is the size of the multiset intersection of their branches. The zero value is
// ready; Reset reuses the memory. Not safe for concurrent use.
//
//	for s.Reset(&t); s.Next(); {
//		use(s.Key())
//	}
type Scanner struct {
	tree       *Tree
	next       int // node
	branch     branch
	occurrence uint32
	seen       map[branch]uint32
	key        []byte
}

// Reset begins with a tree, which must not change meanwhile.
func (s *Scanner) Reset(t *Tree) {
	s.tree, s.next = t, 0
	if s.seen == nil {
		s.seen = make(map[branch]uint32)
	}
	clear(s.seen)
}

// Next moves to the next keyword, in preorder; it is false after the last.
func (s *Scanner) Next() bool {
	if s.next == s.tree.Len() {
		return false
	}
	s.branch = s.tree.branch(s.next)
	s.occurrence = s.seen[s.branch]
	s.seen[s.branch] = s.occurrence + 1
	s.next++
	return true
}

// Key returns the current keyword, valid until the next call: the labels of the node, its first child and its next sibling, each as
// its length plus 1 and its bytes, or 0 where there is none; then the occurrence, unless it is 0. Numbers are unsigned varints.
// No two (branch, occurrence) share a key.
func (s *Scanner) Key() []byte {
	key := s.key[:0]
	for _, label := range s.branch {
		if label == none {
			key = append(key, 0)
			continue
		}
		name := s.tree.labels.Names[label]
		key = append(binary.AppendUvarint(key, uint64(len(name))+1), name...)
	}
	if s.occurrence > 0 {
		key = binary.AppendUvarint(key, uint64(s.occurrence))
	}
	s.key = key
	return key
}

// Name returns a key for people: "a(b) c #2" is a node a with the first child b and the next sibling c, which the tree has for the second
// time. Labels are written as in brackets. A key that Key did not make comes out as it is.
func Name(key string) string {
	r := varint.Reader{Data: key}
	var labels [3]string
	var there [3]bool
	for i := range labels {
		if r.At < len(key) && key[r.At] == 0 {
			r.At++
			continue
		}
		there[i] = true
		n := r.Number(MaxLabelBytes + 1)
		if r.Failed || n-1 > len(key)-r.At {
			return strings.Clone(key)
		}
		labels[i] = string(appendLabel(nil, key[r.At:r.At+n-1]))
		r.At += n - 1
	}
	name := labels[0]
	if there[1] {
		name += "(" + labels[1] + ")"
	}
	if there[2] {
		name += " " + labels[2]
	}
	if r.At == len(key) {
		return name
	}
	occurrence := r.Number(MaxNodes)
	if r.Failed || occurrence == 0 || r.At < len(key) {
		return strings.Clone(key)
	}
	return fmt.Sprintf("%s #%d", name, occurrence+1)
}

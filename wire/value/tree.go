// Package value holds values whose shape only their reader knows: what a condition of a query asks of a column type that the
// protocol was not written for.
package value

import (
	"iter"
	"math"
	"strconv"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// Kind is the type of a value. As a text it is one for errors: "a number".
type Kind = msgpack.Kind

// The kinds.
const (
	None   = msgpack.None   // of the zero Tree: there is no value
	Null   = msgpack.Null   // null, which is a value
	Bool   = msgpack.Bool   // [Tree.Bool]
	Number = msgpack.Number // [Tree.Int], [Tree.Float], [Tree.Number]
	String = msgpack.String // [Tree.Text]
	Bytes  = msgpack.Binary // [Tree.Text]; only MessagePack can say it
	Array  = msgpack.Array  // [Tree.Elements]
	Map    = msgpack.Map    // [Tree.Members]
)

// Tree is a value: a scalar, or an array or a map of values. It cannot be changed, any part of it is a Tree as well, and two
// are the same value if they are ==. The zero Tree is no value.
//
// A tree is its own MessagePack encoding, in one string, in the one form that a [Builder] writes. So it takes the
// memory of its content and nothing for its structure: untrusted input becomes a tree of at most 4 times its length, in JSON
// and MessagePack alike (a tree of nodes would be 16 or 32 times the length of a list of small numbers). To pass it on is to
// copy two words, and to encode it is to append it. The price is that a tree is read from its front: members are found by
// stepping over those before them, which is what somebody who reads a condition once does anyway.
//
// A number is what was written, exactly, however that was spelled: 5, 5.0, 5e0 and a float64 of 5 are the same. It is an
// integer where it is whole and fits 64 bits (floats beyond 2^53 stay floats: which integer was meant is not known), else
// a float64 where the shortest decimal of one denotes it, and else the decimal text itself. No number is NaN or infinite.
//
// The order of a map's members is that in which they were written, and is part of the value. No two have the same name.
type Tree struct {
	text string // the encoding
}

// IsZero reports whether there is no value.
func (t Tree) IsZero() bool { return t.text == "" }

// Size returns the bytes that the tree takes.
func (t Tree) Size() int { return len(t.text) }

// head returns the head of the value, which a Builder has written.
func (t Tree) head() msgpack.Head {
	h, _ := msgpack.ParseHead(t.text)
	return h
}

// Kind returns the type of the value.
func (t Tree) Kind() Kind {
	if k := t.head().Kind; k != msgpack.Extension {
		return k
	}
	return Number
}

// Bool returns what a Bool is; false for any other kind.
func (t Tree) Bool() bool { return t.text != "" && t.text[0] == msgpack.True }

// Text returns the content of a String or of Bytes, and "" for any other kind. It keeps the whole tree in memory.
func (t Tree) Text() string {
	if h := t.head(); h.Kind == msgpack.String || h.Kind == msgpack.Binary {
		return t.text[h.Size : h.Size+int(h.N)]
	}
	return ""
}

// Int returns a Number that is an integer of 64 bits with a sign. ok is false for any other value.
func (t Tree) Int() (v int64, ok bool) {
	if t.head().Kind != msgpack.Number {
		return 0, false
	}
	switch c := t.text[0]; c {
	case msgpack.Float32, msgpack.Float64:
		return 0, false
	case msgpack.Int64, msgpack.Uint64:
		bits := msgpack.BigEndian(t.text[1:9])
		return int64(bits), c == msgpack.Int64 || bits <= math.MaxInt64
	}
	return int64(msgpack.ParseNumber(t.text)), true // which a float64 holds
}

// Float returns the float64 nearest to a Number. ok is false for any other kind, and for numbers beyond the range of a float64.
func (t Tree) Float() (v float64, ok bool) {
	switch h := t.head(); h.Kind {
	case msgpack.Number:
		return msgpack.ParseNumber(t.text), true
	case msgpack.Extension:
		v, err := strconv.ParseFloat(t.decimal(h), 64)
		return v, err == nil
	}
	return 0, false
}

// Number returns a Number in decimal digits, exactly and as JSON has it, and "" for any other kind.
func (t Tree) Number() string {
	switch h := t.head(); h.Kind {
	case msgpack.Number:
		return string(t.appendNumber(nil))
	case msgpack.Extension:
		return t.decimal(h)
	}
	return ""
}

// decimal is the text of a number that has no other form, after the byte that says so.
func (t Tree) decimal(h msgpack.Head) string { return t.text[h.Size+1 : h.Size+int(h.N)] }

// Len returns how many elements an Array or members a Map has; 0 for any other kind.
func (t Tree) Len() int {
	switch h := t.head(); h.Kind {
	case msgpack.Array:
		return int(h.N)
	case msgpack.Map:
		return int(h.N / 2)
	}
	return 0
}

// Elements yields the elements of an Array; nothing for any other kind.
func (t Tree) Elements() iter.Seq[Tree] {
	return func(yield func(Tree) bool) {
		h := t.head()
		if h.Kind != msgpack.Array {
			return
		}
		rest := t.text[h.Size:]
		for range h.N {
			n := length(rest)
			if !yield(Tree{rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Members yields the names and values of a Map, in their order; nothing for any other kind.
func (t Tree) Members() iter.Seq2[string, Tree] {
	return func(yield func(string, Tree) bool) {
		h := t.head()
		if h.Kind != msgpack.Map {
			return
		}
		rest := t.text[h.Size:]
		for range h.N / 2 {
			name, n := length(rest), 0
			n = name + length(rest[name:])
			if !yield(Tree{rest[:name]}.Text(), Tree{rest[name:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// Member returns the member of a Map by its name, and the zero Tree where there is none.
func (t Tree) Member(name string) Tree {
	for n, v := range t.Members() {
		if n == name {
			return v
		}
	}
	return Tree{}
}

// length returns how many bytes the first value of s takes.
func length(s string) int {
	at := 0
	for items := uint64(1); items > 0; items-- {
		h, _ := msgpack.ParseHead(s[at:])
		at += h.Size
		if h.Kind == msgpack.Array || h.Kind == msgpack.Map {
			items += h.N
		} else {
			at += int(h.N)
		}
	}
	return at
}

// Extent is how large a tree is, for whoever sets limits.
type Extent struct {
	Nodes  int // values: the tree itself and all that it holds, but for the names of members
	Depth  int // how deeply arrays and maps nest; 0 for a scalar
	Text   int // bytes of the longest string, name or decimal text
	Binary int // bytes of the longest Bytes
}

// Extent measures the tree.
func (t Tree) Extent() (e Extent) {
	var open walk
	for s := t.text; s != ""; {
		name := open.next()
		if !name {
			e.Nodes++
		}
		h, _ := msgpack.ParseHead(s)
		s = s[h.Size:]
		switch h.Kind {
		case msgpack.Array, msgpack.Map:
			open = append(open, container{h.N, h.Kind == msgpack.Map})
			e.Depth = max(e.Depth, len(open))
			continue
		case msgpack.String:
			e.Text = max(e.Text, int(h.N))
		case msgpack.Extension:
			e.Text = max(e.Text, int(h.N)-1)
		case msgpack.Binary:
			e.Binary = max(e.Binary, int(h.N))
		}
		s = s[h.N:]
	}
	return e
}

// walk is the arrays and maps that are open while a tree is read from its front.
type walk []container

type container struct {
	left   uint64 // items to come; two for a member
	object bool   // it is a map
}

// next leaves what has ended and takes an item of what is open then. It says whether that is the name of a member.
func (w *walk) next() (name bool) {
	for len(*w) > 0 && (*w)[len(*w)-1].left == 0 {
		*w = (*w)[:len(*w)-1]
	}
	if len(*w) == 0 {
		return false
	}
	c := &(*w)[len(*w)-1]
	name = c.object && c.left%2 == 0
	c.left--
	return name
}

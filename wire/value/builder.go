package value

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// Builder makes a tree from its front. The zero value is ready, and again after each call of Tree, in the same memory:
//
//	var b value.Builder
//	b.Map()
//	b.Name("near").Array().Float(52.5).Float(13.4).End()
//	b.Name("within").Int(20)
//	b.End()
//	point, err := b.Tree()
//
// Its methods return the builder. What goes wrong is returned by Tree. What is said here again in other words has the same
// encoding: two builders that were given the same value give the same tree.
type Builder struct {
	dst  []byte
	open []place
	err  error
}

// place is an array or a map that has not ended.
type place struct {
	at    int  // of its head, which has the longest form until it ends
	items int  // so far; two for a member
	names bool // it is a map
}

// headSize is the length of a head of the longest form.
const headSize = 5

// ErrIncomplete is what Tree returns for something that is not exactly one value.
var ErrIncomplete = errors.New("not one whole value: every array and map takes an End, and every name a value")

// RepeatedError is what Tree returns for a map that has two members of the same name.
type RepeatedError struct{ Name string }

func (e *RepeatedError) Error() string { return fmt.Sprintf("the name %q is there twice", e.Name) }

// Null adds null.
func (b *Builder) Null() *Builder {
	b.item(false)
	b.dst = append(b.dst, msgpack.Nil)
	return b
}

// Bool adds true or false.
func (b *Builder) Bool(v bool) *Builder {
	b.item(false)
	if v {
		b.dst = append(b.dst, msgpack.True)
	} else {
		b.dst = append(b.dst, msgpack.False)
	}
	return b
}

// Int adds an integer.
func (b *Builder) Int(v int64) *Builder {
	b.item(false)
	b.dst = msgpack.AppendInt(b.dst, v)
	return b
}

// Uint adds an integer.
func (b *Builder) Uint(v uint64) *Builder {
	b.item(false)
	b.dst = msgpack.AppendUint(b.dst, v)
	return b
}

// Float adds a number, which must be finite.
func (b *Builder) Float(v float64) *Builder {
	b.item(false)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		b.fail(fmt.Errorf("%v is no number", v))
	}
	b.dst = appendFloat(b.dst, v)
	return b
}

// Number adds a number in the spelling of JSON, of any size and with any number of digits.
func (b *Builder) Number(text string) *Builder {
	b.item(false)
	d, ok := scan(text)
	if !ok {
		b.fail(fmt.Errorf("%.40q is no number", text))
	}
	b.dst = d.append(b.dst, text)
	return b
}

// String adds a string, which must be UTF-8.
func (b *Builder) String(s string) *Builder {
	b.item(false)
	b.text(s)
	return b
}

func (b *Builder) text(s string) {
	if !utf8.ValidString(s) {
		b.fail(errors.New("a string is not UTF-8"))
	}
	b.dst = msgpack.AppendString(b.dst, s)
}

// Bytes adds binary.
func (b *Builder) Bytes(s string) *Builder {
	b.item(false)
	b.dst = append(msgpack.AppendBinHead(b.dst, len(s)), s...)
	return b
}

// Array begins an array, whose elements follow, and then End.
func (b *Builder) Array() *Builder { return b.begin(false) }

// Map begins a map, whose members follow, each a Name and a value, and then End.
func (b *Builder) Map() *Builder { return b.begin(true) }

func (b *Builder) begin(names bool) *Builder {
	b.item(false)
	b.open = append(b.open, place{at: len(b.dst), names: names})
	b.dst = append(b.dst, make([]byte, headSize)...)
	return b
}

// Name begins a member of a map.
func (b *Builder) Name(name string) *Builder {
	b.item(true)
	b.text(name)
	return b
}

// item checks that what is added, a name or not, may stand here, and counts it.
func (b *Builder) item(name bool) {
	n := len(b.open)
	if n == 0 {
		if name || len(b.dst) > 0 {
			b.fail(ErrIncomplete)
		}
		return
	}
	p := &b.open[n-1]
	if name != (p.names && p.items%2 == 0) {
		b.fail(ErrIncomplete)
	}
	p.items++
}

// End ends the array or map that was begun last.
func (b *Builder) End() *Builder {
	n := len(b.open)
	if n == 0 {
		b.fail(ErrIncomplete)
		return b
	}
	p := b.open[n-1]
	b.open = b.open[:n-1]
	var buf [headSize]byte
	var head []byte
	if p.names {
		if p.items%2 != 0 {
			b.fail(ErrIncomplete)
		}
		head = msgpack.AppendMapHead(buf[:0], p.items/2)
	} else {
		head = msgpack.AppendArrayHead(buf[:0], p.items)
	}
	copy(b.dst[p.at:], head)
	b.dst = slices.Delete(b.dst, p.at+len(head), p.at+headSize)
	return b
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Tree returns what was built and forgets it. The error is ErrIncomplete, a *RepeatedError, or says which number or string is none.
func (b *Builder) Tree() (Tree, error) {
	t, err := Tree{string(b.dst)}, b.err
	if err == nil && (t.IsZero() || len(b.open) > 0) {
		err = ErrIncomplete
	}
	b.Reset()
	if err == nil {
		err = t.checkNames()
	}
	if err != nil {
		return Tree{}, err
	}
	return t, nil
}

// Reset forgets what was built. Memory is kept for the next tree unless it is large.
func (b *Builder) Reset() {
	clear(b.dst)
	const most = 1 << 16
	if cap(b.dst) > most {
		b.dst = nil
	}
	*b = Builder{dst: b.dst[:0], open: b.open[:0]}
}

// checkNames looks for a map that has a name twice.
func (t Tree) checkNames() error {
	for s := t.text; s != ""; {
		h, _ := msgpack.ParseHead(s)
		if h.Kind == msgpack.Map {
			if name, ok := (Tree{s}).repeated(); ok {
				return &RepeatedError{Name: name}
			}
		}
		s = s[h.Size:]
		if h.Kind != msgpack.Map && h.Kind != msgpack.Array {
			s = s[h.N:]
		}
	}
	return nil
}

// repeated finds a name that the map at the start of t has twice.
func (t Tree) repeated() (string, bool) {
	n := t.Len()
	if n < 2 {
		return "", false
	}
	names := make([]string, 0, n)
	for name := range t.Members() {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range n - 1 {
		if names[i] == names[i+1] {
			return names[i], true
		}
	}
	return "", false
}

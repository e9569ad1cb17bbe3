package tree

import (
	"fmt"
	"strings"
)

// Parse makes the tree that a text in brackets says. A node is {label children}:
//
//	{a{b}{c{d}}}     a has the children b and c, and c has d
//
// A label goes from its brace to the next one. Blanks (space, tab, line feed, carriage return) around a label and between
// nodes mean nothing, so that a tree can be written over several lines. A backslash before {, }, a backslash or a blank
// makes it part of the label: {\{\}} is a node with the label {}, and {\ } one with the label of one space. Before anything else a
// backslash is an error, as is anything behind the root. {} is a node with the empty label.
//
// The errors say at which byte.
func (t *Tree) Parse(text string, limits Limits) error {
	t.reset()
	limits = limits.filled()
	open := int32(-1) // the node whose children come
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case isBlank(c):
			at++
		case c == '{' && open < 0 && t.Len() > 0:
			return t.fail(fmt.Errorf("byte %d: a second tree begins: a value is one tree", at))
		case c == '{':
			label, next, err := readLabel(text, at+1)
			if err != nil {
				return t.fail(err)
			}
			if err = limits.checkLabel(label); err != nil {
				return t.fail(fmt.Errorf("byte %d: %w", at, err))
			}
			if err = limits.checkNodes(t.Len() + 1); err != nil {
				return t.fail(err)
			}
			open, at = t.add(open, label), next
		case c == '}' && open >= 0:
			open = t.parent[open]
			at++
		case open < 0 && t.Len() == 0:
			return fmt.Errorf("byte %d: %q where a tree begins with {", at, first(text[at:]))
		case open < 0:
			return t.fail(fmt.Errorf("byte %d: %q behind the root's }", at, first(text[at:])))
		default:
			return t.fail(fmt.Errorf("byte %d: %q after a child: a label stands before the children, and braces in it are written \\{ and \\}", at, first(text[at:])))
		}
	}
	switch {
	case t.Len() == 0:
		return errEmpty
	case open >= 0:
		return t.fail(fmt.Errorf("the text ends before the node %.40q does: a } is missing", t.Label(int(open))))
	}
	t.count()
	return nil
}

// readLabel reads the label that begins at a byte of text. next is the brace that ends it, or the text's end.
func readLabel(text string, from int) (label string, next int, err error) {
	next = len(text)
	if n := strings.IndexAny(text[from:], `{}\`); n >= 0 {
		next = from + n
	}
	if next == len(text) || text[next] != '\\' {
		return strings.Trim(text[from:next], blanks), next, nil
	}
	var b strings.Builder
	kept := 0 // how much of it no trimming takes away
	for next = from; next < len(text); next++ {
		c := text[next]
		if c == '{' || c == '}' {
			break
		}
		if isBlank(c) {
			if kept > 0 {
				b.WriteByte(c)
			}
			continue
		}
		if c == '\\' {
			next++
			if next == len(text) || !isBlank(text[next]) && strings.IndexByte(`{}\`, text[next]) < 0 {
				return "", 0, fmt.Errorf(`byte %d: a backslash stands before {, }, a blank or another backslash, and before nothing else`, next-1)
			}
			c = text[next]
		}
		b.WriteByte(c)
		kept = b.Len()
	}
	return b.String()[:kept], next, nil
}

const blanks = " \t\n\r"

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// first is the first symbol of a text, for an error.
func first(text string) string {
	for i := range text {
		if i > 0 {
			return text[:i]
		}
	}
	return text
}

// AppendText appends the tree in brackets, in the one form that has no blank too many. Parse makes the same tree of it.
func (t *Tree) AppendText(dst []byte) []byte {
	open := int32(-1)
	for i := range t.label {
		for ; open != t.parent[i]; open = t.parent[open] {
			dst = append(dst, '}')
		}
		dst = appendLabel(append(dst, '{'), t.Label(i))
		open = int32(i)
	}
	for ; open >= 0; open = t.parent[open] {
		dst = append(dst, '}')
	}
	return dst
}

// String is the tree in brackets.
func (t *Tree) String() string { return string(t.AppendText(nil)) }

func appendLabel(dst []byte, label string) []byte {
	lead := len(label) - len(strings.TrimLeft(label, blanks))
	trail := len(strings.TrimRight(label, blanks))
	for i := range len(label) {
		c := label[i]
		if c == '{' || c == '}' || c == '\\' || isBlank(c) && (i < lead || i >= trail) {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return dst
}

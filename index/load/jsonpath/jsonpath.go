// Package jsonpath finds values within nested JSON by a path.
package jsonpath

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Path leads from an object to values within it: the name of a field, then steps, each of them a point and a name, or brackets with the number of an
// element, from 0.
//
//	address.city      the field city of the object in address
//	authors[0].name   of the first author
//	authors.name      of every author: a list is all its elements where no number says which one
//	authors[].name    the same
//
// Names that have points or brackets themselves cannot be steps.
type Path struct {
	Head  string
	steps []step
}

// step is a name, or, of an empty name, the number of an element; -1 are all.
type step struct {
	name    string
	element int
}

// Parse reads a path of at least two parts. Not ok: the text is none, and can be a name only.
func Parse(text string) (p Path, ok bool) {
	name, rest := cutName(text)
	if p.Head = name; name == "" || rest == "" {
		return Path{}, false
	}
	for rest != "" {
		s := step{element: -1}
		if rest[0] == '.' {
			if s.name, rest = cutName(rest[1:]); s.name == "" {
				return Path{}, false
			}
		} else {
			number, after, closed := strings.Cut(rest[1:], "]")
			n, err := strconv.ParseUint(number, 10, 31)
			if rest = after; number != "" {
				s.element = int(n)
			}
			if rest != "" && rest[0] != '.' && rest[0] != '[' || !closed || number != "" && (err != nil || number != strconv.FormatUint(n, 10)) {
				return Path{}, false
			}
		}
		p.steps = append(p.steps, s)
	}
	return p, true
}

// cutName cuts a name off a path.
func cutName(text string) (name, rest string) {
	if at := strings.IndexAny(text, ".[]"); at >= 0 {
		if text[at] == ']' {
			return "", text
		}
		return text[:at], text[at:]
	}
	return text, ""
}

// Plain says that a name can be a step.
func Plain(name string) bool { return name != "" && !strings.ContainsAny(name, ".[]") }

// Find gives each value that the path leads to, in their order, from the value of its head, which must be valid JSON.
func (p *Path) Find(head []byte, each func(value []byte)) { find(trim(head), p.steps, each) }

func find(value []byte, steps []step, each func([]byte)) {
	if len(steps) == 0 {
		each(value)
		return
	}
	s := steps[0]
	switch {
	case len(value) == 0:
	case value[0] == '[' && s.name == "":
		at := 0
		elements(value, func(_, element []byte) bool {
			if s.element < 0 || at == s.element {
				find(element, steps[1:], each)
			}
			at++
			return s.element < 0 || at <= s.element
		})
	case value[0] == '[':
		elements(value, func(_, element []byte) bool {
			find(element, steps, each)
			return true
		})
	case value[0] == '{' && s.name != "":
		elements(value, func(name, field []byte) bool {
			if !named(name, s.name) {
				return true
			}
			find(field, steps[1:], each)
			return false
		})
	}
}

// named compares a name as it is written.
func named(written []byte, name string) bool {
	if inner := written[1 : len(written)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner) == name
	}
	var text string
	return json.Unmarshal(written, &text) == nil && text == name
}

// elements gives the elements of an array, or the names and values of an object, until it is told to stop.
func elements(value []byte, each func(name, element []byte) bool) {
	rest := trim(value[1:])
	for len(rest) > 0 && rest[0] != ']' && rest[0] != '}' {
		var name []byte
		if value[0] == '{' {
			end := valueEnd(rest)
			name, rest = rest[:end], trim(rest[end:])
			rest = trim(rest[1:]) // the colon
		}
		end := valueEnd(rest)
		if !each(name, rest[:end]) {
			return
		}
		if rest = trim(rest[end:]); len(rest) > 0 && rest[0] == ',' {
			rest = trim(rest[1:])
		}
	}
}

// valueEnd is where the value ends that a valid text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

func trim(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

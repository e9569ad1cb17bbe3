package guess

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/load/elements"
	"github.com/geniemq/geniemq/index/load/jsonpath"
)

const (
	// mostWithin is how many columns a field of objects is taken apart into. One with more names has keys that are values.
	mostWithin = 64
	// deepest is how many objects lie within each other at most.
	deepest = 8
)

// elements makes lines of a JSON array.
func (s *sample) elements() error {
	lines, err := io.ReadAll(elements.Lines(bytes.NewReader(s.text)))
	if err != nil {
		if s.all || !errors.Is(err, elements.ErrOpen) {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1] // the sample ends within an element
	}
	s.text = lines
	return nil
}

// member is a field of objects: what was seen of it.
type member struct {
	name    string
	path    string
	members []*member // of objects that it has, or whose lists it has
	values  bool      // it also has what is neither an object, a list of objects, nor null
}

// fields finds the columns of JSON Lines, in the order in which they come first: fields, and those of objects within them by their paths.
func (g *Guess) fields(s *sample) error {
	var outermost member
	looked := 0
	for line := range bytes.Lines(s.text) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if looked++; looked > lookedRecords {
			break
		}
		d := jsontext.NewDecoder(bytes.NewReader(line))
		if d.PeekKind() == '{' {
			_ = outermost.look(d, 0) // what cannot be read is counted later
		}
	}
	var names []string
	for _, m := range outermost.members {
		if !utf8.ValidString(m.name) || strings.TrimSpace(m.name) != m.name {
			continue
		}
		paths := m.leaves(nil)
		if m.values || len(m.members) == 0 || len(paths) > mostWithin || paths == nil || !jsonpath.Plain(m.name) {
			names = append(names, m.name)
			continue
		}
		names = append(names, paths...)
		g.note("%q has objects: their fields are columns with points in their names", m.name)
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: has no JSON objects, one per line or all in one array, from which a schema could be guessed", s.name)
	}
	g.named(names, true)
	return nil
}

// look reads an object, whose fields become members.
func (m *member) look(d *jsontext.Decoder, depth int) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		at := slices.IndexFunc(m.members, func(other *member) bool { return other.name == name })
		if at < 0 {
			at = len(m.members)
			path := name
			if depth > 0 {
				path = m.path + "." + name
			}
			m.members = append(m.members, &member{name: name, path: path})
		}
		if err := m.members[at].value(d, depth+1); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// value reads the value of a member.
func (m *member) value(d *jsontext.Decoder, depth int) error {
	switch kind := d.PeekKind(); {
	case kind == '{' && depth < deepest && len(m.members) <= mostWithin:
		return m.look(d, depth)
	case kind == '[':
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != ']' {
			if d.PeekKind() == '[' {
				m.values = true
				if err := d.SkipValue(); err != nil {
					return err
				}
				continue
			}
			if err := m.value(d, depth); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return err
	default:
		m.values = m.values || kind != 'n'
		return d.SkipValue()
	}
}

// leaves adds the paths to what is no object; nil: some name cannot be part of a path, or something is an object at times.
func (m *member) leaves(to []string) []string {
	if len(m.members) == 0 {
		return append(to, m.path)
	}
	if m.values {
		return nil
	}
	for _, inner := range m.members {
		if !jsonpath.Plain(inner.name) || !utf8.ValidString(inner.name) || strings.TrimSpace(inner.name) != inner.name {
			return nil
		}
		if to = inner.leaves(to); to == nil {
			return nil
		}
	}
	return to
}

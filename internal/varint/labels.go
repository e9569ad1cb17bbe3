package varint

import (
	"fmt"
	"unicode/utf8"
)

// Labels are the distinct labels of a structure, numbered in the order in which they were first seen. The zero value has none, and
// keeps its memory when it is reset.
type Labels struct {
	// Names are the labels by number. Who adds to them calls Index before labels are looked up.
	Names []string
	ids   map[string]uint32 // Names backwards
}

// Reset forgets all.
func (l *Labels) Reset() {
	l.Names = l.Names[:0]
	clear(l.ids)
}

// Of is the number of a label; false where there is none.
func (l *Labels) Of(label string) (id uint32, ok bool) {
	id, ok = l.ids[label]
	return id, ok
}

// Add returns the number of a label, which gets the next one where it is new.
func (l *Labels) Add(label string) uint32 {
	if id, ok := l.ids[label]; ok {
		return id
	}
	if l.ids == nil {
		l.ids = make(map[string]uint32)
	}
	id := uint32(len(l.Names))
	l.Names = append(l.Names, label)
	l.ids[label] = id
	return id
}

// Index lets labels be looked up that were read into Names. The error says which of them cannot be one.
func (l *Labels) Index() error {
	read := l.Names // which Add puts back where they are
	l.Reset()
	if l.ids == nil {
		l.ids = make(map[string]uint32, len(read))
	}
	for i, name := range read {
		if int(l.Add(name)) != i {
			return fmt.Errorf("the label %.40q is there twice", name)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("the label %.40q is not UTF-8", name)
		}
	}
	return nil
}

package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/wire"
)

// stored are the stored columns of hits: their names, in the order in which hits have them, and which have numbers alone.
type stored struct {
	names   []string
	numbers map[string]bool
	cells   map[*wire.Hit]map[string]Field
}

func storedOf(hits []wire.Hit) *stored {
	s := &stored{numbers: make(map[string]bool), cells: make(map[*wire.Hit]map[string]Field, len(hits))}
	for i := range hits {
		h := &hits[i]
		cells := make(map[string]Field)
		for _, f := range Fields(h.Payload) {
			if _, known := s.numbers[f.Name]; !known {
				s.names = append(s.names, f.Name)
				s.numbers[f.Name] = true
			}
			cells[f.Name] = f
			s.numbers[f.Name] = s.numbers[f.Name] && (f.Number || f.Text == "")
		}
		s.cells[h] = cells
	}
	return s
}

func (s *stored) cell(h *wire.Hit, name string) Field { return s.cells[h][name] }

// Field is a stored column of a hit.
type Field struct {
	Name   string
	Text   string   // texts without quotes, nothing for null, what has parts as JSON
	List   []string // of an array of texts, numbers, true and false: these
	Number bool
}

// shown is a field for people: a list without brackets and quotes. What was asked for comes first, as the rest may have no room.
func (f Field) shown(asked []string) string {
	if f.List == nil {
		return f.Text
	}
	list := slices.Clone(f.List)
	slices.SortStableFunc(list, func(a, b string) int {
		first, second := slices.Contains(asked, a), slices.Contains(asked, b)
		switch {
		case first && !second:
			return -1
		case second && !first:
			return 1
		}
		return 0
	})
	return strings.Join(list, ", ")
}

// Fields are the stored columns of a hit, in their order. A payload that is no JSON object is one field without a name.
func Fields(payload json.RawMessage) (fields []Field) {
	if len(payload) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	whole := []Field{{Name: "payload", Text: string(payload)}}
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') || !json.Valid(payload) {
		return whole
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return whole
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return whole
		}
		f := cellOf(value)
		f.Name = fmt.Sprint(name)
		fields = append(fields, f)
	}
	return fields
}

// cellOf is a value, which is JSON or empty.
func cellOf(value json.RawMessage) Field {
	f := Field{Text: string(value)}
	var text string
	switch {
	case len(value) == 0:
	case string(value) == "null":
		f.Text = ""
	case value[0] == '"' && json.Unmarshal(value, &text) == nil:
		f.Text = text
	case value[0] == '[':
		f.List = listOf(value)
	default:
		f.Number = value[0] == '-' || value[0] >= '0' && value[0] <= '9'
	}
	return f
}

// listOf are the elements of an array that has no parts within them; nil of any other.
func listOf(value json.RawMessage) []string {
	var elements []json.RawMessage
	if json.Unmarshal(value, &elements) != nil {
		return nil
	}
	list := make([]string, len(elements))
	for i, element := range elements {
		if len(element) == 0 || element[0] == '[' || element[0] == '{' {
			return nil
		}
		list[i] = cellOf(element).Text
	}
	return list
}

package answers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/geniemq/geniemq/wire"
)

// stored are the stored columns of hits: their names, in the order in which hits have them, and which have numbers alone.
type stored struct {
	names   []string
	numbers map[string]bool
	cells   map[*wire.Hit]map[string]string
}

func storedOf(hits []wire.Hit) *stored {
	s := &stored{numbers: make(map[string]bool), cells: make(map[*wire.Hit]map[string]string, len(hits))}
	for i := range hits {
		h := &hits[i]
		cells := make(map[string]string)
		for _, f := range Fields(h.Payload) {
			if _, known := s.numbers[f.Name]; !known {
				s.names = append(s.names, f.Name)
				s.numbers[f.Name] = true
			}
			cells[f.Name] = f.Text
			s.numbers[f.Name] = s.numbers[f.Name] && (f.Number || f.Text == "")
		}
		s.cells[h] = cells
	}
	return s
}

func (s *stored) cell(h *wire.Hit, name string) string { return s.cells[h][name] }

// Field is a stored column of a hit.
type Field struct {
	Name   string
	Text   string // as people write it: texts without quotes, nothing for null, what has parts as JSON
	Number bool
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
		f := Field{Name: fmt.Sprint(name), Text: string(value)}
		var text string
		switch {
		case string(value) == "null":
			f.Text = ""
		case value[0] == '"' && json.Unmarshal(value, &text) == nil:
			f.Text = text
		default:
			f.Number = value[0] == '-' || value[0] >= '0' && value[0] <= '9'
		}
		fields = append(fields, f)
	}
	return fields
}

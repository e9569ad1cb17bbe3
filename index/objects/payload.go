package objects

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// PayloadWriter makes the JSON object that is stored with an object: its payload columns and stored texts by
// name, in schema order. A missing cell is left out; without any cell there is no payload.
type PayloadWriter struct {
	names  [][]byte // quoted name of each schema column that is stored, nil for the others
	buffer []byte
	value  jsontext.Value
}

func NewPayloadWriter(s *schema.Schema) *PayloadWriter {
	p := &PayloadWriter{names: make([][]byte, len(s.Columns))}
	for i := range s.Columns {
		// What is stored of other types is kept by object, by column: see column.Keeper.
		if c := &s.Columns[i]; c.Type == schema.PayloadColumn || c.Store && c.Type == schema.TextColumn && s.Kind == schema.Documents {
			p.names[i], _ = jsontext.AppendQuote(nil, c.Name) // Validate has checked that names are UTF-8
		}
	}
	return p
}

// Object returns the payload of a record, valid until the next call. On an error column is the faulty one.
func (p *PayloadWriter) Object(rec *schema.Record) (payload []byte, column int, err error) {
	p.buffer = append(p.buffer[:0], '{')
	for i, name := range p.names {
		cell := &rec.Cells[i]
		if name == nil || len(cell.Values) == 0 && cell.JSON == nil {
			continue
		}
		if len(p.buffer) > 1 {
			p.buffer = append(p.buffer, ',')
		}
		p.buffer = append(p.buffer, name...)
		p.buffer = append(p.buffer, ':')
		if err := p.add(cell); err != nil {
			return nil, i, err
		}
	}
	if len(p.buffer) == 1 {
		return nil, 0, nil
	}
	p.buffer = append(p.buffer, '}')
	return p.buffer, 0, nil
}

func (p *PayloadWriter) add(cell *schema.Cell) (err error) {
	switch {
	case cell.JSON != nil:
		p.value = append(p.value[:0], cell.JSON...)
		if err = p.value.Compact(); err == nil {
			p.buffer = append(p.buffer, p.value...)
		}
	case len(cell.Values) == 1:
		p.buffer, err = jsontext.AppendQuote(p.buffer, cell.Values[0])
	default:
		for i, value := range cell.Values {
			p.buffer = append(p.buffer, "[,"[min(i, 1)])
			if p.buffer, err = jsontext.AppendQuote(p.buffer, value); err != nil {
				return err
			}
		}
		p.buffer = append(p.buffer, ']')
	}
	return err
}

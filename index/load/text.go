package load

import (
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/human"
)

// textLines decodes one record per line: the line is the cell of one column.
type textLines struct {
	*lines
	cells  *jsonCells
	column int
}

func newText(r *Reader) (decoder, error) {
	if r.shape.key != "" {
		return nil, fmt.Errorf("%s: text lines have no key column, but the schema names %q: leave key out (keys are then "+
			"the object ids) or use another format", r.name, r.shape.key)
	}
	column, err := r.lineColumn()
	if err != nil {
		return nil, err
	}
	return &textLines{newLines(r), newJSONCells(r.shape), column}, nil
}

// lineColumn returns the column that a line is the cell of: the only text column, or else the only indexed one.
func (r *Reader) lineColumn() (int, error) {
	var texts, indexed []int
	var names []string
	for i, c := range r.shape.columns {
		if !c.Type.Indexed() {
			continue
		}
		if c.Type == schema.TextColumn {
			texts = append(texts, i)
		}
		indexed = append(indexed, i)
		names = append(names, c.Name)
	}
	switch {
	case len(texts) == 1:
		return texts[0], nil
	case len(indexed) == 1:
		return indexed[0], nil
	}
	return 0, fmt.Errorf("%s: a text line fills one column, but the schema indexes %s (%s): use csv, tsv or jsonl",
		r.name, human.Count(len(names), "column"), schema.List(names))
}

func (t *textLines) next(rec *schema.Record) error {
	line, err := t.nextLine()
	if err != nil {
		return err
	}
	rec.Line = t.n
	if !readableBytes(line) {
		return t.r.bad(rec.Line, "%s", unreadable(line))
	}
	// A blank line is an object without keywords whatever Schema.Missing says: skipping it would shift the ids.
	if text := strings.TrimSpace(string(line)); text != "" {
		t.cells.written(&rec.Cells[t.column], t.column, text)
	}
	return nil
}

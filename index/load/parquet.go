package load

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/load/columnar"
	"github.com/geniemq/geniemq/index/schema"
)

// parquetRows decodes files of Apache Parquet: the fields that the schema has columns for, each of which is a value or a list of values.
type parquetRows struct {
	r      *Reader
	source *columnar.Reader // nil of a part
	rows   *columnar.Rows
	at     int           // among them
	leaves []parquetLeaf // of the fields that are read
	from   [][]string    // by column of the schema, of the record at hand: the values that it is made of; nil: it is one of the file's
	n      int64
}

// parquetLeaf is where the values of a column of the file go.
type parquetLeaf struct {
	columns []int // of the schema, or keyColumn
	parts   []parquetPart
	text    func(parquet.Value) (text string, number bool)
	list    int // the least definition level of what is an element of a list, null or not; 0: the field is no list
}

// parquetPart is where a value goes that a column is made of, among others.
type parquetPart struct{ column, place int }

// keyColumn stands for the key among columns.
const keyColumn = -1

func newParquet(r *Reader) (d decoder, err error) {
	file, ok := r.stored.(*os.File)
	if !ok || r.source.Packed {
		return nil, fmt.Errorf("%s: Parquet is read from a file that is not compressed around it: give its path", r.name)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: Parquet is read from a file and not from a stream: write it to one", r.name)
	}
	source, err := columnar.Open(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	p := &parquetRows{r: r, rows: new(columnar.Rows)}
	fields, err := p.match(source.Schema())
	if err != nil {
		return nil, err
	}
	p.source = source.Reader(fields, r.opts.Workers)
	return p, nil
}

// again returns a decoder of some rows of the file.
func (p *parquetRows) again(r *Reader) decoder {
	of := &parquetRows{r: r, rows: &r.source.Text.(*part).rows, leaves: p.leaves, n: r.before}
	for _, texts := range p.from {
		of.from = append(of.from, slices.Clone(texts))
	}
	return of
}

// divide fills a part with the rows that come next.
func (p *parquetRows) divide(to *part) {
	to.Before, to.End, to.Last, to.Text = p.n, io.EOF, false, nil
	if err := p.source.Next(&to.rows); err != nil {
		to.End, to.Last = err, true
	}
	p.n += int64(to.rows.Len())
}

// match finds the schema's columns among those of the file, and returns which of these are read.
func (p *parquetRows) match(s *parquet.Schema) (fields []int, err error) {
	defer columnar.Damaged(&err)
	shape, paths := p.r.shape, s.Columns()
	found := make(map[string]bool)
	for i, path := range paths {
		name := path[0]
		var columns []int
		if at := shape.columnNamed(name); at >= 0 && shape.used(at) && shape.columns[at].From == nil {
			columns = append(columns, at)
		}
		if shape.key != "" && name == shape.key {
			columns = append(columns, keyColumn)
		}
		parts := p.parts(name, s)
		if columns == nil && parts == nil {
			continue
		}
		leaf, ok := s.Lookup(path...)
		if !ok || found[name] || leaf.MaxRepetitionLevel > 1 || leaf.MaxRepetitionLevel == 0 && len(path) > 1 {
			return nil, fmt.Errorf("%s: field %q is nested: a column is a value or a list of values; flatten it first", p.r.name, name)
		}
		if parts != nil && leaf.MaxRepetitionLevel > 0 {
			return nil, fmt.Errorf("%s: field %q is a list, and a column is made of fields with one value each: leave it out of from", p.r.name, name)
		}
		found[name] = true
		text, err := columnar.Text(leaf.Node.Type())
		if err != nil {
			return nil, fmt.Errorf("%s: field %q %w", p.r.name, name, err)
		}
		p.leaves, fields = append(p.leaves, parquetLeaf{columns, parts, text, listLevel(s, path)}), append(fields, i)
	}
	var names []string
	for _, field := range s.Fields() {
		names = append(names, field.Name())
	}
	for i, c := range shape.columns {
		p.r.opts.Columns.gathered(i)
		if _, missing := resolve(c.From, names); len(missing) > 0 {
			if strings.Contains(missing[0], "*") {
				return nil, fmt.Errorf("%s: no field matches %s, of which column %q is made; its fields are %s", p.r.name, missing[0], c.Name, schema.List(names))
			}
			return nil, fmt.Errorf("%s: has no field %q for column %q; its fields are %s", p.r.name, missing[0], c.Name, schema.List(names))
		}
		if shape.used(i) && c.From == nil && !found[c.Name] {
			return nil, fmt.Errorf("%s: has no field %q%s; its fields are %s", p.r.name, c.Name, didYouMean(c.Name, names), schema.List(names))
		}
	}
	if shape.key != "" && !found[shape.key] {
		return nil, fmt.Errorf("%s: has no key field %q%s; its fields are %s", p.r.name, shape.key, didYouMean(shape.key, names), schema.List(names))
	}
	return fields, nil
}

// listLevel is the definition level of the list on a path, 0 where there is none: what has less is an empty list, or no list.
func listLevel(s *parquet.Schema, path []string) (level int) {
	node := parquet.Node(s)
	for _, name := range path {
		at := slices.IndexFunc(node.Fields(), func(f parquet.Field) bool { return f.Name() == name })
		node = node.Fields()[at]
		if node.Optional() || node.Repeated() {
			level++
		}
		if node.Repeated() {
			return level
		}
	}
	return 0
}

// parts are the places of a field in columns that are made of several.
func (p *parquetRows) parts(name string, s *parquet.Schema) (parts []parquetPart) {
	for column, c := range p.r.shape.columns {
		if c.From == nil {
			continue
		}
		var names []string
		for _, field := range s.Fields() {
			names = append(names, field.Name())
		}
		at, _ := resolve(c.From, names)
		if p.from == nil {
			p.from = make([][]string, len(p.r.shape.columns))
		}
		p.from[column] = make([]string, len(at))
		for place, field := range at {
			if names[field] == name {
				parts = append(parts, parquetPart{column, place})
			}
		}
	}
	return parts
}

// line is the number of the record: there are no lines.
func (p *parquetRows) line() int64 { return p.n }

func (p *parquetRows) next(rec *schema.Record) (err error) {
	defer columnar.Damaged(&err)
	if err := p.fill(); err != nil {
		return err
	}
	row := p.at
	p.at++
	p.n++
	rec.Line = p.n
	for _, texts := range p.from {
		clear(texts)
	}
	for field := range p.leaves {
		if err := p.field(rec, &p.leaves[field], p.rows.Values(row, field)); err != nil {
			return err
		}
	}
	for column, texts := range p.from {
		if texts != nil {
			p.r.shape.gather(&rec.Cells[column], column, texts)
		}
	}
	if p.r.shape.key != "" && rec.Key == "" {
		return p.r.bad(p.n, "key field %q is missing or empty, and every record needs a key", p.r.shape.key)
	}
	return nil
}

// field adds the values of a field to a record.
func (p *parquetRows) field(rec *schema.Record, leaf *parquetLeaf, values []parquet.Value) error {
	for _, value := range values {
		if value.IsNull() {
			if leaf.list > 0 && value.DefinitionLevel() >= leaf.list {
				p.null(rec, leaf)
			}
			continue
		}
		for _, part := range leaf.parts {
			p.from[part.column][part.place], _ = leaf.text(value)
		}
		if len(leaf.columns) == 1 && leaf.columns[0] != keyColumn && p.vector(&rec.Cells[leaf.columns[0]], leaf.columns[0], value) {
			continue
		}
		text, number := leaf.text(value)
		if !readable(text) {
			return p.r.bad(p.n, "%s", unreadable(text))
		}
		for _, column := range leaf.columns {
			if column == keyColumn {
				p.r.shape.setKey(rec, text)
			} else {
				p.add(&rec.Cells[column], column, text, number)
			}
		}
	}
	return nil
}

// null takes notice of an element of a list that is null. Lists of values have fewer for it, as in JSON; where elements have their places, as in vectors, those
// after it would have others, so that the cell is at fault.
func (p *parquetRows) null(rec *schema.Record, leaf *parquetLeaf) {
	for _, column := range leaf.columns {
		if column == keyColumn {
			continue
		}
		switch cell := &rec.Cells[column]; p.r.shape.columns[column].Type {
		case schema.VectorColumn:
			notNumber(cell, "null")
		case schema.PointColumn:
			cell.Fault = "a coordinate is null: a point is a latitude and a longitude in degrees"
		}
	}
}

// fill sees to it that a row is at hand.
func (p *parquetRows) fill() error {
	if p.at < p.rows.Len() {
		return nil
	}
	if p.source == nil {
		return p.r.source.Text.(*part).End
	}
	p.at = 0
	return p.source.Next(p.rows)
}

// vector adds a finite float to the cell of a vector column, which needs no detour over text.
func (p *parquetRows) vector(cell *schema.Cell, column int, value parquet.Value) bool {
	if p.r.shape.columns[column].Type != schema.VectorColumn || len(cell.Vector) == MaxVector {
		return false
	}
	var v float64
	switch value.Kind() {
	case parquet.Float:
		v = float64(value.Float())
	case parquet.Double:
		v = value.Double()
	default:
		return false
	}
	if math.IsNaN(v) || math.IsInf(float64(float32(v)), 0) {
		return false
	}
	cell.Vector = append(cell.Vector, float32(v))
	return true
}

// add adds a value of a field to the cell of a column.
func (p *parquetRows) add(cell *schema.Cell, column int, text string, number bool) {
	c := &p.r.shape.columns[column]
	switch {
	case c.Type == schema.VectorColumn && number:
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || len(cell.Vector) == MaxVector {
			notNumber(cell, text)
		} else {
			cell.Vector = append(cell.Vector, float32(v))
		}
	case c.Type == schema.PayloadColumn && number && cell.JSON == nil && len(cell.Values) == 0 && json.Valid([]byte(text)):
		cell.JSON = json.RawMessage(text)
	case c.Type == schema.PayloadColumn && cell.JSON != nil: // a list after all
		cell.Values = append(cell.Values, string(cell.JSON), text)
		cell.JSON = nil
	case c.Type == schema.NumberColumn && number: // which needs no notation
		if !p.r.shape.isMissing(text) {
			cell.Values = append(cell.Values, text)
		}
	default:
		p.r.shape.add(cell, column, text)
	}
}

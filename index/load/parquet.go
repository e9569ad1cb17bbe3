package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/geniemq/geniemq/index/schema"
)

// parquetRows decodes files of Apache Parquet: the fields that the schema has columns for, each of which is a value or a list of values.
type parquetRows struct {
	r      *Reader
	groups []parquet.RowGroup // not begun
	rows   parquet.Rows       // of the group that is being read; nil between groups
	buffer []parquet.Row
	ready  []parquet.Row // read and not yet taken; they lie in memory of rows
	ended  bool          // rows has no more
	leaves []parquetLeaf // by column of the file
	from   [][]string    // by column of the schema, of the record at hand: the values that it is made of; nil: it is one of the file's
	n      int64
}

// parquetLeaf is where the values of a column of the file go.
type parquetLeaf struct {
	columns []int // of the schema, or keyColumn
	parts   []parquetPart
	text    func(parquet.Value) (text string, number bool)
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
	defer damaged(r.name, &err)
	source, err := parquet.OpenFile(file, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s: is not a Parquet file or damaged: %w", r.name, err)
	}
	p := &parquetRows{r: r, groups: source.RowGroups(), buffer: make([]parquet.Row, 64)}
	return p, p.match(source.Schema())
}

// damaged makes an error of a panic of the library, which trusts what a file says of itself.
func damaged(name string, err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("%s: is a damaged Parquet file: %v", name, fault)
	}
}

// match finds the schema's columns among those of the file.
func (p *parquetRows) match(s *parquet.Schema) error {
	shape, paths := p.r.shape, s.Columns()
	p.leaves = make([]parquetLeaf, len(paths))
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
			return fmt.Errorf("%s: field %q is nested: a column is a value or a list of values; flatten it first", p.r.name, name)
		}
		found[name] = true
		text, err := parquetText(leaf.Node.Type())
		if err != nil {
			return fmt.Errorf("%s: field %q %w", p.r.name, name, err)
		}
		p.leaves[i] = parquetLeaf{columns, parts, text}
	}
	var names []string
	for _, field := range s.Fields() {
		names = append(names, field.Name())
	}
	for i, c := range shape.columns {
		if _, missing := resolve(c.From, names); len(missing) > 0 {
			return fmt.Errorf("%s: has no field %q for column %q; its fields are %s", p.r.name, missing[0], c.Name, schema.List(names))
		}
		if shape.used(i) && c.From == nil && !found[c.Name] {
			return fmt.Errorf("%s: has no field %q%s; its fields are %s", p.r.name, c.Name, didYouMean(c.Name, names), schema.List(names))
		}
	}
	if shape.key != "" && !found[shape.key] {
		return fmt.Errorf("%s: has no key field %q%s; its fields are %s", p.r.name, shape.key, didYouMean(shape.key, names), schema.List(names))
	}
	return nil
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
	defer damaged(p.r.name, &err)
	if err := p.fill(); err != nil {
		return err
	}
	row := p.ready[0]
	p.ready = p.ready[1:]
	p.n++
	rec.Line = p.n
	for _, texts := range p.from {
		clear(texts)
	}
	for _, value := range row {
		leaf := &p.leaves[value.Column()]
		if leaf.text == nil || value.IsNull() {
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
			} else if err := p.add(&rec.Cells[column], column, text, number); err != nil {
				return err
			}
		}
	}
	for column, texts := range p.from {
		if texts == nil {
			continue
		}
		if err := p.r.shape.gather(&rec.Cells[column], column, texts); err != nil {
			return p.r.bad(p.n, "%v", err)
		}
	}
	if p.r.shape.key != "" && rec.Key == "" {
		return p.r.bad(p.n, "key field %q is missing or empty, and every record needs a key", p.r.shape.key)
	}
	return nil
}

// fill sees to it that a row is ready.
func (p *parquetRows) fill() error {
	for len(p.ready) == 0 {
		if p.ended {
			p.ended = false
			rows := p.rows
			p.rows = nil
			if err := rows.Close(); err != nil {
				return err
			}
		}
		if p.rows == nil {
			if len(p.groups) == 0 {
				return io.EOF
			}
			p.rows, p.groups = p.groups[0].Rows(), p.groups[1:]
		}
		n, err := p.rows.ReadRows(p.buffer)
		p.ready = p.buffer[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.ended = err != nil || n == 0
	}
	return nil
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
func (p *parquetRows) add(cell *schema.Cell, column int, text string, number bool) error {
	c := &p.r.shape.columns[column]
	switch {
	case c.Type == schema.VectorColumn && number:
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || len(cell.Vector) == MaxVector {
			return p.r.bad(p.n, "column %q: element %d is %s: a vector is at most %d finite numbers", c.Name, len(cell.Vector), text, MaxVector)
		}
		cell.Vector = append(cell.Vector, float32(v))
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
	return nil
}

// parquetText returns how values of a type are written, and whether they are numbers.
func parquetText(t parquet.Type) (func(parquet.Value) (string, bool), error) {
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case *format.DateType:
		return func(v parquet.Value) (string, bool) {
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), false
		}, nil
	case *format.TimestampType:
		return parquetTime(l), nil
	case *format.DecimalType:
		return func(v parquet.Value) (string, bool) { return decimal(parquetInteger(v), int(l.Scale)), true }, nil
	case *format.IntType:
		if !l.IsSigned {
			return func(v parquet.Value) (string, bool) {
				n := v.Uint64()
				if v.Kind() == parquet.Int32 {
					n = uint64(v.Uint32())
				}
				return strconv.FormatUint(n, 10), true
			}, nil
		}
	}
	switch kind := t.Kind(); kind {
	case parquet.Boolean:
		return func(v parquet.Value) (string, bool) { return strconv.FormatBool(v.Boolean()), false }, nil
	case parquet.Int32:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(int64(v.Int32()), 10), true }, nil
	case parquet.Int64:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(v.Int64(), 10), true }, nil
	case parquet.Float:
		return func(v parquet.Value) (string, bool) {
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), true
		}, nil
	case parquet.Double:
		return func(v parquet.Value) (string, bool) { return strconv.FormatFloat(v.Double(), 'g', -1, 64), true }, nil
	case parquet.ByteArray:
		return func(v parquet.Value) (string, bool) { return string(v.ByteArray()), false }, nil
	default:
		return nil, fmt.Errorf("is of type %s, which is neither text nor number, date or boolean", t)
	}
}

// parquetInteger is the unscaled value of a decimal.
func parquetInteger(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	data := v.ByteArray() // in two's complement, the highest byte first
	n := new(big.Int).SetBytes(data)
	if len(data) > 0 && data[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(data))))
	}
	return n
}

// decimal writes n / 10^scale.
func decimal(n *big.Int, scale int) string {
	if scale <= 0 || scale > 1000 {
		return n.String()
	}
	digits := new(big.Int).Abs(n).String()
	if short := scale + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	point := len(digits) - scale
	text := digits[:point] + "." + digits[point:]
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}

// parquetTime writes points in time in ISO 8601, with an offset if the file says that they have one.
func parquetTime(t *format.TimestampType) func(parquet.Value) (string, bool) {
	layout := "2006-01-02T15:04:05.999999999"
	if t.IsAdjustedToUTC {
		layout += "Z07:00"
	}
	at := time.UnixMilli
	switch t.Unit.Value.(type) {
	case *format.MicroSeconds:
		at = time.UnixMicro
	case *format.NanoSeconds:
		at = func(n int64) time.Time { return time.Unix(n/1e9, n%1e9) }
	}
	return func(v parquet.Value) (string, bool) { return at(v.Int64()).UTC().Format(layout), false }
}

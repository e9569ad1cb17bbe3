package workload

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W4: the rows of UCI's Adult census, repeated. A query asks for the 14 columns of one row: numbers within +-50 of
// 1,024 equal-width buckets, categories as they are.
const (
	adultRows    = 32_561 + 16_281
	adultReach   = 50
	adultColumns = 14
)

// AdultSchema is that of the files of the data set.
const AdultSchema = `
name: adult
kind: rows
header: false
missing: ["", "?"]
columns:
  - {name: age, type: number}
  - {name: workclass, type: category}
  - {name: fnlwgt, type: number}
  - {name: education, type: category}
  - {name: education-num, type: number}
  - {name: marital-status, type: category}
  - {name: occupation, type: category}
  - {name: relationship, type: category}
  - {name: race, type: category}
  - {name: sex, type: category}
  - {name: capital-gain, type: number}
  - {name: capital-loss, type: number}
  - {name: hours-per-week, type: number}
  - {name: native-country, type: category}
  - {name: income, type: skip}
`

// adultData reads the rows of both files of the data set.
func adultData(spec *schema.Schema, folder string) ([]schema.Record, error) {
	var rows []schema.Record
	for _, name := range []string{"adult.data.gz", "adult.test.gz"} {
		r, err := load.Open(filepath.Join(folder, "adult", name), spec, load.Options{Format: load.CSV})
		if err != nil {
			return nil, err
		}
		some, err := r.All(func(*load.BadRecord) {}) // the test file starts with a line that is no record
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	if len(rows) != adultRows {
		return nil, fmt.Errorf("the Adult files in %s have %d rows, expected %d", folder, len(rows), adultRows)
	}
	return rows, nil
}

func adult(ctx context.Context, opts Options) (*Workload, error) {
	spec, err := index.Builtin().ParseSchema([]byte(AdultSchema))
	if err != nil {
		return nil, err
	}
	rows, err := adultData(spec, opts.Data)
	if err != nil {
		return nil, err
	}

	w, err := buildRecords(ctx, spec, opts, func(rec *schema.Record, id int) { *rec = rows[id%len(rows)] })
	if err != nil {
		return nil, err
	}

	// The reference counts on cells: the bucket number of a number, the text of a category.
	attrs := w.Index.Attributes()
	cells := make([][adultColumns]cell, len(rows))
	for r, rec := range rows {
		for a := range adultColumns {
			if cells[r][a], err = parseCell(attrs[a], rec.Cells[a]); err != nil {
				return nil, err
			}
		}
	}

	asked := make([][adultColumns]cell, opts.Queries)
	reach := max(0, opts.Reach)
	src := newSource(opts.Seed, 'q')
	for i := range asked {
		asked[i] = cells[src.intn(len(cells))]
		w.Queries = append(w.Queries, wire.Query{K: opts.K, Items: askAdult(attrs, asked[i], reach)})
	}
	w.Reference = func(i, lo, hi int, visit func(id, count uint32)) {
		counts := make([]uint32, len(cells))
		for r, row := range cells {
			for a, c := range row {
				if c.matches(asked[i][a], reach) {
					counts[r]++
				}
			}
		}
		for id := lo; id < hi; id++ {
			if count := counts[id%len(cells)]; count > 0 {
				visit(uint32(id), count)
			}
		}
	}
	return w, nil
}

// askAdult asks for what a row has, a number by so many buckets either way.
func askAdult(attrs []postings.Attribute, row [adultColumns]cell, reach int) (items []wire.Condition) {
	for a, c := range row {
		name := attrs[a].Name
		switch {
		case c.missing:
		case attrs[a].Type == schema.Number:
			lo, hi := float64(max(c.bucket-reach, 0)), float64(c.bucket+reach)
			items = append(items, wire.Condition{Attr: name, Min: wire.Number(lo), Max: wire.Number(hi), Bucket: true})
		default:
			items = append(items, wire.Condition{Attr: name, Value: wire.String(c.text)})
		}
	}
	return items
}

// cell is one value of a row as the reference sees it.
type cell struct {
	missing bool
	bucket  int    // of a number
	text    string // of a category
}

func (c cell) matches(asked cell, reach int) bool {
	if c.missing || asked.missing {
		return false
	}
	return c.text == asked.text && c.bucket >= asked.bucket-reach && c.bucket <= asked.bucket+reach
}

func parseCell(attr postings.Attribute, raw schema.Cell) (cell, error) {
	if len(raw.Values) == 0 {
		return cell{missing: true}, nil
	}
	if attr.Type != schema.Number {
		return cell{text: raw.Values[0]}, nil
	}
	v, err := strconv.ParseFloat(raw.Values[0], 64)
	if err != nil {
		return cell{}, err
	}
	// bucket(v) is the number of interior edges <= v.
	bucket := 0
	for _, edge := range attr.Edges {
		if edge <= v {
			bucket++
		}
	}
	return cell{bucket: bucket}, nil
}

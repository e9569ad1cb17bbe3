package wire

import (
	"encoding/json"
	"math"
	"slices"
)

// columnHits are hits as they are read, column by column and in any order.
type columnHits struct {
	ids, counts, similarities, distances, scores string // packed
	keys                                         []string
	matched                                      [][]string
	columns                                      [][]ColumnEstimate
	payloads                                     []json.RawMessage
}

// columnHits decodes hits that are columns. There are at most MaxK of them, which is as many as a query can ask for.
func (d *resultDecoder) columnHits(r *Result) *Error {
	r.HitsForm = HitsColumns
	var c columnHits
	err := d.fields(func(name string) (known bool, err *Error) {
		switch name {
		case "ids":
			c.ids, err = d.r.packed()
		case "counts":
			c.counts, err = d.r.packed()
		case "similarities":
			c.similarities, err = d.r.packed()
		case "distances":
			c.distances, err = d.r.packed()
		case "scores":
			c.scores, err = d.r.packed()
		case "keys":
			r.HitsForm = HitsKeyedColumns
			c.keys, err = d.strings()
		case "matched":
			c.matched, err = nullables(d, d.strings)
		case "columns":
			c.columns, err = nullables(d, d.columns)
		case "payloads":
			c.payloads, err = nullables(d, func() (json.RawMessage, *Error) { return d.r.json(nil) })
		default:
			return false, nil
		}
		return true, err
	})
	if err == nil {
		r.Hits, err = c.hits(r.HitsForm == HitsKeyedColumns)
	}
	return err
}

// nullables reads a list of values each of which may be null.
func nullables[T any](d *resultDecoder, read func() (T, *Error)) ([]T, *Error) {
	return elements(d, []T{}, func(to *T) (err *Error) {
		if d.r.peek() == nullKind {
			d.r.skipScalar()
			return nil
		}
		*to, err = read()
		return err
	})
}

// hits puts the columns together.
func (c *columnHits) hits(keyed bool) ([]Hit, *Error) {
	n := len(c.ids) / 4
	switch {
	case len(c.ids)%4 != 0:
		return nil, badRequest("ids has %d bytes: they have 4 bytes each", len(c.ids))
	case n > MaxK:
		return nil, badRequest("ids are of %d hits: a result has at most %d", n, MaxK)
	}
	for _, list := range [...]struct {
		name string
		has  bool
		n    int
	}{{"keys", keyed, len(c.keys)}, {"matched", c.matched != nil, len(c.matched)}, {"columns", c.columns != nil, len(c.columns)}, {"payloads", c.payloads != nil, len(c.payloads)}} {
		if list.has && list.n != n {
			return nil, badRequest("%s has %d elements for %d hits", list.name, list.n, n)
		}
	}
	hits := make([]Hit, n)
	width, err := width(c.counts, n, "counts", 1, 2, 4)
	for i := range hits {
		h := &hits[i]
		h.ID = uint32(little(c.ids[4*i : 4*i+4]))
		if width > 0 {
			h.Count = uint32(little(c.counts[i*width : (i+1)*width]))
		}
		if keyed {
			h.Key = c.keys[i]
		}
		if c.matched != nil && c.matched[i] != nil {
			h.detail().Matched = c.matched[i]
		}
		if c.columns != nil && c.columns[i] != nil {
			h.detail().Columns = c.columns[i]
		}
		if c.payloads != nil {
			h.Payload = c.payloads[i]
		}
	}
	for _, column := range [...]struct {
		packed, name string
		widest       int
		put          func(*Hit, float64)
	}{
		{c.similarities, "similarities", 4, func(h *Hit, v float64) { h.Similarity, h.HasSimilarity = float32(v), true }},
		{c.distances, "distances", 8, func(h *Hit, v float64) { h.Distance, h.HasDistance = v, true }},
		{c.scores, "scores", 8, func(h *Hit, v float64) { h.Score, h.HasScore = v, true }},
	} {
		if err == nil {
			err = unpackFloats(hits, column.packed, column.name, column.widest, column.put)
		}
	}
	return hits, err
}

// width is how many bytes each of n packed elements has, 0 where there is no such column.
func width(packed string, n int, name string, widths ...int) (int, *Error) {
	if packed == "" {
		return 0, nil
	}
	if n == 0 || len(packed)%n != 0 || !slices.Contains(widths, len(packed)/n) {
		return 0, badRequest("%s has %d bytes for %d hits", name, len(packed), n)
	}
	return len(packed) / n, nil
}

// little is a little-endian number.
func little(bytes string) (v uint64) {
	for i := len(bytes) - 1; i >= 0; i-- {
		v = v<<8 | uint64(bytes[i])
	}
	return v
}

// unpackFloats puts floats into those hits that have one.
func unpackFloats(hits []Hit, packed, name string, widest int, put func(*Hit, float64)) *Error {
	width, err := width(packed, len(hits), name, 4, widest)
	if width == 0 {
		return err
	}
	for i := range hits {
		bits, v := little(packed[i*width:(i+1)*width]), 0.0
		if width == 4 {
			v = float64(math.Float32frombits(uint32(bits)))
		} else {
			v = math.Float64frombits(bits)
		}
		if math.IsInf(v, 0) {
			return badRequest("%s[%d]: %v is out of range", name, i, v)
		}
		if v == v {
			put(&hits[i], v)
		}
	}
	return nil
}

package index_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/wire/value"
)

func sum(values []any, weight func(v any) uint64) (n uint64) {
	for _, v := range values {
		n += weight(v)
	}
	return n
}

// number makes a condition on numbers or dates.
func (m *mixed) number(c *mixedColumn) *meaning {
	r := m.random
	a := m.x.Attribute(c.attr)
	one := func() (v *column.Value, low, high float64) {
		if c.kind == "number" {
			n := math.Round(r.NormFloat64()*100) / 10
			return number(n), n, n
		}
		raw, at := m.date()
		if low, high = at, at; len(raw) == len(time.DateOnly) {
			high = at + 24*3600e6 - 1
		}
		return text(raw), low, high
	}
	var spans [][2]float64
	is := &meaning{column: c, condition: column.Condition{Attr: c.name}}
	switch r.IntN(3) {
	case 0:
		v, low, high := one()
		is.condition.Value, spans = v, [][2]float64{{low, high}}
	case 1:
		for range 1 + r.IntN(3) {
			v, low, high := one()
			is.condition.In, spans = append(is.condition.In, *v), append(spans, [2]float64{low, high})
		}
	default:
		v, low, _ := one()
		w, _, high := one()
		if is.refused = low > high; is.refused && r.IntN(4) > 0 {
			return m.number(c)
		}
		is.condition.Min, is.condition.Max = v, w
		switch r.IntN(3) {
		case 0:
			is.condition.Min, low, is.refused = nil, math.Inf(-1), false
		case 1:
			is.condition.Max, high, is.refused = nil, math.Inf(1), false
		}
		spans = [][2]float64{{low, high}}
	}
	// A condition that counts stands for the buckets that it touches.
	touched := func(v any) bool {
		b, _ := a.Bucket(v.(float64))
		for _, s := range spans {
			if a.Exact && s[0] <= v.(float64) && v.(float64) <= s[1] {
				return true
			}
			lo, _ := a.Bucket(s[0])
			hi, _ := a.Bucket(s[1])
			if !a.Exact && s[1] >= a.Min && s[0] <= a.Max && lo <= b && b <= hi {
				return true
			}
		}
		return false
	}
	is.count = func(values []any) uint64 {
		return sum(values, func(v any) uint64 {
			if touched(v) {
				return 1
			}
			return 0
		})
	}
	is.met = func(values []any) bool {
		return slices.ContainsFunc(values, func(v any) bool {
			return slices.ContainsFunc(spans, func(s [2]float64) bool { return s[0] <= v.(float64) && v.(float64) <= s[1] })
		})
	}
	return is
}

// rarity is the weight of a value by how few objects have it.
func (m *mixed) rarity(c *mixedColumn, v any) uint64 {
	df := 0
	for _, values := range c.values {
		if slices.Contains(values, v) {
			df++
		}
	}
	idf, err := similarity.NewIDF(c.scale, uint64(m.objects))
	if err != nil {
		m.t.Fatal(err)
	}
	return uint64(idf.Weight(uint64(df)))
}

// named makes a condition on values that are texts: categories, bools, sets, words.
func (m *mixed) named(c *mixedColumn, counts, idf bool) *meaning {
	r := m.random
	var raw []string
	var meant []any
	for range 1 + r.IntN(3) {
		var a string
		var b []any
		switch c.kind {
		case "bool":
			a = []string{"true", "false"}[r.IntN(2)]
			b = []any{a}
		case "text":
			a = m.text()
			b = c.words(a, 1)
		default:
			var one string
			a, one = m.spelt(c)
			b = []any{one}
			if r.IntN(6) == 0 {
				a, b = "nobody", []any{"nobody"}
			}
		}
		raw, meant = append(raw, a), append(meant, b...)
	}
	is := &meaning{column: c, condition: column.Condition{Attr: c.name}}
	form := []string{"value", "in", "list", "all", "any"}[r.IntN(5)]
	switch {
	case c.kind == "text" && counts, form == "value":
		form, raw = "value", raw[:1]
		is.condition.Value = text(raw[0])
		if meant = []any{raw[0]}; c.kind == "text" {
			if meant = c.words(raw[0], 1); counts {
				meant = c.words(raw[0], c.ngrams)
			}
			is.refused = strings.TrimSpace(raw[0]) == "" && counts && false
		} else if c.fold {
			for _, class := range spellings {
				if slices.Contains(class, raw[0]) {
					meant = []any{class[0]}
				}
			}
		}
	case form == "in":
		for _, v := range raw {
			is.condition.In = append(is.condition.In, *text(v))
		}
		is.refused = c.kind == "text" || c.kind == "set" && counts
	case form == "list":
		is.condition.Other = list(m.t, "", raw)
		is.refused = c.kind != "set"
	default:
		is.condition.Other = list(m.t, form, raw)
		is.refused = counts
	}
	if c.kind == "text" && !counts {
		is.refused = is.refused || len(meant) == 0
	}
	meant = distinct(meant)
	weigh := idf && (c.kind == "text" || c.kind == "set" || c.kind == "category" && form == "value")
	is.count = func(values []any) uint64 {
		return sum(values, func(v any) uint64 {
			switch {
			case !slices.Contains(meant, v):
				return 0
			case weigh:
				return m.rarity(c, v)
			}
			return 1
		})
	}
	all := form == "all" || form == "list" || (c.kind == "text" || c.kind == "set") && form == "value"
	is.met = func(values []any) bool {
		has := func(v any) bool { return slices.Contains(values, v) }
		if all {
			return !slices.ContainsFunc(meant, func(v any) bool { return !has(v) })
		}
		return slices.ContainsFunc(meant, has)
	}
	return is
}

// grams counts the n-grams of a string, between n-1 marks at each end.
func grams(s string, n int) map[string]int {
	var padded []string
	for i := range n - 1 {
		padded = append(padded, fmt.Sprintf("<%d", i))
	}
	for _, c := range s {
		padded = append(padded, string(c))
	}
	for i := range n - 1 {
		padded = append(padded, fmt.Sprintf("%d>", i))
	}
	counts := make(map[string]int)
	for i := 0; i+n <= len(padded); i++ {
		counts[strings.Join(padded[i:i+n], "\x00")]++
	}
	return counts
}

// whole makes a condition on strings.
func (m *mixed) whole(c *mixedColumn, counts bool) *meaning {
	asked := m.title()
	is := &meaning{column: c, condition: column.Condition{Attr: c.name, Value: text(asked)}, refused: !counts}
	if !counts || m.random.IntN(10) == 0 {
		is.condition = column.Condition{Attr: c.name, Other: tree(m.t, func(b *value.Builder) { b.Map().Name("is").String(asked).End() })}
		is.refused = counts
	}
	is.count = func(values []any) (n uint64) {
		for _, v := range values {
			have := grams(v.(string), c.ngrams)
			for gram, times := range grams(asked, c.ngrams) {
				n += uint64(min(times, have[gram]))
			}
		}
		return n
	}
	is.met = func(values []any) bool { return slices.Contains(values, any(asked)) }
	return is
}

// condition makes a random condition on a random column, to count or to filter.
func (m *mixed) condition(counts bool, idf func(c *mixedColumn) bool) *meaning {
	c := m.columns[m.random.IntN(len(m.columns))]
	if m.random.IntN(6) == 0 {
		missing := m.random.IntN(2) == 0
		return &meaning{
			count: func(values []any) uint64 {
				if missing == (len(values) == 0) {
					return 1
				}
				return 0
			},
			column: c, condition: column.Condition{Attr: c.name, Other: tree(m.t, func(b *value.Builder) { b.Map().Name("missing").Bool(missing).End() })},
			met: func(values []any) bool { return missing == (len(values) == 0) },
		}
	}
	switch c.kind {
	case "number", "date":
		return m.number(c)
	case "string":
		return m.whole(c, counts)
	}
	return m.named(c, counts, idf(c))
}

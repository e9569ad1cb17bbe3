// Package alike says how alike two records are, from 0 to 1.
package alike

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/fold"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/schema"
)

// Column is a column of both records, and what it weighs beside others.
type Column struct {
	Type schema.ColumnType
	// Exact: numbers are equal or they are not, as years are. Others are as alike as the smaller is part of the larger.
	Exact  bool
	Weight float64
	Scale  Scale // of vectors and points
}

// Score is a sum of what columns say that two records have both.
type Score struct{ sum, weight float64 }

// Add adds how alike they are in a column of some weight.
func (s *Score) Add(alike, weight float64) {
	s.sum += weight * min(1, max(0, alike))
	s.weight += weight
}

// Value is the mean by weight: 1 for records that are equal in all that both have, 0 without such.
func (s *Score) Value() float64 {
	if s.weight == 0 {
		return 0
	}
	return s.sum / s.weight
}

// Compares says whether values of a type are compared at all; others only find candidates.
func Compares(t schema.ColumnType) bool {
	switch t {
	case schema.NumberColumn, schema.DateColumn, schema.TextColumn, schema.SetColumn, schema.StringColumn, schema.CategoryColumn, schema.BoolColumn:
		return true
	}
	return Far(t)
}

// day is one of dates.
const day = 24 * 3600 * 1e6

// folded makes texts equal that differ in case and accents alone.
var folded = fold.New()

// Value is what a record has in a column, made ready for being compared with many others.
type Value struct {
	texts []string
	words map[string]bool // of texts and sets
	place *Place          // of vectors and points
}

// Value makes the values of a cell ready; nil where there are none, or none that the column can take.
func (c *Column) Value(cell *schema.Cell) *Value {
	v := &Value{texts: cell.Values}
	if Far(c.Type) {
		if v.place, _ = PlaceOf(c.Type, cell); v.place == nil {
			return nil
		}
		return v
	}
	if len(v.texts) == 0 {
		return nil
	}
	if c.Type == schema.TextColumn || c.Type == schema.SetColumn {
		v.words = words(v.texts)
	}
	return v
}

// Alike says how alike two values are: texts and sets by the words that they share (Dice), strings by
// edit distance, numbers by their ratio, dates by the share of a year between them, vectors and points by the share of the scale that they are apart, all else by being equal. It is symmetric, 1 for equal values, and at least 0.
func (c *Column) Alike(one, other *Value) float64 {
	a, b := one.texts, other.texts
	switch c.Type {
	case schema.VectorColumn, schema.PointColumn:
		if d, ok := c.Scale.Distance(one.place, other.place); ok {
			return c.Scale.Alike(d)
		}
		return 0
	case schema.TextColumn, schema.SetColumn:
		return dice(one.words, other.words)
	case schema.StringColumn:
		return Edit(strings.Join(a, " "), strings.Join(b, " "))
	case schema.NumberColumn:
		x, errX := strconv.ParseFloat(a[0], 64)
		y, errY := strconv.ParseFloat(b[0], 64)
		if errX == nil && errY == nil {
			return c.numbers(x, y)
		}
	case schema.DateColumn:
		x, okX := dates.Parse(a[0])
		y, okY := dates.Parse(b[0])
		if okX && okY {
			return max(0, 1-math.Abs(x.Low-y.Low)/(365*day))
		}
	}
	for _, x := range a {
		for _, y := range b {
			if folded(x) == folded(y) {
				return 1
			}
		}
	}
	return 0
}

// Distance is how far apart two values of vectors or points are; ok is false where they cannot be compared.
func (c *Column) Distance(one, other *Value) (d float64, ok bool) {
	return c.Scale.Distance(one.place, other.place)
}

func (c *Column) numbers(x, y float64) float64 {
	switch {
	case x == y:
		return 1
	case c.Exact, x*y <= 0:
		return 0
	}
	return min(math.Abs(x), math.Abs(y)) / max(math.Abs(x), math.Abs(y))
}

// Edit is the share of the longer text that need not be edited to make the other of it, whatever case and accents are.
func Edit(a, b string) float64 {
	x, y := []rune(folded(a)), []rune(folded(b))
	if len(x)+len(y) == 0 {
		return 1
	}
	return 1 - float64(levenshtein.Distance(x, y))/float64(max(len(x), len(y)))
}

// words are the words of texts, each once, whatever case and accents are.
func words(texts []string) map[string]bool {
	all := make(map[string]bool)
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(folded(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) }) {
			all[word] = true
		}
	}
	return all
}

func dice(a, b map[string]bool) float64 {
	common := 0
	for word := range a {
		if b[word] {
			common++
		}
	}
	if len(a)+len(b) == 0 {
		return 1 // of signs alone
	}
	return 2 * float64(common) / float64(len(a)+len(b))
}

// Stored are the values that the payload of a hit has of its columns.
func Stored(payload []byte) (map[string][]string, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(payload, &raw); err != nil {
		return nil, err
	}
	stored := make(map[string][]string, len(raw))
	for name, value := range raw {
		stored[name] = texts(nil, value)
	}
	return stored, nil
}

// texts adds the scalars of a JSON value. What is nested has none.
func texts(to []string, value json.RawMessage) []string {
	switch {
	case len(value) == 0, value[0] == '{', string(value) == "null":
	case value[0] == '[':
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil {
			for _, element := range list {
				if len(element) > 0 && element[0] != '[' {
					to = texts(to, element)
				}
			}
		}
	case value[0] == '"':
		var text string
		if json.Unmarshal(value, &text) == nil && strings.TrimSpace(text) != "" {
			to = append(to, text)
		}
	default:
		to = append(to, string(value))
	}
	return to
}

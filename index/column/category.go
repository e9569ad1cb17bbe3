package column

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/fold"
	"github.com/geniemq/geniemq/index/schema"
)

// category is the type of columns that are indexed by their texts as they are.
type category struct{ traits }

// folding returns what folds the texts of a column, nil where they stay as they are.
func folding(c *schema.Column) func(text string) string {
	if !c.Fold {
		return nil
	}
	return fold.New()
}

// Objects implements Type.
func (category) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return &categoryObjects{folding(c), c.Store}, nil
}

// Keeps implements Keeper.
func (category) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Returned: c.Store}
}

type categoryObjects struct {
	fold  func(text string) string // nil: texts stay as they are
	store bool
}

// Encode appends the categories of a cell.
func (e *categoryObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, value := range cell.Values {
		if !utf8.ValidString(value) {
			return notUTF8(value)
		}
		if value = categoryText(value); e.fold != nil {
			value = e.fold(value)
		}
		dst.Strings = append(dst.Strings, value)
	}
	if e.store {
		dst.JSON = appendStrings(dst.JSON, cell.Values, false)
	}
	return nil
}

func notUTF8(value string) error { return fmt.Errorf("%.80q is not valid UTF-8", value) }

// Queries implements Type.
func (category) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	return newTextQueries(c, first, v), nil
}

func newTextQueries(c *schema.Column, first int, v Vocabulary) *textQueries {
	e := &textQueries{name: c.Name, position: first, vocabulary: v}
	if folded := folding(c); folded != nil {
		e.word = func(text string) (string, error) { return folded(text), nil }
	}
	return e
}

// textQueries finds keywords that are texts.
type textQueries struct {
	name       string
	position   int
	vocabulary Vocabulary
	word       func(text string) (string, error) // the keyword that a text stands for; nil: itself
	unordered  bool                              // there are no ranges
}

// Items adds the item of a condition.
func (e *textQueries) Items(dst *Draft, c *Condition) error {
	if o := c.Other; !o.IsZero() && (!o.Member("all").IsZero() || !o.Member("any").IsZero()) {
		return Refuse("column %q counts for a value: write {\"in\":[...]} for any of several; all and any belong to filter and exclude", e.name)
	}
	return addItem(dst, e.position, c, e)
}

// span finds categories and words, which sort by the bytes of UTF-8.
func (e *textQueries) span(c *Condition, low, high *Value) (lo, hi uint32, err error) {
	if c.Bucket {
		return 0, 0, Refuse("attribute %q is not a number column and has no buckets: leave \"unit\":\"bucket\" out", e.name)
	}
	if low != high && e.unordered {
		return 0, 0, Refuse("column %q has no order and takes no min and max: give values", e.name)
	}
	x := e.vocabulary
	if low == high {
		text, err := e.text(low)
		if err != nil {
			return 0, 0, err
		}
		keyword, ok := x.Lookup(e.position, text)
		return keyword, keyword + uint32(count(ok)), nil
	}
	var min, max string
	lo, hi = 0, x.Attribute(e.position).Keywords
	if low != nil {
		if min, err = e.text(low); err != nil {
			return 0, 0, err
		}
		lo = x.LowerBound(e.position, min)
	}
	if high != nil {
		if max, err = e.text(high); err != nil {
			return 0, 0, err
		}
		hi = x.LowerBound(e.position, max)
		if _, ok := x.Lookup(e.position, max); ok {
			hi++
		}
	}
	if low != nil && high != nil && min > max {
		return 0, 0, Refuse("attribute %q: min %.80q comes after max %.80q in the order of text; only number columns "+
			"compare by size", e.name, min, max)
	}
	return lo, hi, nil
}

// text returns the keyword that a value stands for in a category or text column.
func (e *textQueries) text(v *Value) (string, error) {
	var text string
	switch v.Kind {
	case NumberKind:
		if math.IsNaN(v.Number) {
			return "", Refuse("attribute %q: NaN is not a value to look for", e.name)
		}
		text = v.digits()
	case StringKind:
		text = categoryText(v.String)
	case BoolKind:
		text = "false"
		if v.Number != 0 {
			text = "true"
		}
	default:
		return "", refuseNull(e.name)
	}
	if e.word == nil {
		return text, nil
	}
	return e.word(text)
}

package column

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Category is the type of columns that are indexed by their texts as they are.
type Category struct{}

// Name returns category.
func (Category) Name() string { return string(schema.CategoryColumn) }

// In is true of rows and documents.
func (Category) In(kind schema.Kind) bool { return kind == schema.Rows || kind == schema.Documents }

// Check returns every fault.
func (Category) Check(_ *schema.Schema, c *schema.Column) []error {
	return append(foreign(c, "split", "layout"), checkLayout(c, schema.Text)...)
}

// Attributes returns one attribute of texts.
func (Category) Attributes(c *schema.Column) []schema.AttributeSpec { return textAttribute(c) }

func textAttribute(c *schema.Column) []schema.AttributeSpec {
	return []schema.AttributeSpec{{Name: c.Name, Layout: c.Layout, Type: schema.Text}}
}

// Objects returns the encoder of categories.
func (Category) Objects(*schema.Schema, *schema.Column) (ObjectEncoder, error) {
	return categoryObjects{}, nil
}

type categoryObjects struct{}

// Encode appends the categories of a cell.
func (categoryObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, value := range cell.Values {
		if !utf8.ValidString(value) {
			return notUTF8(value)
		}
		dst.Strings = append(dst.Strings, category(value))
	}
	return nil
}

func notUTF8(value string) error { return fmt.Errorf("%.80q is not valid UTF-8", value) }

// Queries returns the encoder of conditions on categories.
func (Category) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	return &textQueries{name: c.Name, position: first, vocabulary: v}, nil
}

// textQueries finds keywords that are texts.
type textQueries struct {
	name       string
	position   int
	vocabulary Vocabulary
	word       func(text string) (string, error) // the keyword that a text stands for; nil: itself
}

// Items adds the item of a condition.
func (e *textQueries) Items(dst *postings.MatchQuery, c *Condition) error {
	return addItem(dst, e.position, c, e)
}

// span finds categories and words, which sort by the bytes of UTF-8.
func (e *textQueries) span(c *Condition, low, high *Value) (lo, hi uint32, err error) {
	if c.Bucket {
		return 0, 0, Refuse("attribute %q is not a number column and has no buckets: leave \"unit\":\"bucket\" out", e.name)
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
		text = numberText(v.Number)
	case StringKind:
		text = category(v.String)
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

package column

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/schema"
)

// date is the type of columns of dates and times: numbers in disguise, microseconds since 1970 in UTC.
//
// What is written and what it means, package dates tells. A date without a time is all of its day, month or year in a query, and the beginning of it in an
// object.
type date struct{ number }

// KeywordName implements Namer: the ends of a bucket, or a value, are written as dates.
func (date) KeywordName(_ *schema.Schema, _ *schema.Column, keyword string) string {
	ends := strings.Split(strings.Trim(keyword, "[])"), ", ")
	for _, end := range ends {
		if v, err := strconv.ParseFloat(end, 64); err == nil {
			keyword = strings.Replace(keyword, end, dates.Format(v), 1)
		}
	}
	return keyword
}

// Objects implements Type.
func (date) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return dateObjects{cmp.Or(c.Parse, "2024-05-17, or 2024-05-17T10:30:15Z")}, nil
}

type dateObjects struct{ form string }

// Encode appends the times of a cell.
func (o dateObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, value := range cell.Values {
		s, ok := dates.Parse(value)
		if !ok {
			return fmt.Errorf("%.80q is not a date of the years 0 to 9999 in UTC: write %s; if it means "+
				"that there is no value, list it under missing in the schema", value, o.form)
		}
		dst.Numbers = append(dst.Numbers, s.Low)
	}
	return nil
}

// AppendJSON implements NumberShower.
func (date) AppendJSON(dst []byte, v float64) []byte {
	return strconv.AppendQuote(dst, dates.Format(v))
}

// Queries implements Type.
func (date) Queries(_ *schema.Schema, _ *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	a := v.Attribute(first)
	return &numberQueries{position: first, attr: a, integers: consecutive(a), read: (*numberQueries).date}, nil
}

// date reads a value of a date column.
func (e *numberQueries) date(c *Condition, v *Value) (low, high float64, err error) {
	switch v.Kind {
	case StringKind:
		s, ok := dates.Parse(v.String)
		if !ok {
			return 0, 0, Refuse("attribute %q is a date column: write a date, such as \"%s\", not %.80q", c.Attr, e.exampleDate(), v.String)
		}
		return s.Low, s.High, nil
	case NumberKind, BoolKind:
		return 0, 0, Refuse("attribute %q is a date column: write a date between quotes, such as \"%s\"", c.Attr, e.exampleDate())
	}
	return 0, 0, refuseNull(c.Attr)
}

func (e *numberQueries) exampleDate() string {
	if e.attr.Keywords > 0 {
		return dates.Format(e.attr.Min)
	}
	return "2024-05-17"
}

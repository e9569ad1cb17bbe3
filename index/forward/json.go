package forward

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/schema"
)

// LongestJSON is how many bytes a column returns of an object at most, but for what is stored in rows: see LongestRow.
func (c *Column) LongestJSON() int64 {
	const number, quoted = 40, 6 // bytes of a number or a date, and of a symbol in a string
	switch c.Form {
	case schema.KeptNumbers:
		return 2 + number*int64(c.Most)
	case schema.KeptTexts:
		return 2 + quoted*int64(c.Most)
	case schema.KeptVectors:
		return 2 + number*int64(c.Dimensions)
	}
	return 0
}

// LongestRow bounds the bytes of what is stored in the rows of an object: no row is longer than its block.
func (x *Forward) LongestRow() int {
	longest := uint32(0)
	for i := range x.stored {
		for j := range x.stored[i].blocks {
			longest = max(longest, x.stored[i].blocks[j].raw)
		}
	}
	return int(longest)
}

// AppendJSON appends what a column returns of an object, a JSON value, and says whether there is one: a number, or an array of several; a
// string; an array of numbers; what was stored, as it was given. The column is Returned.
func (r *Reader) AppendJSON(dst []byte, c *Column, id uint32) ([]byte, bool) {
	switch c.Form {
	case schema.KeptNumbers:
		return appendNumbers(dst, c.Numbers(id))
	case schema.KeptTexts:
		text := c.Text(id)
		if text == "" {
			return dst, false
		}
		dst, _ = jsontext.AppendQuote(dst, text) // the error tells of what is not UTF-8 and was replaced
		return dst, true
	case schema.KeptVectors:
		floats, bytes := c.Vector(id)
		if floats == nil && bytes == nil {
			return dst, false
		}
		dst = append(dst, '[')
		for _, v := range floats {
			dst = append(appendNumber(dst, float64(v), 32), ',')
		}
		for _, v := range bytes {
			dst = append(strconv.AppendUint(dst, uint64(v), 10), ',')
		}
		dst[len(dst)-1] = ']'
		return dst, true
	}
	value := r.Row(id).Value(c)
	return append(dst, value...), value != nil
}

func appendNumbers(dst []byte, numbers []float64) ([]byte, bool) {
	switch len(numbers) {
	case 0:
		return dst, false
	case 1:
		return appendNumber(dst, numbers[0], 64), true
	}
	dst = append(dst, '[')
	for _, v := range numbers {
		dst = append(appendNumber(dst, v, 64), ',')
	}
	dst[len(dst)-1] = ']'
	return dst, true
}

// appendNumber appends the shortest digits that mean the number. What JSON has no number for, which only a file made on purpose holds, is
// null.
func appendNumber(dst []byte, v float64, size int) []byte {
	if v-v != 0 {
		return append(dst, "null"...)
	}
	format := byte('f')
	if abs := max(v, -v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, size)
}

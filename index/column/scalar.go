package column

import (
	"math"
	"strconv"
	"strings"
)

// categoryText returns the keyword of a category's text: the text without surrounding blanks.
func categoryText(text string) string { return strings.TrimSpace(text) }

// parseNumber reads a finite decimal number. What else Go accepts, hexadecimal digits and underscores, is more likely
// a code than a number in somebody's table.
func parseNumber(text string) (float64, bool) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.IndexByte(text, '_') >= 0 {
		return 0, false
	}
	for i := range min(3, len(text)) { // after a sign and 0
		if text[i]|0x20 == 'x' {
			return 0, false
		}
	}
	return v, true
}

// Package notation reads numbers and dates as people write them in tables, and writes them as geniemq reads them: plain decimal numbers, and dates of
// ISO 8601.
//
// A notation is named by an example of itself (1.234,50) or a pattern (DD.MM.YYYY), so that a schema shows what its file looks like. It is never
// guessed from a value: 1,234 and 03/04/2024 mean two things each, and only the whole column tells which.
package notation

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/currency"
)

// numbers are the notations of numbers, by how 1234.5 is written: what stands between groups of digits, and before decimals.
var numbers = []struct {
	example string
	group   string // characters; any of them
	decimal rune
}{
	{"1234.5", "", '.'},
	{"1,234.5", ",", '.'},
	{"1.234,5", ".", ','},
	{"1 234,5", spaces, ','},
	{"1 234.5", spaces, '.'},
	{"1'234.5", "'’", '.'},
	{"1234,5", "", ','},
}

// spaces are those that stand between groups of digits: a blank, and those that do not break a line.
const spaces = " \u00a0\u202f\u2009"

// Numbers are the names of the notations of numbers.
func Numbers() []string {
	var names []string
	for _, n := range numbers {
		names = append(names, n.example)
	}
	return names
}

// Reader reads what is written in one notation.
type Reader func(text string) (plain string, ok bool)

// Number returns what reads a notation of numbers. Beside digits it takes a sign (also −, and brackets, as bookkeepers write: (12) is -12), a sign or a
// code of a currency before or after (€, USD), and a percent sign after; what they say is lost, and 50 % is 50. Groups are of three digits; those before the
// last may be of two, as in India.
func Number(example string) (Reader, error) {
	at := slices.IndexFunc(numbers, func(n struct {
		example string
		group   string
		decimal rune
	}) bool {
		return n.example == example
	})
	if at < 0 {
		return nil, fmt.Errorf("parse %q is unknown for numbers: write 1234.5 as it is written in the data, one of %s", example, quoted(Numbers()))
	}
	n := numbers[at]
	return func(text string) (string, bool) { return number(text, n.group, n.decimal) }, nil
}

func quoted(names []string) string {
	return `"` + strings.Join(names, `", "`) + `"`
}

// number rewrites one number.
func number(text, group string, decimal rune) (string, bool) {
	text, negative, ok := bare(text)
	if !ok {
		return "", false
	}
	var plain strings.Builder
	if negative {
		plain.WriteByte('-')
	}
	whole, decimals, found := strings.Cut(text, string(decimal))
	if found && decimals == "" {
		return "", false
	}
	if whole == "" && found {
		plain.WriteByte('0')
	} else if !groups(&plain, whole, group) {
		return "", false
	}
	if found {
		plain.WriteByte('.')
		for _, c := range decimals {
			if c < '0' || c > '9' {
				return "", false
			}
		}
		plain.WriteString(decimals)
	}
	return plain.String(), true
}

// groups writes the digits of a whole number.
func groups(plain *strings.Builder, whole, group string) bool {
	size, first := 0, true
	for _, c := range whole {
		switch {
		case c >= '0' && c <= '9':
			plain.WriteRune(c)
			size++
		case group == "" || !strings.ContainsRune(group, c):
			return false
		case size == 0 || size > 3 || !first && size == 1:
			return false
		default:
			size, first = 0, false
		}
	}
	return size > 0 && (first || size == 3)
}

// bare takes from a number what stands around its digits.
func bare(text string) (digits string, negative, ok bool) {
	text = trim(text)
	if inner, found := strings.CutPrefix(text, "("); found {
		if text, found = strings.CutSuffix(inner, ")"); !found {
			return "", false, false
		}
		negative, text = true, trim(text)
	}
	signs, units := 0, 0
	for {
		c, size := utf8.DecodeRuneInString(text)
		if c == '+' || c == '-' || c == '−' {
			negative = negative != (c != '+')
			signs++
		} else if size = unitBefore(text); size > 0 {
			units++
		} else {
			break
		}
		text = trim(text[size:])
	}
	text, percent := strings.CutSuffix(text, "%")
	if !percent {
		text, percent = strings.CutSuffix(text, "‰")
	}
	if percent {
		units++
	}
	text = trim(text)
	for size := unitAfter(text); size > 0; size = unitAfter(text) {
		text = trim(text[:len(text)-size])
		units++
	}
	return text, negative, signs <= 1 && units <= 1
}

func trim(text string) string { return strings.Trim(text, spaces+"\t") }

// unitBefore is how many bytes of the sign or code of a currency a text begins with.
func unitBefore(text string) int {
	c, size := utf8.DecodeRuneInString(text)
	if unicode.Is(unicode.Sc, c) {
		return size
	}
	return code(text, func(n int) string { return text[:n] })
}

// unitAfter is how many bytes of the sign or code of a currency a text ends with.
func unitAfter(text string) int {
	c, size := utf8.DecodeLastRuneInString(text)
	if unicode.Is(unicode.Sc, c) {
		return size
	}
	return code(text, func(n int) string { return text[len(text)-n:] })
}

// code is the length of a currency's code by ISO 4217, such as USD, at one end of a text, or 0.
func code(text string, end func(n int) string) int {
	const letters = 3
	if len(text) <= letters {
		return 0
	}
	if _, err := currency.ParseISO(end(letters)); err != nil {
		return 0
	}
	return letters
}

package wire

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// elsewhere is what other query languages call a field, as fold writes it.
var elsewhere = map[string][]string{
	"min":   {"gte", "ge", "gt", "from", "after", "atleast", "minimum", ">=", ">", "start", "low", "lower"},
	"max":   {"lte", "le", "lt", "to", "until", "before", "atmost", "maximum", "<=", "<", "end", "high", "upper"},
	"value": {"eq", "equal", "equals", "is", "=", "==", "term", "match"},
	"in":    {"anyof", "any", "oneof", "terms", "or"},
}

// suggestion returns " (did you mean x?)" for a name that is a known one but for case, separators, or one slip of the
// keyboard; else "".
func suggestion(known []string, name string) string {
	if len(name) > 32 {
		return ""
	}
	folded := fold(name)
	for _, k := range known {
		if fold(k) == folded || elsewhere[k] != nil && slices.Contains(elsewhere[k], strings.TrimPrefix(folded, "$")) {
			return fmt.Sprintf(" (did you mean %s?)", k)
		}
	}
	for _, k := range known {
		if len(k) > 1 && oneSlip(fold(k), folded) {
			return fmt.Sprintf(" (did you mean %s?)", k)
		}
	}
	return ""
}

// fold takes separators and capitals from a name. What has none is not copied: a message may have as many wrong names as queries.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// oneSlip reports whether b is a with one byte added, dropped or changed, or two neighbours swapped.
func oneSlip(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a)+len(b) == 1 || len(a) == 1 && len(b) == 1 ||
		len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

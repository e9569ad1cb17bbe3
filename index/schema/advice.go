package schema

import (
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index/levenshtein"
)

// Nearest returns the name within a third of the letters of a wrong one, "" when none is. Whoever asks may be wrong in every query of a message: a name takes
// some 50 ns.
func Nearest(wrong string, names []string) string {
	const longest = 64 // bytes: what a pattern compares at once, and names may come from anywhere
	if len(wrong) > longest {
		return ""
	}
	var p levenshtein.Pattern
	var runes []rune
	p.Reset([]rune(strings.ToLower(wrong)))
	best, distance := "", max(2, 1+len(wrong)/3)
	for _, name := range names {
		if len(name) > longest {
			continue
		}
		if d, ok := p.DistanceString(strings.ToLower(name), min(distance, max(len(wrong), len(name)))-1, &runes); ok {
			best, distance = name, d
		}
	}
	return best
}

// List joins names for a message, cut where it would become unreadable.
func List(names []string) string {
	const most, longest = 20, 64
	var b strings.Builder
	for i, name := range names {
		if i == most {
			fmt.Fprintf(&b, ", ... (%d in all)", len(names))
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.*s", longest, name)
	}
	return b.String()
}

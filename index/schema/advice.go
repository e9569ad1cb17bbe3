package schema

import (
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index/levenshtein"
)

// Nearest returns the name within a third of the letters of a wrong one, or within two edits where it has five letters, "" when none is. Neighbours that are swapped are one edit.
// Whoever asks may be wrong in every query of a message: a name takes some 50 ns.
func Nearest(wrong string, names []string) string {
	const longest = 64 // bytes: what a pattern compares at once, and names may come from anywhere
	if len(wrong) > longest {
		return ""
	}
	var p levenshtein.Pattern
	var runes []rune
	folded := strings.ToLower(wrong)
	p.Reset([]rune(folded))
	best, distance := "", max(2, 1+len(wrong)/3)
	if len(wrong) >= 5 {
		distance = max(distance, 3)
	}
	for _, name := range names {
		if len(name) > longest {
			continue
		}
		lower := strings.ToLower(name)
		if distance > 1 && swapped(folded, lower) {
			best, distance = name, 1
		} else if d, ok := p.DistanceString(lower, min(distance, max(len(wrong), len(name)))-1, &runes); ok {
			best, distance = name, d
		}
	}
	return best
}

// swapped says that two names differ by two neighbours that changed places.
func swapped(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	return i+2 <= len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
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

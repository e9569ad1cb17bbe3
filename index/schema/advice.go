package schema

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest returns the name within a third of the letters of a wrong one, "" when none is.
func Nearest(wrong string, names []string) string {
	const longest = 64 // the time is proportional to the length, and names may come from anywhere
	best, distance := "", max(2, 1+len(wrong)/3)
	for _, name := range names {
		if len(wrong) > longest || len(name) > longest {
			continue
		}
		d := levenshtein.ComputeDistance(strings.ToLower(wrong), strings.ToLower(name))
		if d < min(distance, max(len(wrong), len(name))) {
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

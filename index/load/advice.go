package load

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest returns " (did you mean x?)" for the name within a third of the letters of a wrong one, "" when none is.
func suggest(wrong string, names []string) string {
	const longest = 64 // a header that is really data can have cells of any length
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
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// list joins names for a message, cut where it would become unreadable.
func list(names []string) string {
	const most, longest = 40, 64
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

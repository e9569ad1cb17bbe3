package load

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// suggest returns " (did you mean x?)" for the name closest to a wrong one, "" when none is close. A match but
// for case is the closest of all.
func suggest(wrong string, names []string) string {
	best, distance := "", 1+len(wrong)/3
	for _, name := range names {
		d := levenshtein.ComputeDistance(strings.ToLower(wrong), strings.ToLower(name))
		if name != "" && d < distance {
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
	const most = 40
	if len(names) > most {
		return fmt.Sprintf("%s, ... (%d in all)", strings.Join(names[:most], ", "), len(names))
	}
	return strings.Join(names, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

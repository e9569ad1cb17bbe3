// Package stopwords has, by language, the words of texts that say little of what they are about.
package stopwords

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed lists.txt
var lists string

// Of returns the words of a language, in an order of their own, and whether there is a list. An index file keeps the words that it was built
// with, so that lists may become others.
func Of(language string) (words []string, ok bool) {
	each(func(name string, line []string) {
		if name == language {
			words, ok = append(words, line...), true
		}
	})
	return words, ok
}

// Languages are those of which there is a list, in the order of their names.
func Languages() (names []string) {
	each(func(name string, _ []string) { names = append(names, name) })
	return slices.Compact(names)
}

// each calls f with the words of each line, and the language that they are of.
func each(f func(language string, words []string)) {
	language := ""
	for line := range strings.Lines(lists) {
		line = strings.TrimSpace(line)
		name, begins := strings.CutSuffix(line, ":")
		switch {
		case line == "", line[0] == '#':
		case begins:
			language = name
		default:
			f(language, strings.Fields(line))
		}
	}
}

package table

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

const (
	zeroWidthNonJoiner = '\u200c' // Persian and others write with it
	zeroWidthJoiner    = '\u200d' // emoji of several are joined by it
)

// Clean is a text as a cell shows it, in one line: control characters are pictures of themselves, and what a terminal would obey, or could be
// made to show elsewhere than it is (marks of direction, tags, private use), is a dot.
func Clean(text string) string {
	plain := true
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < ' ':
			return '\u2400' + r
		case r == 0x7f:
			return '\u2421'
		case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
			return r
		case unicode.Is(unicode.Zs, r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			return '·'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// Width is how many cells of a terminal a text takes: wide characters two, combining ones none, and what is joined into one picture once.
func Width(text string) int { return ansi.StringWidth(text) }

// unbroken stands for hyphens while a text is wrapped, which would break dates there. Clean leaves none in a text.
const unbroken = "\ue000"

// The library takes an ASCII character that a variation selector makes wide for a narrow one, so that what it wraps or cuts may be too wide. Then it is
// asked for less.

// wrapped is a clean text in lines of at most so many cells, broken at blanks where there are some.
func wrapped(text string, width int) (lines []string) {
	width = max(width, 2) // a wide character
	text = strings.ReplaceAll(text, "-", unbroken)
	for within := width; within >= 2; within-- {
		lines = strings.Split(strings.ReplaceAll(ansi.Wrap(text, within, ""), unbroken, "-"), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		if !slices.ContainsFunc(lines, func(line string) bool { return Width(line) > width }) {
			break
		}
	}
	return lines
}

// Cut is a text within so many cells. What was longer ends in an ellipsis.
func Cut(text string, width int) (cut string) {
	for within := width; within >= 0; within-- {
		if cut = ansi.Truncate(text, within, "…"); Width(cut) <= width {
			break
		}
	}
	return cut
}

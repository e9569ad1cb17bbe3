package match

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// TestOutputClean: keys and values come from others, and command no terminal; a file has them as they are.
func TestOutputClean(t *testing.T) {
	const bad = "1\x1b[31m\u009b2J\x7f東京"
	for _, format := range []string{"csv", "jsonl"} {
		for _, clean := range []bool{true, false} {
			var out bytes.Buffer
			w := newWriter(&out, format, []string{"key", "score"})
			w.clean = clean
			if err := w.line(bad, 0.5); err != nil {
				t.Fatal(err)
			}
			if err := w.flush(); err != nil {
				t.Fatal(err)
			}
			commands := strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && unicode.IsControl(r) })
			if commands == clean || !strings.Contains(out.String(), "東京") {
				t.Errorf("%s, clean %v: %q", format, clean, out.String())
			}
		}
	}
}

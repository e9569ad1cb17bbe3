package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// TestHelpFits: the help of every command fits terminals of three widths, but for what is to be copied. Nothing of it is lost.
func TestHelpFits(t *testing.T) {
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, width := range []int{80, 120, 200} {
		var each func(path []string, cmd *cobra.Command)
		each = func(path []string, cmd *cobra.Command) {
			help := func(width int) string {
				var out bytes.Buffer
				root := newCLI(nil, &out, &out, nil).root()
				fitHelp(root, width)
				root.SetArgs(append(path[:len(path):len(path)], "--help"))
				if err := root.Execute(); err != nil {
					t.Fatal(path, err)
				}
				return out.String()
			}
			fitted := help(width)
			if words(fitted) != words(help(0)) {
				t.Errorf("%v: at %d columns the help says something else:\n%s", path, width, fitted)
			}
			copied := true // the text has commands, which are indented, and then come examples
			for line := range strings.Lines(fitted) {
				line = strings.TrimRight(line, "\n")
				switch line {
				case "Examples:":
					copied = true
				case "Usage:", "Available Commands:", "Flags:":
					copied = false
				}
				if table.Width(line) > width && !(copied && strings.HasPrefix(line, "  ")) {
					t.Errorf("%v: a line of %d columns at %d: %q", path, table.Width(line), width, line)
				}
			}
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					each(append(path[:len(path):len(path)], sub.Name()), sub)
				}
			}
		}
		each(nil, newCLI(nil, nil, nil, nil).root())
	}
}

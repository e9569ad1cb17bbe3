package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// make help says what each target does, of all that there are.
func TestMakefile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][\w-]*):([^=\n]*)$`).FindAllStringSubmatch(string(text), -1) {
		targets = append(targets, m[1])
		if !strings.Contains(m[2], "## ") {
			t.Errorf("make %s has no ## comment, which make help shows", m[1])
		}
	}
	phony := strings.Fields(regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindStringSubmatch(string(text))[1])
	slices.Sort(targets)
	slices.Sort(phony)
	if !slices.Equal(targets, phony) || len(targets) < 5 {
		t.Errorf("the targets are %v, .PHONY has %v", targets, phony)
	}
}

// What a workflow runs is what was looked at: actions are named by the hash of a commit, and may read and nothing else.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)\buses: *(.*)$`).FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %q is not pinned by the hash of a commit, with its version beside it", file, m[1])
			}
		}
		if !strings.Contains(string(text), "\npermissions:\n  contents: read\n") {
			t.Errorf("%s does not say that it may only read", file)
		}
	}
}

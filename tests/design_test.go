package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// DESIGN.md's table of packages says what TestImportTable enforces: a row per package, with what it may import of ours. A row
// names packages in full, by their last part where that is enough, or with ... for all below one. Words beside the names
// ("all of the above") are for people: such a row is not compared, nor is one of several packages.
func TestDesignTable(t *testing.T) {
	page := filepath.Join("..", "DESIGN.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| package | what it is | imports of ours |\n| --- | --- | --- |\n")
	if !ok {
		t.Fatalf("%s has no table of packages", page)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`]*)`")
	var rows []string
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s: the row %q has not three cells with something in them", page, line)
			continue
		}
		name := strings.Trim(cells[1], " `")
		rows = append(rows, name)
		if root, ok := strings.CutSuffix(name, "/..."); ok {
			rows = append(rows, packagesNamed(root+"/...")...)
			continue
		}
		rule, ok := rules[name]
		if !ok {
			t.Errorf("%s has a row for %s, which tests/imports_test.go does not know", page, name)
			continue
		}
		if words := strings.Trim(quoted.ReplaceAllString(cells[3], ""), " ,"); words != "" && words != "none" {
			continue
		}
		allowed := map[string]bool{}
		for _, m := range quoted.FindAllStringSubmatch(cells[3], -1) {
			named := packagesNamed(m[1])
			if len(named) == 0 {
				t.Errorf("%s: %s imports %s, which is no package", page, name, m[1])
			}
			for _, p := range named {
				allowed[p] = true
				if len(named) == 1 && !slices.Contains(rule.ours, p) {
					t.Errorf("%s: %s imports %s, and tests/imports_test.go does not allow it", page, name, p)
				}
			}
		}
		for _, p := range rule.ours {
			if !allowed[p] {
				t.Errorf("%s: the row of %s lacks %s", page, name, p)
			}
		}
	}
	for name := range rules {
		if !slices.Contains(rows, name) {
			t.Errorf("%s has no row for %s", page, name)
		}
	}
}

// packagesNamed are the packages that a name of the table means.
func packagesNamed(name string) (named []string) {
	root, below := strings.CutSuffix(name, "/...")
	for p := range rules {
		switch {
		case p == root, below && strings.HasPrefix(p, root+"/"):
			named = append(named, p)
		}
	}
	if len(named) > 0 || below {
		return named
	}
	for p := range rules {
		if strings.HasSuffix(p, "/"+name) {
			named = append(named, p)
		}
	}
	return named
}

package tests

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	indented = regexp.MustCompile(`(?m)^ {4}.*$`)
	codeSpan = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	// A file that is named from the root of the repository, perhaps with a *.
	named = regexp.MustCompile(`\b(?:batcher|bench|client|clients|cmd|consumer|docs|examples|gpuexec|index|internal|kernels|producer|service|tests|wire)` +
		`/[\w/*-]+[\w.*-]*\.(?:go|cu|cuh|c|h|sh|html|md|py|svg|jsonl)\b`)
)

// Whoever follows a link of a page arrives: relative links name files that exist, and what follows # is a heading of theirs.
// Files that pages and comments name exist, but for what history names.
func TestLinks(t *testing.T) {
	raced.Skip(t, raced.One)
	broken, checked, err := brokenLinks("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
	if checked < 50 {
		t.Errorf("only %d links were found: the test looks at the wrong place", checked)
	}
}

// brokenLinks looks at all pages and Go files under root. checked is how many links it followed.
func brokenLinks(root string) (broken []string, checked int, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch hidden := len(entry.Name()) > 2 && entry.Name()[0] == '.'; {
		case err != nil:
			return err
		case entry.IsDir() && (hidden || entry.Name() == "build" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		ext := filepath.Ext(path)
		if ext != ".md" && ext != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		follow := func(file, anchor, as string) error {
			checked++
			if all, err := filepath.Glob(file); err != nil || len(all) == 0 {
				broken = append(broken, fmt.Sprintf("%s: %s: there is no such file", path, as))
			} else if anchor != "" {
				page, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				if !slices.Contains(anchors(string(page)), anchor) {
					broken = append(broken, fmt.Sprintf("%s: %s: the page has no such heading", path, as))
				}
			}
			return nil
		}
		if !strings.Contains(path, "history") {
			for _, name := range named.FindAllString(link.ReplaceAllString(string(text), ""), -1) {
				if err := follow(filepath.Join(root, name), "", name); err != nil {
					return err
				}
			}
		}
		if ext == ".go" {
			return nil
		}
		prose := codeSpan.ReplaceAllString(indented.ReplaceAllString(fenced.ReplaceAllString(string(text), ""), ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue // elsewhere, and no test asks the network
			}
			name, anchor, _ := strings.Cut(m[1], "#")
			file := path
			if name != "" {
				file = filepath.Join(filepath.Dir(path), name)
			}
			if err := follow(file, anchor, m[1]); err != nil {
				return err
			}
		}
		return nil
	})
	return broken, checked, err
}

// anchors are the names that GitHub gives to the headings of a page: in lower case, letters, digits, - and _ are kept, a
// space becomes -, and a heading that was there before gets a number.
func anchors(page string) []string {
	seen := map[string]int{}
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		title := link.ReplaceAllString(m[1], "]") // of a link in a heading the text counts
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
				return r
			}
			return -1
		}, strings.ToLower(title))
		if n := seen[slug]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", slug, n))
		} else {
			all = append(all, slug)
		}
		seen[slug]++
	}
	return all
}

func TestBrokenLinks(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "# One\n\n## Two, and `more`\n\n## One\n\n[a](docs/"+"a.md) [b](docs/"+"a.md#a-page) [c](#two-and-more) [d](#one-1) [e](docs)\n"+
		"[web](https://example.com/none) `[code](none.md)`\n\n    [code](none.md)\n\n```\n[code](none.md)\n```\n")
	const docs = "docs/" // apart from the names, which TestLinks would follow
	write(docs+"a.md", "# A page\n\n[up](../README.md#one)\n")
	write("a.go", "package a // "+docs+"a.md and "+docs+"*.md\n")
	if broken, checked, err := brokenLinks(root); err != nil || len(broken) > 0 || checked != 8 {
		t.Errorf("of links that are sound, %d of them, these are said to be broken: %q, %v", checked, broken, err)
	}
	write(docs+"b.md", "[no file](c.md), [a text\nover lines](../a.md) [no heading](a.md#b), [none here](#b)\n")
	write("b.go", "package a // "+docs+"history/b.md\n")
	if broken, _, err := brokenLinks(root); err != nil || len(broken) != 5 {
		t.Errorf("of five broken links these were found: %q, %v", broken, err)
	}
}

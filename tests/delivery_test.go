package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// provenBy is a test as docs/delivery.md names it.
var provenBy = regexp.MustCompile("`([\\w/]+_test\\.go): (Test\\w+)`")

// Each promise of docs/delivery.md names tests, and they are there.
func TestDeliveryPage(t *testing.T) {
	page, err := os.ReadFile("../docs/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	faults, promises := promisesOf(string(page), "..")
	for _, fault := range faults {
		t.Error(fault)
	}
	if promises < 20 {
		t.Errorf("only %d promises were found: the test looks at the wrong place", promises)
	}
	for _, broken := range []string{
		"## What is promised\n| promise | shown by |\n| --- | --- |\n| all is well | |\n",
		"## What is promised\n| all is well | `tests/loss_test.go: TestNothing` |\n",
		"## What is promised\n| all is well | `client/client_test.go: TestKilledWorker` |\n",
	} {
		if faults, _ := promisesOf(broken, ".."); len(faults) != 1 {
			t.Errorf("%q has the faults %q", broken, faults)
		}
	}
}

// promisesOf counts the promises of a page, and finds those that no test proves.
func promisesOf(page, root string) (faults []string, promises int) {
	_, table, _ := strings.Cut(page, "## What is promised\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		promises++
		named := provenBy.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			faults = append(faults, fmt.Sprintf("no test proves %q", line))
		}
		for _, name := range named {
			source, err := os.ReadFile(filepath.Join(root, name[1]))
			if err != nil || !strings.Contains(string(source), "\nfunc "+name[2]+"(t *testing.T) {") {
				faults = append(faults, fmt.Sprintf("%s has no %s, which is to prove %.60q", name[1], name[2], line))
			}
		}
	}
	return faults, promises
}

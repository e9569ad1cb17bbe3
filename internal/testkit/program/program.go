// Package program has the geniemq command for tests that run it as a process.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is the command of this test binary. It is the one thing of tests that outlives each of them: building takes seconds, and nobody changes what was built.
var built struct {
	once sync.Once
	main bool   // Main removes it
	dir  string // "" before it is built
	err  error
}

// Path is the file of the command: $GENIEMQ_BINARY, for machines without Go, or one that is built when a test first asks. The TestMain of a package that asks ends
// with Main.
func Path(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("GENIEMQ_BINARY"); path != "" {
		return path
	}
	if !built.main {
		t.Fatal("what is built has to be removed: end TestMain with os.Exit(program.Main(m))")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "geniemq-test-"); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", built.dir, "github.com/geniemq/geniemq/cmd/geniemq").CombinedOutput()
		if err != nil {
			built.err = fmt.Errorf("building the command: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "geniemq")
}

// Main runs the tests, removes what was built for them, and returns the code to end with.
func Main(m *testing.M) int {
	built.main = true
	code := m.Run()
	if built.dir != "" {
		if err := os.RemoveAll(built.dir); err != nil {
			fmt.Fprintf(os.Stderr, "removing the command that was built: %v\n", err)
		}
	}
	return code
}

// Package generated is for tests that what was generated and checked in is what its program writes.
package generated

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Assembly compares the assembly of the package that is tested, and the declarations in stubs_amd64.go, with what the program in its folder asm writes.
func Assembly(t *testing.T, pkg, file string) {
	t.Helper()
	const stubs = "stubs_amd64.go"
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "./asm", "-out", filepath.Join(dir, file), "-stubs", filepath.Join(dir, stubs), "-pkg", pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("running the generator: %v\n%s", err, out)
	}
	for _, name := range []string{file, stubs} {
		want, got := read(t, filepath.Join(dir, name)), read(t, name)
		if len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s is not what ./asm writes: run go generate in the folder of package %s", name, pkg)
		}
	}
}

// read reads a file but for its first line, which names the command, with its paths.
func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ = bytes.Cut(data, []byte("\n"))
	return data
}

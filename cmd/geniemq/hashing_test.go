package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildEngines: whatever hashes vectors, the file is the same.
func TestBuildEngines(t *testing.T) {
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", "name: v\ncolumns: [{name: at, type: vector, functions: 10}]")
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, `{"at":[%d,%d,%d]}`+"\n", i%7, i%11, i%13)
	}
	data := write(t, dir, "v.jsonl", lines.String())
	var files [][]byte
	for _, engine := range []string{"cpu", "auto"} {
		out := filepath.Join(dir, engine+".gmq")
		if got := command(t, "", nil, "build", "--schema", schema, "--input", data, "--output", out, "--engine", engine); got.code != 0 {
			t.Fatal(got)
		}
		file, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the files differ")
	}
}

package tests

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// data returns a path in the folder of the real data, or skips the test; in CI the folder must be there.
func data(t testing.TB, elem ...string) string {
	t.Helper()
	raced.Skip(t, raced.Data)
	folder := os.Getenv("GENIEMQ_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	path := filepath.Join(append([]string{folder}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real data must be there in CI: %v", err)
		}
		t.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	return path
}

// lines reads a text file, compressed or not.
func lines(t testing.TB, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		out = append(out, scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

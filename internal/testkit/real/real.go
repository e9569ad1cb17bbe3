// Package real finds the real data that tests are held against.
package real

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// File returns the path of a file of the data, such as adult/adult.data.gz. Without the data the test is skipped, or fails where CI is set; under the race detector it is skipped.
func File(t testing.TB, name string) string {
	t.Helper()
	raced.Skip(t, raced.Data)
	folder := os.Getenv("GENIEMQ_DATA")
	if folder == "" {
		_, here, _, _ := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(here), "..", "..", "..", "..", "shared", "data")
	}
	path := filepath.Join(folder, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("real data: %v (set GENIEMQ_DATA to its folder)", err)
		}
		t.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	return path
}

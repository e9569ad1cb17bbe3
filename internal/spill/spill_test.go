package spill

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Whatever fits into memory, runs are what was appended, at every time that somebody asks, and hold no more than their budget.
func TestRunsAreWhatWasAppended(t *testing.T) {
	rng := seeded.Rand(t)
	t.Setenv("TMPDIR", t.TempDir())
	for range 200 {
		budget := &Budget{Limit: int64(rng.IntN(3000))}
		runs, want := []*Run{New(budget), New(budget), New(budget)}, make([][]byte, 3)
		for range rng.IntN(60) {
			i := rng.IntN(3)
			part := make([]byte, rng.IntN(200))
			for j := range part {
				part[j] = byte(rng.Uint32())
			}
			if err := runs[i].Append(part); err != nil {
				t.Fatal(err)
			}
			want[i] = append(want[i], part...)
			if rng.IntN(4) == 0 {
				got, err := runs[i].Bytes()
				if err != nil || !bytes.Equal(got, want[i]) || runs[i].Len() != int64(len(want[i])) {
					t.Fatalf("limit %d: run %d is %d bytes of %d, or others (%v)", budget.Limit, i, len(got), len(want[i]), err)
				}
			}
		}
		held := int64(0)
		for i, r := range runs {
			held += int64(len(r.data))
			if got, err := r.Bytes(); err != nil || !bytes.Equal(got, want[i]) {
				t.Fatalf("limit %d: run %d is %d bytes of %d, or others (%v)", budget.Limit, i, len(got), len(want[i]), err)
			}
		}
		if runtime.GOOS != "windows" && held > budget.Limit {
			t.Fatalf("%d bytes are in memory, of %d", held, budget.Limit)
		}
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v (%v)", left, err)
	}
}

// A folder that is not there is told of with what to set.
func TestNoFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("all stays in memory there")
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "nowhere"))
	if err := New(&Budget{}).Append([]byte("more than nothing")); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("%v", err)
	}
}
